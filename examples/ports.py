"""Port numbers that nobody takes between the moment we look and the moment a program listens there."""

from __future__ import annotations

import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
BELOW_RAY = 20000
"""Ray's workers listen from 10002 to 19999."""


def free_port() -> int:
    """A port outside the range from which the kernel gives ports to whoever connects or binds to port 0.

    A port that the kernel chose is free again when the probe closes, and goes to the next connection of any process.
    """
    try:
        first = int(RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = 32768
    for _ in range(200):
        port = random.randrange(BELOW_RAY, first) if first > BELOW_RAY else 0
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"no free port between {BELOW_RAY} and {first}")
