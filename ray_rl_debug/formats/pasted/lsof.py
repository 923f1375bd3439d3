"""``lsof``: which process has a file open, and which holds the lock on it (``12uW``)."""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import HeldFile
from ray_rl_debug.formats.pasted.events import Row

_ROW = re.compile(
    r"^\W{0,4}(?P<command>[A-Za-z]\S{0,40}) {1,20}(?P<pid>\d{1,9}) {1,20}(?:\d{1,9} {1,20}(?:\S{1,32} {1,20})?)?[A-Za-z_]\S{0,31} {1,20}"
    r"(?P<fd>\d{1,6})(?P<mode>[urw-])?(?P<lock>[rRwWuUxXN])? {1,20}REG {1,20}(?P<major>\d{1,6}),(?P<minor>\d{1,9}) {1,20}"
    r"(?:(?:0t|0x)?[\da-f]{1,20} {1,20})?(?P<inode>\d{1,20}) {1,4}(?P<path>/\S.{0,400}?)\s{0,20}$"
)
_LOCKS = {"r": "READ", "R": "READ", "w": "WRITE", "W": "WRITE", "u": "WRITE", "U": "WRITE", "x": "WRITE", "X": "WRITE"}


def read(text: str) -> Row | None:
    """A row of a regular file; those of libraries, pipes and sockets tell nothing of locks."""
    found = _ROW.match(text) if " REG " in text else None
    if found is None:
        return None
    file = HeldFile(
        fd=int(found["fd"]),
        path=found["path"],
        device=f"{int(found['major']):02x}:{int(found['minor']):02x}",
        inode=int(found["inode"]),
        writable=found["mode"] in ("u", "w") if found["mode"] else None,
        lock=_LOCKS.get(found["lock"] or ""),
    )
    return Row(pid=int(found["pid"]), title=found["command"], file=file)
