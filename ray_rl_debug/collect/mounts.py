"""Which file system a path lies on, by the mount table: asking the file system itself may never come back."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text

NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs lustre gpfs beegfs fhgfs ceph 9p afs wekafs virtiofs panfs autofs ocfs2 gfs2 pvfs2 orangefs glusterfs quobyte".split()
)
"""File systems whose server is elsewhere, or, for autofs, may have to be mounted first. All of FUSE counts as well: its server is a process."""
_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mounts:
    """The mount table of one mount namespace."""

    def __init__(self, text: str) -> None:
        rows = (line.split(" ") for line in text.splitlines())
        # of two mounts at one place the later one is seen
        self._at = {_plain(row[1]).rstrip("/") or "/": (row[2], _plain(row[0])) for row in rows if len(row) > 2}

    def network(self, path: str) -> str | None:
        """Type and server of the network mount that a path lies on; None for a local file system."""
        place = os.path.normpath(path)
        while place not in self._at and (above := os.path.dirname(place)) != place:
            place = above
        kind, source = self._at.get(place, ("", ""))
        return f"{kind} {source}" if kind in NETWORK or kind.startswith("fuse") else None


def read_mounts(pid: int | str = "self", proc: Path = PROC) -> Mounts:
    """The mounts that a process sees."""
    return Mounts(read_text(proc / str(pid) / "mounts", 8 << 20) or "")


def _plain(text: str) -> str:
    """Blanks and the like are octal in the mount table."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 8)), text)
