"""Log files in what a user gives: each read once into a `LogBook`, with the lines of known errors and the process that wrote them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.imports.unpacking import blocks, without_zeros
from ray_rl_debug.logs.book import BLOCK_BYTES, BookReader
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.model.snapshot import Gap, LogBook, LogLine, Node, Snapshot


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """What one log holds."""

    folder: str
    time_s: float
    lines: tuple[LogLine, ...]
    pid: int | None = None
    book: LogBook | None = None
    trouble: str | None = None
    """Why its end was not read."""

    @property
    def tells(self) -> bool:
        """Is there anything in it but lines that tell of no failure, no step, no engine and no collective?"""
        return self.book is not None and bool(self.book.events or self.book.steps or self.book.stills or self.book.calls)


def read_log(path: Path, folder: str, *, read: Callable[[int], None] | None = None, plain: bytes | None = None) -> LogFile | None:
    """Failures, known errors, steps, idle engines and last collectives of a file; None when it holds none of them and does not look like a log.

    Args:
        read: Is told how many bytes of the file were read since it was last told.
        plain: All that the file holds, where that was read and unpacked already.
    """
    time_s = path.stat().st_mtime
    reader = BookReader(as_text(str(path)), modified_time_s=time_s)
    trouble = None
    try:
        if plain is not None and read is not None:
            read(path.stat().st_size)
        for block in (plain,) if plain else blocks(path, BLOCK_BYTES, read=read):
            if text := without_zeros(block):
                reader.feed(text)
    except (UnreadableFileError, OSError) as e:
        trouble = str(getattr(e, "strerror", None) or e)
    book = reader.end()
    lines = tuple(
        LogLine(file=book.file, line_number=e.text_line or e.file_line, text=e.text, signature=e.signature, time_s=e.time_s)
        for e in book.events
        if e.signature is not None and e.handled is None
    )
    found = LogFile(folder=folder, time_s=time_s, lines=lines, pid=book.writer.pid, book=book, trouble=trouble)
    return found if found.tells or reader.is_log else None


def add_logs(known: Snapshot | None, files: Sequence[LogFile]) -> Snapshot:
    """The snapshot with the lines: at their process where it is in the snapshot, else at a node named after the folder."""
    nodes = list(known.nodes) if known is not None else []
    loose: dict[str, list[LogFile]] = defaultdict(list)
    for file in files:
        at = next(((i, p) for i, n in enumerate(nodes) for p in n.processes if p.pid == file.pid), None) if file.pid else None
        if at is None:
            loose[file.folder].append(file)
            continue
        position, process = at
        with_lines = msgspec.structs.replace(process, log_lines=(*process.log_lines, *file.lines))
        processes = tuple(with_lines if p is process else p for p in nodes[position].processes)
        nodes[position] = msgspec.structs.replace(nodes[position], processes=processes)
    for folder, held in loose.items():
        lines = tuple(line for file in held for line in file.lines)
        at_node = next((i for i, n in enumerate(nodes) if n.name == folder), None)
        if at_node is None:
            nodes.append(Node(name=folder, started_time_s=min(f.time_s for f in held), window_s=0.0, log_lines=lines))
        else:
            nodes[at_node] = msgspec.structs.replace(nodes[at_node], log_lines=(*nodes[at_node].log_lines, *lines))
    books = tuple(file.book for file in files if file.book is not None)
    cut = tuple(Gap(id=gaps.FILE_UNREAD, where=f.folder, what="the end of a log", reason=f.trouble) for f in files if f.trouble is not None)
    if known is not None:
        return msgspec.structs.replace(known, nodes=tuple(nodes), logs=(*known.logs, *books), gaps=(*known.gaps, *cut))
    lack = Gap(id=gaps.NO_RAY_TABLES_IN_FILE, where="cluster", what="stacks, Ray's actors and tasks", reason="the files are logs")
    taken = max((f.time_s for f in files), default=0.0)
    return Snapshot(tool_version=__version__, taken_time_s=taken, nodes=tuple(nodes), gaps=(lack, *cut), options={"imported": True}, logs=books)
