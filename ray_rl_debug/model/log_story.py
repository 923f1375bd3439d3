"""What the logs of a run tell as one story: the first failure, what followed, and how far each process came. Part of the report."""

from __future__ import annotations

from ray_rl_debug.model.claims import Claim, Who


class StoryEntry(Claim, frozen=True, kw_only=True):
    """One failure, with the processes that say the same folded into it."""

    role: str
    """``first``; ``consequence``: it came later, or only repeats or follows from another's end; ``noted``: logged, and perhaps a failure;
    ``survived``: the program went on."""
    kind: str
    """``traceback``, ``death`` (a process ended), ``error`` or ``known`` (known by the catalogue alone)."""
    text: str
    who: tuple[Who, ...]
    """The processes that failed, as the lines or the names of their files tell."""
    file: str
    line: int
    """Where it begins: of a traceback the line of its first word."""
    text_line: int | None = None
    """Where `text` stands, when that is another line."""
    time: str | None = None
    """``2026-11-21 00:30:13.3``, on the common clock; None when no line near it has a stamp."""
    time_s: float | None = None
    after_s: float | None = None
    """Seconds after the first failure."""
    count: int = 1
    """How often, over all processes."""
    frame: str | None = None
    """Innermost frame of own code."""
    beneath: str | None = None
    """What was raised before it, in the same traceback."""
    lines: tuple[str, ...] = ()
    signature: str | None = None
    title: str | None = None
    """What the catalogue calls it."""
    meaning: str | None = None
    remedy: str | None = None
    is_echo: bool = False
    """It follows from, or repeats, what happened to another process."""
    why: str | None = None
    """Why it has this role: ``repeats what pid 42 raised``, ``went on: step 13 at line 400``."""

    @property
    def block_at(self) -> str:
        """``out.txt:12``, or ``out.txt:12-19`` from its first line to that of the text."""
        return f"{self.file}:{self.line}{f'-{self.text_line}' if self.text_line is not None else ''}"

    @property
    def text_at(self) -> str:
        """``out.txt:19``: where the text stands."""
        return f"{self.file}:{self.text_line if self.text_line is not None else self.line}"


class StoryProgress(Claim, frozen=True, kw_only=True):
    """The last sign of work of one process."""

    who: Who
    step: float | None
    unit: str | None
    file: str
    line: int
    time: str | None = None
    time_s: float | None = None
    behind: float | None = None
    """Steps behind the foremost of those who count the same."""


class StoryStill(Claim, frozen=True, kw_only=True):
    """An engine that held requests and gave no token, up to the last of its lines of figures."""

    who: Who
    engine: str | None
    running: int
    waiting: int
    lines: int
    """In a row that tell so."""
    for_s: float | None
    file: str
    line: int
    is_likely: bool
    """It lasts, and requests wait behind those that run: *likely* stuck, else *possible*."""

    @property
    def text(self) -> str:
        """In one sentence."""
        name = f"engine {self.engine} of {self.who.label}" if self.engine is not None else f"the engine of {self.who.label}"
        queued = f", {self.waiting} wait" if self.waiting else ""
        lasts = f" over {self.for_s:,.0f} s" if self.for_s else ""
        return f"{name} gave no token in its last {self.lines} lines of figures{lasts}, while {self.running} requests ran{queued}"


class StoryClock(Claim, frozen=True, kw_only=True):
    """Times of a file or node that were moved to the common clock."""

    where: str
    shift_s: float
    """Was added to its times."""
    why: str


class LogStory(Claim, frozen=True, kw_only=True):
    """Many logs as one story."""

    files: int
    lines: int
    bytes: int
    summary: str
    first: StoryEntry | None = None
    """None when nothing failed as far as these logs go, or all that failed follows from what they do not show."""
    then: tuple[StoryEntry, ...] = ()
    """Consequences, in the order of time."""
    noted: tuple[StoryEntry, ...] = ()
    """Errors that were logged, where nothing in these logs says that anything ended: perhaps failures. Then there is no first one."""
    survived: tuple[StoryEntry, ...] = ()
    progress: tuple[StoryProgress, ...] = ()
    """Who stopped first stands first."""
    still: tuple[StoryStill, ...] = ()
    """Who lasts longest first."""
    stopped: str | None = None
    """Who stopped first and where, in one sentence."""
    clocks: tuple[StoryClock, ...] = ()
    order: str | None = None
    """Why the order in time is not sure; None when it is."""
    left_out: int = 0
    """Entries that are not listed."""

    @property
    def title_of_then(self) -> str:
        """What stands in `then`: what followed the first failure, else the ends of those that were told to end."""
        return "then" if self.first is not None else "told to end"
