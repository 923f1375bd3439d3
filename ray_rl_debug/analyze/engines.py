"""The inference engines of a view: which processes make up one, what waits in it, whether it works, rests, is paused, or has lost a part.

Requests in flight are coroutines of the server; an engine's own figures are only as new as its last step. A part that waits for the next piece of
work rests, however it waits. Progress is passed along the way of a message: an engine core that is woken again and again gets answers, so its
workers compute; a detokenizer that is woken gets tokens, so its scheduler steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from ray_rl_debug import signatures
from ray_rl_debug.analyze.frameworks import spot_of
from ray_rl_debug.analyze.frameworks.table import EngineNames, Spot
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import AsyncTask, AwaitFrame

_GONE = ("Z", "X")


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """One inference engine; its processes by their keys."""

    names: EngineNames
    key: str
    """The key of its outermost process."""
    node: str
    servers: tuple[str, ...] = ()
    """Those that take requests; a launcher is none of them."""
    cores: tuple[str, ...] = ()
    """vLLM's engine cores, SGLang's schedulers."""
    workers: Mapping[str, tuple[str, ...]] = {}
    """The workers of each core."""
    helpers: tuple[str, ...] = ()
    """Detokenizers and coordinators."""
    dead: tuple[str, ...] = ()
    """Parts that are zombies and did not end well."""
    requests: int = 0
    """In flight: coroutines of the servers that await the engine."""
    calls: int = 0
    """Calls of the servers to the engine without an answer."""
    gated: int = 0
    """Requests that the server holds back because the engine is paused."""
    lost: str | None = None
    """A part that is dead and left no process, as people call it, or that is about to end,"""
    lost_pid: int | None = None
    """and its pid, where it ended during the window."""
    ending: str | None = None
    """The engine core that is lost and still lives: it tidies up."""

    @property
    def name(self) -> str:
        return self.names.name


def find_engines(seen: Mapping[str, Seen]) -> tuple[Engine, ...]:
    """All engines of a view; pure."""
    families: dict[_Family, list[Seen]] = {}
    heads: dict[_Family, str] = {}
    for one in seen.values():
        if one.identity.part is not None:
            head = _head(one, seen)
            # parts whose server was not collected are known by their common parent
            is_orphan = head.identity.part is not None and head.identity.part.part != "server" and head.process.ppid not in (None, 1)
            family = (head.node.name, head.process.ppid, one.identity.part.engine.name) if is_orphan else (head.key, None, "")
            heads.setdefault(family, head.key)
            families.setdefault(family, []).append(one)
    _join_lone(families, heads)
    return tuple(_engine(key, families[family], seen) for family, key in sorted(heads.items(), key=lambda item: item[1]))


_Family = tuple[str, int | None, str]


def _join_lone(families: dict[_Family, list[Seen]], heads: dict[_Family, str]) -> None:
    """A part of which was not read whose child it is belongs to the only engine of its kind on its node."""
    for family in [f for f, parts in families.items() if len(parts) == 1 and parts[0].process.ppid is None]:
        others = [f for f, parts in families.items() if f != family and _is_like(parts[0], families[family][0])]
        if len(others) == 1:
            families[others[0]] += families.pop(family)
            del heads[family]


def _is_like(one: Seen, other: Seen) -> bool:
    """Are they parts of one kind of engine, on one node?"""
    parts = one.identity.part, other.identity.part
    return one.node is other.node and parts[0] is not None and parts[1] is not None and parts[0].engine is parts[1].engine


def _head(one: Seen, seen: Mapping[str, Seen]) -> Seen:
    """The outermost part above a part."""
    head, at = one, one
    for _ in range(8):
        above = seen.get(f"{at.node.name}/{at.process.ppid}")
        if above is None:
            break
        at = above
        if at.identity.part is not None:
            head = at
    return head


def _engine(key: str, parts: Sequence[Seen], seen: Mapping[str, Seen]) -> Engine:
    head = seen[key]
    names = next(p.identity.part.engine for p in (head, *parts) if p.identity.part is not None)
    by_part: dict[str, list[Seen]] = {}
    for one in parts:
        if one.process.state not in _GONE and one.identity.part is not None:
            by_part.setdefault(one.identity.part.part, []).append(one)
    servers = by_part.get("server", [])
    below = {s.process.ppid for s in servers if s.key != key}
    servers = [s for s in servers if s.process.pid not in below]
    if servers and len(servers) > 1:  # a child that still bears its parent's title has yet to become what it is
        servers = [s for s in servers if s.process.async_tasks or s.key == key]
    cores = by_part.get("core", [])
    workers = {c.key: tuple(w.key for w in by_part.get("worker", []) if w.process.ppid == c.process.pid) for c in cores}
    tasks = [t for s in servers for t in s.process.async_tasks or ()]
    lost, lost_pid = _lost(names, servers, by_part)
    return Engine(
        names=names,
        key=key,
        node=head.node.name,
        servers=tuple(s.key for s in servers),
        cores=tuple(c.key for c in cores),
        workers=workers,
        helpers=tuple(h.key for part in ("detokenizer", "coordinator") for h in by_part.get(part, [])),
        dead=tuple(p.key for p in parts if p.process.state in _GONE and p.process.exit_code != 0),
        requests=sum(1 for t in tasks if _meets(t, names.requests)),
        calls=sum(1 for t in tasks if _meets(t, names.calls)),
        gated=sum(1 for t in tasks if t.awaited is not None and t.awaited.kind == "condition" and _meets(t, names.gates)),
        lost=lost,
        lost_pid=lost_pid,
        ending=next((c.key for c in cores if lost is not None and _ends(c, names)), None),
    )


def _meets(task: AsyncTask, spots: tuple[Spot, ...]) -> bool:
    return _passes(task.chain, spots)


@lru_cache(maxsize=1 << 12)
def _passes(chain: tuple[AwaitFrame, ...], spots: tuple[Spot, ...]) -> bool:
    return any(f.file is not None and spot_of(spots, f.function, f.file) is not None for f in chain)


def _lost(names: EngineNames, servers: Sequence[Seen], by_part: Mapping[str, Sequence[Seen]]) -> tuple[str | None, int | None]:
    """The part that a server must have had and has no more, and its pid where that is known."""
    labels = {p.part: p.label for p in names.parts}
    if any(_in_path(s.place, names.dying) for s in servers):  # it ends because of a death, or of a hang
        missing = [labels[part] for part in ("core", "detokenizer") if part in labels and not by_part.get(part)]
        return missing[0] if len(missing) == 1 else None, None  # of two that are not there nobody knows which died first
    cores = by_part.get("core", [])
    for core in cores:
        if any(_in_frames(t, names.watches) and _in_frames(t, names.ending) for t in core.threads):
            return _missing_worker(names, core, by_part.get("worker", [])), None
    if not all(_ends(c, names) for c in cores):
        return None, None
    for server in servers:
        if _has_told(server, names):
            return labels["core"], None
    for server in (s for s in servers if _serves(s) or s.process.async_tasks is None):  # one that only starts has no core that was seen
        ended = next((e for e in server.node.ended if e.ppid == server.process.pid and _is_core(e.title, names) and e.exit_code != 0), None)
        if ended is not None:
            return labels["core"], ended.pid
        if _serves(server) and _has_lost_core(server, names, bool(cores)):
            return labels["core"], None
    return None, None


def _has_told(server: Seen, names: EngineNames) -> bool:
    """Did a server that is without a core print that it has lost one? Then nothing need be known of its coroutines."""
    found = (signatures.find(line.signature) for line in server.process.log_lines)
    return any(s is not None and f"{s.layer}/{s.slug}" in names.death_lines for s in found)


def _in_frames(thread: SeenThread, spots: tuple[Spot, ...]) -> bool:
    known, key = thread.stack.known, (_in_frames, spots)
    if key not in known:
        known[key] = any(spot_of(spots, f.function, f.file) is not None for f in thread.frames)
    found: bool = known[key]
    return found


def _missing_worker(names: EngineNames, core: Seen, workers: Sequence[Seen]) -> str:
    """The worker whose rank is not among those left, else any worker."""
    ranks = {w.identity.rank for w in workers if w.process.ppid == core.process.pid and w.identity.rank is not None}
    gone = next((r for r in range(max(ranks) + 2) if r not in ranks), None) if ranks else None
    return f"{names.name} worker" if gone is None else f"{names.name} TP worker {gone}"


def _is_core(title: str, names: EngineNames) -> bool:
    return any(re.match(t, title) for p in names.parts if p.part == "core" for t in p.titles)


def _serves(server: Seen) -> bool:
    """Does it serve HTTP? Told by its coroutines; where these could not be read, by its loop and a socket that listens.

    While it starts it has neither; a worker of Ray always listens.
    """
    tasks = server.process.async_tasks
    if tasks:
        return any(f.function.endswith("Server.main_loop") for t in tasks for f in t.chain)
    return (
        server.is_idle
        and server.process.kind != "ray-worker"
        and any(s.state == "LISTEN" and s.family.startswith("tcp") for s in server.process.sockets or ())
    )


def _lacks_ranks(core: Seen, cores: Sequence[Seen]) -> bool:
    """Does it wait for other ranks, does its title say that it is one of several, and was no other one of its group seen?"""
    part = core.identity.part
    if core.kind not in WAITS_FOR_RANKS or core.motion is Motion.MOVING or core.is_stopped or part is None or "TP" not in part.ranks:
        return False
    return all(c is core for c in cores if c.identity.world == core.identity.world)


def _ends(core: Seen, names: EngineNames) -> bool:
    """Does it tidy up to end, or has its interpreter ended already? Then it shows no stack any more, while those around it do."""
    if any(_in_frames(t, names.leaving) for t in core.threads):
        return True
    return not core.threads and core.process.python is not None and not core.is_stopped


def _has_lost_core(server: Seen, names: EngineNames, is_leaving: bool) -> bool:
    """Has all that lives as long as the engine core of a server ended?"""
    if not names.alive or not server.threads:
        return False
    lives = any(_meets(t, names.alive) for t in server.process.async_tasks or ())
    watches = any(_in_frames(t, names.alive) for t in server.threads)
    if server.process.async_tasks is None:
        return not watches  # what lives as a coroutine was not read
    return not lives and (is_leaving or not watches)  # the watch ends with the process


def rests(one: Seen) -> bool:
    """Does a part wait for its next piece of work? A stopped one does not."""
    return one.is_idle and not one.is_stopped and one.process.state not in _GONE


def settle(seen: Mapping[str, Seen], engines: Iterable[Engine]) -> Iterator[Seen]:
    """Processes of engines whose motion or place the whole engine tells better than their own facts."""
    for engine in engines:
        yield from _settle(seen, engine)


def _settle(seen: Mapping[str, Seen], engine: Engine) -> Iterator[Seen]:
    cores = [seen[c] for c in engine.cores]
    woken = [h for h in (seen[k] for k in engine.helpers) if _has(h, "detokenizer") and is_woken(h)]
    for server in (seen[s] for s in engine.servers):
        if server.place is not None and _in_path(server.place, engine.names.dying):
            yield _placed(server, Kind.WATCH, "about to end: a part of the engine died or hung")
    moving: set[str] = set()
    tokens = new_tokens(seen, engine)
    for core in cores:
        if _lacks_ranks(core, cores):
            yield msgspec.structs.replace(core, motion=Motion.UNKNOWN, motion_reason="the other ranks of its tensor-parallel group were not seen")
            continue
        if engine.requests + engine.gated and engine.names.loops and is_held(core, engine) and not tokens and not woken:
            yield msgspec.structs.replace(core, motion=Motion.FROZEN, motion_reason="its event loop runs and takes up no request")
            continue
        if tokens and len(cores) == 1:
            reason = f"it produced {tokens} tokens during the window"
        elif core.is_stopped or core.motion is Motion.MOVING:
            reason = core.motion_reason
        elif tokens != 0 and core.kind is Kind.CHANNEL and (core.motion is Motion.BUSY or is_woken(core)):
            reason = "its workers answer"
        elif woken and core.motion is Motion.BUSY:
            reason = f"{woken[0].name} receives tokens again and again"
        elif core.motion is Motion.BUSY and _steps(core):
            reason = "it was seen in different parts of its step"
        elif core.motion is Motion.BUSY and _turns(core, engine):
            reason = "its event loop runs"
        else:
            continue
        if not core.is_stopped:
            moving.add(core.key)
            yield _moved(core, reason)
    for core in cores:
        first = _first_rank(core, cores)
        if _has(core, "core") and core is not first and _in_path(core.place, engine.names.pulses):
            if first.key in moving:
                yield _moved(core, f"passes on requests together with {first.name}, which moves")
            elif rests(first):
                yield _placed(core, Kind.IDLE, "waits with its first rank for requests")
    for key, workers in engine.workers.items():
        for worker in (seen[w] for w in workers):
            if key in moving and not worker.is_stopped and not rests(worker):
                yield _moved(worker, f"{seen[key].name} receives its answers")


def may_hold_requests(seen: Mapping[str, Seen], engine: Engine) -> frozenset[str]:
    """Schedulers that only turn their loops, of an engine whose servers' coroutines were not read: at rest or paused, nobody knows."""
    if not engine.servers or any(seen[s].process.async_tasks is not None for s in engine.servers) or new_tokens(seen, engine):
        return frozenset()
    return frozenset(key for key in engine.cores if _turns(seen[key], engine))


