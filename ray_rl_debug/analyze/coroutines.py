"""The asyncio tasks of one process: which of them waits for which, and what their waiting ends at.

The law of waiting, with tasks and locks as activities, each by its address: a task waits for the tasks it awaits and the lock it wants, a lock
for any of the tasks that hold it. Sockets, ObjectRefs and threads lead out of the process; the graph of processes goes on from there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from ray_rl_debug.analyze.await_chains import is_cut, told_by
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of, node_of
from ray_rl_debug.analyze.roots import roots
from ray_rl_debug.analyze.solve import Activity, Outlook, Wait, solve
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Process, Socket

LOCKS = frozenset({"lock", "semaphore"})
POOL = "pool"
"""The connections of an HTTP client: only coroutines of the process give them back, and which of them has one is not known."""
HANDED = frozenset({"future", "event", "condition", POOL, "queue", "executor", "objectref", "socket", "subprocess"})
"""What somebody outside of the waiting task completes."""
OUTSIDE = frozenset({"socket", "objectref", "executor", "subprocess"})
"""Completed by a thread, a process or a machine that can be named."""
STUCK = LOCKS | HANDED


class End(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks whose waiting ends in the same way."""

    tasks: tuple[AsyncTask, ...]
    awaited: Awaited
    at: str
    """The line of own code: of the tasks themselves, or of those that wait for them (``wait_for`` makes a task of what it is given)."""
    behind: int
    """Other tasks that wait for these."""
    is_at_rest: bool = False
    """They wait for the next piece of work by design."""
    is_cycle: bool = False
    """They wait for each other."""
    is_lost: bool = False
    """Nobody is left in the process who could release what they want."""
    is_still: bool = True
    """No task of it moved between the two reads, and no data came for them."""
    may_be_still: bool = True
    """The same, or whether one moved or data came was not read."""
    limit_s: float | None = None
    """Each of them is given up after so long by the one that waits for it (``asyncio.wait_for``), or by a limit of its own
    (``asyncio.timeout``); None where one is not."""

    @property
    def descriptors(self) -> frozenset[int]:
        """The sockets that they await."""
        return frozenset(t.awaited.fd for t in self.tasks if t.awaited is not None and t.awaited.fd is not None)


def own_frame(task: AsyncTask) -> AwaitFrame | None:
    """The innermost coroutine of own code; None where libraries only stand in the chain."""
    return told_by(task.chain).own


def line_of(task: AsyncTask) -> str:
    """Where a task waits: its innermost own coroutine, else the innermost one."""
    return told_by(task.chain).line or task.name


def serves(task: AsyncTask) -> bool:
    """Does the task wait for the next piece of work by design? Known by the names of its coroutines, or there is no own code in it."""
    chain = told_by(task.chain)
    if chain.own is None and not chain.keeps_house and (chain.is_ray_call or (task.awaited is not None and is_write(task.awaited))):
        return False  # a call whose file was not read; an answer on its way out
    return chain.serves


def is_ray_call(task: AsyncTask) -> bool:
    """Is it a call of a Ray actor whose methods are coroutines?"""
    return told_by(task.chain).is_ray_call


def find_ends(process: Process) -> tuple[End, ...]:
    """All ends of the waiting in a process, the most telling first; pure. Sleepers, runners and those that wait for nothing are left out."""
    if not process.async_tasks:
        return ()
    tasks = {t.address: t for t in process.async_tasks}
    waits = tuple(_waits(tasks))
    cycles, behind = _kept(tasks, waits) if waits else ([], {})
    found: list[End] = [*cycles, *_lock_ends(tasks, behind), *_task_ends(tasks, behind)]
    limits = _limits(tasks)
    found = [
        msgspec.structs.replace(e, is_still=_is_still(process, e), may_be_still=_may_be_still(process, e), limit_s=_limit_of(e, limits))
        for e in found
    ]
    return tuple(sorted(found, key=lambda e: (not e.is_still, rank(e), -len(e.tasks) - e.behind, e.at)))


def _kept(tasks: dict[int, AsyncTask], waits: Sequence[Wait]) -> tuple[list[End], dict[str, frozenset[str]]]:
    """The rings of tasks that wait for each other; and of every task and lock where the waiting ends, the tasks that it keeps."""
    locks = {name for wait in waits for name in wait.any_of if kind_of(name) is NodeKind.LOCK}
    solution = solve([*map(_activity, tasks.values()), *(Activity(id=lock, outlook=Outlook.STANDS, reason="it is taken") for lock in locks)], waits)
    behind: dict[str, frozenset[str]] = {}
    cycles: list[End] = []
    for root in roots(solution, Outlook.WAKES):
        members = tuple(tasks[int(name_of(n))] for n in root.nodes if kind_of(n) is NodeKind.COROUTINE)
        # who also waits for something better is not kept by this alone
        kept = [w for w in root.waiters if kind_of(w) is NodeKind.COROUTINE and solution.hope[w] <= root.hope]
        if root.is_cycle and members and members[0].awaited is not None:
            cycles.append(End(tasks=members, awaited=members[0].awaited, at=line_of(members[0]), behind=len(kept), is_cycle=True))
        elif not root.is_cycle:
            behind[root.nodes[0]] = frozenset(kept)
    return cycles, behind


