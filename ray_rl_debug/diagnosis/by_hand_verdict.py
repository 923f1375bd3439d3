"""The answer on stacks that somebody collected by hand. Who gives them says that the run hangs: the question is who keeps it from going on."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug import signatures
from ray_rl_debug.analyze.by_hand import hung_for_s
from ray_rl_debug.analyze.coroutines import End, describe_awaited
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen, as_verb, describe_place
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.diagnosis.parents import is_worker_of_parent, place_of_start
from ray_rl_debug.model.report import Certainty, Finding, State, Verdict
from ray_rl_debug.rules.first_failure import ID as FIRST_FAILURE
from ray_rl_debug.rules.scene import Scene


def verdict_by_hand(scene: Scene, findings: Sequence[Finding], next_command: str) -> Verdict:
    """State and sentence where no finding is surer than *possible*; `next_command` is the first further look."""
    possible = Certainty.POSSIBLE
    if findings and (signatures.find(findings[0].id) is not None or findings[0].id == FIRST_FAILURE):
        summary = f"the stacks tell no cause; the logs hold an error: {findings[0].summary}"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=possible, next=next_command)
    if findings:
        summary = f"{_if(scene)}: {findings[0].summary}"
        return Verdict(state=State.HANG, summary=summary, certainty=possible, next=next_command)
    seen = list(scene.view)
    moving = [s for s in seen if s.motion in (Motion.MOVING, Motion.BUSY)]
    if moving:
        summary = (
            f"{_count(len(moving), len(seen))} met elsewhere at a later look: nobody was found who stands and keeps others waiting; "
            "the run is slow, or goes round in circles"
        )
        return Verdict(state=State.SLOW, summary=summary, certainty=possible, next=next_command)
    if seen and all(s.is_idle for s in seen):
        return Verdict(state=State.UNKNOWN, summary=f"no verdict: {_all_idle(seen)}", certainty=possible, next=next_command)
    return Verdict(state=State.UNKNOWN, summary=f"no verdict: {_first(scene, seen)}", certainty=possible, next=next_command)


def _if(scene: Scene) -> str:
    hung = hung_for_s(scene.view.snapshot)
    if hung is None:
        return "if this run hangs"
    return f"the run is said to hang for {hung / 60:.0f} min" if hung >= 120 else f"the run is said to hang for {hung:.0f} s"


def _count(some: int, many: int) -> str:
    return f"{some} of {many} processes {'was' if some == 1 else 'were'}" if many > 1 else "the process was"


def _all_idle(seen: Sequence[Seen]) -> str:
    """Nobody here has anything to do: whoever should give them work keeps them waiting."""
    who = f"all {len(seen)} processes that were dumped are idle" if len(seen) > 1 else f"{seen[0].where()} is idle"
    waits = "each waits for its next piece of work" if len(seen) > 1 else "it waits for its next piece of work"
    children = [s for s in seen if is_worker_of_parent(s)]
    if len(children) == len(seen):
        begun = f", in {place}" if (place := place_of_start(children[0])) is not None else ""
        of_all = f"the parent that started {'them' if len(seen) > 1 else 'it'}{begun}"
        return f"{who}: {waits}. Who should give it was not dumped: {of_all}"
    return f"{who}: {waits}. Who should give it was not dumped: the driver, the trainer, or whoever sends the requests"


def _first(scene: Scene, seen: Sequence[Seen]) -> str:
    """What can be said of stacks in which nobody is seen to keep another one waiting."""
    ends = [e for s in seen if (e := ended(s)) is not None]
    if ends and len(ends) == len(seen):
        who = f"all {len(seen)} processes have" if len(seen) > 1 else f"{seen[0].where()} has"
        return f"{who} ended ({ends[-1].text[:120]}): stacks of an end show where it was, and no wait; the first failure is in the logs of all ranks"
    if (between := core_and_workers(seen)) is not None:
        core, workers = between
        all_of = f"all {len(workers)} workers that were dumped wait" if len(workers) > 1 else "the worker that was dumped waits"
        return (
            f"{core.where()} waits for the answer of its workers in {core.inside()}, and {all_of} for its next message: "
            "each side waits for the other. A message between them was lost, or a worker that was not dumped has it"
        )
    asks = next((s for s in seen if s.kind in WAITS_FOR_RAY), None)
    others = [s for s in seen if s is not asks]
    if asks is not None and others and all(s.is_idle for s in others):
        idle = f"all {len(others)} other processes" if len(others) > 1 else "the other process"
        return (
            f"{asks.where()} {asks.does()} while {idle} that {'were' if len(others) > 1 else 'was'} dumped "
            f"{'are' if len(others) > 1 else 'is'} idle: its call runs in a process that was not dumped, or was never started"
        )
    callers = [s for s in seen if s.kind in WAITS_FOR_RAY and s.process.kind == "ray-worker"]
    if len(callers) > 1 and all(s in callers or s.is_idle for s in seen):
        first, second = callers[:2]
        more = f" (and {len(callers) - 2} more)" if len(callers) > 2 else ""
        return (
            f"{first.where()} {first.does()}, {second.where()} {second.does()}{more}: they may wait for each other, "
            "or for a call in a process that was not dumped"
        )
    if asks is not None:
        return f"{asks.where()} {asks.does()}, and the stacks do not tell which call it waits for"
    standing = [s for s in seen if s.threads and not s.is_idle]
    waiting = next((s for s in seen if s.process.async_tasks), None)
    if not standing and waiting is not None and (end := at_connection(waiting)) is not None:
        some = "coroutines" if len(end.tasks) + end.behind > 1 else "a coroutine"
        return (
            f"{some} of {waiting.where()} {'wait' if some != 'a coroutine' else 'waits'} in {end.at} for an answer at a connection: "
            "who should give it does not show in the stacks"
        )
    if not standing and waiting is not None:
        first_end = next((e for e in waiting.ends if e.awaited.kind != "unknown"), None)
        place = f" for {describe_awaited(waiting.process, first_end.awaited)} in {first_end.at}" if first_end is not None else ""
        return f"coroutines of {waiting.where()} wait{place}, and who should end that does not show in their stacks"
    failed = [r.text for s in seen for r in s.process.remarks if r.kind == "unread"]
    if not standing and failed and not any(s.threads for s in seen):
        whom = "the process" if len(seen) == 1 else f"{len(seen)} processes"
        return f"no stack was given: of {whom} a tool said that it could not be read ({failed[0][:100]})"
    if not standing:
        return "no stack of these files tells what a process waits for"
    roots = [r.nodes[0] for r in scene.graph.roots if r.hope is Outlook.STANDS]
    one = next((s for key in roots for s in standing if s.key == key), standing[0])
    if one.followed is not None:
        other = one.followed
        return f"{one.where()} {one.does()}, while its thread {other.called} {as_verb(describe_place(other.place))}: look there first"
    few = "only one process was dumped" if len(seen) == 1 else "no stack shows that others wait for it"
    return f"{one.where()} {one.does()}; {few}, so what it waits for, and who waits for it, cannot be told"


def core_and_workers(seen: Sequence[Seen]) -> tuple[Seen, list[Seen]] | None:
    """A core of an inference engine that waits for its workers, and the workers, where all of these wait for it."""
    cores = [s for s in seen if s.identity.part is not None and s.identity.part.part == "core" and s.kind is Kind.CHANNEL and not s.is_idle]
    workers = [s for s in seen if s.identity.part is not None and s.identity.part.part == "worker" and s.threads]
    return (cores[0], workers) if len(cores) == 1 and workers and all(w.is_idle for w in workers) else None


def at_connection(one: Seen) -> End | None:
    """Where coroutines of a process wait for an answer at a connection, and not for requests."""
    return next((e for e in one.ends if e.awaited.kind == "socket" and not e.is_at_rest), None)
