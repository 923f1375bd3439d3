"""How many facts the tables of a node stand for: a row that stands in many places counts in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from operator import add
from typing import Any

from ray_rl_debug.model.node_tables import Kind, NodeTables, shapes
from ray_rl_debug.model.packed_numbers import unpack_numbers
from ray_rl_debug.model.snapshot import Node


def check_size(given: NodeTables, rows: Mapping[type[Any], int], limit: int) -> None:
    """Raises ValueError for more facts than `limit`. The tables were unpacked before, `rows` by structure: each place in them is there."""
    if _at_most(given) > limit and (size := _exactly(given, rows)) > limit:
        raise ValueError(f"{size} facts")


def _at_most(given: NodeTables) -> int:
    """As if each row held the longest list of each sort: enough for nearly all nodes, and counted in no time."""
    row: dict[type[Any] | None, int] = {}
    rows: dict[type[Any] | None, int] = {}
    for kind, shape in shapes().items():
        table = given.tables.get(kind.__name__)
        columns = table.columns if table is not None else {}
        row[kind] = 1 + sum((row if c.kind is Kind.ROW else rows)[c.of] for c in shape.columns if c.of is not None and c.name in columns)
        rows[kind] = row[kind] * max(unpack_numbers(table.lengths), default=0) if table is not None else 0
    return row[Node]


def _exactly(given: NodeTables, rows: Mapping[type[Any], int]) -> int:
    sizes: dict[tuple[Kind, type[Any] | None], list[int]] = {}
    for kind, shape in shapes().items():
        table = given.tables.get(kind.__name__)
        if table is None:
            sizes[Kind.ROW, kind] = sizes[Kind.ROWS, kind] = [0]
            continue
        size = [1] * rows[kind]
        for column in shape.columns:
            if column.of is not None and column.name in table.columns:
                size = list(map(add, size, map(sizes[column.kind, column.of].__getitem__, unpack_numbers(table.columns[column.name]))))
        found = list(map(size.__getitem__, unpack_numbers(table.lists)))
        ends = [0, *accumulate(unpack_numbers(table.lengths))]
        sizes[Kind.ROW, kind] = [0, *size]
        sizes[Kind.ROWS, kind] = [0, *(sum(found[start:end]) for start, end in pairwise(ends))]
    return sizes[Kind.ROW, Node][1]
