"""What the process holds after equal rounds: a leak grows with each of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from ray_rl_debug.doctor import answers
from ray_rl_debug.model.health import Result
from ray_rl_debug.model.trial import Facts, Held, Stage

LEAST = 4
PER_EPISODE = 0.2
"""Growth below this per episode may be a cache or a pool that still fills."""
MEMORY_LEAST_BYTES = 32 << 20
_THINGS: tuple[tuple[str, Callable[[Held], int | None], str], ...] = (
    ("connections", lambda h: h.connections, "async with AsyncOpenAI(...) as client, or one client for all episodes"),
    ("asyncio tasks", lambda h: h.tasks, "await or cancel what create_task starts"),
    ("threads", lambda h: h.threads, "end executors: with ThreadPoolExecutor(...) as pool"),
    ("descriptors", lambda h: h.descriptors, "close files, pipes and sockets: with open(...) as f"),
)


def leaks(facts: Facts) -> Iterator[Result]:
    """Connections, tasks, threads or descriptors were left behind by episodes. After some thousand of them the process fails: too many open files.

    Evidence: counted from outside after each of several equal rounds, once the collector has run; all grew from round to round.

    Remedy: close clients (``async with``), await or cancel tasks.

    Not this when: a pool or cache still fills: it stops growing between equal rounds.
    """
    rounds = _rounds(facts)
    if len(rounds) < 3:
        return
    episodes = sum(s.episodes for s in rounds[1:])
    found = False
    explained = 0
    for name, of, cure in _THINGS:
        counts = [of(s.held) for s in rounds if s.held is not None]
        growth = _growth(counts)
        # each connection is a descriptor too
        if growth is None or growth - (explained if name == "descriptors" else 0) < max(LEAST, PER_EPISODE * episodes):
            continue
        explained += growth if name == "connections" else 0
        found = True
        way = " → ".join(str(c) for c in counts)
        measured = f"{name} after {len(rounds)} equal rounds: {way}, {growth / episodes:.2g} per episode{_where(name, rounds[-1].held)}"
        yield answers.fail(measured, "no growth", _then(name, growth / episodes), cure)
    if not found:
        last = rounds[-1].held
        held = ", ".join(f"{'no' if n == 0 else n} {name}" for name, of, _ in _THINGS if last is not None and (n := of(last)) is not None)
        yield answers.ok(f"nothing grew over {len(rounds)} equal rounds: {held}")


def _growth(counts: list[int | None]) -> int | None:
    """From the first to the last round; None where it did not grow in each."""
    known = [c for c in counts if c is not None]
    if len(known) < len(counts) or any(b <= a for a, b in itertools.pairwise(known)):
        return None
    return known[-1] - known[0]


def _where(name: str, held: Held | None) -> str:
    if held is None:
        return ""
    if name == "connections" and held.to:
        peer, count = max(held.to.items(), key=lambda p: p[1])
        closed = f", {held.half_closed} of all were closed by the other end" if held.half_closed else ""
        return f"; {count} of them to {peer}{closed}"
    if name == "asyncio tasks" and held.task_places:
        place, count = max(held.task_places.items(), key=lambda p: p[1])
        return f"; {count} of them at {place}"
    return ""


def _then(name: str, each: float) -> str:
    if name in ("connections", "descriptors"):
        return f"with a limit of 1,024 open files the process fails after some {int(1024 / each):,} episodes"
    return "the process grows slower and larger with each step"


def memory(facts: Facts) -> Iterator[Result]:
    """Memory grew with each of several equal rounds.

    Evidence: resident memory of the process after each round, once the collector has run.

    Remedy: look for lists and caches that episodes append to; ``tracemalloc`` names the lines.

    Not this when: a cache still fills; three rounds are few, so this is a warning only.
    """
    rounds = _rounds(facts)
    counts = [s.held.rss_bytes for s in rounds if s.held is not None]
    if len(rounds) < 3 or not counts or counts[-1] is None:
        return
    growth = _growth(list(counts))
    way = " → ".join(answers.gib(c) for c in counts if c is not None)
    episodes = sum(s.episodes for s in rounds[1:])
    steps = [b - a for a, b in itertools.pairwise(counts) if a is not None and b is not None]
    if growth is not None and growth >= MEMORY_LEAST_BYTES and min(steps) > max(steps) / 3:
        each = f"{growth / episodes / 1024:.0f} KiB per episode"
        then = f"{answers.gib(int(1e5 * growth / episodes))} after 100,000 episodes"
        yield answers.warn(f"memory after {len(rounds)} equal rounds: {way}, {each}", "no growth", then, "tracemalloc: compare two snapshots")
    else:
        yield answers.ok(f"memory after {len(rounds)} equal rounds: {way}")


def _rounds(facts: Facts) -> list[Stage]:
    """The stages that are equal to the last one."""
    whole = [s for s in facts.stages if s.name == "batch" and s.held is not None]
    return whole if len(whole) > 1 else []
