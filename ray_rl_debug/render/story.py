"""The story of the logs as lines of text: the first failure, what followed, what the run survived, and who came how far."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ray_rl_debug.model.log_story import LogStory, StoryEntry, StoryProgress
from ray_rl_debug.render.fold import fold_labels

MAX_THEN = 6
MAX_NOTED = 3
MAX_SURVIVED = 3
MAX_STILL = 3
MAX_PROGRESS = 8
MAX_CLOCKS = 3
MAX_PEOPLE = 4
MAX_LINES = 8


class Line(msgspec.Struct, frozen=True):
    """One line to wrap and colour."""

    text: str
    indent: str = "  "
    style: str | None = None
    is_short: bool = False
    """May be cut to two lines."""


def lines(story: LogStory, *, verbose: bool) -> Iterator[Line]:
    """All lines of the story; `verbose` leaves nothing out."""
    yield Line("logs", "", "bold")
    yield Line(f"{_count(story.files, 'file')}, {story.lines:,} lines, {_size(story.bytes)}")
    if story.order is not None:
        yield Line(f"order in time not sure: {story.order}", "  ", "yellow")
    for clock in story.clocks[: len(story.clocks) if verbose else MAX_CLOCKS]:
        yield Line(f"clock of {clock.where}: {clock.why}; shown {clock.shift_s:+,.0f} s", is_short=True)
    if len(story.clocks) > MAX_CLOCKS and not verbose:
        yield Line(f"… clocks of {len(story.clocks) - MAX_CLOCKS} more files moved (-v)", style="dim")
    if story.first is not None:
        yield Line("first failure", "  ", "bold")
        yield from _first(story.first)
    yield from _list(story.title_of_then, story.then, MAX_THEN, verbose)
    if story.noted:
        yield Line("logged as an error, perhaps a failure", "  ", "bold")
        for entry in story.noted[: len(story.noted) if verbose else MAX_NOTED]:
            yield from _first(entry)
    yield from _list("survived", story.survived, MAX_SURVIVED, verbose)
    if story.left_out:
        yield Line(f"… {story.left_out:,} different lines more in the files", style="dim")
    for still in story.still[: len(story.still) if verbose else MAX_STILL]:
        yield Line(f"{still.text} ({'likely' if still.is_likely else 'possibly'} stuck; {still.file}:{still.line})", "  ", "yellow")
    yield from _progress(story, verbose)


def place(entry: StoryEntry) -> str:
    """``rank 3 pid 42 (node1) and 7 more``."""
    shown = [f"{w.label} ({w.node})" if w.node and w.node not in w.label else w.label for w in entry.who[:MAX_PEOPLE]]
    rest = len(entry.who) - len(shown)
    return fold_labels(shown) + (f" and {rest} more" if rest > 0 else "")


def moment(entry: StoryEntry) -> str:
    """When it was, and how long after the first; empty when no stamp tells."""
    if entry.time is None:
        return ""
    return entry.time + (f" (+{entry.after_s:,.1f} s)" if entry.after_s is not None and entry.after_s >= 0 else "")


def step(one: StoryProgress) -> str:
    """``step 41, 2 behind, 2026-11-21 00:30:13``."""
    counted = f"{one.unit} {one.step:g}" if one.step is not None and one.unit is not None else "last line"
    behind = f", {one.behind:g} behind" if one.behind else ""
    return f"{counted}{behind}{f', {one.time}' if one.time else ''}"


def _first(entry: StoryEntry) -> Iterator[Line]:
    when = moment(entry)
    yield Line(f"{place(entry)}{f'  {when}' if when else ''}", "    ", "red")
    yield Line(entry.text, "    ")
    if entry.beneath:
        yield Line(f"raised before it: {entry.beneath}", "    ", is_short=True)
    if entry.frame:
        yield Line(f"at {entry.frame}", "    ", "cyan")
    yield Line(f"{entry.block_at}{_times(entry)}", "    ", "dim")
    if entry.title:
        yield Line(f"{entry.signature} {entry.title}: {entry.meaning}", "    ")
    if entry.why:
        yield Line(f"not sure: {entry.why}", "    ", "yellow")


def _list(head: str, entries: tuple[StoryEntry, ...], many: int, verbose: bool) -> Iterator[Line]:
    if not entries:
        return
    yield Line(head, "  ", "bold")
    shown = len(entries) if verbose else many
    for entry in entries[:shown]:
        when = moment(entry)
        known = f"{entry.signature} " if entry.signature else ""
        yield Line(f"{f'{when}  ' if when else ''}{place(entry)}: {known}{entry.text}{_times(entry)}", "    ", is_short=True)
        if entry.why and (verbose or head == "survived"):
            yield Line(f"→ {entry.why}", "      ", "dim", is_short=True)
        if verbose:
            yield Line(entry.block_at, "      ", "dim")
    if shown < len(entries):
        yield Line(f"… {len(entries) - shown} more (-v)", "    ", "dim")


def _progress(story: LogStory, verbose: bool) -> Iterator[Line]:
    if not story.progress:
        return
    yield Line(f"last sign of work{f': {story.stopped}' if story.stopped else ''}", "  ", "bold")
    shown = len(story.progress) if verbose else MAX_PROGRESS
    for one in story.progress[:shown]:
        where = f" ({one.who.node})" if one.who.node else ""
        yield Line(f"{one.who.label}{where}: {step(one)}", "    ", is_short=True)
    if shown < len(story.progress):
        yield Line(f"… {len(story.progress) - shown} more (-v)", "    ", "dim")


def _times(entry: StoryEntry) -> str:
    return f"  ×{entry.count:,}" if entry.count > 1 else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(number: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} bytes"
