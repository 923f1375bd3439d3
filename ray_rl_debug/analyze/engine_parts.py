"""Which process of an inference engine a process is: API server, engine core, TP worker, detokenizer.

Told by its title, by what its main thread runs where the title tells nothing, and by the kernel's short name where it is dead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.frameworks import ENGINES
from ray_rl_debug.analyze.frameworks.table import EngineNames, Part
from ray_rl_debug.analyze.stacks import Once, Stacks
from ray_rl_debug.model.snapshot import Frame, Node, Process, RayActor

_RANK = re.compile(r"([A-Z][A-Z_]*?)(\d+)")
_GONE = frozenset({"Z", "X"})


class EnginePart(msgspec.Struct, frozen=True, kw_only=True):
    """What one process is in its engine."""

    engine: EngineNames
    part: str
    label: str
    """``vLLM TP worker 1``, ``vLLM engine core``."""
    ranks: Mapping[str, int]
    """``{"DP": 0, "TP": 1}`` as in its title; empty where the engine has one of its kind."""

    @property
    def rank(self) -> int | None:
        """The rank among those that do collectives together: of the tensor-parallel group."""
        return self.ranks.get("TP") if self.part in ("worker", "core") else None

    @property
    def group(self) -> str:
        """What tells its tensor-parallel group from the others below the same parent: ``DP0 PP1``."""
        return " ".join(f"{kind}{number}" for kind, number in sorted(self.ranks.items()) if kind in ("DP", "PP"))


class Parts:
    """Which part of an engine a process is, found once for equal titles and for equal stacks."""

    def __init__(self, stacks: Stacks) -> None:
        self.stacks = stacks
        self._by_title = Once(_by_title)

    def part_of(self, node: Node, process: Process) -> EnginePart | None:
        """The part that a process is; None for all others."""
        if process.kind not in ("ray-worker", "driver", "child", "named", "other"):
            return None
        found = self._by_title[(process.title, process.comm or "" if process.state in _GONE else None)]
        if found is not None or not process.samples:
            return found
        for thread in process.samples[-1].threads:
            if thread.name == "MainThread":
                return self.stacks.get(node, thread.stack).once(_by_frames)
        return None


def _by_title(names: tuple[str, str | None]) -> EnginePart | None:
    """By the title, and by the kernel's name of a process that has ended."""
    title, gone = names
    for engine in ENGINES:
        for part in engine.parts:
            found = next((m for m in (re.match(t, title) for t in part.titles) if m is not None), None)
            if found is not None:
                return _part(engine, part, found.groupdict().get("ranks") or "")
            if gone is not None and gone.startswith(part.commands or ("\0",)):
                return _part(engine, part, "")
    return None


def _by_frames(frames: Sequence[Frame]) -> EnginePart | None:
    """By what the main thread runs."""
    for engine in ENGINES:
        for part in engine.parts:
            if any(spot.matches(f.function, f.file) for spot in part.runs for f in frames):
                return _part(engine, part, "")
    return None


def _part(engine: EngineNames, part: Part, ranks: str) -> EnginePart:
    known = {kind: int(number) for kind, number in _RANK.findall(ranks)}
    label = part.label
    if list(known) == ["TP"] and part.part == "worker":
        label = f"{engine.name} TP worker {known['TP']}"
    elif known:
        label += " " + " ".join(f"{kind.strip('_')}{number}" for kind, number in known.items())
    elif ranks.strip("_").isdigit():
        label += f" {ranks.strip('_')}"
    return EnginePart(engine=engine, part=part.part, label=label, ranks=known)


def owner_name(process: Process, pids: Mapping[int, Process], actor_of: Callable[[int], RayActor | None]) -> str | None:
    """The name of the Ray actor that a process of an engine belongs to, by its parents."""
    at = pids.get(process.ppid or -1)
    for _ in range(8):
        if at is None:
            break
        actor = actor_of(at.pid)
        if actor is not None:
            return actor.name or actor.class_name.rsplit(".", 1)[-1]
        at = pids.get(at.ppid or -1)
    return None
