"""Why nothing moves where nothing has anything to do, in one sentence."""

from __future__ import annotations

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View


def describe_idle(view: View) -> str:
    """What a run at rest waits for, as its engines, its processes or Ray's tables tell."""
    if view.engines and view.ray is None:
        return _idle_engines(view)
    if view.ray is None:
        return "every process is idle: each waits for its next piece of work"
    at_rest = "every actor is idle and Ray has no unfinished task"
    limited = next((s for s in view if s.process.kind == "driver" and gives_up(s)), None)
    if limited is not None:
        return f"{at_rest}; {limited.where()} pauses in {limited.inside()} in a loop that ends by itself after a time"
    return f"{at_rest}: the job waits for its user, or has ended"


def gives_up(one: Seen) -> bool:
    """Does it pause in a loop that gives up after a time?"""
    return one.kind is Kind.SLEEP and one.telling is not None and any(f.gives_up for f in one.telling.frames[:1])


def _idle_engines(view: View) -> str:
    names = " and ".join(dict.fromkeys(view.seen[e.key].where() for e in view.engines[:3]))
    unread = [x for e in view.engines for k in e.servers for x in view.seen[k].process.sockets or () if x.tx_queue_bytes and x.remote]
    if not unread:
        return f"{names} is idle: no request is in flight, and all its processes wait for work"
    size = sum(x.tx_queue_bytes or 0 for x in unread) / 1e6
    behind = f"{len(unread)} of its clients {'has' if len(unread) == 1 else 'have'} not read {size:.1f} MB: look at {unread[0].remote}"
    return f"{names} has answered all requests and is idle, but {behind}"
