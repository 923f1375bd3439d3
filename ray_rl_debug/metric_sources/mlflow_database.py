"""Runs in MLflow's SQLite database: its default, and what verl writes unless it is told otherwise (``sqlite:////tmp/mlruns.db``).

Only three tables are read, whose columns are the same in all versions since 1.0: ``runs``, ``metrics``, ``params``. MLflow itself is not needed.
A database cannot hold NaN and infinity; MLflow writes the first as a flag beside the value, the second as the largest number there is.
"""

from __future__ import annotations

import math
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.metric_sources.gathered import Gathered, as_number
from ray_rl_debug.metric_sources.mlflow import own_name, own_setting
from ray_rl_debug.model.errors import UnreadableFileError, UsageError

_HEAD = b"SQLite format 3\0"
_BUSY_S = 5.0
"""How long a trainer that is writing at this moment is waited for."""
_ENDED = ("FINISHED", "FAILED", "KILLED")
_SHOWN = 4


class Row(NamedTuple):
    """One run of the table."""

    id: str
    name: str
    status: str

    @property
    def called(self) -> str:
        return f"{self.id} ({self.name})" if self.name else self.id


def is_database(path: Path) -> bool:
    """Is it a file of SQLite, of whatever content?"""
    try:
        with open_regular(path, follow=True) as f:
            return f.read(len(_HEAD)) == _HEAD
    except OSError:
        return False


def files_in(folder: Path) -> list[Path]:
    """Databases that lie in a folder."""
    return sorted(p for p in folder.glob("*.db") if is_database(p))


def read(path: Path, into: Gathered, wanted: str | None = None) -> None:
    """All metrics and parameters of the one run, or of the one that is wanted, by its id or its name.

    Raises:
        UnreadableFileError: it is damaged, or no database of MLflow's.
        UsageError: which of several runs is meant is not clear.
    """
    values = 0
    with _opened(path) as database:
        run = _chosen(path, _runs(path, database), wanted)
        rows = database.execute("SELECT key, step, value, is_nan FROM metrics WHERE run_uuid = ? ORDER BY timestamp, step", (run.id,))
        for name, step, value, is_nan in rows:
            number = math.nan if is_nan else as_number(value)
            if number is None or not isinstance(step, int):
                continue
            values += 1
            into.add(step, own_name(str(name)), math.copysign(math.inf, number) if abs(number) >= sys.float_info.max else number)
        for name, text in database.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run.id,)):
            into.keep_setting(own_setting(str(name)), text)
    into.is_ended = True if run.status in _ENDED else None
    into.sources.append(f"{path.name}: MLflow database, run {run.called}, {values:,} values")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=_BUSY_S)) as database:
            yield database
    except sqlite3.Error as e:
        hint = "where a trainer writes it on a network disk, copy it first and read the copy"
        raise UnreadableFileError(f"{path}: this database cannot be read ({e})", hint=hint) from e


def _runs(path: Path, database: sqlite3.Connection) -> list[Row]:
    """Runs that were not deleted, the oldest first."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"runs", "metrics", "params"} <= tables:
        raise UnreadableFileError(f"{path}: a database, and none of MLflow's")
    query = "SELECT run_uuid, name, status FROM runs WHERE lifecycle_stage IS NOT 'deleted' ORDER BY start_time"
    return [Row(str(i), str(name or ""), str(status or "")) for i, name, status in database.execute(query)]


def _chosen(path: Path, runs: list[Row], wanted: str | None) -> Row:
    found = [r for r in runs if wanted in (None, r.id, r.name)]
    if len(found) == 1:
        return found[0]
    if not runs:
        raise UnreadableFileError(f"{path}: MLflow's database holds no run")
    near = found or runs
    shown = ", ".join(r.called for r in reversed(near[-_SHOWN:])) + (", ..." if len(near) > _SHOWN else "")
    held = f"{len(found)} runs" if wanted is None else f"{len(found) or 'no'} run{'s' if len(found) > 1 else ''} called {wanted}"
    raise UsageError(f"{path} holds {held}", hint=f"name one with --run ID, the latest first: {shown}")
