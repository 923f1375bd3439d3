"""Memory of threads: glibc gives each new one a heap of its own, up to eight for every core of the machine, and what is freed there stays there."""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8
"""``malloc.h`` of glibc."""
MOST = 2
"""They hold 2 to 3 % less of a thousand nodes than sixteen do on two cores, for up to a tenth more processor time. A head with more cores would have
more heaps."""


def share_arenas() -> bool:
    """Let the threads that come share a few heaps. False where the C library has no such setting; heaps that are there already stay."""
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(M_ARENA_MAX, MOST))
    return False
