"""Who a line speaks of, as people know the process."""

from __future__ import annotations

from ray_rl_debug.model.claims import Who
from ray_rl_debug.model.snapshot.log_book import LogBook, LogWriter


def person(writer: LogWriter, book: LogBook) -> Who:
    """The process; one that nothing names is called after its file."""
    node = writer.node or writer.ip
    parts = []
    if writer.program:
        parts.append(writer.program)
    if writer.rank is not None:
        parts.append(f"rank {writer.rank}" if writer.rank.isdigit() else writer.rank)
    if writer.pid is not None:
        parts.append(f"pid {writer.pid}")
    label = " ".join(parts) or book.file.rsplit("/", 1)[-1]
    rank = int(writer.rank) if writer.rank is not None and writer.rank.isdigit() else None
    return Who(label=label, node=node, pid=writer.pid, rank=rank, role=writer.program)


def is_same(a: LogWriter, b: LogWriter) -> bool:
    """Is it one process, as far as both say?"""
    if a.pid is not None and b.pid is not None:
        return a.pid == b.pid and (a.ip is None or b.ip is None or a.ip == b.ip)
    if a.rank is not None and b.rank is not None:
        return a.rank == b.rank and (a.program is None or b.program is None or a.program == b.program)
    return a == b
