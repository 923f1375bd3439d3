"""What the frameworks call their processes and what they do: names of classes and functions as data, each with the version it was read from
and an example as it is seen in the field. Rules and analysis ask the merged tables; nothing else knows these names.
"""

from __future__ import annotations

from collections.abc import Iterable

from ray_rl_debug.analyze.frameworks import agentlightning, areal, group_calls, sglang, verl, vllm
from ray_rl_debug.analyze.frameworks.table import EngineNames, Framework, Spot

FRAMEWORKS: tuple[Framework, ...] = (verl.TABLE, areal.TABLE, agentlightning.TABLE)

ENGINES: tuple[EngineNames, ...] = (vllm.NAMES, sglang.NAMES)

ROLE_OF_CLASS: dict[str, str] = {row.class_name: row.role for table in FRAMEWORKS for row in table.roles}
"""Role by class of actor."""

PHASE_OF_FUNCTION: dict[str, str] = {row.function: row.phase for table in FRAMEWORKS for row in table.phases}
"""Phase by bare name of function or method."""

RESTS: tuple[Spot, ...] = tuple(s for e in ENGINES for s in e.rests) + tuple(s for f in FRAMEWORKS for s in f.rests)
"""Places where a process waits for the next piece of work."""

WATCHES: tuple[Spot, ...] = tuple(s for e in ENGINES for s in e.watches)
"""Places where a thread watches for the death of another process."""

COLLECTIVES: tuple[Spot, ...] = (*(s for e in ENGINES for s in e.collectives), *group_calls.BY_CTYPES)
"""Collectives of the engines' own, which spin."""

MEETINGS: tuple[Spot, ...] = group_calls.MEETINGS
"""Where all members of a group of the engines' own come together when it is made."""

SHARDED: tuple[Spot, ...] = group_calls.SHARDED
"""Where the ranks bring the parameters of a module together before it runs."""
COORDINATED: tuple[Spot, ...] = (*(s for e in ENGINES for s in e.coordinated), *group_calls.COORDINATED)
"""Collectives of the engines' groups, and of libraries that they call, whichever library carries them out."""

GROUPS_FOLDERS: tuple[str, ...] = tuple(e.groups_folder for e in ENGINES if e.groups_folder)
"""Where the engines' libraries keep their process groups."""

PAIRED: tuple[Spot, ...] = group_calls.PAIRED
"""Sends and receives between two ranks, whose wait leaves no frame of torch."""

HOUSEKEEPING: tuple[Spot, ...] = tuple(s for e in ENGINES for s in e.housekeeping)
"""Coroutines that wait for the next message by design."""

POLLERS: tuple[Spot, ...] = tuple(s for f in FRAMEWORKS for s in f.pollers)
"""Places where a process looks again and again for what others should deliver."""

GATES: tuple[Spot, ...] = tuple(s for f in FRAMEWORKS for s in f.gates)
"""Places of executors that wait until they may admit more work, or for work that is admitted."""

CALLS_THREADS: frozenset[str] = frozenset(n for f in FRAMEWORKS for n in f.calls_threads)
"""Names of threads that run the calls of a local server."""

ONE_AT_A_TIME: tuple[Spot, ...] = tuple(s for f in FRAMEWORKS for s in f.one_at_a_time)
"""Steps of event loops that do one piece of work at a time by design."""

ASKS: tuple[Spot, ...] = tuple(s for e in ENGINES for s in e.asks)
"""Where a program waits for the core of the engine that it has inside of it."""

HANDSHAKES: tuple[tuple[tuple[Spot, ...], tuple[Spot, ...]], ...] = tuple((e.awaits_start, e.greets) for e in ENGINES if e.greets)
"""Where the two sides of an engine's start wait for each other's message: its front end, and a core."""

TRANSPORT: tuple[Spot, ...] = (*(s for e in ENGINES for s in e.transport), *ASKS)
"""Functions that only carry messages between processes."""


def is_transport(function: str, file: str) -> bool:
    return any(file.endswith(s.file) and (not s.function or s.matches(function, file)) for s in TRANSPORT)


def spot_of(spots: Iterable[Spot], function: str, file: str) -> Spot | None:
    """The first of `spots` that a frame is."""
    return next((s for s in spots if s.matches(function, file)), None)
