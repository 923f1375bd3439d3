"""What is seen of the child from outside: where its episodes stand, and what the process holds once they are over."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ray_rl_debug.analyze.await_chains import is_own
from ray_rl_debug.collect.async_tasks import read_async_tasks
from ray_rl_debug.collect.procfs import PROC, list_pids, read_stat, read_status
from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.model.snapshot import AsyncTask, AwaitFrame
from ray_rl_debug.model.trial import Held, Place

LOOK_S = 5.0
"""For one look; some tens of milliseconds do where a core is free."""
MAX_HOPS = 16
MAX_TO = 5
IN_THREAD = "its synchronous call, in a thread of its own"
_EPISODE = re.compile(r"episode-(\d+)$")
_OURS = "ray_rl_debug/trial/child/"
_CLIENTS = ("openai/", "anthropic/", "litellm/", "langchain", "tenacity/")
"""Client libraries: what stands in them stands for the line that called them."""
POOLS = (
    ("wait_for_connection", "httpcore/", "a connection of the HTTP client's pool (httpx.Limits)"),
    ("_wait_for_available_connection", "aiohttp/", "a connection of aiohttp's pool (TCPConnector limit)"),
)
"""Function, file and meaning of places where a request waits in its own process for a connection to come free."""


class Seen(msgspec.Struct, frozen=True):
    """One unfinished episode at one look."""

    episode: int
    place: Place
    lock: int | None = None
    """Address of the lock or semaphore that it wants."""


class Look(msgspec.Struct, frozen=True):
    """All unfinished episodes at one moment."""

    seen: tuple[Seen, ...]
    inside: dict[int, int]
    """Tasks that hold a lock or semaphore, by its address."""
    others: tuple[AsyncTask, ...]
    """Tasks that belong to no episode and not to us."""
    reason: str | None = None
    """Why not all could be read."""


def look(pid: int) -> Look:
    """Where the episodes stand now. Reading from outside does not stop them."""
    tasks, gap = read_async_tasks(pid, deadline_s=LOOK_S)
    by_address = {t.address: t for t in tasks or ()}
    seen: list[Seen] = []
    belongs: set[int] = set()
    for task in tasks or ():
        number = _EPISODE.match(task.name)
        if number is not None:
            way = _way(task, by_address)
            belongs.update(t.address for t in way)
            seen.append(_seen(int(number[1]), way))
    inside: dict[int, int] = {}
    for task in tasks or ():
        if task.awaited is not None and task.awaited.address is not None and task.awaited.kind in ("lock", "semaphore"):
            inside[task.awaited.address] = len(task.awaited.holders) + (task.awaited.value or 0)
    others = tuple(t for t in tasks or () if t.address not in belongs and not _is_ours(t))
    return Look(tuple(seen), inside, others, gap.reason if gap is not None else None)


def _way(task: AsyncTask, by_address: Mapping[int, AsyncTask]) -> list[AsyncTask]:
    """The task, and those that it waits for one after the other; of several the first that is there."""
    way = [task]
    for _ in range(MAX_HOPS):
        awaited = way[-1].awaited
        following = next((by_address[a] for a in (awaited.tasks if awaited else ()) if a in by_address and by_address[a] not in way), None)
        if following is None:
            break
        way.append(following)
    return way


def _seen(episode: int, way: list[AsyncTask]) -> Seen:
    chain = [f for t in way for f in t.chain if _OURS not in (f.file or "")]
    awaited = way[-1].awaited
    kind = awaited.kind if awaited is not None else "unknown"
    what = (awaited.detail or "") if awaited is not None else ""
    if kind == "sleep" and awaited is not None and awaited.delay_s is not None:
        what = f"{awaited.delay_s:g} s"
    pool = next((text for name, file, text in POOLS if any(f.function.endswith(name) and file in (f.file or "") for f in chain)), None)
    if pool is not None:
        kind, what = "connection-pool", pool
    where = _where(chain) if chain else IN_THREAD if any(f.function.endswith("in_thread") for t in way for f in t.chain) else "its own start"
    if where == IN_THREAD:
        kind, what = "thread", ""
    place = Place(where=where, kind=kind, what=what, count=1, chain=tuple(_frame(f) for f in chain))
    return Seen(episode, place, awaited.address if awaited is not None and kind in ("lock", "semaphore") else None)


def _where(chain: list[AwaitFrame]) -> str:
    mine = [f for f in chain if is_own(f) and not (f.file or "").startswith(_CLIENTS)]
    users = [f for f in mine if (f.file or "").startswith("/")]
    best = (users or mine or chain)[-1:]
    return _frame(best[0]) if best else "not read"


def _frame(frame: AwaitFrame) -> str:
    return f"{frame.function} ({frame.file}{f':{frame.line}' if frame.line else ''})" if frame.file else frame.function


def _is_ours(task: AsyncTask) -> bool:
    return any(_OURS in (f.file or "") for f in task.chain)


def sum_up(looks: Iterable[Look]) -> tuple[Place, ...]:
    """Equal places over several looks, the most frequent first."""
    counts: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], Place] = {}
    inside: dict[tuple[str, str, str], int] = defaultdict(int)
    for one in looks:
        for seen in one.seen:
            # the state of a semaphore changes from look to look
            key = (seen.place.where, seen.place.kind, "" if seen.lock is not None else seen.place.what)
            counts[key] += 1
            first.setdefault(key, seen.place)
            if seen.lock is not None:
                inside[key] = max(inside[key], one.inside.get(seen.lock, 0))
    return tuple(msgspec.structs.replace(first[k], count=n, lets_in=inside.get(k)) for k, n in counts.most_common())


def held(pid: int, proc: Path = PROC) -> Held:
    """Descriptors, connections, tasks, threads and memory now."""
    sockets = SocketReader(proc).read(pid)
    tcp = [s for s in sockets or () if s.family != "unix" and s.state != "LISTEN"]
    tasks = look(pid)
    status = read_status(pid, proc)
    rss = status.get("VmRSS", "").split()
    try:
        descriptors: int | None = len(os.listdir(proc / str(pid) / "fd"))
    except OSError:
        descriptors = None
    places = Counter(_where(list(t.chain)) for t in tasks.others)
    return Held(
        descriptors=descriptors,
        connections=len(tcp) if sockets is not None else None,
        half_closed=sum(s.state == "CLOSE_WAIT" for s in tcp) if sockets is not None else None,
        to=dict(Counter(s.remote or "?" for s in tcp).most_common(MAX_TO)),
        tasks=len(tasks.others) if tasks.reason is None else None,
        task_places=dict(places.most_common(MAX_TO)),
        threads=int(status["Threads"]) if status.get("Threads", "").isdigit() else None,
        rss_bytes=int(rss[0]) * 1024 if rss and rss[0].isdigit() else None,
    )


def children_of(pid: int, proc: Path = PROC) -> list[int]:
    """Processes below `pid`, so that none is left behind."""
    found = [pid]
    parents = {p: read_status(p, proc).get("PPid", "") for p in list_pids(proc)}
    for one in found:
        found += [p for p, parent in parents.items() if parent == str(one) and p not in found]
    return found[1:]


def cpu_s(pid: int, proc: Path = PROC) -> float | None:
    """CPU time of a process until now."""
    stat = read_stat(proc / str(pid))
    return stat.ticks / os.sysconf("SC_CLK_TCK") if stat is not None else None


def difference(after: float | None, before: float | None) -> float | None:
    return after - before if after is not None and before is not None else None
