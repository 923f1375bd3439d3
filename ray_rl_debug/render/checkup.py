"""What the doctor found, for a terminal: failures first, each with its measure, threshold, consequence and cure; what is good in a few lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ray_rl_debug.model.health import Examination, Result, Status
from ray_rl_debug.render.writer import neutralise

_COLOURS = {Status.FAIL: "31;1", Status.WARN: "33;1", Status.UNKNOWN: "36", Status.OK: "32"}
_CHECK_COLUMN, _NODE_COLUMN = 12, 14


def render(found: Examination, *, width: int = 100, colour: bool, verbose: bool = False, what: str | None = None) -> Iterator[str]:
    """The lines of an examination; `verbose` also gives a line to each good result. `what` was examined, where it is no node."""
    merged = _merge(found.results, len(found.nodes))
    yield _verdict(found, colour, what)
    shown = [row for row in merged if verbose or row[0].status is not Status.OK]
    for result, nodes in shown:
        yield from _row(result, nodes if what is None else None, width, colour)
    if not verbose:
        yield from _good(merged, width, colour)
    for gap in found.gaps[: None if verbose else 5]:
        yield neutralise(f"not seen: {gap.what} on {gap.where}: {gap.reason}")


def _verdict(found: Examination, colour: bool, what: str | None) -> str:
    counts = {status: sum(r.status is status for r in found.results) for status in Status}
    said = {
        Status.FAIL: f"{counts[Status.FAIL]} of {len(found.results)} checks fail",
        Status.WARN: f"nothing fails, {counts[Status.WARN]} warnings",
        Status.OK: f"all {len(found.results)} checks are good",
        Status.UNKNOWN: "nothing could be measured",
    }[found.state]
    where = what if what is not None else f" on {', '.join(found.nodes)}" if 0 < len(found.nodes) <= 4 else f" on {len(found.nodes)} nodes"
    return _style(found.state, found.state.value.upper(), colour) + neutralise(f": {said}{where}")


def _merge(results: Sequence[Result], nodes: int) -> list[tuple[Result, str]]:
    """Equal results of several nodes as one, with their names."""
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        groups.setdefault((result.check, result.status, result.measured, result.remedy), []).append(result)
    merged = []
    for group in groups.values():
        names = [r.node for r in group if r.node is not None]
        where = (
            "all"
            if not names or (len(set(names)) == nodes and nodes > 1)
            else ", ".join(names[:3]) + (f" +{len(names) - 3}" if len(names) > 3 else "")
        )
        merged.append((group[0], where))
    return merged


def _row(result: Result, nodes: str | None, width: int, colour: bool) -> Iterator[str]:
    """Without `nodes` there is no column for them."""
    place = "" if nodes is None else neutralise(nodes).ljust(_NODE_COLUMN) + " "
    column = 0 if nodes is None else _NODE_COLUMN + 1
    label = _style(result.status, result.status.value.ljust(7), colour)
    lines = textwrap.wrap(neutralise(result.measured), max(20, width - 9 - _CHECK_COLUMN - column), break_long_words=False) or [""]
    yield f"{label} {result.check.ljust(_CHECK_COLUMN)} {place}{lines[0]}".rstrip()
    pad = " " * (9 + _CHECK_COLUMN + column)
    yield from (pad + line for line in lines[1:])
    if result.status in (Status.FAIL, Status.WARN):
        for head, text in (("wanted", result.threshold), ("then", result.consequence), ("cure", result.remedy)):
            if text:
                yield from _told(head, text, width)


def _told(head: str, text: str, width: int) -> Iterator[str]:
    """Lines of a manifest keep their breaks and indents."""
    indent = f"        {head.ljust(7)} "
    for line in text.split("\n"):
        inner = indent + line[: len(line) - len(line.lstrip(" "))]
        yield from textwrap.wrap(
            neutralise(line),
            width,
            initial_indent=indent,
            subsequent_indent=" " * len(inner),
            break_long_words=False,
            break_on_hyphens=False,
        )
        indent = " " * len(indent)


def _good(merged: Sequence[tuple[Result, str]], width: int, colour: bool) -> Iterator[str]:
    others = {r.check for r, _ in merged if r.status is not Status.OK}
    good = list(dict.fromkeys(r.check for r, _ in merged if r.status is Status.OK and r.check not in others))
    if good:
        text = f"{len(good)} checks: {', '.join(good)}  (-v shows what was measured)"
        label = _style(Status.OK, "ok".ljust(7), colour)
        lines = textwrap.wrap(text, width - 8)
        yield f"{label} {lines[0]}"
        yield from (" " * 8 + line for line in lines[1:])


def _style(status: Status, text: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[status]}m{text}\x1b[0m" if colour else text