def new_tokens(seen: Mapping[str, Seen], engine: Engine) -> int | None:
    """Tokens that the engine's own counter gained between two looks; None where it was not asked, or does not tell."""
    told = [s.process.engine for s in (seen[k] for k in engine.servers) if s.process.engine is not None]
    gained = [
        t.generated_tokens - t.generated_tokens_before for t in told if t.generated_tokens is not None and t.generated_tokens_before is not None
    ]
    return sum(gained) if gained else None


def is_woken(one: Seen) -> bool:
    """Was a part that waits for messages woken more often than by the looking, which costs it two wake-ups a sample?"""
    kernel = one.telling.kernel if one.telling is not None else None
    return kernel is not None and kernel.run_slices is not None and kernel.run_slices > 3 * len(one.process.samples) + 3


def _steps(one: Seen) -> bool:
    """Do its samples part at a frame that is followed by others? A loop that goes round and round changes its innermost frames only."""
    outer = [tuple(reversed(p.path)) for p in one.places]
    for first, second in pairwise(outer):
        shared = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
        if min(len(first), len(second)) - shared > 2:
            return True
    return False


def _first_rank(core: Seen, cores: Sequence[Seen]) -> Seen:
    alike = [c for c in cores if c.identity.world == core.identity.world]
    return min(alike, key=lambda c: (c.identity.rank or 0, c.key), default=core)


