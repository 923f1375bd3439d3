"""What was seen, for the report: nodes, processes, worlds, classes of equal stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.stacks import Stack
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.diagnosis.rollouts_held import Held, describe_held
from ray_rl_debug.model.report import NodeSummary, ProcessSummary, StackClass, WorldSummary
from ray_rl_debug.model.snapshot import EngineState, Frame, Runner, Snapshot

MAX_FRAMES = 40


def node_summaries(snapshot: Snapshot) -> tuple[NodeSummary, ...]:
    """Nodes that answered, then those of Ray's table that did not."""
    found = [
        NodeSummary(
            name=n.name,
            node_id=n.node_id,
            ip=n.ip,
            processes=len(n.processes),
            stacks=sum(1 for p in n.processes if p.samples),
            gpus=len(n.gpus) if n.gpus is not None else None,
        )
        for n in snapshot.nodes
    ]
    seen = {n.node_id for n in snapshot.nodes}
    for node in snapshot.ray.nodes if snapshot.ray else ():
        if node.alive and node.node_id not in seen:
            found.append(NodeSummary(name=node.host or node.ip, node_id=node.node_id, ip=node.ip, answered=False))
    return tuple(found)


def process_summaries(view: View, held: Held) -> tuple[ProcessSummary, ...]:
    """One entry a process, in order of node and pid."""
    ordered = sorted(view, key=lambda s: (s.identity.node, s.identity.pid))
    return tuple([_process_summary(view, one, held.get((one.identity.node, one.process.pid))) for one in ordered])


def _process_summary(view: View, one: Seen, held: tuple[Runner, float | None] | None) -> ProcessSummary:
    window, spent = one.process.window_s, one.process.cpu_s
    return ProcessSummary(
        who=view.who(one),
        kind=one.process.kind,
        phase=one.phase,
        doing=view.says(one),
        state=one.process.state,
        moving=None if one.motion is Motion.UNKNOWN else one.motion in (Motion.MOVING, Motion.BUSY),
        cpu_percent=round(100 * spent / window, 1) if window and spent is not None else None,
        stack=_lines(one)[:MAX_FRAMES],
        thread=one.telling.name if one.telling else None,
        source=one.source,
        engine=_engine(one.process.engine) if one.process.engine is not None else None,
        rollout=describe_held(*held) if held is not None else None,
    )


def _engine(state: EngineState) -> str:
    """``vllm on port 8000: 2 running, 1 waiting, cache 40 % full, 380 tokens in 2.9 s, paused``."""
    told = [f"{state.running} running"] if state.running is not None else []
    told += [f"{state.waiting} waiting"] if state.waiting is not None else []
    told += [f"cache {100 * state.kv_usage:.0f} % full"] if state.kv_usage is not None else []
    if state.generated_tokens is not None and state.generated_tokens_before is not None and state.between_s is not None:
        told.append(f"{state.generated_tokens - state.generated_tokens_before} tokens in {state.between_s:.1f} s")
    told += [word for word, is_so in (("paused", state.is_paused), ("asleep", state.is_sleeping or state.sleep_level)) if is_so]
    told += ["not ready"] if state.is_ready is False else []
    told += [state.reason] if state.reason is not None else []
    return f"{state.kind}{f' on port {state.port}' if state.port is not None else ''}: {', '.join(told)}"


def _lines(one: Seen) -> tuple[str, ...]:
    if one.telling is None:
        return ()
    return one.telling.stack.once(_said)


def _said(frames: tuple[Frame, ...]) -> tuple[str, ...]:
    return tuple(f"{f.function} ({f.file}{f':{f.line}' if f.line else ''})" for f in frames)


def world_summaries(worlds: Sequence[World]) -> tuple[WorldSummary, ...]:
    """Worlds with the ranks seen and missing."""
    return tuple(
        WorldSummary(
            name=w.name,
            size=w.size,
            ranks=tuple(sorted(w.ranks.values())),
            missing=w.missing,
            source=w.source,
        )
        for w in worlds
    )


def stack_classes(view: View) -> tuple[StackClass, ...]:
    """Processes whose telling threads stand in the same place, smallest class first."""
    by_stack: dict[Stack, list[Seen]] = defaultdict(list)
    for one in view:
        if one.telling is not None:
            by_stack[one.telling.stack].append(one)
    classes: dict[tuple[str, ...], list[Seen]] = defaultdict(list)
    for stack, members in by_stack.items():
        classes[stack.once(_said)] += members
    found = [
        StackClass(
            frames=frames[:MAX_FRAMES],
            members=tuple(sorted(m.identity.label for m in members)),
            kind=(members[0].kind or Kind.CODE).value,
        )
        for frames, members in classes.items()
    ]
    return tuple(sorted(found, key=lambda c: (c.kind in ("ray-idle", "idle", "loop-idle"), len(c.members), c.frames)))
