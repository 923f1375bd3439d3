"""Edges from those who wait for a lock file to go away to whoever has the lock: one process builds an extension, the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.awaited_files import awaited_file, left_behind_s
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.library_places import BUILD_LOCKS
from ray_rl_debug.analyze.nodes import node_of_pid
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty


def build_edges(view: View, one: Seen) -> Iterator[Edge]:
    """To the processes that hold the file open, where that is known; else to those that are in the same function and do not wait."""
    file = awaited_file(one)
    if file is None or not (file.holders or left_behind_s(one, file) is not None):
        yield from _to_fellows(view, one)
        return
    for pid in file.holders:
        target = view.by_node_pid.get((one.node.name, pid), node_of_pid(one.node.name, pid))
        evidence = f"waits for the lock file {file.path} to go away; pid {pid} holds it open"
        yield Edge(source=one.key, target=target, why=Why.BUILD_LOCK, evidence=evidence, certainty=Certainty.LIKELY)


def _to_fellows(view: View, one: Seen) -> Iterator[Edge]:
    frames = one.telling.frames if one.telling else ()
    at = next((i for i, f in enumerate(frames) if f.file.endswith(BUILD_LOCKS)), None)
    if at is None or at + 1 >= len(frames):
        return
    caller = (frames[at + 1].function, frames[at + 1].file)
    for other in view:
        inside = [t for t in other.threads if caller in {(f.function, f.file) for f in t.frames}]
        if inside and not any(f.file.endswith(BUILD_LOCKS) for t in inside for f in t.frames):
            evidence = f"waits for a lock file to go away; {other.name} is in the same {caller[0]}: {other.at()}"
            yield Edge(source=one.key, target=other.key, why=Why.BUILD_LOCK, evidence=evidence, certainty=Certainty.LIKELY)
