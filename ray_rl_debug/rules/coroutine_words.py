"""Words and evidence about coroutines that wait: how many, at which line, for what, and who holds it."""

from __future__ import annotations

from ray_rl_debug.analyze.coroutines import LOCKS, POOL, End, describe_awaited, line_of, serves
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.whole_looks import lacks_coroutines
from ray_rl_debug.model.report import Evidence
from ray_rl_debug.model.snapshot import AsyncTask

_SHOWN = 4


def _is_lost(one: Seen, end: End) -> bool:
    """Is nobody left who could release it, among coroutines that were all read?"""
    return end.is_lost and not lacks_coroutines(one.process)


def count_of(end: End, tasks: tuple[AsyncTask, ...]) -> str:
    """How many of the coroutines stand at this end."""
    return f"{len(end.tasks)} of {len(tasks)} coroutines"


def awaits(one: Seen, end: End) -> str:
    """Where they wait and for what, as a verb."""
    if end.is_cycle:
        return "wait for each other: " + "; ".join(f"{t.name} at {line_of(t)} for {_what(one, t, end)}" for t in end.tasks[:3])
    return f"wait{'s' if len(end.tasks) == 1 else ''} at {end.at} for {describe_awaited(one.process, end.awaited, is_lost=_is_lost(one, end))}"


def _what(one: Seen, task: AsyncTask, end: End) -> str:
    return describe_awaited(one.process, task.awaited, is_lost=_is_lost(one, end)) if task.awaited is not None else "?"


def await_evidence(one: Seen, end: End) -> Evidence:
    """One end of the chains: who waits there for what, and whether both reads agree."""
    names = ", ".join(t.name for t in end.tasks[:3]) + (", ..." if len(end.tasks) > 3 else "")
    still = "; the same in both reads" if all(t.stable for t in end.tasks) else ""
    number = f"{len(end.tasks)} coroutine{'s' if len(end.tasks) > 1 else ''} ({names})"
    return Evidence(kind="await", where=one.where(), text=f"{number} {awaits(one, end)}{still}")


def holder_evidence(one: Seen, end: End) -> list[Evidence]:
    """Where those stand that hold what the first end wants."""
    wanted = set(end.awaited.holders)
    held = [t for t in one.process.async_tasks or () if t.address in wanted]
    return [Evidence(kind="await", where=one.where(), text=f"{t.name} holds it, at {line_of(t)}") for t in held[:_SHOWN]]


def thread_evidence(one: Seen) -> list[Evidence]:
    """What the threads do that should complete an executor's future."""
    pool = [t for t in one.threads if t.place.path and t is not one.telling and t.place.kind not in IDLE_KINDS]
    return [Evidence(kind="stack", where=f"{one.where()} thread {t.called}", text=describe_place(t.place)) for t in pool[:_SHOWN]]


def polling_lines(tasks: tuple[AsyncTask, ...]) -> list[tuple[str, int]]:
    """Lines of own code where coroutines wait for a clock, most of them first: they look again and again for something."""
    lines: dict[str, int] = {}
    for task in tasks:
        awaited = task.awaited
        timed = awaited is not None and (awaited.kind == "sleep" or (awaited.detail or "").startswith("wait_for"))
        if timed and not serves(task):
            lines[line_of(task)] = lines.get(line_of(task), 0) + 1
    return sorted(lines.items(), key=lambda x: -x[1])


def remedy_of(ends: tuple[End, ...]) -> list[str]:
    """What to do about the first end."""
    kinds = {ends[0].awaited.kind} if ends else set()
    if ends and ends[0].is_cycle:
        return ["take locks in the same order everywhere, and await nothing that needs a lock while you hold it", "restart this actor to go on"]
    if kinds & LOCKS:
        return ["release the semaphore or lock in a finally block (async with): a failed episode kept its permit", "restart this actor to go on"]
    if POOL in kinds:
        return [
            "read or release every response (async with session.get(...)): one that is kept unread keeps its connection",
            "raise the client's limit",
        ]
    if "socket" in kinds:
        return ["give the HTTP or socket call a time limit, and look at the server at the other end"]
    return ["find who should complete what the coroutines await; give the await a time limit (asyncio.wait_for)", "restart this actor to go on"]
