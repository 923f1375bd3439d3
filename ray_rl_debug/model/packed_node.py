"""A node's facts packed for their way to the driver, and unpacked there: see `node_tables` for the form."""

from __future__ import annotations

import gzip
import math
from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.foreign_text import as_text, map_text
from ray_rl_debug.model.node_tables import FORM, MAPPINGS, Column, Kind, NodeTables, Table, shapes
from ray_rl_debug.model.packed_numbers import pack_fractions, pack_lists, pack_numbers, unpack_fractions, unpack_lists, unpack_numbers
from ray_rl_debug.model.packed_size import check_size
from ray_rl_debug.model.snapshot import Fact, Node

KEPT_TEXTS = 1 << 16
"""Different strings of all nodes that are remembered. What recurs comes with the first nodes; ports and addresses are new with each."""
LONG = 400
"""Longer strings are hardly ever equal."""
LEAST_FACT_BYTES = 16
"""What a structure takes in plain JSON, at least: so many may stand for each byte that a node may send. A row that stands in many places counts in
each of them, as whoever reads the facts meets it there."""


def pack_node(node: Node) -> bytes:
    """Gzipped tables; the same node always gives the same bytes."""
    return gzip.compress(to_tables(node), compresslevel=6, mtime=0)


def to_tables(node: Node) -> bytes:
    """Text that is no text is spelled out, as `codec.encode` does."""
    try:
        return _Packing().whole(node)
    except UnicodeEncodeError:
        return _Packing().whole(map_text(node, as_text))


