"""How the episodes ended: not at all, with an exception, with something that the trainer cannot use."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ray_rl_debug.doctor import answers
from ray_rl_debug.model.health import Result
from ray_rl_debug.model.trial import Error, Facts, Place
from ray_rl_debug.trial.stand_in import ASKED_FOR

MAX_KINDS = 6
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")
_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib/python3\.\d+/|<frozen")
_OURS = "ray_rl_debug/trial/child/"
_OTHER_PYTHON = "give --python PATH of the interpreter that has its packages"
_WAITS = {
    "socket": "an answer over the network",
    "semaphore": "a semaphore",
    "lock": "a lock",
    "event": "an event that nobody sets",
    "queue": "a queue that stays empty",
    "condition": "a condition that nobody notifies",
    "executor": "a thread of an executor",
    "subprocess": "a child process",
    "sleep": "a sleep",
    "future": "a future that nobody completes",
    "connection-pool": "a connection of its client's pool",
}


def load(facts: Facts) -> Iterator[Result]:
    """The class could not be imported or made, or no framework would call it: nothing else can be said.

    Evidence: what the import or the constructor raised; for a process that ended, its exit code and last output.

    Remedy: import the module by itself: ``python -c "import MODULE"``; give constructor arguments with --init.

    Not this when: the packages are in another environment: give its interpreter with --python.
    """
    if facts.unusable is not None:
        last = facts.output[-1] if facts.output else ""
        said = f"; its last output: {last}" if last and last.partition(":")[0] not in facts.unusable else ""
        cure = facts.cure or f"{_OTHER_PYTHON}, or --init '{{\"name\": value}}'"
        yield answers.fail(facts.unusable + said, "a class that can be called", "no episode can run", cure)
    elif facts.ended is not None:
        last = f"; its last output: {facts.output[-1]}" if facts.output else ""
        yield answers.fail(
            facts.ended + last, "it lives on", "in training the rollout process dies", "look at the output: rayrl-debug rollout try -v ..."
        )
    elif facts.contract is not None:
        note = f"; {facts.note}" if facts.note else ""
        measured = f"{facts.target} is called as {facts.contract}{note}"
        if "does not take" in facts.note:
            yield answers.warn(measured, "run(self, data, **extra_kwargs)", "AReaL's call fails with TypeError", "add **extra_kwargs to run")
        else:
            yield answers.ok(measured)


def returns(facts: Facts) -> Iterator[Result]:
    """An episode returned something that the framework refuses or cannot stack: each such trajectory is rejected or ends the run.

    Evidence: the type, and how many episodes returned it.

    Remedy: return what the contract says: AReaL's run a float (not an int) or a dict of floats by completion id.

    Not this when: an evaluation script takes other values on purpose.
    """
    wrong = Counter(e.wrong for e in facts.episodes if e.wrong is not None)
    ended = sum(e.took_s is not None and not e.was_cancelled for e in facts.episodes)
    for text, count in wrong.most_common(MAX_KINDS):
        then = "the framework refuses the trajectory, and the group or step waits for another one"
        yield answers.fail(f"{count} of {ended} episodes returned {text}", "a value of the contract", then, _cure(text or ""))
    if not wrong and any(e.took_s is not None and e.error is None and not e.was_cancelled for e in facts.episodes):
        yield answers.ok(
            f"all {sum(e.took_s is not None and e.error is None and not e.was_cancelled for e in facts.episodes)} returned values can be used"
        )


def _cure(text: str) -> str:
    return "return float(reward)" if "return float" in text else "change what the episode returns"


def errors(facts: Facts) -> Iterator[Result]:
    """Exceptions ended episodes. AReaL drops such a trajectory and starts another one; verl fails the whole batch.

    Evidence: type, text and innermost own line, equal ones counted together, and the concurrency at which they began.

    Remedy: catch what may fail (tools, time-outs) and return a reward for it.

    Not this when: the failures are the ones that were asked of the stand-in with --failures.
    """
    groups: dict[tuple[str, str, str], list[tuple[int, Error]]] = defaultdict(list)
    stages = {s.number: s for s in facts.stages}
    for e in facts.episodes:
        if e.error is not None:
            key = (e.error.type, _NUMBERS.sub("#", e.error.text), own_line(e.error.frames))
            groups[key].append((stages[e.stage].concurrency if e.stage in stages else 0, e.error))
    ended = sum(e.took_s is not None for e in facts.episodes)
    for (kind, _, where), found in sorted(groups.items(), key=lambda g: -len(g[1]))[:MAX_KINDS]:
        first = found[0][1]
        cause = f", from {first.cause}" if first.cause else ""
        alone = min(c for c, _ in found)
        since = "also alone" if alone <= 1 else f"first at concurrency {alone}"
        then = "each one is a lost trajectory; a group that loses some has the wrong size"
        cure = "catch it in the agent and return a reward" if alone <= 1 else "it needs concurrency: look for shared state, limits and time-outs"
        if ASKED_FOR in first.text:
            since, cure = "as --failures asked", "catch it in the agent and return a reward"
        cure = _OTHER_PYTHON if kind in ("ModuleNotFoundError", "ImportError") else cure
        measured = f"{len(found)} of {ended} episodes raised {kind}: {first.text}{cause} at {where} ({since})"
        yield answers.fail(measured, "no exception", then, cure)
    if not groups and ended:
        yield answers.ok(f"none of {ended} episodes raised")


def own_line(frames: Sequence[str]) -> str:
    """The innermost frame that is neither a library's nor ours; else the innermost."""
    own = next(_own(frames), None)
    return own or next(iter(frames), "an unknown line")


