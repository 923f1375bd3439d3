"""What the source tells of coroutines that sleep or wait for what others bring: which hand nothing on, have a piece in hand, look, or go round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.collect import source_lines
from ray_rl_debug.model.snapshot import AsyncTask, AwaitFrame, Process
from ray_rl_debug.model.source_line import SourceLine

_Lines = Mapping[tuple[int, AwaitFrame], SourceLine]
_BROUGHT = frozenset({"queue", "event", "condition", "future"})
"""What another coroutine brings."""


def mark_apart(processes: Sequence[Process], *, total_s: float = source_lines.TOTAL_S, proc: Path = Path("/proc")) -> list[Process]:
    """The processes, with what the source tells at the innermost own frame of each such coroutine.

    ``apart`` and ``takes`` are told where it is the only one.
    """
    frames = {(p.pid, frame) for p in processes for t in p.async_tasks or () if (frame := _own(t)) is not None}
    order = sorted(frames, key=lambda f: (f[0], f[1].file or "", f[1].line or 0))
    wanted = {number: (pid, frame.file or "", frame.line or 0) for number, (pid, frame) in enumerate(order)}
    told = source_lines.read_calls(wanted, proc=proc, total_s=total_s) if wanted else {}
    lines = {order[number]: line for number, line in told.items() if line.apart is not None or line.requests_bring is not None}
    return [_marked(p, lines) if lines and p.async_tasks else p for p in processes]


def _marked(process: Process, lines: _Lines) -> Process:
    return msgspec.structs.replace(process, async_tasks=tuple(_task(process.pid, t, lines) for t in process.async_tasks or ()))


def _task(pid: int, task: AsyncTask, lines: _Lines) -> AsyncTask:
    known = lines.get((pid, frame)) if (frame := _own(task)) is not None else None
    if known is None or frame is None:
        return task
    told = msgspec.structs.replace(frame, looks=known.looks, brings=known.requests_bring, goes_round=known.goes_round)
    if frame is task.chain[0]:
        told = msgspec.structs.replace(told, apart=known.apart, takes=known.takes)
    return msgspec.structs.replace(task, chain=tuple(told if f is frame else f for f in task.chain))


def _own(task: AsyncTask) -> AwaitFrame | None:
    """Its innermost frame outside of libraries; of one that sleeps below another of its own the line tells nothing of the outer one."""
    if task.awaited is None or task.awaited.kind not in ("sleep", *_BROUGHT) or not task.chain:
        return None
    own = next((f for f in reversed(task.chain) if f.file is not None and f.file.startswith("/")), None)
    return own if own is not None and own.line else None
