"""Who started an idle process: its stack begins where multiprocessing did so, and the one that started it gives it its work."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.analyze.library_frames import is_library, short_name
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.diagnosis.dump_targets import named, pid_of
from ray_rl_debug.model.report import NextDump, Outcome
from ray_rl_debug.model.snapshot import Frame
from ray_rl_debug.rules.scene import Scene


def is_worker_of_parent(one: Seen) -> bool:
    """Did the process that gives it its work start it by multiprocessing? A fork server gives none."""
    stacks = [t.stack.whole for t in one.threads if t.is_main or len(one.threads) == 1]
    return any(_of_multiprocessing(frames) for frames in stacks)


def place_of_start(one: Seen) -> str | None:
    """The own line at which its parent forked it, as the child's stack carries it on: ``fit (trainer.py:97)``."""
    inherited = (f for t in one.threads for f in t.stack.whole[len(t.stack.frames) :])
    own = next((f for f in inherited if not is_library(f)), None)
    return f"{short_name(own.function)} ({own.file}:{own.line})" if own is not None else None


def _of_multiprocessing(frames: Sequence[Frame]) -> bool:
    names = {(short_name(f.function), f.file.rpartition("multiprocessing/")[2]) for f in frames if "multiprocessing/" in f.file}
    return not names.isdisjoint(_STARTS) and not any(file == "forkserver.py" for _, file in names)


_STARTS = {("_launch", "popen_fork.py"), ("spawn_main", "spawn.py")}


def parent_of(scene: Scene, one: Seen) -> NextDump:
    """The process that started an idle one: all that it does is asked of it from there."""
    place = place_of_start(one)
    return NextDump(
        what=f"the parent of {named(scene, one)}",
        who=(one.who(),),
        command=f"py-spy dump --pid $(ps -o ppid= -p {pid_of(one)})",
        why=f"it waits for work, and its parent, which started it{f' in {place}' if place is not None else ''}, gives it that",
        outcomes=(
            Outcome(seen="it waits for this process", means="each waits for the other: a message between them was lost, or another child has it"),
            Outcome(seen="it is in code of its own, or waits for something else", means="that line is the cause: this process is a bystander"),
        ),
    )
