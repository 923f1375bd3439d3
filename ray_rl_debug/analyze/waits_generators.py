"""Edges of Ray's generators that are held back (``_generator_backpressure_num_objects``): they wait for whoever should read what they have made.

Such a call runs, and no stack shows it: its thread sleeps in Ray's own code, at a lock. An idle worker sleeps at its connections instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.pauses import has_loop, kernel_was_read
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_calls import callers_so_far, other_methods
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty


def generator_edges(view: View) -> Iterator[Edge]:
    """From actors whose one running call shows no frame to the process that has made the call."""
    still = [one for one in view.at(Kind.RAY_IDLE) if _shows_no_frame(one)]
    held = [one for one in still if one.motion is Motion.FROZEN and kernel_call(one.telling.kernel if one.telling else None) == "futex"]
    callers = {t.task_id: other for other in view if other.core is not None for t in other.core.owned} if held else {}
    for one in still if kernel_was_read(view) else ():
        if one.telling is not None and one.telling.kernel is None:
            yield to_unseen(one, f"what {one.identity.label} waits for in its call", Why.READER)
    for one in held:
        call = one.core.running_task_ids[0] if one.core is not None else ""
        reader = callers.get(call)
        if reader is None:
            yield to_unseen(one, f"the other end of what {one.identity.label} yields", Why.READER)
        elif reader.key != one.key:
            name = view.tasks[call].name if call in view.tasks else "its call"
            evidence = f"{name} runs and shows no frame: a generator that is held back until {reader.identity.label}, which has called it, reads on"
            yield Edge(source=one.key, target=reader.key, why=Why.READER, evidence=evidence, certainty=Certainty.LIKELY)


def reader_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From idle actors that should read on to those that have called them so far: an actor reads in its calls; `known` are the edges found so far."""
    for key in sorted({e.target for e in known if e.why is Why.READER}):
        one = view.seen.get(key)
        if one is None or one.kind is not Kind.RAY_IDLE or one.core is None or one.core.running_task_ids or one.core.queue_length:
            continue
        so_far = callers_so_far(view, one, methods) if (methods := other_methods(view, one, ())) else None
        if so_far is None:
            yield to_unseen(one, f"who calls {one.identity.label}", Why.INSIDE)
        for caller in sorted(so_far - {key}) if so_far else ():
            evidence = f"it has no call in which it would read on (so far {', '.join(methods[:_MOST_NAMED])}), and waits for the next one"
            yield Edge(source=key, target=caller, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY, among=_CALLERS)


_CALLERS = "its callers"
_MOST_NAMED = 3


def _shows_no_frame(one: Seen) -> bool:
    """Does an actor with a thread idle in Ray's code run one call that shows no frame?"""
    core, thread = one.core, one.telling
    if core is None or len(core.running_task_ids) != 1 or thread is None or one.process.async_tasks or has_loop(one):
        return False
    return not one.is_stopped and not one.is_at_work and not any(t.place.path for t in one.threads)
