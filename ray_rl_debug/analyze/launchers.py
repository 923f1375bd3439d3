"""Programs that start the ranks and wait for their end: known by function and file. Such a stack looks the same in a healthy run."""

from __future__ import annotations

from collections.abc import Iterable

from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.model.snapshot import Frame

_WAITS = (
    ("_invoke_run", "torch/distributed/elastic/agent/server/api.py"),
    ("main", "deepspeed/launcher/launch.py"),
    ("main", "deepspeed/launcher/runner.py"),
    ("simple_launcher", "accelerate/commands/launch.py"),
    ("poll_until_finished", "deepspeed/launcher/launch.py"),
)


_MEETS = (
    ("next_rendezvous", "torch/distributed/elastic/rendezvous/"),
    ("_assign_worker_ranks", "torch/distributed/elastic/agent/server/api.py"),
)
"""The agents of all nodes come together there, and then tell each other how many ranks each has."""


def meets_nodes(frames: Iterable[Frame]) -> bool:
    """Does a launcher wait for those of the other nodes, before it starts a rank?"""
    return any(short_name(f.function) == function and f.file.startswith(file) for f in frames for function, file in _MEETS)


def is_launcher(frames: Iterable[Frame]) -> bool:
    """Does a stack wait for the end of the ranks that its program has started?"""
    return any(short_name(f.function) == function and f.file.endswith(file) for f in frames for function, file in _WAITS)
