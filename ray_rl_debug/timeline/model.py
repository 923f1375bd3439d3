"""What a timeline is made of: tracks, and batches of spans, instants and counts on them, each in the clock of its source.

Times are integer nanoseconds of the track's clock. Clocks are aligned when the trace is written, never in the data (see `clocks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

import msgspec

from ray_rl_debug.model.snapshot import Gap

Args: TypeAlias = tuple[tuple[str, "str | int | float | bool"], ...]

CLUSTER = "cluster"
"""First part of every path: the root of the tree."""

WALL = "wall"
"""Clock of a source whose node is not known: taken as the reference clock's wall time."""


def wall_clock(node: str | None) -> str:
    """Key of a node's wall clock."""
    return f"{WALL}:{node}" if node else WALL


class Track(msgspec.Struct, frozen=True):
    """One row of the timeline."""

    path: tuple[str, ...]
    """From the cluster down: ``("cluster", "node-1", "actor", "actor/0", "tasks")``."""
    clock: str = WALL
    """Key of the clock that its times are in."""
    kind: str = "span"
    """``span``, ``instant``, ``counter``, or ``async``: spans of which those of one batch belong together and others overlap freely."""
    origin: str = ""
    """Where it comes from, for the reader: ``Ray task events``, a file's name."""
    unit: str | None = None
    """Of a counter: ``%``, ``GiB``, ``W``. Counters of one unit under one parent share their axis."""
    description: str | None = None
    rank: str | None = None
    """Label of the rank or process whose time this is: ``actor/3``. None: not one process's time."""
    is_summary: bool = False
    """Time of the run as a whole: tables use it only where no single rank's is known."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One place of a call stack."""

    function: str
    file: str = ""
    line: int | None = None


class Span(msgspec.Struct, frozen=True, gc=False):
    """Something that lasted, or still lasts."""

    start_ns: int
    end_ns: int | None
    """None: not ended when last seen. Drawn to the end of the trace."""
    name: str
    category: str = ""
    args: Args = ()
    phase: str | None = None
    """One of `ray_rl_debug.model.report.PHASES`: counts for the tables."""
    step: int | None = None
    """Training step or weight version."""
    flows_out: tuple[int, ...] = ()
    """Arrows that begin here."""
    flows_in: tuple[int, ...] = ()
    """Arrows that end here."""
    stack: tuple[Frame, ...] = ()
    """Outermost first."""


class Instant(msgspec.Struct, frozen=True, gc=False):
    """Something that happened."""

    at_ns: int
    name: str
    category: str = ""
    args: Args = ()
    flows_out: tuple[int, ...] = ()
    flows_in: tuple[int, ...] = ()
    stack: tuple[Frame, ...] = ()


class Count(msgspec.Struct, frozen=True, gc=False):
    """The value of a counter from one moment on."""

    at_ns: int
    value: float


Item: TypeAlias = Span | Instant | Count


class Batch(msgspec.Struct, frozen=True):
    """Some of a track's items, in any order."""

    track: Track
    items: Sequence[Item]


class Clock(msgspec.Struct, frozen=True):
    """A clock that one or more tracks are in, and what its source knows about it."""

    key: str
    node: str | None = None
    """The node whose wall clock it is, or whose process keeps it."""
    is_relative: bool = False
    """Counts from an origin that its source did not write down."""
    earliest_ns: int | None = None
    """The origin is not before this moment of the node's wall clock."""
    latest_ns: int | None = None
    """Nor after this one."""
    evidence: str = ""
    """How the two limits are known."""


class SharedEnd(msgspec.Struct, frozen=True):
    """The end of something that several processes end at the same moment: a collective, a barrier, a broadcast of weights."""

    clock: str
    event: str
    """Equal for the same event in all processes: group, name and number."""
    at_ns: int


class Source(Protocol):
    """Something that can be read, twice: once for clocks and tables, once to be written."""

    name: str
    gaps: list[Gap]
    """What could not be used; complete after `batches` was read to its end."""

    def clocks(self) -> Sequence[Clock]:
        """The clocks of its tracks; complete after `batches` was read once."""

    def shared_ends(self) -> Sequence[SharedEnd]:
        """Moments that tie clocks together; complete after `batches` was read once."""

    def batches(self) -> Iterator[Batch]:
        """All it has, in batches of bounded size."""


class Held:
    """A source whose batches are in memory."""

    def __init__(
        self, name: str, batches: Sequence[Batch], clocks: Sequence[Clock] = (), gaps: Sequence[Gap] = (), ends: Sequence[SharedEnd] = ()
    ) -> None:
        self.name = name
        self.gaps = list(gaps)
        self._batches = tuple(batches)
        self._clocks = tuple(clocks)
        self._ends = tuple(ends)

    def clocks(self) -> Sequence[Clock]:
        return self._clocks

    def shared_ends(self) -> Sequence[SharedEnd]:
        return self._ends

    def batches(self) -> Iterator[Batch]:
        return iter(self._batches)
