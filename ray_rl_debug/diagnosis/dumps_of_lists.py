"""What to dump next where Ray's own list or summary was pasted: the processes that run the calls for which a driver may wait."""

from __future__ import annotations

from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import NextDump, Outcome
from ray_rl_debug.model.snapshot import RayTask, RayTaskCount
from ray_rl_debug.rules.scene import Scene

MAX_PIDS = 8
_SHOWN = 4
_RUNS = "RUNNING"
_GIVE = "give both files to report: that is what the driver waits for"
_IDLE = Outcome(seen="it is idle", means="it has ended the call, or never got it: ray list tasks once more")


def of_lists(scene: Scene, one: Seen | None) -> NextDump | None:
    """The processes of calls that run, by a list with their pids or by a summary that counts them; None where none of them runs.

    Args:
        one: Who waits in ``ray.get``; None where no stack was given.
    """
    tasks = _running(scene)
    if tasks:
        pids = list(dict.fromkeys(t.pid for t in tasks if t.pid is not None))[:MAX_PIDS]
        names = ", ".join(dict.fromkeys(t.name for t in tasks))
        return NextDump(
            what=f"pid {', '.join(map(str, pids))}: the list of Ray says that {names[:200]} runs there",
            command="; ".join(f"py-spy dump --pid {pid}" for pid in pids),
            why=f"{one.where()} {one.does()}, and no stack of the process that runs the call was given" if one is not None else "no stack was given",
            outcomes=(Outcome(seen="it is in code of its own, or waits for somebody", means=_GIVE), _IDLE),
        )
    counts = _counted(scene, one)
    if not counts:
        return None
    told = ", ".join(f"{c.name} ({c.states[_RUNS]})" for c in counts[:_SHOWN]) + (f" and {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else "")
    waits = f"{one.where()} {one.does()}" if one is not None else "no stack was given"
    return NextDump(
        what=f"the processes that run {told}: so Ray's summary counts calls that have not ended",
        who=(one.who(),) if one is not None else (),
        command="ray list tasks --filter state=RUNNING --detail",
        why=f"{waits}, and a summary names neither pids nor nodes",
        outcomes=(
            Outcome(seen="rows with a worker_pid", means="py-spy dump --pid of each, on its node: one of them is what the driver waits for"),
            Outcome(seen="no row", means="the calls have ended: ray summary tasks once more"),
        ),
    )


def _running(scene: Scene) -> list[RayTask]:
    """Tasks that a pasted list of Ray's says to run, in processes of which no stack was given."""
    listed = scene.view.snapshot.listed
    seen = {s.process.pid for s in scene.view if s.threads}
    return [t for t in listed.tasks if t.state == _RUNS and t.pid is not None and t.pid not in seen] if listed is not None else []


def _counted(scene: Scene, one: Seen | None) -> list[RayTaskCount]:
    """Functions of which a summary counts running calls, without those that are on the stack of whoever waits: these are its own."""
    listed = scene.view.snapshot.listed
    own = {f.function.rpartition(".")[2] for t in one.threads for f in t.frames} if one is not None else set()
    running = [c for c in listed.task_counts if c.states.get(_RUNS)] if listed is not None else []
    return [c for c in running if c.name.rpartition(".")[2] not in own] if len(running) > 1 else running
