"""RRD506 breakpoint waits for a person

Story
    A breakpoint was left in the code of a rank, actor or service. Its debugger waits there until a person attaches and goes
    on; everybody else waits for that process.

Evidence
    A frame of a debugger in the stack of the process: pdb, torch.distributed.breakpoint, Ray's debugger, debugpy.

Remedy
    Attach and continue, or remove the breakpoint and the environment variable that turns failures into breakpoints.

Not this when
    The process moves between the samples: a person is at work there. Only *possible* if it was named by its pid and nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.debuggers import debugger_of
from ray_rl_debug.model.report import Cause, Certainty
from ray_rl_debug.rules.held_by_person import held_by_person
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD506"
NAME = "breakpoint waits for a person"
CAUSE = Cause.BLOCKED_IO


def detect(scene: Scene) -> Iterator[Found]:
    """Processes at the end of a wait whose thread stands in a debugger."""
    for one, stop, sure, reason in held_by_person(scene, scene.process_roots(), lambda _, thread: debugger_of(thread.frames)):
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            sure if one.process.kind != "named" or scene.graph.into([one.key]) else Certainty.POSSIBLE,
            f"{one.where()} stands at a breakpoint: {stop} waits for a person",
            who=[one.who()],
            evidence=[stack_evidence(one), proc_evidence(one, reason)],
            remedy=[
                "attach to it and go on (ray debug for Ray's debugger, an editor for debugpy, the rank's own terminal for pdb)",
                "remove the breakpoint from the code; unset RAY_DEBUG_POST_MORTEM, which makes one of each failure",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))