def _limits(tasks: dict[int, AsyncTask]) -> dict[int, float]:
    """How long somebody waits for a task before it is given up, by the address of the task: a limit of its own, or of one that waits for it."""
    found: dict[int, float] = {}
    for task in tasks.values():
        if task.gives_up_s is not None and task.gives_up_s >= 0:  # one that is over should have ended the wait: its loop does not run
            found |= dict.fromkeys((task.address, *(task.awaited.tasks if task.awaited is not None else ())), task.gives_up_s)
        told = _LIMIT.fullmatch(task.awaited.detail or "") if task.awaited is not None and task.awaited.kind == "task" else None
        if told is not None and task.awaited is not None:
            found |= {inner: float(told[1]) for inner in task.awaited.tasks}
    return found


_LIMIT = re.compile(r"wait_for (\d+(?:\.\d+)?(?:e[+-]?\d+)?) s")


def _limit_of(end: End, limits: dict[int, float]) -> float | None:
    each = [limits.get(t.address) if t.address is not None else None for t in end.tasks]
    known = [limit for limit in each if limit is not None]
    return max(known) if known and len(known) == len(each) else None


class Coroutines:
    """The asyncio tasks of one process. Many ask what their waiting ends at; it is found once."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @cached_property
    def ends(self) -> tuple[End, ...]:
        """As `find_ends` gives them."""
        return find_ends(self._process)


def _is_still(process: Process, end: End) -> bool:
    read_twice = any(t.stable is not None for t in process.async_tasks or ())
    if any(t.stable is False or (t.stable is None and read_twice) or is_cut(t, process.async_tasks or ()) for t in end.tasks):
        return False
    return not any(s.quiet_s is None or process.window_s is None or s.quiet_s < process.window_s for s in _timed_sockets(process, end))


def _may_be_still(process: Process, end: End) -> bool:
    return not got_data(process, end) and not any(t.stable is False for t in end.tasks)


def _timed_sockets(process: Process, end: End) -> list[Socket]:
    """The connections at which coroutines wait, where the kernel tells of connections since when they are quiet."""
    timed = [s for s in process.sockets or () if s.family.startswith("tcp") and s.state == "ESTABLISHED"]
    return [s for s in timed if s.fd in end.descriptors] if any(s.quiet_s is not None for s in timed) else []


def got_data(process: Process, end: End) -> bool:
    """Did data come in during the window for coroutines that wait at connections? Of some the kernel's clock may not have been read."""
    return any(s.quiet_s is not None and s.quiet_s < (process.window_s or 0.0) for s in _timed_sockets(process, end))


SERVES_RANK = 9


def waits_inside(ends: Iterable[End]) -> bool:
    """Do coroutines stand still for what another part of their process, or nobody, should give them?"""
    return any(e.is_still and rank(e) < SERVES_RANK and e.awaited.kind not in OUTSIDE for e in ends)


def rank(end: End) -> int:
    """How telling: what cannot end comes first, what waits for work by design last."""
    if end.is_cycle:
        return 0
    if end.is_at_rest:
        return SERVES_RANK
    if end.awaited.kind in LOCKS or end.is_lost:
        return 1 if end.is_lost else 2
    return 3 if end.awaited.kind in OUTSIDE and not is_queued(end.awaited) else 4


def is_write(awaited: Awaited) -> bool:
    """Is the other end of a socket waited for to read what it is sent?"""
    return awaited.kind == "socket" and (awaited.detail or "").removeprefix("socket ") == "write"


def is_queued(awaited: Awaited) -> bool:
    """Work for an executor whose threads are all taken: those that work are the cause."""
    return awaited.kind == "executor" and (awaited.detail or "").endswith(" pending")


def _activity(task: AsyncTask) -> Activity:
    kind = task.awaited.kind if task.awaited is not None else "unknown"
    outlook = {"running": Outlook.MOVES, "ready": Outlook.MOVES, "sleep": Outlook.WAKES}.get(kind, Outlook.STANDS)
    return Activity(id=node_of(NodeKind.COROUTINE, task.address), outlook=outlook, reason=kind)


