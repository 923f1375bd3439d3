"""Threads that may serve others while the main thread of their process waits elsewhere, as activities of their own.

A trainer that is in a collective, or waits for an actor, may have a thread that answers its clients all the same. Whoever waits for such an answer
waits for that thread and not for the process as a whole: what the main thread waits for, perhaps for that very client, keeps the answer from nobody.
Which thread has a request mostly nobody tells, so any of those that are in the middle of something may have it. A thread that rests between two
requests has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.analyze.clocks import may_end
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, WAITS_FOR_RANKS, WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.library_places import awaits_result
from ray_rl_debug.analyze.limits import FEW_WAKES
from ray_rl_debug.analyze.main_activity import Looks, SeenThread
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.progress import Motion, motion_of
from ray_rl_debug.analyze.prompts import rests_at_input
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.stacks import Stacks
from ray_rl_debug.analyze.thread_scores import executes

_ELSEWHERE = WAITS_FOR_RANKS | WAITS_FOR_RAY | {Kind.SOCKET, Kind.CHANNEL, Kind.MP_QUEUE, Kind.FILE, Kind.CHILD, Kind.DATALOADER}
"""Where a main thread waits for others, and not for a thread of its own."""
_NEVER_WITHIN = IDLE_KINDS | WAITS_FOR_RANKS
"""Where no thread is in the middle of what somebody asked for."""
_MAY_REST = frozenset({Kind.EVENT, Kind.QUEUE, Kind.MP_QUEUE, Kind.CHANNEL})
"""Where a thread stands between two requests as well as within one: only what stands above it tells. Who waits for a result has asked for it."""


def find_serving(stacks: Stacks, seen: Iterable[Seen]) -> Iterator[Seen]:
    """The threads of this sort, each as its process with this thread alone as the one that counts; or the process, where a thread came meanwhile."""
    for one in seen:
        told = one.followed or one.telling
        if told is None or one.kinds <= _NEVER_WITHIN or told.listens or told.place.kind not in _ELSEWHERE or one.is_stopped or one.has_ended:
            continue
        if len(one.threads) < 2 or one.motion is Motion.MOVING or one.identity.part is not None:
            continue
        serving = [t for t in one.threads if t.place.path and t is not told and t is not one.telling and _is_within(one, t)]
        met = {t.tid for t in one.process.samples[0].threads}
        if (new := next((t for t in serving if t.tid not in met and _began(t)), None)) is not None:
            reason = f"its thread {new.called} took up its work during the window"
            yield msgspec.structs.replace(one, motion=Motion.MOVING, motion_reason=reason)
        elif serving and not any(_is_untold(t) for t in serving):
            looks = Looks(stacks, one.node, one.process)
            yield from (_alone(looks, one, t) for t in serving if t.kernel is None or t.place.kind is not Kind.SLEEP or may_end(t.kernel))


def _is_within(one: Seen, thread: SeenThread) -> bool:
    """Is it in the middle of something, as far as its stack tells? Who comes back to its pause again and again is not."""
    kind = thread.place.kind
    if thread.tid is None or thread.listens or thread.is_apart or executes(thread.sample, thread.frames):
        return False
    if rests_at_input(thread):
        return False
    if kind in _NEVER_WITHIN or (kind in _MAY_REST and not (thread.answers or thread.stack.once(awaits_result))):
        return False
    return kind is not Kind.SLEEP or thread.kernel is None or (thread.kernel.run_slices or 0) <= 2 * one.looks + FEW_WAKES


def _began(thread: SeenThread) -> bool:
    """May it have begun during the window? The kernel counts over a window what was there at its begin: then one look only missed its stack."""
    return thread.kernel is None or thread.kernel.cpu_s is None


def _is_untold(thread: SeenThread) -> bool:
    """Does it pause, and was not read for how long? Then it may be the one that answers, and nothing tells when: the process stays one."""
    kernel = thread.kernel
    return thread.place.kind is Kind.SLEEP and kernel is not None and kernel.wakes_in_s is None and not may_end(kernel)


def _alone(looks: Looks, one: Seen, thread: SeenThread) -> Seen:
    places = looks.places_of(thread)
    motion, reason = motion_of(looks.process, places, thread.kernel, None)
    key = node_of(NodeKind.THREAD, f"{one.key}/{thread.tid}")
    process = msgspec.structs.replace(
        one.process,
        object_refs=tuple(r for r in one.process.object_refs if r.tid == thread.tid),
        async_tasks=() if one.process.async_tasks is not None else None,
    )
    return msgspec.structs.replace(
        one,
        key=key,
        lane_of=one.key,
        identity=msgspec.structs.replace(one.identity, key=key),
        process=process,
        threads=(thread, *(t for t in one.threads if t is not thread)),
        telling=thread,
        followed=None,
        places=tuple(places),
        group=None,
        motion=motion,
        motion_reason=reason,
        core=None,
        coroutines=None,
    )
