"""A node's facts as tables, the form in which they travel: equal text, rows and lists once, by number.

Of the text of a node a twentieth is different, and most of its rows stand in several places: each sample repeats the stacks of threads that stand
still, each process the environment of its job. Whoever reads a thousand nodes makes each of them once, and so has one object for what is equal.
How a structure is laid out follows from its declaration alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from enum import Enum
from operator import attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import inspect

from ray_rl_debug.model.packed_numbers import pack_numbers
from ray_rl_debug.model.snapshot import Fact, Node

FORM = 2

Place = Annotated[int, msgspec.Meta(ge=1)]
"""Of a value in its table, from 1."""
Numbers = bytes
"""A row of numbers, see `packed_numbers`."""
NO_NUMBERS: Numbers = pack_numbers(())


class Kind(Enum):
    """What a field holds, and so which table its column counts in."""

    TEXT = "text"
    SHARE = "a number with a fraction, or None"
    ROW = "one structure"
    ROWS = "several structures"
    TEXTS = "several texts"
    SETTINGS = "text by text"
    COUNTS = "whole numbers by text"
    OTHER = "text somewhere inside: it stays in the row"


MAPPINGS = frozenset({Kind.SETTINGS, Kind.COUNTS})


class Column(msgspec.Struct, frozen=True):
    """A field that is taken out of its row."""

    name: str
    kind: Kind
    of: type[Any] | None = None
    """The structures that it holds."""


class Shape(msgspec.Struct, frozen=True):
    """How one structure is laid out."""

    columns: tuple[Column, ...]
    rest: tuple[str, ...]
    """Fields of `Kind.OTHER`."""
    bare: dict[str, Any]
    """What stands in a row in the place of its columns."""
    is_comparable: bool
    """Equal ones can be found: none of its parts is a mapping."""
    read: Callable[[Fact], tuple[Any, ...]]
    """The columns of one fact, and one value more."""


class Table(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All structures of one kind."""

    rows: bytes
    """In JSON."""
    columns: dict[str, Numbers] = {}
    """By field, for each row the place of its value, from 1; 0 is what the row holds without it: the field's default, or nothing. A column of zeros
    is left out."""
    lengths: Numbers = NO_NUMBERS
    """How many rows stand together somewhere,"""
    lists: Numbers = NO_NUMBERS
    """and which, from 0, one list after the other."""


class NodeTables(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node, in MessagePack. `node_tables` comes first: by it the form is known."""

    node_tables: int
    texts: list[str] = []
    shares: bytes = b""
    """Numbers with a fraction, eight bytes each, the lowest first; all are finite."""
    text_lists: list[list[Place]] = []
    settings: list[tuple[list[Place], list[Place]]] = []
    """Names and values."""
    counts: list[tuple[list[Place], list[int]]] = []
    tables: dict[str, Table] = {}


@functools.cache
def shapes() -> dict[type[Any], Shape]:
    """By structure; each comes after those that it holds."""
    found: dict[type[Any], Shape] = {}

    def visit(kind: inspect.StructType) -> None:
        if kind.cls in found:
            return
        columns, rest, bare = [], [], {}
        for field in kind.fields:
            for held in _structs(field.type):
                visit(held)
            column = _column(field)
            if column is not None and column.kind is not Kind.OTHER:
                columns.append(column)
                bare[column.name] = _empty(field)
            elif column is not None:
                rest.append(column.name)
        mapped = any(c.kind in MAPPINGS or (c.of is not None and not found[c.of].is_comparable) for c in columns)
        read = attrgetter(*bare, "__class__", "__class__")  # so that it gives a tuple even for one column
        found[kind.cls] = Shape(columns=tuple(columns), rest=tuple(rest), bare=bare, is_comparable=not mapped and not rest, read=read)

    root = inspect.type_info(Node)
    assert isinstance(root, inspect.StructType)
    visit(root)
    return found


def _column(field: inspect.Field) -> Column | None:
    """None for numbers and rows of numbers."""
    plain, optional = _without_none(field.type)
    fits = not optional or _empty(field) is None

    def column(kind: Kind, of: type[Any] | None = None) -> Column:
        return Column(field.name, kind if fits else Kind.OTHER, of if fits else None)

    if isinstance(plain, inspect.StrType):
        return column(Kind.TEXT)
    if isinstance(plain, inspect.FloatType) and optional and fits:  # measured: often the same, as of all threads that slept
        return column(Kind.SHARE)
    if isinstance(plain, inspect.StructType) and optional:
        return column(Kind.ROW, plain.cls)
    if isinstance(plain, inspect.VarTupleType) and isinstance(plain.item_type, inspect.StructType):
        return column(Kind.ROWS, plain.item_type.cls)
    if isinstance(plain, inspect.VarTupleType) and isinstance(plain.item_type, inspect.StrType):
        return column(Kind.TEXTS)
    if isinstance(plain, inspect.DictType) and isinstance(plain.key_type, inspect.StrType) and isinstance(plain.value_type, inspect.StrType):
        return column(Kind.SETTINGS)
    if isinstance(plain, inspect.DictType) and isinstance(plain.key_type, inspect.StrType) and isinstance(plain.value_type, inspect.IntType):
        return column(Kind.COUNTS)
    return Column(field.name, Kind.OTHER) if any(not isinstance(t, _NUMBERS) for t in _leaves(plain)) else None


def _without_none(kind: inspect.Type) -> tuple[inspect.Type, bool]:
    """The type, and whether it may be None as well."""
    if isinstance(kind, inspect.UnionType):
        others = [t for t in kind.types if not isinstance(t, inspect.NoneType)]
        if len(others) == 1:
            return others[0], True
    return kind, False


_NUMBERS = (inspect.IntType, inspect.FloatType, inspect.BoolType, inspect.NoneType)


def _inside(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The types that this one is made of."""
    for name in ("item_type", "key_type", "value_type"):
        if hasattr(kind, name):
            yield getattr(kind, name)
    for name in ("types", "item_types"):
        yield from getattr(kind, name, ())


def _leaves(kind: inspect.Type) -> Iterator[inspect.Type]:
    inside = list(_inside(kind))
    if not inside:
        yield kind
    for part in inside:
        yield from _leaves(part)


def _structs(kind: inspect.Type) -> Iterator[inspect.StructType]:
    return (t for t in _leaves(kind) if isinstance(t, inspect.StructType))


def _empty(field: inspect.Field) -> Any:
    """What a row holds in the place of a column: the field's default, which is not written, or the least that its type allows."""
    if field.default is not msgspec.NODEFAULT:
        return field.default
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    plain, optional = _without_none(field.type)
    return None if optional else "" if isinstance(plain, inspect.StrType) else {} if isinstance(plain, inspect.DictType) else ()
