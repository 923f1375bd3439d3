"""What keeps episodes from running beside each other: a blocked event loop, a limit in the agent's own process, one core."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ray_rl_debug.doctor import answers
from ray_rl_debug.model.health import Result
from ray_rl_debug.model.trial import Blocked, Facts, Figures, Place, Stage
from ray_rl_debug.trial.judge.episodes import has_own, own_line
from ray_rl_debug.trial.judge.figures import figures, knee

STARVED = 0.5
"""A block during which the thread was ready but had no core for this part of the time is the machine's."""
MOSTLY = 0.5
LONG_S = 1.0
ENOUGH_LATER = 8
"""Episodes after the first stage that a block of once did not touch."""
MAX_PLACES = 3
IMPORTING = "<frozen importlib"
"""A module that is imported by the first episode is imported once."""
BUSY = 0.85
"""Part of one core."""
MIN_LEVEL = 4
"""Episodes at once from which a level tells of a limit."""
OFTEN = 0.25
"""Part of the stages with several episodes at once: short waits in the loop that add up to this leave the other episodes too little."""


def blocked(facts: Facts) -> Iterator[Result]:
    """A synchronous call ran in the event loop. All episodes, and in AReaL all traffic to the engines, stand still meanwhile.

    Evidence: the loop's own beat was late; a thread of ours took the stack of the loop's thread again and again until it was back. CPU time tells
    a wait from a computation. Waits that are too short for this are added up from looks every 20 ms.

    Remedy: use the asynchronous client, or ``await asyncio.to_thread(...)``.

    Not this when: the thread was ready but got no core (another program keeps them busy), the stack is the loop's own, or only the first episode was
    blocked: what starts once (a pool of processes, a model) costs a run nothing.
    """
    by_place: dict[str, list[Blocked]] = defaultdict(list)
    for one in facts.blocked:
        if one.stack and one.queued_s < STARVED * one.for_s and not any(IMPORTING in f for f in one.stack):
            by_place[own_line(one.stack)].append(one)
    told = set()
    for place, found in sorted(by_place.items(), key=lambda p: -sum(b.for_s for b in p[1]))[:MAX_PLACES]:
        longest = max(found, key=lambda b: b.for_s)
        all_s = sum(b.for_s for b in found)
        if (longest.for_s < LONG_S and all_s < 3 * LONG_S) or _is_start(facts, found):
            continue
        told.add(place)
        still = "" if longest.is_over else ", and had not come back"
        times = (
            f"{len(found)} times, {all_s:.1f} s in all, the longest {longest.for_s:.1f} s" if len(found) > 1 else f"once, for {longest.for_s:.1f} s"
        )
        does = "computed" if longest.cpu_s > MOSTLY * longest.for_s else "waited"
        inner = f", in {longest.stack[0]}" if longest.stack[0] != place else ""
        measured = f"the event loop was blocked {times}{still} at {place}{inner}; it {does}: {longest.cpu_s:.1f} s of CPU time"
        then = "no other episode moves meanwhile: throughput is that of one episode, and time-outs elsewhere fire"
        yield answers.fail(measured, "no callback longer than 0.3 s", then, "await asyncio.to_thread(CALL), or an asynchronous client")
    for place, waited_s, looked_s in _short_waits(facts):
        if place not in told:
            told.add(place)
            measured = f"the event loop stood still {waited_s / looked_s:.0%} of {looked_s:.1f} s at {place}, in many short waits: a synchronous call"
            then = "no other episode moves meanwhile: throughput is that of one episode, whatever the concurrency"
            yield answers.fail(measured, "no synchronous wait in the loop", then, "await asyncio.to_thread(CALL), or an asynchronous client")
    starved = [b for b in facts.blocked if b.queued_s >= STARVED * b.for_s]
    if not told and facts.stages:
        rest = max((b.for_s for b in facts.blocked if b.stack and b not in starved), default=None)
        worst = f"the longest callback took {rest:.1f} s" if rest is not None else "no callback took more than 0.3 s"
        late = f"; {len(starved)} times the loop was ready but had no core" if starved else ""
        yield answers.ok(worst + late)


