"""Programs that keep the cores: each yields its core again and again, as idle inference engines do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SPIN = "import os, time; print(flush=True); end = time.monotonic() + 60\nwhile time.monotonic() < end: os.sched_yield()"


@contextmanager
def spinning(count: int = 2) -> Iterator[None]:
    """So many of them for each core that we may use, for a minute at most."""
    started = [subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE) for _ in range(count * min(4, len(os.sched_getaffinity(0))))]
    try:
        for one in started:
            assert one.stdout is not None
            one.stdout.readline()
        yield
    finally:
        for one in started:
            one.kill()
            one.wait(10)
            if one.stdout is not None:
                one.stdout.close()
