"""Log files in what a user gives: the lines of known errors, with the process that wrote them where the file's name tells it."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.collect.logs import read_log_paths
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap, LogLine, Node, Snapshot
from ray_rl_debug.signatures.match import Matcher

_OF_PID = re.compile(r"^(?:(?:io-)?worker-[0-9a-f]+-[0-9a-f]+-|python-core-(?:worker|driver)-[0-9a-f]+_)(\d+)\.(?:out|err|log)$")


class LogFile(msgspec.Struct, frozen=True, kw_only=True):
    """Known errors in one log."""

    folder: str
    time_s: float
    lines: tuple[LogLine, ...]
    pid: int | None = None


def read_log(path: Path, folder: str) -> LogFile | None:
    """The known errors of a file; None when it holds none."""
    lines, _ = read_log_paths([path], matcher=_matcher())
    if not lines:
        return None
    named = _OF_PID.match(path.name)
    return LogFile(folder=folder, time_s=path.stat().st_mtime, lines=lines, pid=int(named[1]) if named else None)


@functools.cache
def _matcher() -> Matcher:
    return Matcher()


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
    if known is not None:
        return msgspec.structs.replace(known, nodes=tuple(nodes))
    lack = Gap(id=gaps.NO_RAY_TABLES_IN_FILE, where="cluster", what="stacks, Ray's actors and tasks", reason="the files are logs")
    taken = max((f.time_s for f in files), default=0.0)
    return Snapshot(tool_version=__version__, taken_time_s=taken, nodes=tuple(nodes), gaps=(lack,), options={"imported": True})
