"""A poller that was met on its way from one look to the next: it is told by where it waits.

AReaL's executor wakes once a second, looks whether results have come, admits more work, and waits again. A sample may fall into the moment between
two waits; that the stack is another one then is no progress, as long as the poller has not come back to its caller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ray_rl_debug.analyze.frameworks import POLLERS, spot_of
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, Kind
from ray_rl_debug.analyze.places import place_of
from ray_rl_debug.analyze.stacks import Stack, Stacks
from ray_rl_debug.model.snapshot import Frame, Node, Process, ThreadSample

_RESTS = frozenset({*THREAD_WAITS, Kind.SLEEP}) - {Kind.LOCK}
"""A poller takes locks for moments, to look."""


def settle_polls(stacks: Stacks, node: Node, process: Process) -> Process:
    """The process with each such thread at the wait of its poller, in every sample."""
    looks = process.samples
    if len(looks) < 2:
        return process
    settled = {}
    own = stacks.of(node)
    for first in looks[0].threads:
        if not 0 <= first.stack < len(own) or own[first.stack].once(_call_of_poller) is None:
            continue
        same = [[t for t in sample.threads if _name(t) == _name(first)] for sample in looks]
        found = _at_wait(stacks, node, [t for one in same for t in one]) if all(len(one) == 1 for one in same) else None
        if found is not None:
            settled[_name(first)] = found
    if not settled:
        return process
    waiting = (msgspec.structs.replace(sample, threads=tuple(settled.get(_name(t), t) for t in sample.threads)) for sample in looks)
    return msgspec.structs.replace(process, samples=tuple(waiting))


def _name(thread: ThreadSample) -> tuple[int | None, str | None]:
    return thread.tid, thread.name


def _at_wait(stacks: Stacks, node: Node, met: Sequence[ThreadSample]) -> ThreadSample | None:
    """The thread as most samples met it at the wait of its poller; None where it is in none, came back from it, or never waits."""
    distinct = {t.stack: stacks.get(node, t.stack) for t in met}
    calls = {stack.once(_call_of_poller) for stack in distinct.values()}
    if len(distinct) == 1 or len(calls) > 1:
        return None
    rests = Counter(t.stack for t in met if _is_at_rest(distinct[t.stack], t))
    return next((t for t in met if rests and t.stack == rests.most_common(1)[0][0]), None)


def _call_of_poller(frames: tuple[Frame, ...]) -> tuple[Frame | str, ...] | None:
    """The outermost function that looks again and again, and the frames from which it was called: equal as long as it has not returned."""
    found = next((i for i in reversed(range(len(frames))) if spot_of(POLLERS, frames[i].function, frames[i].file) is not None), None)
    return (frames[found].function, *frames[found + 1 :]) if found is not None else None


def _is_at_rest(stack: Stack, thread: ThreadSample) -> bool:
    return place_of(stack.frames, thread, None).kind in _RESTS
