"""The looks at a process, without what is not its own or was only half seen."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ray_rl_debug.analyze.stacks import Stacks
from ray_rl_debug.model.snapshot import Node, Process, Sample


def forget_inherited_tasks(stacks: Stacks, node: Node, process: Process) -> Process:
    """The process without the asyncio tasks that are its parent's: a forked child has a copy of their memory, and no loop that runs them."""
    if not process.async_tasks or not process.samples:
        return process
    own = [stacks.get(node, t.stack) for t in process.samples[-1].threads]
    runs_loop = any(frame.file.startswith(("asyncio/", "uvloop/")) for stack in own for frame in stack.frames)
    inherited = not all(stack.is_whole for stack in own)
    return msgspec.structs.replace(process, async_tasks=()) if inherited and not runs_loop else process


def lacks_coroutines(process: Process) -> bool:
    """Was not read for what a coroutine waits? Or does one wait for another, or for what another holds, that is not among those that were read?"""
    tasks = process.async_tasks or ()
    read = {t.address for t in tasks}
    return any(t.awaited is None or any(a not in read for a in (*t.awaited.tasks, *t.awaited.holders)) for t in tasks)


def lacks_new_thread(process: Process) -> bool:
    """Did a thread begin during the window, so that the kernel counted nothing of it before, and was its stack met in no look?"""
    met = {t.tid for sample in process.samples for t in sample.threads}
    counted = [t.run_slices is not None for t in process.threads]
    return any(counted) and any(t.run_slices is None and t.state not in ("Z", "X") and t.tid not in met for t in process.threads)


def is_steady(process: Process) -> bool:
    """Did all looks find the same threads at the same stacks?"""
    looks = [sample.threads for sample in process.samples]
    return looks[1:] == looks[:-1]


def with_tids(process: Process) -> Process:
    """The process with the number of a thread in each look that did not read it, where one thread alone of the other looks is missing there."""
    if all(None not in [t.tid for t in sample.threads] for sample in process.samples):
        return process
    met: dict[int, set[str | None]] = {}
    for thread in (t for sample in process.samples for t in sample.threads if t.tid is not None):
        met.setdefault(thread.tid or 0, set()).add(thread.name)
    return msgspec.structs.replace(process, samples=tuple(_numbered(sample, met) for sample in process.samples))


def _numbered(sample: Sample, met: Mapping[int, set[str | None]]) -> Sample:
    here = {t.tid for t in sample.threads}
    lost = [t for t in sample.threads if t.tid is None]
    free = [tid for tid in met if tid not in here]
    if len(lost) != 1 or len(free) != 1 or lost[0].name not in met[free[0]]:
        return sample
    return msgspec.structs.replace(sample, threads=tuple(msgspec.structs.replace(t, tid=free[0]) if t is lost[0] else t for t in sample.threads))


def with_names(process: Process) -> Process:
    """The process with each thread's name in all looks, where some look did not read it: py-spy finds names in a table that changes."""
    if all(None not in [t.name for t in sample.threads] for sample in process.samples):
        return process
    nameless = {t.tid for sample in process.samples for t in sample.threads if t.name is None and t.tid is not None}
    if not nameless:
        return process
    names: dict[int | None, set[str]] = {}
    for thread in (t for sample in process.samples for t in sample.threads if t.tid in nameless and t.name is not None):
        names.setdefault(thread.tid, set()).add(thread.name or "")
    known = {tid: next(iter(found)) for tid, found in names.items() if len(found) == 1}
    if not known:
        return process
    return msgspec.structs.replace(process, samples=tuple(_named(sample, known) for sample in process.samples))


def _named(sample: Sample, known: Mapping[int | None, str]) -> Sample:
    threads = (msgspec.structs.replace(t, name=known[t.tid]) if t.name is None and t.tid in known else t for t in sample.threads)
    return msgspec.structs.replace(sample, threads=tuple(threads))


def drop_torn(process: Process) -> Process:
    """The process without the last samples in which a thread is missing that an earlier one met and that still lives.

    A thread that C made, as the pools of torch do, lives on when it has left Python, and has no name in Python.
    """
    tids_met = [[t.tid for t in sample.threads] for sample in process.samples]
    if tids_met[1:] == tids_met[:-1]:
        return process
    named = {t.tid for sample in process.samples for t in sample.threads if t.name is not None}
    met = [[t.tid for t in sample.threads if t.tid in named] for sample in process.samples]
    if met[1:] == met[:-1]:
        return process
    living = {t.tid for t in process.threads}
    tids = [living.intersection(some) for some in met]
    known: set[int | None] = set().union(*tids)
    last = next((i for i in range(len(tids) - 1, -1, -1) if tids[i] == known), None)
    if last is None or last == len(tids) - 1:
        return process
    return msgspec.structs.replace(process, samples=process.samples[: last + 1])