def _short_waits(facts: Facts) -> Iterator[tuple[str, float, float]]:
    """Lines where the loop's thread waited for a large part of the stages that run several episodes, with both times."""
    several = {s.number for s in facts.stages if s.concurrency > 1}
    loops = [one for one in facts.loops if one.stage in several]
    looked_s = sum(one.looked_s for one in loops)
    waits: dict[str, float] = defaultdict(float)
    for stood in (s for one in loops for s in one.places):
        if has_own(stood.stack) and not any(IMPORTING in f for f in stood.stack):
            waits[own_line(stood.stack)] += stood.waited_s
    for place, waited_s in sorted(waits.items(), key=lambda w: -w[1]):
        if waited_s > max(OFTEN * looked_s, LONG_S):
            yield place, waited_s, looked_s


def _most_computed(facts: Facts, stage: Stage) -> tuple[str, float] | None:
    """The own line that took the most of the loop's CPU time in a stage, and its part, where that is more than half."""
    loop = next((one for one in facts.loops if one.stage == stage.number), None)
    times: dict[str, float] = defaultdict(float)
    for stood in loop.places if loop is not None else ():
        if has_own(stood.stack):
            times[own_line(stood.stack)] += stood.computed_s
    place, most = max(times.items(), key=lambda t: t[1], default=("", 0.0))
    return (place, most / loop.ran_s) if loop is not None and most > MOSTLY * max(loop.ran_s, LONG_S) else None


def _is_in_threads(facts: Facts, stage: Stage) -> bool:
    """Did other threads than the loop's use most of the CPU time?"""
    loop = next((one for one in facts.loops if one.stage == stage.number), None)
    return loop is not None and stage.cpu_s is not None and loop.ran_s < MOSTLY * stage.cpu_s


def _is_full(facts: Facts, stage: Stage) -> bool:
    """Did the process, or its loop's thread, want a core all the time? Time without a core is the machine's."""
    took_s, loop = stage.took_s or 0.0, next((one for one in facts.loops if one.stage == stage.number), None)
    had_s = max(loop.looked_s - loop.queued_s, 0.0) if loop is not None else 0.0
    return (stage.cpu_s or 0.0) > BUSY * took_s or (loop is not None and had_s > LONG_S and loop.ran_s > BUSY * had_s)


def limits(facts: Facts) -> Iterator[Result]:
    """Most episodes wait inside their own process: for a semaphore, a lock, a thread of an executor, or a connection of a pool. The engine idles.

    Evidence: looks at all coroutines during the stage, from outside; where the stand-in answers, also how many requests it ever had at once.

    Remedy: raise the limit to the concurrency of the rollout, or remove it: the engine queues requests better than the agent.

    Not this when: the limit protects something that cannot take more (a licence, a sandbox pool); then it is the true size of the rollout.
    """
    told: set[str] = set()
    for stage in sorted(facts.stages, key=lambda s: -s.concurrency):
        total = sum(p.count for p in stage.places)
        for place in stage.places:
            if _is_limit(place) and place.count > MOSTLY * total and stage.looks > 1 and place.where not in told and _stays(facts, stage, place):
                told.add(place.where)
                yield _limited(stage, place, total)
    if not told and (unseen := _unseen(facts)) is not None:
        yield unseen
    elif not told and any(s.places for s in facts.stages):
        yield answers.ok("most episodes waited for no semaphore, pool or executor of their own process")


def _unseen(facts: Facts) -> Result | None:
    """A limit that no look has met: the engine never has more requests at once, however many episodes run, and none of them ends sooner for that.

    Too few looks are taken where episodes are over in a moment, or the machine is busy.
    """
    levels = {s.concurrency: s.engine_peak for s in facts.stages if s.engine_peak and s.took_s is not None and s.concurrency >= MIN_LEVEL}
    peaks = set(levels.values())
    if len(levels) < 2 or len(peaks) != 1 or knee(figures(facts)) is None or facts.blocked:
        return None
    (peak,) = peaks
    highest = max((s for s in facts.stages if s.took_s is not None), key=lambda s: s.concurrency)
    if peak is None or peak * 2 > min(levels) or _is_full(facts, highest):
        return None
    measured = (
        f"the engine had at most {peak} requests at once, at each concurrency from {min(levels)} to {max(levels)}, and throughput grows no more"
    )
    then = "more concurrency brings no more throughput, and the engine idles"
    cure = (
        "look for a semaphore, a lock, a pool of connections or an executor in the agent; which one no look has met: try again with --batch-size 16"
    )
    return answers.warn(measured, "requests that grow with the episodes", then, cure)