def _waits(tasks: dict[int, AsyncTask]) -> Iterator[Wait]:
    locks: dict[str, tuple[str, ...]] = {}
    for task in tasks.values():
        awaited = task.awaited
        if awaited is None:
            continue
        waiter = node_of(NodeKind.COROUTINE, task.address)
        others = _nodes(awaited.tasks, tasks)
        for any_of in [others] if awaited.first and others else [(other,) for other in others]:
            yield _wait(waiter, any_of)
        if awaited.kind in LOCKS and awaited.address is not None and not _has_permit(awaited):
            lock = node_of(NodeKind.LOCK, awaited.address)
            yield _wait(waiter, (lock,))
            locks[lock] = _nodes(awaited.holders, tasks)
    yield from (_wait(lock, holders) for lock, holders in locks.items() if holders)


def _nodes(addresses: Iterable[int], tasks: dict[int, AsyncTask]) -> tuple[str, ...]:
    return tuple(node_of(NodeKind.COROUTINE, a) for a in addresses if a in tasks)


def _wait(waiter: str, any_of: tuple[str, ...]) -> Wait:
    return Wait(waiter=waiter, any_of=any_of, why=Why.COROUTINE.value, evidence="")


def _has_permit(awaited: Awaited) -> bool:
    """A semaphore, lock or connection that was just given back: its waiter will run."""
    return (awaited.value is not None and awaited.value > 0) or (awaited.detail or "").endswith(" unlocked")


def _lock_ends(tasks: dict[int, AsyncTask], behind: dict[str, frozenset[str]]) -> Iterator[End]:
    """Locks and semaphores that nobody is known to hold."""
    own = sum(1 for t in tasks.values() if own_frame(t) is not None)
    for node, waiters in behind.items():
        if kind_of(node) is not NodeKind.LOCK:
            continue
        all_waiting = [tasks[int(name_of(w))] for w in waiters]
        direct = [t for t in all_waiting if t.awaited is not None and t.awaited.kind in LOCKS and node_of(NodeKind.LOCK, t.awaited.address) == node]
        if direct and direct[0].awaited is not None:
            # whoever took it by a bare acquire() is not known: any other task of own code might be that one
            is_lost = sum(1 for t in all_waiting if own_frame(t) is not None) == own
            yield End(
                tasks=_sorted(direct),
                awaited=direct[0].awaited,
                at=line_of(direct[0]),
                behind=len(all_waiting) - len(direct),
                is_at_rest=all(serves(t) for t in direct),
                is_lost=is_lost,
            )


def _task_ends(tasks: dict[int, AsyncTask], behind: dict[str, frozenset[str]]) -> Iterator[End]:
    """Tasks that wait for no other task, merged where they stand at one line for one kind of thing."""
    classes: dict[tuple[str, str, str | None, bool], list[AsyncTask]] = defaultdict(list)
    owners = _owners(tasks)
    own = {a for a, t in tasks.items() if own_frame(t) is not None}
    for task in tasks.values():
        awaited = task.awaited
        if (
            awaited is None
            or awaited.kind not in STUCK
            or (awaited.kind == POOL and _has_permit(awaited))
            or node_of(NodeKind.LOCK, awaited.address) in behind
            or any(a in tasks for a in awaited.tasks)
        ):
            continue
        if awaited.kind in LOCKS and any(h in tasks for h in awaited.holders):
            continue
        classes[(line_of(owners.get(task.address, task)), awaited.kind, awaited.detail, task.stable is False)].append(task)
    for (at, *_), members in classes.items():
        waiters: frozenset[str] = frozenset().union(*(behind.get(node_of(NodeKind.COROUTINE, t.address), frozenset()) for t in members))
        awaited = members[0].awaited
        if awaited is not None:
            rests = all(serves(owners.get(t.address, t)) for t in members)
            at_it = {t.address for t in members} | {int(name_of(w)) for w in waiters}
            is_lost = awaited.kind == POOL and own <= at_it
            yield End(tasks=_sorted(members), awaited=awaited, at=at, behind=len(waiters), is_at_rest=rests, is_lost=is_lost)


def _owners(tasks: dict[int, AsyncTask]) -> dict[int, AsyncTask]:
    """For tasks of library code alone: the nearest of own code that waits for them."""
    waiters: dict[int, list[AsyncTask]] = defaultdict(list)
    for task in tasks.values():
        for other in task.awaited.tasks if task.awaited is not None else ():
            waiters[other].append(task)
    found = {}
    for address, task in tasks.items():
        at, seen = task, set[int]()
        while own_frame(at) is None and waiters.get(at.address) and at.address not in seen:
            seen.add(at.address)
            at = waiters[at.address][0]
        if at is not task and own_frame(at) is not None:
            found[address] = at
    return found


def _sorted(tasks: Iterable[AsyncTask]) -> tuple[AsyncTask, ...]:
    return tuple(sorted(tasks, key=lambda t: t.address))


