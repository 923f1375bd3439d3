"""What speaks against a claim that was read from files, and what is assumed for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ray_rl_debug.analyze.by_hand import apart_s, hung_for_s, looks, stands_for, why_assumed
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.model.report import Cause, Evidence, Finding
from ray_rl_debug.rules.scene import Scene

_GROUPS = "tensor, pipeline and data parallel ranks wait in different collectives by design; the files do not tell which groups there are"
_MORE = "stacks given: {count}. A rank that was not dumped may be elsewhere, and then it is the cause"


def with_doubts(scene: Scene, finding: Finding) -> Finding:
    """The finding with what speaks against it; the same where it was measured."""
    if not scene.view.by_hand or not finding.root:
        return finding
    return msgspec.structs.replace(finding, against=tuple(_against(scene, finding)))


def _against(scene: Scene, finding: Finding) -> Iterator[Evidence]:
    keys = {(w.node, w.pid, w.label) for w in (*finding.who, *finding.victims)}
    everybody = [s for s in scene.view if (s.identity.node, s.identity.pid or None, s.identity.label) in keys]
    accused = [s for s in everybody if any((w.node, w.pid, w.label) == _key(s) for w in finding.who)]
    for one in accused[:2]:
        if one.is_assumed:
            yield Evidence(kind="proc", where=one.where(), text=f"it was {why_assumed(one.process)}: it may have gone on since", source=one.source)
        if one.kind is Kind.CODE and one.telling is not None and one.telling.sample.active:
            yield Evidence(kind="stack", where=one.where(), text="its thread was active: it may compute, and be slow", source=one.source)
    world = _world(scene, everybody)
    if world is not None and finding.cause is Cause.COLLECTIVE_MISMATCH:
        yield Evidence(kind="collective", where=world.name, text=_GROUPS)
    if finding.cause is Cause.COLLECTIVE_STALLED:
        count = len(world.members if world is not None else scene.view.seen)
        yield Evidence(kind="collective", where=world.name if world is not None else "the files", text=_MORE.format(count=count))
    if world is not None and finding.cause not in (Cause.COLLECTIVE_MISMATCH, Cause.COLLECTIVE_STALLED):
        yield Evidence(kind="collective", where=world.name, text="that these processes are one world is assumed: the files do not tell")
    into = [e for one in accused for e in scene.graph.into([one.key])]
    if into and all(e.why is Why.ASSUMED for e in into):
        yield Evidence(kind="stack", where=accused[0].where(), text="no stack names it as what the others wait for")
    moving = [s for s in scene.view if s.motion in (Motion.MOVING, Motion.BUSY)]
    if moving:
        names = ", ".join(s.where() for s in moving[:3]) + (", ..." if len(moving) > 3 else "")
        yield Evidence(kind="proc", where=names, text="met in other places at a later look: not everybody stands", source=moving[0].source)


def _key(one: Seen) -> tuple[str, int | None, str]:
    return one.identity.node, one.identity.pid or None, one.identity.label


def _world(scene: Scene, members: list[Seen]) -> World | None:
    keys = {m.key for m in members}
    return next((w for w in scene.worlds if w.is_assumed and keys & {m.key for m in w.members} and len(w.members) > 1), None)


def assumptions(scene: Scene) -> tuple[str, ...]:
    """What is taken for true of files, in sentences; empty where all was measured."""
    return tuple(_assumptions(scene)) if scene.view.by_hand and scene.view.seen else ()


def _assumptions(scene: Scene) -> Iterator[str]:
    seen = [s for s in scene.view if s.threads]
    once = [s for s in seen if s.is_assumed and len(looks(s.process)) < 2]
    again = [s for s in seen if s.is_assumed and len(looks(s.process)) > 1 and s.motion is not Motion.MOVING]
    hung = hung_for_s(scene.view.snapshot)
    since = "" if hung is None else f", for {hung / 60:.0f} min" if hung >= 120 else f", for {hung:.0f} s"
    yield f"the run hangs{since}: whoever gives files says so"
    if once:
        who = "each process" if len(once) == len(seen) else f"{len(once)} of {len(seen)} processes"
        yield f"{who} was looked at once: a later look is taken to show the same"
    if again:
        who = "each process" if len(again) == len(seen) else f"{len(again)} of {len(seen)} processes"
        when = "within moments" if all(apart_s(s.process) >= 1 for s in again) else "at times that the files do not tell"
        yield f"{who} was looked at several times, {when}: a later look is taken to show the same"
    for world in scene.worlds:
        if world.is_assumed and len(world.members) > 1:
            ranks = "" if any(m.identity.rank is not None for m in world.members) else ", without known ranks"
            yield f"the {len(world.members)} processes of {world.name} are one world{ranks}"
    told = [s for s in seen if stands_for(s.process) > 1]
    for one in told[:3]:
        yield f"{stands_for(one.process)} ranks stand where {one.where()} does, as {one.source or 'the file'} says"
