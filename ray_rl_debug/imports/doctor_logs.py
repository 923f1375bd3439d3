"""The doctor's facts from logs: known errors, but for those that the run survived."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.collect.logs import read_log_paths
from ray_rl_debug.imports.logs import read_log
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.model.health import Health, NodeHealth, Plan
from ray_rl_debug.model.snapshot import LogLine
from ray_rl_debug.story.tell import tell


def check_logs(paths: Sequence[Path], *, clock: Callable[[], float] = time.time) -> Health:
    """Post mortem: what logs and folders of logs say, one row per folder that was named.

    Raises:
        UsageError: one of them is not there.
    """
    nodes = []
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no {path}", hint="name the log folder of a job, or a session folder of Ray")
        lines, missing = read_log_paths([path])
        lines = _not_survived(lines, path)
        shown = tuple(msgspec.structs.replace(line, file=_below(line.file, path)) for line in lines)
        nodes.append(NodeHealth(tool_version=__version__, name=path.resolve().name, taken_time_s=clock(), plan=Plan(), log_lines=shown, gaps=missing))
    return Health(nodes=tuple(nodes))


def _not_survived(lines: Sequence[LogLine], path: Path) -> tuple[LogLine, ...]:
    """Without known errors that the run survived, as its logs tell, or that were only logged: `report` accuses nobody of them."""
    read = {name: read_log(Path(name), path.name) for name in {line.file for line in lines} if Path(name).is_file()}
    books = {name: found.book for name, found in read.items() if found is not None and found.book is not None}
    story = tell([books[name] for name in sorted(books)])
    if story is None:
        return tuple(lines)
    serious = {(e.file, e.signature) for e in (story.first, *story.then) if e is not None}
    excused = {(e.file, e.signature) for e in (*story.survived, *story.noted)} - serious
    return tuple(line for line in lines if line.file not in books or (books[line.file].file, line.signature) not in excused)


def _below(file: str, folder: Path) -> str:
    try:
        return str(Path(file).relative_to(folder)) if folder.is_dir() else file
    except ValueError:
        return file
