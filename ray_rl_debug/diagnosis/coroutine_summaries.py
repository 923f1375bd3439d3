"""Asyncio tasks for the report: classes of equal await chains, the most telling first, and who of them waits for whom."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from ray_rl_debug.analyze.await_chains import is_own
from ray_rl_debug.analyze.coroutines import LOCKS, SERVES_RANK, End, describe_awaited, line_of, rank, remote_of, serves
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.shapes import has_coroutines
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import AwaitClass, Certainty, Link, Who
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame

MAX_CLASSES = 20_000
MAX_NAMES = 3
MAX_LINKS = 2_000
_WAITS, _SLEEPS, _RUNS, _MOVES = 5, 6, 7, 8
"""Places in the order behind what cannot go on: waits for other tasks, for a clock, not at all, moved meanwhile."""


class Class(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of one process with equal chains that await the same kind of thing."""

    tasks: tuple[AsyncTask, ...]
    end: End | None
    """Where their own waiting ends; None where it goes on to other tasks, or they only sleep or run."""

    @property
    def order(self) -> int:
        first = self.tasks[0]
        if self.end is not None and self.end.is_still:
            return rank(self.end)
        if first.stable is False or self.end is not None:
            return _MOVES
        kind = first.awaited.kind if first.awaited else None
        if serves(first) and self.end is None and not (first.awaited and (first.awaited.tasks or first.awaited.holders)):
            return SERVES_RANK
        return {"sleep": _SLEEPS, "running": _RUNS, "ready": _RUNS}.get(kind or "", _WAITS)


def _classes_of(one: Seen) -> tuple[Class, ...]:
    """The classes of a process, the most telling first."""
    if not one.process.async_tasks:
        return ()
    ends = {t.address: e for e in one.ends for t in e.tasks}
    found: dict[tuple[object, ...], list[AsyncTask]] = {}
    for task in one.process.async_tasks:
        awaited = task.awaited
        kind = (awaited.kind, awaited.detail, awaited.address if awaited.kind in LOCKS else None) if awaited else None
        found.setdefault((task.chain, kind, task.stable is False), []).append(task)
    classes = [Class(tasks=tuple(tasks), end=ends.get(tasks[0].address)) for tasks in found.values()]
    return tuple(sorted(classes, key=lambda c: (c.order, -len(c.tasks), line_of(c.tasks[0]))))


def await_classes(view: View) -> tuple[AwaitClass, ...]:
    """Equal await chains of each process merged; of all processes the most telling first."""
    found = [(c.order, -len(c.tasks), one.key, one, c) for one in view.like(has_coroutines) for c in _classes_of(one)]
    found.sort(key=lambda f: f[:3])
    return tuple([_await_class(one, c) for *_, one, c in found[:MAX_CLASSES]])


def _await_class(one: Seen, of: Class) -> AwaitClass:
    first, process = of.tasks[0], one.process
    awaited = first.awaited
    held = {t.address: t for t in process.async_tasks or () if t.address in awaited.holders} if awaited is not None and awaited.holders else {}
    stable = [t.stable for t in of.tasks]
    chain, own = _said(first.chain)
    return AwaitClass(
        process=one.where(),
        node=one.identity.node,
        pid=one.identity.pid,
        count=len(of.tasks),
        of=len(process.async_tasks or ()),
        chain=chain,
        own=own,
        kind=awaited.kind if awaited else None,
        awaited=describe_awaited(process, awaited, is_lost=of.end is not None and of.end.is_lost) if awaited else None,
        value=awaited.value if awaited else None,
        holders=tuple(f"{t.name} at {line_of(t)}" for t in held.values()),
        peer=remote_of(process, awaited.fd) if awaited else None,
        object_id=awaited.object_id if awaited else None,
        behind=of.end.behind if of.end is not None else 0,
        is_at_rest=of.order == SERVES_RANK,
        stable=False if False in stable else True if all(stable) else None,
        tid=first.tid,
        tasks=tuple(t.name for t in of.tasks[:MAX_NAMES]),
    )


@lru_cache(maxsize=1 << 12)
def _said(chain: tuple[AwaitFrame, ...]) -> tuple[tuple[str, ...], int | None]:
    """A chain in words, and the place in it of the innermost own coroutine."""
    said = tuple(f"{f.function} ({f.file}{f':{f.line}' if f.line else ''})" if f.file else f.function for f in chain)
    return said, next((i for i in reversed(range(len(chain))) if is_own(chain[i])), None)


def coroutine_links(view: View) -> tuple[Link, ...]:
    """Who waits for whom inside the processes, class by class; locks without a known holder lead to nobody."""
    found: dict[tuple[str, str, str], Link] = {}
    for one in view.like(has_coroutines):
        for link in _links_of(one):
            found.setdefault((f"{one.key} {link.waiter.task}", link.why, f"{link.target.label} {link.target.task}"), link)
            if len(found) >= MAX_LINKS:
                return tuple(found.values())
    return tuple(found.values())


def _links_of(one: Seen) -> Iterator[Link]:
    classes = _classes_of(one)
    names = {t.address: _who(one, c) for c in classes for t in c.tasks}
    for of in classes:
        waiter = _who(one, of)
        for task in of.tasks:
            awaited = task.awaited
            if awaited is None:
                continue
            for why, others in (("await", awaited.tasks), (awaited.kind, awaited.holders)):
                for target in {names[a].task: names[a] for a in others if a in names}.values():
                    yield Link(waiter=waiter, target=target, why=why, evidence=_text(one, awaited), certainty=Certainty.PROVEN)
        awaited = of.tasks[0].awaited
        if awaited is not None and of.end is not None and not of.end.is_cycle:
            target = Who(label=_goal(one, awaited), node=one.identity.node)
            yield Link(waiter=waiter, target=target, why=awaited.kind, evidence=_text(one, awaited), certainty=Certainty.PROVEN)


def _who(one: Seen, of: Class) -> Who:
    first = of.tasks[0]
    name = first.name if len(of.tasks) == 1 else f"{len(of.tasks)} coroutines"
    return msgspec.structs.replace(one.who(), task=f"{name} at {line_of(first)}")


def _text(one: Seen, awaited: Awaited) -> str:
    return describe_awaited(one.process, awaited)


def _goal(one: Seen, awaited: Awaited) -> str:
    if awaited.kind in LOCKS:
        return f"nobody ({(awaited.detail or awaited.kind).split(' ')[0]})"
    return remote_of(one.process, awaited.fd) or (
        f"object {awaited.object_id[:16]}"
        if awaited.object_id
        else awaited.detail or ("something unknown" if awaited.kind == "unknown" else awaited.kind)
    )
