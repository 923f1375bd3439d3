"""Many log books → one story."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from ray_rl_debug.model.claims import Who
from ray_rl_debug.model.log_story import LogStory, StoryClock, StoryEntry
from ray_rl_debug.model.snapshot.log_book import LogBook, LogWriter
from ray_rl_debug.story.candidates import Candidate, Class, candidates, names_exception, was_told_to_end
from ray_rl_debug.story.clocks import Shift, clock_text, is_comparable, shifts
from ray_rl_debug.story.noted import WHY, only_noted
from ray_rl_debug.story.people import told_person, unified
from ray_rl_debug.story.progress import MAX_PEOPLE, progress, stopped_first
from ray_rl_debug.story.stills import stills
from ray_rl_debug.story.taken_back import taken_back
from ray_rl_debug.story.told_again import told_again

MAX_ENTRIES = 40
SAME_MOMENT_S = 2.0
"""Of two failures so near to each other the one that stands nearer to its cause is first; clocks and buffers are no better."""
BESIDE_LINES = 3
"""Lines of one report stand so near to each other."""
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|[0-9a-f]{16,}|\d+")


def tell(books: Sequence[LogBook], *, unread: Sequence[str] = ()) -> LogStory | None:
    """The story of the files; None when there are none.

    Args:
        unread: Packed files beside them that could not be read: what failed first may stand there.
    """
    if not books:
        return None
    books = unified(books)
    moved, unsure = shifts([b for b in books if b.events or b.steps or b.stills])  # of the others nothing is put in an order
    found = taken_back(told_again(candidates(books, moved)))
    serious = _in_order([c for c in found if c.survived is None])
    noted = _in_order_of_first(serious, moved) if only_noted(found, logs=len(books)) else []
    serious = [] if noted else serious
    # A process that was told to end did not fail; who told it may have had a reason that is in no log.
    is_told = bool(serious) and all(was_told_to_end(c) for c in serious)
    first = _first(serious, moved) if not is_told else None
    groups = _folded(serious)
    head = next((g for g in groups if first is not None and first in g), None)
    entries = [_entry(g, "consequence", first) for g in groups if g is not head]
    survived = [_entry(g, "survived", first) for g in _folded(_in_order([c for c in found if c.survived is not None]))]
    logged = [_entry(g, "noted", None) for g in _folded(noted)]
    told = _entry(_first_in_front(head, first), "first", first) if head is not None and first is not None else None
    walked = progress(books, moved)
    stopped = stopped_first(walked)
    if logged:
        summary = _summary_of_noted(logged, stopped)
    elif is_told:
        summary = _summary_of_told(entries, stopped)
    else:
        summary = _summary(told, len(entries), stopped, serious)
    order = _unread(unread) or (unsure if len({c.book.file for c in serious}) > 1 else None)
    return LogStory(
        files=len(books),
        lines=sum(b.lines for b in books),
        bytes=sum(b.bytes for b in books),
        summary=summary,
        first=told,
        then=tuple(entries[:MAX_ENTRIES]),
        noted=tuple(logged[:MAX_ENTRIES]),
        survived=tuple(survived[:MAX_ENTRIES]),
        progress=walked[:MAX_PEOPLE],
        still=stills(books)[:MAX_PEOPLE],
        stopped=stopped,
        clocks=tuple(StoryClock(where=file, shift_s=s.seconds, why=s.why) for file, s in moved.items()),
        order=order,
        left_out=sum(max(0, len(many) - MAX_ENTRIES) for many in (entries, logged, survived)) + sum(b.left_out for b in books),
    )


def _unread(names: Sequence[str]) -> str | None:
    return f"{names[0]} {f'and {len(names) - 1} more were' if len(names) > 1 else 'was'} not read" if names else None


def _in_order(found: Sequence[Candidate]) -> list[Candidate]:
    """By time; what has none, not even behind it in its file, stands by its class behind all that have one."""
    timed = sorted((c for c in found if c.by_s < math.inf), key=lambda c: (c.by_s, c.class_, c.book.file, c.event.file_line))
    return [*timed, *sorted((c for c in found if c.by_s == math.inf), key=lambda c: c.class_)]


def _first(ordered: Sequence[Candidate], moved: Mapping[str, Shift]) -> Candidate | None:
    """The earliest that is no echo; of those in one moment the nearest to its cause; an echo where there is nothing else.

    In one moment are also those of files whose times cannot be compared.
    """
    real = [c for c in ordered if c.class_ is not Class.ECHO]
    if not real:
        return ordered[0] if ordered else None
    timed = [c for c in real if c.by_s < math.inf]
    without = [c for c in real if c.by_s == math.inf]
    if not timed:
        return min(without, key=lambda c: (c.class_, _is_bare(c)))
    earliest = timed[0]
    moment = [c for c in timed if c.by_s <= earliest.by_s + SAME_MOMENT_S or not is_comparable(c.book, earliest.book, moved)]
    best = _named_beside(min(moment, key=lambda c: (c.class_, _is_bare(c))), moment)
    best = _told_before(best, moment)
    # A traceback in a file without any time stands nearer to the cause than an exit code with one.
    nearer = [c for c in without if c.class_ < best.class_ and c.since_s <= best.by_s]
    return nearer[0] if nearer else _raised_below(best, ordered)


def _told_before(best: Candidate, moment: Sequence[Candidate]) -> Candidate:
    """Of a bare error the known one that its writer told before it: what comes behind a known error comes of it."""
    if not _is_bare(best):
        return best
    own = (c for c in moment if c.book is best.book and c.event.writer == best.event.writer and c.signature is not None)
    return next((c for c in own if c.event.file_line < best.event.file_line), best)


def _raised_below(best: Candidate, ordered: Sequence[Candidate]) -> Candidate:
    """Of a record that tells late that something failed the traceback below it, which tells why, however long that took to be written."""
    event = best.event
    if best.class_ is not Class.LATE or event.beneath is None:
        return best
    own = (c for c in ordered if c.book is best.book and c.event.kind == "traceback" and c.event.writer == event.writer)
    return next((c for c in own if c.event.text == event.beneath and c.event.file_line > event.file_line), best)


def _in_order_of_first(ordered: Sequence[Candidate], moved: Mapping[str, Shift]) -> list[Candidate]:
    """The one in front that would be the first failure, if these were failures."""
    first = _first(ordered, moved)
    return [c for c in ordered if c is first] + [c for c in ordered if c is not first]


def _named_beside(best: Candidate, moment: Sequence[Candidate]) -> Candidate:
    """A report of several lines is told by the one that names whom it is about."""
    if best.event.kind == "known" and best.event.about is None and best.event.writer != LogWriter():
        own = (c for c in moment if c.book.file == best.book.file and c.event.writer == best.event.writer and c.event.kind == "known")
        return next((c for c in own if c.event.about is not None and c.class_ is best.class_), best)
    if best.time_s is not None or best.subject != LogWriter():
        return best
    line, file = best.event.file_line, best.book.file
    beside = (c for c in moment if c.book.file == file and line < c.event.file_line <= line + BESIDE_LINES)
    return next((c for c in beside if c.class_ is best.class_ and c.subject != LogWriter()), best)


def _is_bare(one: Candidate) -> bool:
    """A line of level error alone says less than a traceback or a known error."""
    return one.event.kind == "error" and one.signature is None and not names_exception(one.event.text)


def _folded(ordered: Sequence[Candidate]) -> list[list[Candidate]]:
    """Equal failures of several writers together."""
    groups: dict[tuple[object, ...], list[Candidate]] = {}
    for one in ordered:
        shape = one.signature.id if one.signature is not None else _NUMBERS.sub("#", one.event.text)[:120]
        groups.setdefault((shape, one.event.frame, one.event.kind == "traceback"), []).append(one)
    return list(groups.values())


def _first_in_front(group: list[Candidate], first: Candidate) -> list[Candidate]:
    return [first, *(c for c in group if c is not first)]


def _entry(group: Sequence[Candidate], role: str, first: Candidate | None) -> StoryEntry:
    one = group[0]
    event, known = one.event, one.signature
    after = one.time_s - first.time_s if first is not None and one.time_s is not None and first.time_s is not None and one is not first else None
    return StoryEntry(
        role=role,
        kind=event.kind,
        text=event.text,
        who=_people(group),
        file=one.book.file,
        line=event.file_line,
        text_line=event.text_line,
        time=clock_text(one.time_s) if one.time_s is not None else None,
        time_s=one.time_s,
        after_s=round(after, 3) if after is not None else None,
        count=sum(c.event.count for c in group),
        frame=event.frame,
        beneath=event.beneath,
        lines=event.lines,
        signature=known.id if known else None,
        title=known.title if known else None,
        meaning=known.cause.strip() if known else None,
        remedy=known.remedy.strip() if known else None,
        is_echo=one.class_ is Class.ECHO,
        why=WHY if role == "noted" else one.survived or one.why,
    )


def _people(group: Sequence[Candidate]) -> tuple[Who, ...]:
    return tuple(dict.fromkeys(told_person(c.event, c.book) for c in group))


def _summary_of_noted(logged: Sequence[StoryEntry], stopped: str | None) -> str:
    more = f" (and {len(logged) - 1} more)" if len(logged) > 1 else ""
    text = f"an error was logged, and nothing in these logs says that anything ended: {_who_and_what(logged[0])}{more}"
    return f"{text}{f'; {stopped}' if stopped else ''}"


def _summary_of_told(entries: Sequence[StoryEntry], stopped: str | None) -> str:
    """Who told a process to end, a launcher, a scheduler or a person, knows why."""
    more = f" (and {len(entries) - 1} more)" if len(entries) > 1 else ""
    text = f"these logs show only that a process was told to end, not by whom: {_who_and_what(entries[0])}{more}"
    return f"{text}{f'; {stopped}' if stopped else ''}"


def _who_and_what(entry: StoryEntry) -> str:
    """``rank 3 on gpu07 and 2 more at 2026-11-21 10:00:00.1: the words``."""
    who = entry.who[0]
    more = f" and {len(entry.who) - 1} more" if len(entry.who) > 1 else ""
    place = f" on {who.node}" if who.node and who.node not in who.label else ""
    when = f" at {entry.time}" if entry.time else ""
    text = entry.title or (entry.text if len(entry.text) <= 160 else entry.text[:159] + "…")
    return f"{who.label}{place}{more}{when}: {text}"


def _summary(first: StoryEntry | None, others: int, stopped: str | None, serious: Sequence[Candidate]) -> str:
    if first is None:
        return f"the logs hold no failure that ended anything{f'; {stopped}' if stopped else ''}"
    only_echo = all(c.class_ is Class.ECHO for c in serious)
    lead = "these logs show consequences only, the earliest is" if only_echo else "first failure"
    then = f"; {others} other {'failure follows' if others == 1 else 'failures follow'}" if others else ""
    return f"{lead}: {_who_and_what(first)}{then}{f'; {stopped}' if stopped else ''}"
