"""What one line of a pasted text is: the words that the readers and `stream` share."""

from __future__ import annotations

import msgspec

from ray_rl_debug.formats.dump import CodePlace, HeldFile, Said

PIDS = "pid "
"""Label of a head whose numbers are process ids."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A line that begins a process or a thread, or names the process that comes next."""

    level: str
    """``process``, ``thread``, ``version`` (only tells Python's), or ``label`` (a remark of the writer, such as ``Rank 3:``)."""
    source: str | None = None
    """The tool that wrote it, as in `Sample.source`."""
    order: str | None = None
    """Of the frames that follow: ``inner`` (innermost first) or ``outer``; None: told by the frames."""
    pid: int | None = None
    ppid: int | None = None
    tid: int | None = None
    key: str | None = None
    """What tells threads apart that have no tid (pthread's number): a second one is another dump."""
    title: str | None = None
    name: str | None = None
    active: bool | None = None
    owns_gil: bool | None = None
    waits_for_gil: bool | None = None
    python: str | None = None
    ranks: tuple[int, ...] = ()
    node: str | None = None
    label: str | None = None
    count: int | None = None
    state: str | None = None
    """State letter, where a ``ps`` line is the head."""
    said: Said | None = None
    """What the same line says of others."""
    is_new: bool = False
    """It begins another dump even of the same process."""
    is_also: bool = False
    """Another thread of those that the same line names: one stack comes for all."""
    is_chosen: bool = False
    """gdb's current thread: what it shows next without a thread's number is of this one."""


class Frames(msgspec.Struct, frozen=True, kw_only=True):
    """A line that holds one frame, or several in their order in the line."""

    places: tuple[CodePlace, ...]
    source: str = "text"
    order: str | None = None
    is_whole: bool = False
    """The line holds a whole stack."""
    is_certain: bool = False
    """Only a stack has such a line; else it takes two of them, or a head above."""
    number: int | None = None
    """gdb's and torch's ``#0``: a smaller one begins another stack."""
    native: bool = False
    depth: int | None = None
    """Of a frame in a tree: its column. One that does not stand deeper than the frame above is of another branch."""
    weight: int = 0
    """Of a profile: how often this stack was met."""
    head: Head | None = None
    """The thread, where the same line names it."""
    tid: int | None = None
    name: str | None = None
    """Of the thread, in a profile."""
    code: str | None = None
    """The line of source that stands behind the frame."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One process or thread of a table that the kernel or ``ps`` gave."""

    pid: int
    ppid: int | None = None
    tid: int | None = None
    state: str | None = None
    wchan: str | None = None
    call: str | None = None
    """System call in progress."""
    title: str | None = None
    file: HeldFile | None = None
    """One that it has open."""


class Gone(msgspec.Struct, frozen=True, kw_only=True):
    """``...`` or the like: frames were left out here."""


Event = Head | Frames | Said | Row | Gone
