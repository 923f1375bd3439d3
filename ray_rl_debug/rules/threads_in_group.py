"""Ranks that call collectives of one process group from two threads at once: torch pairs the calls of a group by their order, whoever makes them."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from ray_rl_debug.analyze.groups import group_of
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.rank_threads import others
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.waits_ranks import is_waiting
from ray_rl_debug.model.report import Certainty, Evidence
from ray_rl_debug.rules.scene import Found, Scene, make_finding, stack_evidence

_REMEDY = (
    "give each thread a process group of its own: torch.distributed.new_group",
    "or make all collectives of one group in one thread, in one order",
)


def found_in_threads(scene: Scene, rule: ModuleType) -> Iterator[Found]:
    """Worlds that stand in collectives, where a rank stands in two of one group. Of ranks that all do so none is the odd one."""
    yield from _by_stacks(scene, rule)
    for world in scene.worlds if not scene.view.by_hand else ():
        if world.missing or not all(is_waiting(m) and m.motion is Motion.FROZEN for m in world.members):
            continue
        both = [(m, thread) for m in world.members if (thread := _second_in_group(m)) is not None]
        if not both:
            continue
        first, second = both[0]
        named = ", ".join(m.where() for m, _ in both[:3]) + (f" and {len(both) - 3} more" if len(both) > 3 else "")
        stands, calls = ("stands", "it calls") if len(both) == 1 else ("stand", "they call")
        threads = f"threads {first.telling.called if first.telling is not None else ''} and {second.called}"
        group = first.group.words if first.group is not None else "one group"
        finding = make_finding(
            rule.ID,
            rule.NAME,
            rule.CAUSE,
            Certainty.LIKELY if len(both) < len(world.members) else Certainty.POSSIBLE,
            f"{named} {stands} in two collectives of one group at once: {calls} them from two threads, and other ranks call them in another order",
            who=[m.who() for m, _ in both],
            evidence=[
                stack_evidence(first),
                Evidence(kind="stack", where=first.where(), text=f"thread {second.called} {describe_place(second.place)}"),
                Evidence(kind="collective", where=first.where(), text=f"{threads} are both in {group}"),
            ],
            remedy=_REMEDY,
            phase=first.phase,
        )
        yield Found(finding=finding, explains=frozenset(m.key for m in world.members))


def _by_stacks(scene: Scene, rule: ModuleType) -> Iterator[Found]:
    """Of files, which do not tell groups: one rank alone was dumped, and its main thread and another one are each in a collective of their own."""
    for world in scene.worlds if scene.view.by_hand else ():
        one = world.members[0]
        both = [t for t in one.threads if t.place.kind is Kind.COLLECTIVE]
        if len(world.members) > 1 or len(both) != _BOTH or not is_waiting(one) or not any(t.is_main for t in both):
            continue
        first, second = both
        if (first.place.op, first.place.path) == (second.place.op, second.place.path):
            continue
        finding = make_finding(
            rule.ID,
            rule.NAME,
            rule.CAUSE,
            Certainty.POSSIBLE,
            f"{one.where()} stands in two collectives at once: its thread {first.called} {describe_place(first.place)}, and {second.called} "
            f"{describe_place(second.place)}; if both are of one group, other ranks call them in another order",
            who=[one.who()],
            evidence=[stack_evidence(one, thread=t) for t in both],
            remedy=_REMEDY,
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


_BOTH = 2


def _second_in_group(one: Seen) -> SeenThread | None:
    """The thread beside the telling one that stands in a collective of the same group, in every sample."""
    if one.group is None or len(one.threads) < 2:
        return None
    same = (t for t in others(one) if group_of(one.process, t.place, t.sample) == one.group)
    return next((t for t in same if _stood(one, t)), None)


def _stood(one: Seen, thread: SeenThread) -> bool:
    return all(any(t.tid == thread.tid and t.stack == thread.sample.stack for t in sample.threads) for sample in one.process.samples)
