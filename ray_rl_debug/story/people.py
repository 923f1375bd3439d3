"""Who a line speaks of, as people know the process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.model.claims import Who
from ray_rl_debug.model.snapshot.log_book import LogBook, LogEvent, LogWriter


def person(writer: LogWriter, book: LogBook) -> Who:
    """The process; one that nothing names is called after the machine of which the text speaks, or after its file."""
    node = writer.node or writer.ip
    parts = []
    if writer.program:
        parts.append(writer.program)
    if writer.rank is not None:
        parts.append(f"rank {writer.rank}" if writer.rank.isdigit() else writer.rank)
    if writer.pid is not None:
        parts.append(f"pid {writer.pid}")
    machine = f"node {node}" if node is not None and node not in (book.writer.node, book.writer.ip) else None
    if machine is not None and writer.ip is not None and writer.ip != node:
        machine += f" ({writer.ip})"
    label = " ".join(parts) or machine or book.file.rsplit("/", 1)[-1]
    rank = int(writer.rank) if writer.rank is not None and writer.rank.isdigit() else None
    return Who(label=label, node=node, pid=writer.pid, rank=rank, role=writer.program)


def told_person(event: LogEvent, book: LogBook) -> Who:
    """Whom a line is about; one that it calls by a role alone is a part of the process that tells it."""
    about, writer = event.about, event.writer
    if about is None or about.program is None or about != LogWriter(program=about.program) or writer.pid is None:
        return person(about or writer, book)
    who = person(about, book)
    return msgspec.structs.replace(who, label=f"{who.label} of {person(writer, book).label}")


def is_same(a: LogWriter, b: LogWriter) -> bool:
    """Is it one process, as far as both say?"""
    if a.pid is not None and b.pid is not None:
        return a.pid == b.pid and not _contradict(a, b)
    if a.rank is not None and b.rank is not None:
        return a.rank == b.rank and (a.program is None or b.program is None or a.program == b.program)
    return a == b


def _contradict(a: LogWriter, b: LogWriter) -> bool:
    """Are they on two machines, or two ranks, that gave out one number? A rank by its parts, ``TP2``, may be any by its number."""
    told = ((a.ip, b.ip), (a.node, b.node), *(((a.rank, b.rank),) if (a.rank or "").isdigit() and (b.rank or "").isdigit() else ()))
    return any(x is not None and y is not None and x != y for x, y in told)


def unified(books: Sequence[LogBook]) -> list[LogBook]:
    """The books with one name for each process: what its own file, a driver and its launcher say of one pid is put together.

    Where they contradict each other, as on machines that gave two processes one number, each keeps what it says.
    """
    by_pid: dict[int, set[LogWriter]] = defaultdict(set)
    for book in books:
        for name in _names_in(book):
            if name.pid is not None:
                by_pid[name.pid].add(name)
    better: dict[LogWriter, LogWriter] = {}
    for names in by_pid.values():
        said = {field: {v for n in names if (v := getattr(n, field)) is not None} for field in ("node", "ip", "rank", "program")}
        if all(len(said[field]) <= 1 for field in ("node", "ip", "rank")):
            more = {field: next(iter(values)) for field, values in said.items() if len(values) == 1}
            better |= {n: one for n in names if (one := msgspec.structs.replace(n, **more)) != n}
    better |= _called_by_role(books) | _called_by_id(books)
    return [_renamed(book, better) if any(n in better for n in _names_in(book)) else book for book in books]


def _called_by_role(books: Sequence[LogBook]) -> dict[LogWriter, LogWriter]:
    """Of those that are called by a role alone (*the engine core*): the one process of that role, where there is one."""
    of_role: dict[str, set[LogWriter]] = defaultdict(set)
    bare = set()
    for name in (name for book in books for name in _names_in(book)):
        if name.program is None:
            continue
        if name == LogWriter(program=name.program):
            bare.add(name)
        else:
            of_role[_letters(name.program)].add(name)
    return {n: next(iter(those)) for n in bare if n.program is not None and len(those := of_role[_letters(n.program)]) == 1}


def _called_by_id(books: Sequence[LogBook]) -> dict[LogWriter, LogWriter]:
    """Of machines that are called by a name alone, as Ray calls them by their ids: the address, where another line tells both."""
    addresses: dict[str, set[str]] = defaultdict(set)
    bare = set()
    for name in (name for book in books for name in _names_in(book)):
        if name.node is None or name != LogWriter(node=name.node, ip=name.ip):
            continue
        if name.ip is None:
            bare.add(name)
        else:
            addresses[name.node].add(name.ip)
    known = ((n, addresses[n.node]) for n in bare if n.node in addresses)
    return {n: msgspec.structs.replace(n, ip=next(iter(those))) for n, those in known if len(those) == 1}


def _letters(role: str) -> str:
    return "".join(filter(str.isalnum, role)).lower()


def _names_in(book: LogBook) -> Iterator[LogWriter]:
    for event in book.events:
        yield event.writer
        if event.about is not None:
            yield event.about
    yield from (one.writer for one in book.steps)
    yield from (one.writer for one in book.signs)


def _renamed(book: LogBook, better: Mapping[LogWriter, LogWriter]) -> LogBook:
    def of(name: LogWriter) -> LogWriter:
        return better.get(name, name)

    replace = msgspec.structs.replace
    events = (replace(e, writer=of(e.writer), about=of(e.about) if e.about is not None else None) for e in book.events)
    steps = (replace(s, writer=of(s.writer)) for s in book.steps)
    return replace(book, events=tuple(events), steps=tuple(steps), signs=tuple(replace(s, writer=of(s.writer)) for s in book.signs))