def _is_start(facts: Facts, found: list[Blocked]) -> bool:
    """One block of the first stage that no later episode met."""
    first = min((s.number for s in facts.stages), default=0)
    later = sum(e.stage > first and e.took_s is not None for e in facts.episodes)
    return len(found) == 1 and found[0].is_over and found[0].stage == first and later >= ENOUGH_LATER


def _stays(facts: Facts, stage: Stage, place: Place) -> bool:
    """Does the limit hold in later stages of at least this concurrency too? A pool whose processes are still starting is none."""
    later = [s for s in facts.stages if s.number > stage.number and s.concurrency >= stage.concurrency and s.looks > 1 and s.places]
    held = [
        any(p.where == place.where and p.kind == place.kind and p.count > MOSTLY * sum(q.count for q in s.places) for p in s.places) for s in later
    ]
    return not later or any(held)


def _is_limit(place: Place) -> bool:
    """A thread that runs the call is no limit: only work that waits for a free thread is."""
    return place.kind in ("semaphore", "lock", "connection-pool") or (place.kind == "executor" and place.what.endswith("pending"))


def _limited(stage: Stage, place: Place, total: int) -> Result:
    name = {"semaphore": "a semaphore", "lock": "a lock", "executor": "a thread of an executor"}.get(place.kind, place.what)
    inside = f" that lets {place.lets_in} in" if place.lets_in else ""
    engine = f"; the engine had at most {stage.engine_peak} requests at once" if stage.engine_peak is not None else ""
    measured = (
        f"at concurrency {stage.concurrency}, {place.count / total:.0%} of the unfinished episodes wait for {name}{inside} at {place.where}{engine}"
    )
    wanted = f"a limit of at least {stage.concurrency}"
    then = "more concurrency brings no more throughput, the engine idles, and requests behind it may time out"
    cure = {
        "executor": f"loop.set_default_executor(ThreadPoolExecutor({stage.concurrency})), or an asynchronous client",
        "connection-pool": f"httpx.Limits(max_connections={stage.concurrency}) or more",
    }.get(place.kind, f"asyncio.Semaphore({stage.concurrency})" if place.kind == "semaphore" else "hold the lock for less, or not at all")
    return answers.fail(measured, wanted, then, cure)


def scale(facts: Facts) -> Iterator[Result]:
    """How throughput grows with concurrency, and from where on it does not.

    Evidence: episodes per second at each level; the knee is the least concurrency with nine tenths of the best throughput. CPU time of the process
    tells whether its own Python code is the limit.

    Remedy: below the knee raise max_concurrent_rollouts; above it find what limits: the engine, the agent's own limits, or one core.

    Not this when: the engine given with --endpoint is small: then the knee is the engine's.
    """
    rows = figures(facts)
    at = knee(rows)
    said = ", ".join(f"{r.per_s:.3g}/s at {r.concurrency}" for r in _per_level(facts))
    if not said:
        return
    stage = max((s for s in facts.stages if s.took_s), key=lambda s: s.concurrency, default=None)
    took_s = (stage.took_s if stage is not None else None) or 0.0
    if stage is not None and stage.cpu_s is not None and took_s > LONG_S and _is_full(facts, stage):
        each_ms = 1000 * stage.cpu_s / max(1, stage.episodes)
        at_most = _most_computed(facts, stage)
        place = f", {at_most[1]:.0%} of the loop's at {at_most[0]}" if at_most is not None else ""
        measured = f"{said}; the agent's own process is the limit: {each_ms:.0f} ms of CPU time per episode fill one core{place}"
        then = f"one rollout process does no more than {1000 / max(each_ms, 1e-3):.3g} episodes per second, whatever the engine can"
        cure = "make once what all episodes can share, such as the client (extra_kwargs['http_client'])"
        if at_most is not None or _is_in_threads(facts, stage):
            cure = "compute it in other processes, since threads share one interpreter: await loop.run_in_executor(ProcessPoolExecutor(), FUNCTION)"
        yield answers.warn(measured, "a core that is not full", then, cure)
    elif at is not None:
        yield answers.ok(f"{said}; the knee is at {at}: more concurrency brings no more")
    else:
        yield answers.ok(f"{said}; no knee up to there" if len({r.concurrency for r in rows}) > 2 else said)


def _per_level(facts: Facts) -> list[Figures]:
    best: dict[int, Figures] = {}
    for row in figures(facts):
        other = best.get(row.concurrency)
        if row.per_s is not None and (other is None or row.per_s > (other.per_s or 0.0)):
            best[row.concurrency] = row
    return [best[c] for c in sorted(best)]
