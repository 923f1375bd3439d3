"""Which coroutines that sleep could wake nobody, each a loop of one function that hands nothing on, and which have a piece of work in their hands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.collect import source_lines
from ray_rl_debug.model.snapshot import AsyncTask, AwaitFrame, Process

_Lines = Mapping[tuple[int, AwaitFrame], source_lines.SourceLine]


def mark_apart(processes: Sequence[Process], *, total_s: float = source_lines.TOTAL_S, proc: Path = Path("/proc")) -> list[Process]:
    """The processes, with ``apart`` and ``takes`` at the own frame of each sleeping coroutine whose source could be read."""
    frames = {(p.pid, frame) for p in processes for t in p.async_tasks or () if (frame := _only_own(t)) is not None}
    order = sorted(frames, key=lambda f: (f[0], f[1].file or "", f[1].line or 0))
    wanted = {number: (pid, frame.file or "", frame.line or 0) for number, (pid, frame) in enumerate(order)}
    told = source_lines.read_calls(wanted, proc=proc, total_s=total_s) if wanted else {}
    lines = {order[number]: line for number, line in told.items() if line.apart is not None}
    return [_marked(p, lines) if lines and p.async_tasks else p for p in processes]


def _marked(process: Process, lines: _Lines) -> Process:
    return msgspec.structs.replace(process, async_tasks=tuple(_task(process.pid, t, lines) for t in process.async_tasks or ()))


def _task(pid: int, task: AsyncTask, lines: _Lines) -> AsyncTask:
    known = lines.get((pid, frame)) if (frame := _only_own(task)) is not None else None
    if known is None:
        return task
    chain = tuple(msgspec.structs.replace(f, apart=known.apart, takes=known.takes) if f is frame else f for f in task.chain)
    return msgspec.structs.replace(task, chain=chain)


def _only_own(task: AsyncTask) -> AwaitFrame | None:
    """Of a coroutine that sleeps its only frame outside of libraries, if it begins there."""
    if task.awaited is None or task.awaited.kind != "sleep" or not task.chain:
        return None
    own = [f for f in task.chain if f.file is not None and f.file.startswith("/")]
    return own[0] if len(own) == 1 and own[0] is task.chain[0] and own[0].line else None
