"""RRD206 zero training steps

Story
    The job ended well, sometimes with a cheerful last line, but completed no training step: an early error was
    swallowed, or there was nothing to do.

Evidence
    Ray's task events: the driving call finished, no call of a training phase ever ran.

Remedy
    Check the step count and the log of the first seconds.

Not this when
    Steps were done, or the events of earlier tasks were dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Who
from ray_rl_debug.model.snapshot import RayState, TaskHistory
from ray_rl_debug.rules.scene import Found, Scene, make_finding

ID = "RRD206"
NAME = "zero training steps"
CAUSE = Cause.ZERO_STEPS


_DRIVES = re.compile(r"(^|\.)(fit|train|run|main)$")
_WORK = frozenset({"rollout", "reward", "logprob", "values", "advantage", "update"})


def _own(history: Iterable[TaskHistory]) -> list[str]:
    """Names of the job's calls, without constructors and without ours."""
    names = sorted({h.name for h in history})
    return [n for n in names if not n.endswith(".__init__") and not n.startswith("RayRlDebug")][:8]


def _have_ended(ray: RayState) -> bool:
    return bool(ray.jobs) and not any(job.alive for job in ray.jobs)


def detect(scene: Scene) -> Iterator[Found]:
    """Jobs whose driving call has finished while no task of a training phase ever did."""
    ray = scene.view.ray
    if ray is None or scene.graph.edges or not ray.history or any(not s.is_idle for s in scene.view if s.process.kind == "ray-worker"):
        return
    # what runs on the ranks themselves may well make its steps inside of one call
    own = {one.identity.class_name for w in scene.worlds for one in w.members}
    own |= {h.name.rpartition(".")[0] for h in ray.history if phase_of_name(h.name) == "init" and not h.name.endswith(".__init__")}
    # what has finished several times was one step of the job each time, and not the whole of it
    drivers = [h for h in ray.history if h.count == 1 and _DRIVES.search(h.name) and h.name.rpartition(".")[0] not in own]
    phases = {phase_of_name(h.name) for h in ray.history}
    ranks = [w for w in scene.worlds if len(w.members) > 1 or w.size]
    if not drivers or phases & _WORK or not (ranks or "init" in phases) or any(w.running_task_ids for w in ray.core_workers if w.kind != "DRIVER"):
        return
    name = drivers[0].name
    label = name.rsplit(".", 1)[0] if "." in name else name
    one = next((s for s in scene.view if s.identity.class_name == label), None)
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY if one is not None or _have_ended(ray) else Certainty.POSSIBLE,  # who was not seen may run the next
        f"{name} ended without an error and without a single training step",
        who=[one.who() if one is not None else Who(label=label, task=name)],
        evidence=[Evidence(kind="task", where="Ray's task events", text=f"finished: {', '.join(_own(ray.history))}")],
        remedy=[
            "check the number of steps: an empty dataset, total_training_steps=0, a resumed checkpoint that is already at the end",
            "look in the log for an exception that cleanup code swallowed",
        ],
        phase="cleanup",
    )
    yield Found(finding=finding, explains=frozenset([one.key] if one is not None else []))
