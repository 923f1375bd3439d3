"""What threads do in C that run at one place of Python: they compute, or they wait for their accelerator with a core of their own.

CUDA's calls wait by asking the card again and again, so a thread in ``loss.item()`` looks like one that computes. Only the frames below Python tell.
py-spy reads them, and stops the process for that: 0.86 s was measured of one with torch on an H100. So it is done once, behind the window, and only
where a thread ran at one place all the time in a process that has the library of an accelerator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ray_rl_debug.collect.procfs import read_bytes
from ray_rl_debug.formats.pyspy_json import RawFrame, RawThread
from ray_rl_debug.formats.stack_table import StackTable
from ray_rl_debug.model.snapshot import InC, Sample

_ACCELERATORS = re.compile(rb"/lib(?:cuda|amdhip64|hsa-runtime64|ascendcl|ze_loader|musa)\.so")
"""Loaded by whoever talks to a card: by torch only once it does."""
_MAX_MAPS_BYTES = 8 << 20
MAX_CALLS = 24
"""Of C frames above Python's: below the call that tells lie a dozen of the driver."""


def uses_accelerator(pid: int, proc: Path = Path("/proc")) -> bool:
    """Has the process the library of an accelerator's driver in its memory?"""
    try:
        maps = read_bytes(proc / str(pid) / "maps", _MAX_MAPS_BYTES)
    except OSError:
        return False
    return maps is not None and _ACCELERATORS.search(maps) is not None


def run_at_one_place(samples: Sequence[Sample]) -> Mapping[int, int]:
    """The stack of each thread that was met running at it in all samples, by its id; of a single sample none."""
    if len(samples) < 2:
        return {}
    met = [{t.tid: t.stack for t in s.threads if t.tid is not None and t.active} for s in samples]
    return {tid: stack for tid, stack in met[0].items() if all(m.get(tid) == stack for m in met)}


def calls_in_c(threads: Sequence[RawThread], places: Mapping[int, int], table: StackTable) -> tuple[InC, ...]:
    """What a dump with C frames says of the threads that still stand at their places."""
    found = []
    for thread in threads:
        tid = thread.os_thread_id
        first = next((i for i, f in enumerate(thread.frames) if not _is_c(f)), None)
        if tid is None or tid not in places or first is None:
            continue
        # frames of C also lie between those of Python
        python = table.add([(f.name, f.filename, f.line) for f in thread.frames if not _is_c(f)])
        calls = [_short(f) for f in thread.frames[:first] if not f.name.startswith("0x")]
        if python == places[tid]:
            found.append(InC(tid=tid, stack=python, calls=table.add(calls[:MAX_CALLS])))
    return tuple(found)


def _is_c(frame: RawFrame) -> bool:
    """Where the unwinder lost its way, a frame has neither name nor module."""
    return frame.module is not None or frame.filename == "?"


def _short(frame: RawFrame) -> tuple[str, str, int]:
    """The function without what C++ says of its arguments, and the library: addresses and folders differ from process to process."""
    return frame.name.partition("(")[0] or frame.name, frame.filename.rsplit("/", 1)[-1], frame.line
