"""A Markdown table whose columns are processes: ``| rank 0 | rank 1 |``, and in each row one frame of each, or one whole stack."""

from __future__ import annotations

from ray_rl_debug.formats.pasted import joined, labels, markdown_rows
from ray_rl_debug.formats.pasted.events import Frames, Head
from ray_rl_debug.formats.pasted.frames import read_frame

_MAX_CHARS = 8_000
_MOST_ROWS = 2_000
_MOST_COLUMNS = 64


class Columns:
    """The table that is open."""

    def __init__(self) -> None:
        self._heads: dict[int, Head] = {}
        self._frames: dict[int, list[Frames]] = {}
        self._rows = 0

    def takes(self, text: str) -> bool:
        """Is it a row of such a table?"""
        stripped = text.strip()
        if not stripped.startswith("|") or len(stripped) > _MAX_CHARS:
            return False
        cells = markdown_rows.cells(stripped)
        if not self._heads:
            self._heads = _heads(cells)
            return bool(self._heads)
        if not stripped.strip("|-: "):
            return True
        read = {at: found for at, cell in enumerate(cells) if at in self._heads and cell and (found := _of_cell(cell)) is not None}
        told = sum(1 for at, cell in enumerate(cells) if at in self._heads and cell)
        if not read or len(read) < told or self._rows >= _MOST_ROWS:
            return False
        self._rows += 1
        for at, found in read.items():
            self._frames.setdefault(at, []).append(found)
        return True

    def end(self) -> list[tuple[Head, list[Frames]]]:
        """The table is over: its processes, each with its frames in their order."""
        found = [(head, self._frames[at]) for at, head in self._heads.items() if at in self._frames]
        is_stack = any(file for _, frames in found for one in frames for _, file, _ in one.places)
        self._heads, self._frames, self._rows = {}, {}, 0
        return found if is_stack else []


def _heads(cells: list[str]) -> dict[int, Head]:
    """Whom the titles name, by their columns; empty unless two are named, and a first column alone may name nobody."""
    if not 1 < len(cells) <= _MOST_COLUMNS or any(_of_cell(c) is not None and "." in c for c in cells):
        return {}
    named = {at: head for at, c in enumerate(cells) if c and (head := labels.read(f"{c}:")) is not None}
    named = {at: head for at, head in named.items() if head.ranks or head.pid or head.label or (head.node and head.count is None)}
    return named if len(named) > 1 and all(at in named for at, c in enumerate(cells) if c and at) else {}


def _of_cell(cell: str) -> Frames | None:
    found = read_frame(cell) or joined.names(cell)
    if found is None and joined.is_code(cell) and (alone := joined.name_alone(cell)) is not None:
        found = Frames(places=(alone,))
    return found
