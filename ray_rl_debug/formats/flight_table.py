"""The table of ``torchfrtrace -j``: a column per rank, a row per operation, as one Flight Recorder document for each rank.

Without ``FR_TRACE_VERBOSE_OUTPUT=1`` its cells have no group and no number. Then the order in a column stands for the number, as far as all
ranks have the same operations in the same order; from the first row on that differs nothing is known, because ranks may be in several groups.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence

import msgspec

_TITLES = re.compile(r"^\s*Rank \d{1,7}(?:\s{2,}Rank \d{1,7})*\s*$")
_RULE = re.compile(r"^\s*-{3,}(?:\s{2,}-{3,})*\s*$")
_RULE_BYTES = re.compile(rb"^[ \t]*-{3,}(?:[ \t]{2,}-{3,})*[ \t\r]*$", re.MULTILINE)
_CELL = re.compile(r"^(?:(?P<backend>\w{1,20}):)?(?P<op>[a-z_]{2,40})\((?P<told>.{0,4000})\)$")
_TOLD = re.compile(
    r"(?P<key>input_sizes|output_sizes|state|pg_name|pg_description|p2p_seq_id)=(?P<value>\[\[?[\d, \[\]]{0,2000}\]|[^,()\[\]]{1,200})"
)
_HASH = re.compile(r"(?<=\w)-{1,2}\d{6,20}$")
"""The tool adds one to the name of a group."""
_P2P = frozenset({"send", "recv", "coalesced"})
MAX_ROWS = 20_000
UNNAMED = "default"


class _Op(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    sizes: str
    state: str
    group: str | None
    description: str
    number: int | None


def documents(data: bytes) -> Iterator[tuple[int, bytes]]:
    """One document per rank of each table in the text, with the table's line."""
    if b"Rank " not in data or b"state=" not in data or not _RULE_BYTES.search(data):
        return
    lines = data.decode(errors="replace").split("\n")
    for at in range(len(lines) - 2):
        if _TITLES.match(lines[at][:200_000]) and _RULE.match(lines[at + 1][:2_000_000]):
            yield from ((at + 1, document) for document in _table(lines, at))


def _table(lines: Sequence[str], at: int) -> Iterator[bytes]:
    titles, rule = lines[at], lines[at + 1]
    starts = [found.start() for found in re.finditer(r"-+", rule)]
    ranks = [int(number) for number in re.findall(r"Rank (\d+)", titles)]
    if len(starts) != len(ranks):
        return
    columns: list[list[_Op]] = [[] for _ in ranks]
    for row in (lines[i] for i in range(at + 2, min(len(lines), at + 2 + MAX_ROWS))):
        cells = [row[a:b].strip() for a, b in itertools.zip_longest(starts, starts[1:])]
        read = [_op(cell) for cell in cells]
        if not any(read):
            break
        for column, op in zip(columns, read, strict=True):
            if op is not None:
                column.append(op)
    if not any(columns):
        return
    if any(op.group is None for column in columns for op in column):
        columns = _as_one_group(columns)
    for rank, column in zip(ranks, columns, strict=True):
        yield _document(rank, column)


def _op(cell: str) -> _Op | None:
    found = _CELL.match(cell)
    if found is None:
        return None
    told = {m["key"]: m["value"].strip() for m in _TOLD.finditer(found["told"])}
    if "state" not in told:
        return None
    number = told.get("p2p_seq_id", "")
    return _Op(
        name=found["op"],
        sizes=told.get("input_sizes", ""),
        state=told["state"],
        group=_HASH.sub("", told["pg_name"]) if "pg_name" in told else None,
        description=told.get("pg_description", ""),
        number=int(number) if number.isdecimal() and len(number) < 16 else None,
    )


def _as_one_group(columns: Sequence[Sequence[_Op]]) -> list[list[_Op]]:
    """What all ranks have in the same order; a rank whose column is shorter has not come to the rest."""
    together = [[op for op in column if op.name not in _P2P] for column in columns]
    length = max(map(len, together))
    for position in range(length):
        there = {(column[position].name, column[position].sizes) for column in together if position < len(column)}
        if len(there) > 1:
            length = position
            break
    return [[msgspec.structs.replace(op, group=UNNAMED, number=position) for position, op in enumerate(column[:length], 1)] for column in together]


def _document(rank: int, column: Sequence[_Op]) -> bytes:
    entries = [
        {
            "record_id": position,
            "profiling_name": f"nccl:{op.name}",
            "collective_seq_id": op.number,
            "p2p_seq_id": op.number,
            "is_p2p": op.name in _P2P,
            "process_group": [op.group, op.description],
            "input_sizes": json.loads(op.sizes) if _is_list(op.sizes) else [],
            "state": op.state,
        }
        for position, op in enumerate(column)
    ]
    return json.dumps({"rank": rank, "pg_config": {}, "entries": entries}).encode()


def _is_list(text: str) -> bool:
    return re.fullmatch(r"\[\[\d[\d, ]*\](?:, \[\d[\d, ]*\])*\]|\[\d[\d, ]*\]", text) is not None
