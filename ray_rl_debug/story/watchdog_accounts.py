"""What the watchdogs of several ranks say in logs of one group, compared: who was at another collective when they timed out.

torch numbers the collectives of each group. Who had not enqueued the one in which the others waited kept them waiting; ranks at the same number
in another collective, or with another size, took different paths. Old torch does not name the group: ranks may then be in different groups, by
design, and a few that differ are *possible* only.

Where no watchdog spoke and nothing failed, the last collectives that each rank logged are compared in the same way: *possible* only, because logs
may be cut.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.model.claims import Who
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot.log_book import LogBook, LogCollective
from ray_rl_debug.story.candidates import STEPS_ON
from ray_rl_debug.story.people import person

NEAR = 2
"""Numbers of one group lie so near to each other, where the group is not named."""
_FEW = 4
"""Of a group that is not named, at most one in so many may be told to differ: more are groups of their own."""
_HIGH = 100
"""Two groups reach the same number of so many digits by chance only."""
_OF_ANY_SIZE = ("ALLTOALL", "GATHER", "SCATTER", "SEND", "RECV", "COALESCED", "UNKNOWN")
"""Operations whose ranks may give different numbers of elements."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's own words."""

    who: Who
    told: LogCollective
    file: str
    line: int
    text: str
    number: str | None = None
    """As the line has it, where that is not in decimal digits."""

    def words(self) -> str:
        """``ALLREDUCE number 2209 (1 element)``"""
        size = f" ({self.told.elements:,} element{'s' if self.told.elements != 1 else ''})" if self.told.elements is not None else ""
        number = f" number {self.number or self.told.seq}" if self.told.seq is not None else ""
        return f"{self.told.op or 'work'}{number}{size}"

    @property
    def seq(self) -> int:
        """Its number; 0 where torch tells none, so that all are at the same."""
        return self.told.seq or 0


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks of one group whose accounts do not agree."""

    kind: str
    """``missing`` (had not enqueued it), ``number`` (at an earlier one), ``type``, ``size``."""
    group: str | None
    odd: tuple[Account, ...]
    """The fewer; of equal sides all."""
    rest: tuple[Account, ...]
    is_tie: bool = False
    is_timed: bool = True
    """Watchdogs tell it; else the last lines of ranks that log each collective."""

    @property
    def certainty(self) -> Certainty:
        return Certainty.POSSIBLE if self.group is None or self.kind == "number" else Certainty.LIKELY


def differing(books: Sequence[LogBook]) -> tuple[Differing, ...]:
    """The groups whose ranks differ; pure."""
    found = (_compare(group, ranks) for group, ranks in _by_group(books).items() if len(ranks) > 1)
    told = tuple(one for one in found if one is not None)
    return told or (() if any(e.kind != "known" or e.collective is not None for b in books for e in b.events) else _differing_calls(books))


def _differing_calls(books: Sequence[LogBook]) -> tuple[Differing, ...]:
    """Ranks whose logged collectives differ; communicators of different sizes are different groups."""
    groups: defaultdict[int | None, defaultdict[str, dict[int, Account]]] = defaultdict(lambda: defaultdict(dict))
    for book in books:
        if _worked_on(book):
            continue
        for call in book.calls:
            who = person(call.writer, book)
            one = Account(who=who, told=call.told, file=book.file, line=call.file_line, text="", number=call.number)
            groups[call.members][who.label][one.seq] = one
    found = (_compare_calls(list(ranks.values())) for ranks in groups.values() if len(ranks) > 1)
    return tuple(msgspec.structs.replace(one, is_timed=False) for one in found if one is not None)


def _worked_on(book: LogBook) -> bool:
    """Was work counted behind the last of the calls, more than once? Then ranks were at different ones for a moment only."""
    last = max((call.file_line for call in book.calls), default=0)
    return len({(s.unit, s.step) for s in book.steps if s.file_line > last}) >= STEPS_ON


def _compare_calls(ranks: Sequence[Mapping[int, Account]]) -> Differing | None:
    """Of ranks with their last calls by number: the first number at which their operations or sizes differ, else who is behind."""
    for number in sorted({n for calls in ranks for n in calls}):
        there = [calls[number] for calls in ranks if number in calls]
        for kind, sides in (("type", _by_operation(there)), ("size", _by_size(there))):
            if len(sides) > 1:
                return _of_sides(None, kind, sides)
    return _compare(None, [calls[max(calls)] for calls in ranks])


def _by_group(books: Sequence[LogBook]) -> dict[str | None, list[Account]]:
    """The first account of each rank, by group."""
    by_rank: defaultdict[str, list[Account]] = defaultdict(list)
    for account in _accounts(books):
        by_rank[account.who.label].append(account)
    groups: defaultdict[str | None, dict[str, Account]] = defaultdict(dict)
    for label, accounts in by_rank.items():
        for account in _joined(accounts):
            groups[account.told.group].setdefault(label, account)
    named = {label for group, ranks in groups.items() if group is not None for label in ranks}
    return {group: [a for label, a in ranks.items() if group is not None or label not in named] for group, ranks in groups.items()}


def _accounts(books: Sequence[LogBook]) -> Iterator[Account]:
    for book in books:
        for event in book.events:
            if event.collective is not None and event.writer.rank is not None:
                yield Account(who=person(event.writer, book), told=event.collective, file=book.file, line=event.file_line, text=event.text)


def _joined(accounts: Sequence[Account]) -> Iterator[Account]:
    """A rank tells its operation in one line, and its group and how far it came in another; the number is in both."""
    status: dict[int | None, LogCollective] = {a.told.seq: a.told for a in accounts if a.told.op is None}
    for one in accounts:
        more = status.pop(one.told.seq, None) if one.told.op is not None else None
        if more is not None:
            told = msgspec.structs.replace(one.told, group=more.group or one.told.group, enqueued=more.enqueued, completed=more.completed)
            yield msgspec.structs.replace(one, told=told)
        elif one.told.op is not None or one.told.seq in status:
            yield one


def _compare(group: str | None, accounts: Sequence[Account]) -> Differing | None:
    last = max(a.seq for a in accounts)
    waiting = [a for a in accounts if a.seq == last]
    absent = [a for a in accounts if a.seq < last]
    if group is None and last - min(a.seq for a in accounts) > NEAR:
        return None
    if absent:
        missing = all(a.told.enqueued is not None and a.told.enqueued < last for a in absent)
        kind = "missing" if missing else "number"
        return _of_sides(group, kind, {"here": waiting, "behind": absent}, odd="behind")
    for kind, sides in (("type", _by_operation(waiting)), ("size", _by_size(waiting))):
        if len(sides) > 1:
            return _of_sides(group, kind, sides)
    return None


def _by_operation(accounts: Sequence[Account]) -> Mapping[str, list[Account]]:
    sides: defaultdict[str, list[Account]] = defaultdict(list)
    for one in accounts:
        if one.told.op is not None:
            sides[one.told.op].append(one)
    return sides


def _by_size(accounts: Sequence[Account]) -> Mapping[str, list[Account]]:
    sides: defaultdict[str, list[Account]] = defaultdict(list)
    for one in accounts:
        if one.told.elements is not None and not any(word in (one.told.op or "") for word in _OF_ANY_SIZE):
            sides[str(one.told.elements)].append(one)
    return sides


def _of_sides(group: str | None, kind: str, sides: Mapping[str, list[Account]], *, odd: str | None = None) -> Differing | None:
    ranks = sum(map(len, sides.values()))
    fewest = min(map(len, sides.values()))
    chosen = [name for name, side in sides.items() if (name == odd if odd is not None else len(side) == fewest)]
    is_tie = len(chosen) == len(sides)
    told = [a for name in chosen for a in sides[name]]
    is_same = kind == "type" and told[0].seq >= _HIGH
    if group is None and len(told) * _FEW > ranks and ranks > 2 and not is_same:
        return None
    rest = [a for name, side in sides.items() if name not in chosen for a in side]
    return Differing(kind=kind, group=group, odd=tuple(told), rest=tuple(rest), is_tie=is_tie)
