"""RRD511 terminal takes no output

Story
    A rank, actor or driver prints to a terminal that shows nothing more: somebody pressed Ctrl-S there, or the program that shows it
    (an editor, ssh, tmux) stands. The next line waits in the kernel, and with it everybody who waits for that process.

Evidence
    The system call: a write to a terminal, and which, at the same place in all samples.

Remedy
    Press Ctrl-Q in that terminal, or make its program read again; then send the output of jobs to a file.

Not this when
    The process moves between the samples: the terminal is only slow. The program that shows the terminal was seen: then that one is the
    one to look at. Only *possible* if nobody waits for the process.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.printing import prints_to
from ray_rl_debug.model.report import Cause, Certainty
from ray_rl_debug.rules.held_by_person import held_by_person
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD511"
NAME = "terminal takes no output"
CAUSE = Cause.BLOCKED_IO


def detect(scene: Scene) -> Iterator[Found]:
    """Drivers, and processes at the end of a wait, whose thread prints to a terminal and does not come back."""
    for one, terminal, sure, reason in held_by_person(scene, (*scene.process_roots(), *scene.lonely("driver")), prints_to):
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            sure if scene.graph.into([one.key]) else Certainty.POSSIBLE,
            f"{one.where()} prints to {terminal}, which takes no more",
            who=[one.who()],
            evidence=[stack_evidence(one), proc_evidence(one, f"it writes to {terminal}; {reason}")],
            remedy=[
                f"press Ctrl-Q in the terminal {terminal}: Ctrl-S stops its output",
                "if that does not help, look at the program that shows it (ssh, tmux, an editor): attach anew, or end it",
                "start jobs with their output in a file (> job.log 2>&1)",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))