def has_own(frames: Sequence[str]) -> bool:
    """Is any frame the user's?"""
    return next(_own(frames), None) is not None


def _own(frames: Sequence[str]) -> Iterator[str]:
    return (f for f in frames if not _LIBRARY.search(f) and _OURS not in f)


def stuck(facts: Facts) -> Iterator[Result]:
    """Episodes did not end. In training nothing ends them either: AReaL waits seven days, and the step waits for the whole batch.

    Evidence: the await chain of each of them, read from outside, equal ones counted together; what the rules for hangs say of the process.

    Remedy: give every tool call and request a time-out; bound the episode with ``asyncio.wait_for``.

    Not this when: an episode needs longer than --timeout by nature.
    """
    if facts.stuck_stage is None:
        return
    stage = next(s for s in facts.stages if s.number == facts.stuck_stage)
    mine = [e for e in facts.episodes if e.stage == stage.number]
    open_ = sum(p.count for p in facts.stuck) or sum(e.took_s is None or e.was_cancelled for e in mine)
    head = f"{open_} of {len(mine)} episodes that began at concurrency {stage.concurrency} did not end in {facts.timeout_s:g} s"
    then = "the batch never comes together: the trainer waits in prepare_batch, and no log line says why"
    runnable = [p for p in facts.stuck if p.kind in ("ready", "running")]
    if runnable:
        count = sum(p.count for p in runnable)
        text = f"{head}: {count} could go on, and wait{'s' if count == 1 else ''} for a turn on the event loop"
        yield answers.fail(text, "every episode ends", then, "move what blocks the event loop out of it: await asyncio.to_thread(...)")
    # beside a blocked loop the others wait for those that cannot run
    others = [p for p in facts.stuck if p not in runnable and 2 * sum(r.count for r in runnable) < open_]
    for place in others[:MAX_KINDS]:
        yield answers.fail(f"{head}: {place.count} {_stands(place)}", "every episode ends", then, cure_of(place))
    if not facts.stuck:
        yield answers.fail(
            f"{head}; where they stand was not read", "every episode ends", then, "rayrl-debug snapshot --here --pid PID while it hangs"
        )
    for finding in facts.findings[:2]:
        text = f"{finding.id} {finding.name}: {finding.summary}"
        yield answers.fail(text, "every episode ends", then, f"rayrl-debug explain {finding.id}")


def _stands(place: Place) -> str:
    if place.kind == "thread":
        return f"{'has' if place.count == 1 else 'have'} not come back from {'its' if place.count == 1 else 'their'} synchronous call"
    what = _WAITS.get(place.kind, place.kind)
    detail = f" ({place.what})" if place.what and place.kind != "connection-pool" else ""
    return f"stand{'s' if place.count == 1 else ''} at {place.where} and wait{'s' if place.count == 1 else ''} for {what}{detail}"


def cure_of(place: Place) -> str:
    """One thing to do about episodes that stand there."""
    if place.kind in ("semaphore", "lock"):
        return "release it in every path (async with), and never take it twice in one episode"
    if place.kind == "connection-pool":
        return "give the client a larger pool, and read or close every response"
    if place.kind == "thread":
        return "give what it calls a time-out: requests timeout=, sockets settimeout"
    return "bound the wait: await asyncio.wait_for(..., timeout=60)"


def cancel(facts: Facts) -> Iterator[Result]:
    """Episodes that were cancelled went on. Time-outs of the framework end them in the same way, and would not either.

    Evidence: the episodes were cancelled after they had been looked at, and had not ended some seconds later.

    Remedy: catch ``Exception``, not ``BaseException``; do not swallow CancelledError.

    Not this when: the event loop itself is blocked: then no cancellation arrives.
    """
    if facts.stuck_stage is None or facts.gone_on_cancel is None:
        return
    if facts.gone_on_cancel:
        yield answers.ok("episodes that were cancelled ended")
    elif not any(not b.is_over for b in facts.blocked):
        then = "a time-out around the episode does not end it"
        yield answers.fail("episodes that were cancelled had not ended 3 s later", "they end at once", then, "re-raise asyncio.CancelledError")
