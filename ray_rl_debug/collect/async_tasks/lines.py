"""The line of an instruction, from a code object's own table."""

from __future__ import annotations


def find_line(version: tuple[int, int], table: bytes, first: int, offset: int) -> int | None:
    """Line of the instruction `offset` bytes into the code; None where the table gives none."""
    return _line_3_10(table, first, offset) if version == (3, 10) else _line_3_11(table, first, offset)


def _line_3_10(table: bytes, first: int, offset: int) -> int | None:
    """Pairs of a bytecode delta and a signed line delta; -128 says "no line"."""
    end, line = 0, first
    for units, raw in zip(table[::2], table[1::2], strict=False):
        end += units
        delta = raw - 256 if raw > 127 else raw
        if delta != -128:
            line += delta
        if offset < end:
            return line if delta != -128 else None
    return None


def _line_3_11(table: bytes, first: int, offset: int) -> int | None:
    """Entries start with bit 7 set: form in bits 3 to 6, code units minus one below; the bytes that follow hold line and columns."""
    end, line, i, size = 0, first, 0, len(table)
    while i < size:
        form, units = table[i] >> 3 & 15, (table[i] & 7) + 1
        i += 1
        if form in (13, 14):
            value = shift = 0
            while i < size:
                byte = table[i]
                i += 1
                value |= (byte & 63) << shift
                shift += 6
                if not byte & 64 or shift > 60:
                    break
            line += -(value >> 1) if value & 1 else value >> 1
        elif 10 <= form <= 12:
            line += form - 10
        while i < size and table[i] < 128:
            i += 1
        end += 2 * units
        if offset < end:
            return line if form != 15 else None
    return None
