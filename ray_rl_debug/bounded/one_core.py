"""Libraries of numbers keep to one core: each would start a thread for every core of the machine, and we are guests on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_ASKED = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What the libraries beneath numpy and scipy ask when they are loaded. Each of the two packages brings a copy of its own."""


@contextmanager
def one_core() -> Iterator[None]:
    """What is imported inside for the first time takes one core, unless the user has said otherwise. Programs that we start know nothing of it."""
    unset = [name for name in _ASKED if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            os.environ.pop(name, None)
