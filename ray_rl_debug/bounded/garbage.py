"""Python's search for cycles, at rest while facts are made and judged."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Facts are trees: the search would walk through all of them again and again, a tenth of the time and more, and find nothing that may go."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
