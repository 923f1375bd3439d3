"""Ray's compiled graphs (2.41 to 2.60): each actor runs one endless loop, and all of them meet at channels in shared memory, which they poll.

vLLM's executor for Ray makes one of its workers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.analyze.frameworks.table import Spot
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.model.snapshot import Frame

LOOPS: tuple[Spot, ...] = (Spot("do_exec_tasks", "ray/dag/compiled_dag_node.py"), Spot("do_profile_tasks", "ray/dag/compiled_dag_node.py"))
"""The loop of an actor: read what the one before wrote, compute, write."""
CHANNELS = "ray/experimental/channel/"
"""Where the modules of its channels lie."""
RESULTS = ("_execute_until", "execution_index")
"""The function in which a caller waits for a result, and its local that numbers the execution: with another number it is another wait."""
_MONITOR = Spot("Monitor.run", "ray/dag/compiled_dag_node.py")
"""The thread that waits for the actors' loops to end: none of them should."""
_ABOVE = 3
"""Frames of Ray's worker above the channel's own."""


def is_of_graph(frames: Sequence[Frame]) -> bool:
    """Does a stack show that its process belongs to a graph, as an actor or as its caller?"""
    return any(f.file == _MONITOR.file for f in frames)


def runs_graph(frames: Sequence[Frame]) -> bool:
    """Is it the thread of an actor that runs its part of a graph?"""
    return any(spot.matches(f.function, f.file) for f in frames for spot in LOOPS)


def graph_place(frames: Sequence[Frame]) -> tuple[Kind, str] | None:
    """Where a thread stands in a graph, None in a method of the program's own. An actor that reads waits for its next piece of work."""
    if any(_MONITOR.matches(f.function, f.file) for f in frames):
        return Kind.WATCH, "the watch over a compiled graph"
    inner = next((i for i, f in enumerate(frames[:_ABOVE]) if f.file.startswith(CHANNELS)), None)
    if inner is None or not all(f.file.startswith("ray/_private/") for f in frames[:inner]):
        return None
    if "write" in frames[inner].function.lower():
        return Kind.CHANNEL, "the write of a compiled graph's channel"
    return Kind.IDLE if runs_graph(frames) else Kind.CHANNEL, "the read of a compiled graph's channel"
