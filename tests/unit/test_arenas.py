"""Threads share a few heaps of the C library."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from ray_rl_debug.bounded.arenas import share_arenas
if sys.argv[1] == "shared":
    assert share_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
barrier = threading.Barrier(8)
def hold():
    libc.malloc(2_000)
    barrier.wait()
threads = [threading.Thread(target=hold) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
libc.malloc_stats()
"""


def _heaps(how: str) -> int:
    told = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True).stderr
    return told.count("Arena ")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no such setting")
def test_threads_share_two_heaps() -> None:
    assert _heaps("shared") <= 2 < _heaps("each its own")
