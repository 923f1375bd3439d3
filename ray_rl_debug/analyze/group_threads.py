"""Threads that torch keeps in the members of a process group."""

from __future__ import annotations

from functools import lru_cache

from ray_rl_debug.model.snapshot import Process

_GROUP_THREADS = ("pt_gloo", "pt_nccl")
"""Names of the threads that torch keeps in members of a process group (2.4 and later name them)."""


def is_in_group(process: Process) -> bool:
    """Does torch keep threads of a process group in it?"""
    names = {t.comm for t in process.threads}.union(process.idle_threads)
    return any(map(_is_of_group, names))


@lru_cache(maxsize=1 << 12)
def _is_of_group(comm: str) -> bool:
    return comm.startswith(_GROUP_THREADS)