class _Packing:
    """The tables of one node."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._shares: dict[float, int] = {}
        self._lists: dict[type[Any], dict[tuple[int, ...], int]] = {str: {}} | {kind: {} for kind in shapes()}
        self._mappings: dict[Kind, dict[tuple[tuple[int, ...], tuple[int, ...]], int]] = {kind: {} for kind in MAPPINGS}
        self._rows: dict[type[Any], list[Fact]] = {kind: [] for kind in shapes()}
        self._known: dict[Fact, int] = {}
        self._columns: dict[type[Any], list[list[int]]] = {kind: [[] for _ in shape.columns] for kind, shape in shapes().items()}

    def whole(self, node: Node) -> bytes:
        self._row(node)
        tables = {}
        for kind, rows in self._rows.items():
            shape = shapes()[kind]
            columns = {c.name: pack_numbers(cells) for c, cells in zip(shape.columns, self._columns[kind], strict=True) if any(cells)}
            bare = msgspec.json.encode([msgspec.structs.replace(row, **shape.bare) for row in rows])
            if rows or self._lists[kind]:
                lengths, lists = pack_lists(self._lists[kind])
                tables[kind.__name__] = Table(rows=bare, columns=columns, lengths=lengths, lists=lists)
        return msgspec.msgpack.encode(
            NodeTables(
                node_tables=FORM,
                texts=list(self._texts),
                shares=pack_fractions(self._shares),
                text_lists=list(map(list, self._lists[str])),
                settings=[(list(names), list(values)) for names, values in self._mappings[Kind.SETTINGS]],
                counts=[(list(names), list(values)) for names, values in self._mappings[Kind.COUNTS]],
                tables=tables,
            )
        )

    def _row(self, fact: Fact) -> int:
        kind = type(fact)
        shape = shapes()[kind]
        known = self._known.get(fact) if shape.is_comparable else None
        if known is not None:
            return known
        for column, cells, value in zip(shape.columns, self._columns[kind], shape.read(fact), strict=False):
            cells.append(0 if value is None or value == shape.bare[column.name] else self._cell(column, value))
        self._rows[kind].append(fact)
        if shape.is_comparable:
            self._known[fact] = len(self._rows[kind])
        return len(self._rows[kind])

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts) + 1)

    def _cell(self, column: Column, value: Any) -> int:
        kind = column.kind
        if kind is Kind.TEXT:
            return self._text(value)
        if kind is Kind.SHARE:  # JSON has no infinity: it becomes None there
            return self._shares.setdefault(value, len(self._shares) + 1) if math.isfinite(value) else 0
        if kind is Kind.ROW:
            return self._row(value)
        if kind in MAPPINGS:
            names = sorted(value)
            values = [value[name] for name in names]
            key = (tuple(map(self._text, names)), tuple(map(self._text, values) if kind is Kind.SETTINGS else values))
            return self._mappings[kind].setdefault(key, len(self._mappings[kind]) + 1)
        table = self._lists[column.of or str]
        places = tuple(map(self._text, value)) if kind is Kind.TEXTS else tuple(self._row(row) - 1 for row in value)
        return table.setdefault(places, len(table) + 1)


class Unpacking:
    """Nodes unpacked one by one; text that several of them have is one object. Each text goes through `change` before anybody sees it."""

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self._texts: dict[str, str] = {}
        self._tables = msgspec.msgpack.Decoder(NodeTables)
        self._rows: dict[type[Any], Any] = {kind: msgspec.json.Decoder(list[kind]) for kind in shapes()}  # type: ignore[valid-type]

    def node(self, plain: bytes, *, limit_bytes: int) -> Node:
        """A node from its tables or from plain JSON, unpacked from gzip.

        Raises:
            UnreadableFileError: neither of them, or more facts than plain JSON of `limit_bytes` would hold.
        """
        try:
            given = self._tables.decode(to_tables(msgspec.json.decode(plain, type=Node)) if plain.startswith(b"{") else plain)
            return self._whole(given, limit_bytes // LEAST_FACT_BYTES)
        except (ValueError, IndexError) as e:  # msgspec's own errors are a ValueError
            raise UnreadableFileError(f"not a node's facts: {e}") from e

    def _text(self, text: str) -> str:
        known = self._change(text)
        if len(text) <= LONG and len(self._texts) < KEPT_TEXTS:
            self._texts[text] = known
        return known

    def _whole(self, given: NodeTables, limit: int) -> Node:
        if given.node_tables != FORM:
            raise ValueError(f"tables of form {given.node_tables}")
        values = self._plain_values(given)
        for kind, shape in shapes().items():
            table = given.tables.get(kind.__name__)
            if table is None:
                values[Kind.ROW, kind] = values[Kind.ROWS, kind] = [None]
                continue
            rows = self._rows[kind].decode(table.rows)
            for column in shape.columns:
                if column.name not in table.columns:
                    continue
                cells = unpack_numbers(table.columns[column.name])
                if len(cells) != len(rows):
                    raise ValueError(f"{kind.__name__}.{column.name} does not fit its rows")
                found = values[column.kind, column.of]
                found[0] = shape.bare[column.name]
                deque(map(force_setattr, rows, repeat(column.name), map(found.__getitem__, cells)), maxlen=0)
            for name in shape.rest:
                for row in rows:
                    force_setattr(row, name, map_text(getattr(row, name), self._change))
            values[Kind.ROWS, kind] = [None, *unpack_lists(table.lengths, table.lists, rows)]
            values[Kind.ROW, kind] = [None, *rows]
        nodes = values[Kind.ROW, Node]
        if len(nodes) != 2:
            raise ValueError("it is not one node")
        check_size(given, {kind: len(values[Kind.ROW, kind]) - 1 for kind in shapes()}, limit)
        node: Node = nodes[1]
        return node

    def _plain_values(self, given: NodeTables) -> dict[tuple[Kind, type[Any] | None], list[Any]]:
        """By what a column counts in: its values from 1; 0 is set by whoever reads the column."""
        known, new = self._texts.get, self._text
        texts: list[Any] = [None, *[known(t) or new(t) for t in given.texts]]
        text = texts.__getitem__
        return {
            (Kind.TEXT, None): texts,
            (Kind.SHARE, None): [None, *unpack_fractions(given.shares)],
            (Kind.TEXTS, None): [None, *(tuple(map(text, places)) for places in given.text_lists)],
            (Kind.SETTINGS, None): [None, *(dict(zip(map(text, names), map(text, places), strict=True)) for names, places in given.settings)],
            (Kind.COUNTS, None): [None, *(dict(zip(map(text, names), counts, strict=True)) for names, counts in given.counts)],
        }
