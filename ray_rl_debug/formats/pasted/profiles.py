"""Collapsed profiles (``py-spy record --format raw``, austin): many stacks with weights, in which threads are told apart by where they begin."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.formats.dump import CodePlace, DumpThread
from ray_rl_debug.formats.pasted.partial import Partial
from ray_rl_debug.formats.speedscope import SECOND_SHARE

THREAD_FRAMES = 5
"""Outermost frames by which two threads of Python differ: three of threading's, the target, and what that calls."""


def combined(dumps: list[Partial]) -> list[Partial]:
    """The dumps with those of each profile as two looks at its process: where each thread was most, and where else it was for long."""
    profiles: dict[object, list[Partial]] = {}
    for dump in dumps:
        if dump.weight and dump.threads:
            profiles.setdefault((dump.pid, dump.label, dump.rank, dump.ranks, dump.title, dump.node), []).append(dump)
    for raw in profiles.values():
        dumps = _of_one(dumps, raw)
    return dumps


def _of_one(dumps: list[Partial], raw: list[Partial]) -> list[Partial]:
    threads: dict[object, list[Partial]] = {}
    for dump in raw:
        thread = dump.threads[0]
        threads.setdefault((thread.tid, thread.name) if thread.tid or thread.name else _root(thread.frames), []).append(dump)
    ranked = [sorted(group, key=lambda d: -d.weight) for group in threads.values()]
    first = raw[0]
    second = Partial(threads=[], source=first.source, line=first.line, pid=first.pid, title=first.title, label=first.label, rank=first.rank)
    looks: list[tuple[Partial, list[DumpThread]]] = [(first, []), (second, [])]
    for group in ranked:
        whole = sum(d.weight for d in group)
        other = group[1] if len(group) > 1 and group[1].weight >= SECOND_SHARE * whole else group[0]
        for (_, found), dump in zip(looks, (group[0], other), strict=True):
            found.append(DumpThread(frames=dump.threads[0].frames, tid=group[0].threads[0].tid, name=group[0].threads[0].name))
    for dump, found in looks:
        dump.threads = found
    has_two = any(a.frames is not b.frames for a, b in zip(first.threads, second.threads, strict=True))
    left_out = {id(d) for d in raw[1:]}
    kept = [d for d in dumps if id(d) not in left_out]
    at = kept.index(first) + 1
    return [*kept[:at], *([second] if has_two else []), *kept[at:]]


def _root(frames: Sequence[CodePlace]) -> tuple[CodePlace, ...]:
    """Where the thread begins. The main thread's lines differ from the first frame of own code on."""
    is_started = frames[-1][0].rsplit(".", 1)[-1] in ("_bootstrap", "_bootstrap_inner", "thread_run", "clone3", "start_thread")
    return tuple((function, file, 0) for function, file, _ in frames[-THREAD_FRAMES if is_started else -1 :])
