"""Processes that stand where only a person can help: at a breakpoint, at a question, at a terminal that takes no more. Three rules share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rules.scene import Scene, judge


def held_by_person(
    scene: Scene, roots: Iterable[tuple[Root, Seen]], at: Callable[[Seen, SeenThread], str | None]
) -> Iterator[tuple[Seen, str, Certainty, str]]:
    """Each process whose thread stands there, and does not go on by itself.

    Args:
        scene: The solved waits.
        roots: The processes that are asked.
        at: Where a thread stands, in words; None elsewhere.

    Yields:
        The process, where it stands, how sure it is that it stays there, and why.
    """
    for _, one in roots:
        thread = one.followed or one.telling
        place = at(one, thread) if thread is not None else None
        verdict = judge(scene, one)
        if place is not None and not one.is_stopped and verdict.certainty is not None:
            yield one, place, verdict.certainty, verdict.reason
