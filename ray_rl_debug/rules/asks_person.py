"""RRD509 question waits for a person

Story
    A rank, actor or service asked a question (input, a password, yes or no) at a terminal. Nobody sits there or nobody saw it;
    everybody else waits for that process.

Evidence
    The system call: a read from a terminal, and which. In stacks alone: the function of a library that asks.

Remedy
    Type the answer at that terminal. Then give the answer in the configuration, and start jobs with < /dev/null: a question is
    an error there, and no hang.

Not this when
    Answers come. A debugger asks (RRD506). A program at the other end of a pipe should answer: then that program is the one to
    look at. Only *possible* if nobody waits for the process: a person may be at work there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.prompts import asked_at
from ray_rl_debug.model.report import Cause, Certainty
from ray_rl_debug.rules.held_by_person import held_by_person
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD509"
NAME = "question waits for a person"
CAUSE = Cause.BLOCKED_IO


def detect(scene: Scene) -> Iterator[Found]:
    """Processes at the end of a wait whose thread reads from a terminal."""
    for one, terminal, sure, reason in held_by_person(scene, scene.process_roots(), asked_at):
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            sure if scene.graph.into([one.key]) else Certainty.POSSIBLE,
            f"{one.where()} waits at {terminal} for a person to type an answer",
            who=[one.who()],
            evidence=[stack_evidence(one), proc_evidence(one, f"it reads from {terminal}; {reason}")],
            remedy=[
                "read the last line of its output: the question stands there; type the answer at that terminal",
                "give the answer in the configuration or the environment, and start jobs with < /dev/null: a question is an error there, no hang",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))
