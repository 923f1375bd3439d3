"""Tables of ``ray list actors``, ``ray list tasks`` and ``ray summary tasks``, and the demands of ``ray status``, pasted below a stack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ray_rl_debug.model.snapshot import RayActor, RayDemand, RayState, RayTask, RayTaskCount

MAX_ROWS = 10_000
_COLUMN = re.compile(r"[A-Z][A-Z_]{2,40}")
_CELL = re.compile(r"\S+(?: \S+)*")
"""Columns are parted by two blanks or more."""
_KINDS = {"ACTOR_ID": "CLASS_NAME", "TASK_ID": "FUNC_OR_CLASS_NAME"}
"""The first column of each table, and another that only this table has."""

_COUNT = re.compile(r"(?P<state>[A-Z][A-Z_]{2,40}): (?P<count>\d{1,9})")
"""``RUNNING: 8``"""
_DEMAND = re.compile(
    r"^\W{0,12}\{(?P<need>'[^{}\n]{1,300})\}(?: \* \d{1,6})?(?: \([A-Z_]{4,20}\))?: "
    r"(?P<count>\d{1,9})\+? pending (?P<kind>tasks/actors|placement groups)",
    re.MULTILINE,
)
"""``{'GPU': 1.0}: 4+ pending tasks/actors``"""


_USAGE = re.compile(r"^\W{0,12}(?P<used>\d{1,12}\.\d{1,6})/(?P<whole>\d{1,12}\.\d{1,6}) (?P<name>[A-Za-z][\w:.-]{0,80})$", re.MULTILINE)
"""`` 2.0/8.0 GPU``"""


def read_lists(text: str) -> RayState | None:
    """Actors, tasks and demands of all such tables in the text; None where it has none. Cells that are missing are None."""
    actors: dict[str, RayActor] = {}
    tasks: dict[str, RayTask] = {}
    for row in _rows(text.splitlines()):
        if "CLASS_NAME" in row and "ACTOR_ID" in row:
            one = RayActor(
                actor_id=row["ACTOR_ID"],
                job_id=row.get("JOB_ID", ""),
                class_name=row["CLASS_NAME"][:200],
                state=row.get("STATE", ""),
                name=row.get("NAME"),
                node_id=row.get("NODE_ID"),
                pid=_number(row.get("PID")),
            )
            actors[one.actor_id] = one
        elif "TASK_ID" in row and "STATE" in row:
            task = RayTask(
                task_id=row["TASK_ID"],
                name=row.get("NAME", row.get("FUNC_OR_CLASS_NAME", "?"))[:200],
                state=row["STATE"],
                job_id=row.get("JOB_ID"),
                kind=row.get("TYPE"),
                actor_id=row.get("ACTOR_ID"),
                node_id=row.get("NODE_ID"),
                pid=_number(row.get("WORKER_PID")),
            )
            tasks[task.task_id] = task
    counts = _counts(text.splitlines()) if "STATE_COUNTS" in text else ()
    demands = tuple(RayDemand(need=m["need"].replace("'", ""), count=int(m["count"]), kind=m["kind"]) for m in _DEMAND.finditer(text))[:MAX_ROWS]
    if not actors and not tasks and not demands and not counts:
        return None
    usage = {m["name"]: (float(m["used"]), float(m["whole"])) for m in _USAGE.finditer(text)}
    return RayState(address="", actors=tuple(actors.values()), tasks=tuple(tasks.values()), task_counts=counts, demands=demands, usage=usage)


def _counts(lines: Sequence[str]) -> tuple[RayTaskCount, ...]:
    """Rows of ``ray summary tasks``: the states of one row stand in one line, or in the lines below it."""
    found: list[RayTaskCount] = []
    columns: list[tuple[str, int, int]] = []
    for line in lines:
        plain = line.expandtabs(8).rstrip()
        if "STATE_COUNTS" in plain and "FUNC_OR_CLASS_NAME" in plain:
            columns = [(m[0], m.start(), m.end()) for m in _COLUMN.finditer(plain)]
            continue
        cells = list(_CELL.finditer(plain)) if columns else []
        if not cells or len(found) > MAX_ROWS:
            columns = []
            continue
        is_row = len(cells) >= 3 and cells[0][0].isdecimal()
        row = {name: c[0] for c in cells[is_row:] if (name := _column_of(columns, c.start(), c.end())) is not None}
        states = {m["state"]: int(m["count"]) for m in _COUNT.finditer(row.get("STATE_COUNTS", ""))}
        if is_row and states and "FUNC_OR_CLASS_NAME" in row:
            found.append(RayTaskCount(name=row["FUNC_OR_CLASS_NAME"][:200], kind=row.get("TYPE"), states=states))
        elif not is_row and states and found and len(cells) == 1:
            found[-1] = RayTaskCount(name=found[-1].name, kind=found[-1].kind, states={**found[-1].states, **states})
        elif plain.strip(" -"):
            columns = []
    return tuple(found)


def _rows(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    """Each row of each table, by the names of the columns."""
    columns: list[tuple[str, int, int]] = []
    count = 0
    for line in lines:
        plain = line.expandtabs(8).rstrip()
        if any(first in plain for first in _KINDS) and (names := list(_COLUMN.finditer(plain))) and plain.split()[0] in _KINDS:
            columns = [(m[0], m.start(), m.end()) for m in names]
            continue
        cells = list(_CELL.finditer(plain)) if columns else []
        if len(cells) < 3 or not cells[0][0].isdecimal():
            columns = columns if not plain.strip(" -") else []
            continue
        count += 1
        if count > MAX_ROWS:
            return
        yield {name: c[0] for c in cells[1:] if (name := _column_of(columns, c.start(), c.end())) is not None}


def _column_of(columns: Sequence[tuple[str, int, int]], start: int, end: int) -> str | None:
    """Text begins where the name of its column does, numbers end where it ends."""
    return next((name for name, first, last in columns if start == first or end == last), None)


def _number(text: str | None) -> int | None:
    """Ray writes 0 for a process that does not exist yet."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 and int(text) else None