def _turns(core: Seen, engine: Engine) -> bool:
    """Is its event loop met in turning, and never in the work on a request?"""
    turns = (_in_path(p, engine.names.loops) and not _in_path(p, engine.names.work) for p in core.places)
    return bool(core.places) and all(turns)


def is_held(core: Seen, engine: Engine) -> bool:
    """Does a scheduler leave requests alone: asleep at its queue all the while, or turning without a step?"""
    if core.is_stopped or not core.places:
        return False
    if not engine.names.loops:
        return all(p.kind is Kind.IDLE for p in core.places) and not is_woken(core)
    if any(_in_path(p, engine.names.steps) for p in core.places):
        return False
    return all(_in_path(p, engine.names.loops) for p in core.places)


def is_in_step(one: Seen, engine: Engine) -> bool:
    """Is a scheduler or worker met in the work on requests in all samples? Such steps take milliseconds, and never sleep."""
    return one.identity.part is not None and bool(one.places) and all(_in_path(p, engine.names.work) for p in one.places)


def is_marked_paused(core: Seen, engine: Engine) -> bool:
    """Was it met in what a paused scheduler alone does?"""
    return any(_in_path(p, engine.names.paused) for p in core.places)


def _in_path(place: Place | None, spots: tuple[Spot, ...]) -> bool:
    return place is not None and any(spot_of(spots, function, file) is not None for function, file, _ in place.path)


def _has(one: Seen, part: str) -> bool:
    return one.identity.part is not None and one.identity.part.part == part


def _moved(one: Seen, reason: str) -> Seen:
    return msgspec.structs.replace(one, motion=Motion.MOVING, motion_reason=reason)


def _placed(one: Seen, kind: Kind, op: str) -> Seen:
    telling = one.telling
    if telling is None:
        return one
    place = msgspec.structs.replace(telling.place, kind=kind, op=op, timed=False, on_loop=False)
    return msgspec.structs.replace(one, telling=msgspec.structs.replace(telling, place=place), phase=None)
