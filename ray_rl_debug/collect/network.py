"""Bytes that this machine's network interfaces have moved, from ``/proc/net/dev``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ray_rl_debug.collect.procfs import PROC, read_text


class NetworkBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of all interfaces of our network namespace since boot, loopback left out."""

    received: int | None = None
    sent: int | None = None

    def since(self, before: NetworkBytes) -> NetworkBytes:
        """What moved after `before`; unknown where either is, or where an interface went away meanwhile."""
        return NetworkBytes(received=_gained(self.received, before.received), sent=_gained(self.sent, before.sent))


def read_network(proc: Path = PROC) -> NetworkBytes:
    """The totals now; InfiniBand and other transports that bypass the kernel are not in them."""
    text = read_text(proc / "net" / "dev", 1 << 20)
    if text is None:
        return NetworkBytes()
    received = sent = 0
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and name.strip() != "lo" and len(words) >= 9 and words[0].isdigit() and words[8].isdigit():
            received, sent = received + int(words[0]), sent + int(words[8])
    return NetworkBytes(received=received, sent=sent)


def _gained(now: int | None, before: int | None) -> int | None:
    return now - before if now is not None and before is not None and now >= before else None