def describe_awaited(process: Process, awaited: Awaited, *, is_lost: bool = False) -> str:
    """What is awaited, in words: ``Semaphore with 0 permits, nobody holds one``, ``an answer of 10.0.0.2:8000``."""
    name = (awaited.detail or awaited.kind).split(" ")[0]
    if awaited.kind in LOCKS and awaited.address is not None:
        state = f" with {awaited.value} permits" if awaited.value is not None else " that is locked"
        holders = {t.address: t for t in process.async_tasks or () if t.address in awaited.holders}
        if holders:
            first = next(iter(holders.values()))
            more = f" and {len(holders) - 1} more" if len(holders) > 1 else ""
            return f"{name}{state}, held by {first.name} at {line_of(first)}{more}"
        nobody = "no coroutine is left that could release it" if is_lost else "no coroutine is inside its async with"
        return f"{name}{state}: {nobody}"
    if awaited.kind == POOL and is_lost:
        return f"{awaited.detail}: no coroutine is left that could give one back"
    if awaited.kind == "socket":
        remote, goal = remote_of(process, awaited.fd), (awaited.detail or "").removeprefix("socket ")
        if not remote:
            return "a socket"
        return {"write": f"{remote} to read what it is sent", "connect": f"a connection to {remote}"}.get(goal, f"an answer of {remote}")
    if awaited.kind == "objectref":
        return "an ObjectRef" + (f" of task {awaited.object_id[:16]}" if awaited.object_id else "")
    if awaited.kind == "executor":
        return "a free thread of an executor" if is_queued(awaited) else "a thread of an executor"
    if awaited.kind == "subprocess":
        return f"the child process {awaited.pid}" if awaited.pid else "a child process"
    if awaited.kind == "sleep" and awaited.due_s is not None:
        return f"sleep, {awaited.due_s:.1f} s left" if awaited.due_s >= 0 else f"sleep, {-awaited.due_s:.1f} s overdue"
    return awaited.detail or awaited.kind


def remote_of(process: Process, fd: int | None) -> str | None:
    """The address at the other end of a socket of a process."""
    return next((s.remote for s in process.sockets or () if s.fd == fd and s.remote is not None), None) if fd is not None else None


def ticks(process: Process) -> bool:
    """Is a coroutine on its way, or does one look again and again for something, sleeping in between?"""
    return any((sleeps_on(t) or is_on_its_way(t)) and not serves(t) and not is_apart(t) for t in process.async_tasks or ())


def is_on_its_way(task: AsyncTask) -> bool:
    """Was it elsewhere at the second read, or met at work by the only one? Who only looks again at variables has got nowhere."""
    if looks_at_variables(task):
        return False
    return task.stable is False or (task.stable is None and task.awaited is not None and task.awaited.kind in ("running", "ready"))


def went_on(process: Process) -> bool:
    """Is a coroutine on its way that does not serve others?"""
    return any(is_on_its_way(t) and not serves(t) and not is_apart(t) for t in process.async_tasks or ())


LATE_S = 2.0
"""A loop that runs wakes those whose sleep is over within fractions of a second."""


def sleeps_on(task: AsyncTask) -> bool:
    """Does it sleep, and will its loop wake it? A sleep that was over long ago ends only when somebody runs the loop again."""
    return task.awaited is not None and task.awaited.kind == "sleep" and not _is_late(task)


def _is_late(task: AsyncTask) -> bool:
    return task.awaited is not None and task.awaited.due_s is not None and task.awaited.due_s < -LATE_S


def left_behind(process: Process) -> AsyncTask | None:
    """A coroutine whose sleep was over long ago, in a loop that no thread runs any more."""
    return next((t for t in process.async_tasks or () if _is_late(t) and t.tid is None and not is_apart(t)), None)


def looks_at_variables(task: AsyncTask) -> bool:
    """Does it sleep, and look again whether variables of its process have changed, as its source tells? Then its own waking is no progress."""
    own = own_frame(task)
    return task.awaited is not None and task.awaited.kind == "sleep" and own is not None and own.looks == ()


def waits_for_requests(task: AsyncTask, *, unread: bool = False) -> bool:
    """Does it wait for what another request brings, or look again and again at variables that another request changes?

    Args:
        unread: Or was not read who brings it?
    """
    own = own_frame(task)
    if own is None or task.awaited is None or not (own.brings is True or (unread and own.brings is None)):
        return False
    return looks_at_variables(task) or (task.awaited.kind in ("queue", "event", "condition", "future") and task.stable is not False)


def is_apart(task: AsyncTask) -> bool:
    """Does it go round in a function that hands nothing to the rest of the program? Then nobody waits for it, though it moves."""
    return bool(task.chain) and task.chain[0].apart is True
