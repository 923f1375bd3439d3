"""What an actor, task or placement group that was not started needs, what there is of it, and who holds it. From Ray's tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RAY
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import RayActor, RayPlacementGroup, RayTask

_DERIVED = re.compile(r":|_group_|^(object_store_)?memory$")

Amounts = Mapping[str, float]
"""By the name of the resource."""


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, and of whom."""

    amounts: dict[str, float]
    """Empty where it is not known."""
    group: RayPlacementGroup | None = None
    """The placement group whose room it is to use; None for the nodes themselves."""
    bundle: int | None = None
    parts: tuple[dict[str, float], ...] = ()
    """The bundles of a placement group, each of which one node must have; of an actor or task its amounts."""
    labels: Mapping[str, str] = {}
    """That the node must have."""
    strategy: str | None = None
    """Of a placement group: ``STRICT_SPREAD``, ``PACK``."""

    @property
    def place(self) -> str:
        """``the cluster``, ``bundle 0 of placement group train``."""
        if self.group is None:
            return "the cluster"
        name = f"placement group {self.group.name or self.group.placement_group_id[:12]}"
        return f"bundle {self.bundle} of {name}" if self.bundle is not None else name


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who has some of what is asked for."""

    one: Seen
    held: dict[str, float]


def need_of(view: View, asked: RayActor | RayTask | RayPlacementGroup) -> Need:
    """What something that was not started asks for. Of an actor its creation tells it where the table of actors does not."""
    if isinstance(asked, RayPlacementGroup):
        return Need(amounts=total(asked.bundles), parts=asked.bundles, strategy=asked.strategy)
    source: RayActor | RayTask = asked
    if isinstance(asked, RayActor) and not asked.resources:
        source = next((t for t in view.tasks.values() if t.kind == "ACTOR_CREATION_TASK" and t.actor_id == asked.actor_id), asked)
    group = view.placement_groups.get(source.placement_group_id or "")
    labels = asked.wanted_labels if isinstance(asked, RayActor) else {}
    return Need(amounts=dict(source.resources), group=group, bundle=source.bundle, parts=(dict(source.resources),), labels=labels)


def supply(view: View, need: Need) -> dict[str, float]:
    """All there is where the need is to be met, used or not."""
    if need.group is not None:
        bundles = need.group.bundles
        return dict(bundles[need.bundle]) if need.bundle is not None and need.bundle < len(bundles) else total(bundles)
    return {k: v for k, v in total(_nodes(view)).items() if is_counted(k)}


def unplaceable(view: View, need: Need) -> str | None:
    """Why no placement on the nodes could meet the need, however empty they were; None where one could, and for the room of a placement group.

    Ray never splits an actor, a task or a bundle between nodes (its documentation of placement groups and their strategies).
    """
    nodes = _nodes(view)
    if need.group is not None or not nodes:
        return None
    if (wanted := _unmet_labels(view, need)) is not None:
        return wanted
    parts = (need.amounts,) if need.strategy == "STRICT_PACK" else need.parts
    for part in parts:
        if not any(_has(node, part) for node in nodes):
            if need.strategy == "STRICT_PACK":
                return f"STRICT_PACK wants all of it on one node, and no single node has {_amounts(part)}"
            return f"no single node has {_amounts(part)}, and Ray never splits a bundle, an actor or a task"
    able = sum(any(_has(node, part) for part in parts) for node in nodes)
    if need.strategy == "STRICT_SPREAD" and able < len(parts):
        fit = f"the cluster has {able}" if able == len(nodes) else f"{able} of {len(nodes)} nodes have what one asks for"
        return f"STRICT_SPREAD puts each of its {len(parts)} bundles on a node of its own, and {fit}"
    return None


def _unmet_labels(view: View, need: Need) -> str | None:
    """The labels that it wants of its node, where no node that lives has them all."""
    labels = [n.labels for n in view.ray.nodes if n.alive] if view.ray is not None else []
    if not need.labels or None in labels or any(_fits_labels(of_node, need.labels) for of_node in labels if of_node is not None):
        return None
    return f"no node has the labels that it wants: {', '.join(f'{k}={v}' for k, v in sorted(need.labels.items()))}"


def _fits_labels(of_node: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    for key, value in wanted.items():
        found = _SELECTOR.fullmatch(value)
        values = {v.strip() for v in found["many"].split(",")} if found is not None and found["many"] is not None else {value.lstrip("!")}
        if (of_node.get(key) in values) is value.startswith("!"):
            return False
    return True


_SELECTOR = re.compile(r"!?in\((?P<many>.*)\)")


def _nodes(view: View) -> list[dict[str, float]]:
    return [n.resources for n in view.ray.nodes if n.alive] if view.ray is not None else []


def knows_nodes(view: View) -> bool:
    """Does Ray's table have as many machines as were looked at?"""
    known = len(view.ray.nodes) if view.ray is not None else 0
    return known >= max(1, sum(bool(node.node_id) for node in view.snapshot.nodes))


