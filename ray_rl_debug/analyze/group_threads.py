"""Threads that torch keeps in the members of a process group."""

from __future__ import annotations

from functools import lru_cache

from ray_rl_debug.model.snapshot import Process

_GROUP_THREADS = ("pt_gloo", "pt_nccl")
"""Names of the threads that torch keeps in members of a process group (2.4 and later name them)."""


def is_in_group(process: Process) -> bool:
    """Does torch keep threads of a process group in it?"""
    return _has_one_of_group(tuple([t.comm for t in process.threads]), tuple(process.idle_threads))


@lru_cache(maxsize=1 << 12)
def _has_one_of_group(*commands: tuple[str, ...]) -> bool:
    """Processes of one program have threads of the same names, however many they are."""
    return any(comm.startswith(_GROUP_THREADS) for some in commands for comm in some)
