"""Threads that torch keeps in the members of a process group."""

from __future__ import annotations

from ray_rl_debug.model.snapshot import Process

_GROUP_THREADS = ("pt_gloo", "pt_nccl")
"""Names of the threads that torch keeps in members of a process group (2.4 and later name them)."""


def is_in_group(process: Process) -> bool:
    """Does torch keep threads of a process group in it?"""
    for thread in process.threads:
        if thread.comm.startswith(_GROUP_THREADS):
            return True
    return any(comm.startswith(_GROUP_THREADS) for comm in process.idle_threads)