def _has(node: Amounts, part: Amounts) -> bool:
    return all(amount <= node.get(name, 0.0) for name, amount in part.items() if is_counted(name))


def _amounts(part: Amounts) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in sorted(part.items()) if is_counted(name))


def is_counted(resource: str) -> bool:
    """Not memory, not what Ray derives itself: marks of nodes and cards, and the bundles of placement groups."""
    return _DERIVED.search(resource) is None


def holders(view: View, need: Need) -> list[Holder]:
    """Processes that have some of it; a task that waits for Ray has lent its CPUs to others."""
    found = []
    for one, sources in view.once(_reserved_for):
        held = total(s.resources for s in sources if _is_there(s, need))
        lent = one.actor is None and one.kind in WAITS_FOR_RAY
        named = {k: v for k, v in held.items() if k in need.amounts and v and not (lent and k == "CPU")}
        if named:
            found.append(Holder(one=one, held=named))
    return found


def _reserved_for(view: View) -> list[tuple[Seen, list[RayActor | RayTask]]]:
    """Processes with the actor or the tasks for which Ray has reserved something."""
    found: list[tuple[Seen, list[RayActor | RayTask]]] = []
    for one in view:
        running = [view.tasks[t] for t in one.core.running_task_ids if t in view.tasks] if one.core is not None and one.actor is None else []
        sources: list[RayActor | RayTask] = [one.actor] if one.actor is not None else [*running]
        if any(s.resources for s in sources):
            found.append((one, sources))
    return found


def all_holders_known(view: View, need: Need) -> bool:
    """Do placement groups, actors and tasks of Ray's tables account for all of it that is in use? Else who holds the rest is not known.

    A group without a creator is a driver's; among others that have one it was not read.
    """
    ray = view.ray
    if ray is None or need.group is not None or any(n.available is None for n in ray.nodes if n.alive):
        return False
    return len({g.creator_actor_id is None for g in ray.placement_groups}) < 2 and not lacks_holder(view, need)


def lacks_holder(view: View, need: Need) -> bool:
    """Is more of it in use, as the nodes tell, than placement groups, actors and tasks of Ray's tables account for?"""
    ray = view.ray
    nodes = [n for n in ray.nodes if n.alive] if ray is not None else []
    free = [n.available for n in nodes if n.available is not None]
    if ray is None or need.group is not None or len(free) < len(nodes):
        return False
    groups = [g for g in ray.placement_groups if g.state == "CREATED"]
    alone = [s.resources for _, sources in view.once(_reserved_for) for s in sources if s.placement_group_id is None]
    held = total([*(bundle for g in groups for bundle in g.bundles), *alone])
    used = total([*_nodes(view), *({k: -amount for k, amount in some.items()} for some in free)])
    return any(held.get(k, 0.0) + _LEAST < used.get(k, 0.0) for k in need.amounts if is_counted(k))


_LEAST = 1e-4
"""Ray counts resources in parts of that size."""


def _is_there(source: RayActor | RayTask, need: Need) -> bool:
    if need.group is None:
        return True
    same = source.placement_group_id == need.group.placement_group_id
    return same and (need.bundle is None or source.bundle in (None, need.bundle))


def fits(view: View, need: Need) -> bool:
    """Do those who run leave as much as is asked for?"""
    free = supply(view, need)
    ray = view.ray
    sources: list[RayActor | RayTask] = [a for a in ray.actors if a.pid and a.state not in ("DEAD", "RESTARTING")] if ray else []
    sources += [t for t in ray.tasks if t.is_running and t.kind == "NORMAL_TASK"] if ray else []
    for source in sources:
        for name, amount in source.resources.items() if _is_there(source, need) else ():
            free[name] = free.get(name, 0.0) - amount
    return all(amount <= free.get(name, amount) for name, amount in need.amounts.items())


def may_fit(view: View, need: Need, ending: Iterable[Holder]) -> bool:
    """Would there be as much as is asked for once these have given back what they hold? True where it is not known what is free."""
    nodes = [n for n in view.ray.nodes if n.alive] if view.ray is not None else []
    if any(n.available is None for n in nodes):
        return True
    free = total([*(n.available for n in nodes if n.available is not None), *(h.held for h in ending)])
    return all(amount <= free.get(name, 0.0) for name, amount in need.amounts.items() if is_counted(name))


def total(bundles: Iterable[Amounts]) -> dict[str, float]:
    """The sum of amounts."""
    found: dict[str, float] = {}
    for bundle in bundles:
        for name, amount in bundle.items():
            found[name] = found.get(name, 0.0) + amount
    return found


def lacks_room(view: View, actor: RayActor) -> bool:
    """Is it to be started anew, while what it needs for that is not free? Then its end is long over, and it waits like one that never was there."""
    if actor.state != "RESTARTING":
        return False
    need = need_of(view, actor)
    return bool(need.amounts) and not fits(view, need) and bool(holders(view, need))
