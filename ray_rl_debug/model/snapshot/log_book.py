"""What one log file holds that matters: failures, signs of progress, and who wrote them."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class LogWriter(Fact, frozen=True, kw_only=True):
    """Who wrote a line, as far as the line and the name of its file tell."""

    node: str | None = None
    """Machine or pod."""
    ip: str | None = None
    pid: int | None = None
    rank: str | None = None
    """As the program writes it: ``3``, ``TP2``, ``DP0 TP1``."""
    program: str | None = None
    """Actor class, engine part or program: ``WorkerDict``, ``EngineCore_DP0``, ``srun``."""


class LogCollective(Fact, frozen=True, kw_only=True):
    """What torch's watchdog says of one rank: the collective that timed out, or how far the rank had come."""

    seq: int | None = None
    """Number of the collective in its group; torch before 1.13 does not tell."""
    group: str | None = None
    """As the line names it: ``0(default_pg)``; old torch does not."""
    op: str | None = None
    """``ALLREDUCE``"""
    elements: int | None = None
    """That the rank gave."""
    enqueued: int | None = None
    """Number of the last one that the rank has enqueued."""
    completed: int | None = None


class LogEvent(Fact, frozen=True, kw_only=True):
    """A traceback, a fatal line, or a line of a known error. Equal ones of one writer are one event."""

    kind: str
    """``traceback``; ``death`` (the line says that a process ended); ``error`` (an exception, or level error); ``known`` (by the catalogue alone)."""
    text: str
    """The line that says what happened, made safe to show; of a traceback the last line."""
    file_line: int
    """Counted from 1; of a traceback the line of its first word."""
    text_line: int | None = None
    """Where the text stands, when that is another line: the last one of a traceback."""
    writer: LogWriter = LogWriter()
    about: LogWriter | None = None
    """The process that the text itself names as the one that failed, when it is another than the writer."""
    time_s: float | None = None
    """As the stamp reads; seconds since 1970 as if the stamp were UTC, unless it names its zone."""
    is_time_own: bool = False
    """The stamp stands in the event itself; else it is that of the last line before that has one."""
    is_time_old: bool = False
    """That line stands far above, or work was done since: the event came after this time, perhaps long after."""
    is_zoned: bool = False
    signature: str | None = None
    level: str | None = None
    """``D``, ``I``, ``W``, ``E`` or ``F``, where the record has one."""
    record: str | None = None
    """Words of the record that a traceback belongs to."""
    beneath: str | None = None
    """Last line of the first traceback of a chain, or of the traceback below a record: what was raised first."""
    frame: str | None = None
    """Innermost frame of the first traceback, ``dp_actor.py:30 in update_policy``."""
    lines: tuple[str, ...] = ()
    """The first and last lines of the block, safe to show."""
    collective: LogCollective | None = None
    """Of a line of torch's watchdog."""
    is_own_words: bool = False
    """The program put a known error into a sentence of its own, at no level: nothing was raised there, and nothing given up."""
    caught: bool | None = None
    """Of a traceback: True where a function caught it and a logger wrote it down, False where it went up to the program's own code and out."""
    is_bare: bool = False
    """It may be what somebody caught and printed: a traceback that begins in a function, the line below a server's record on a request."""
    is_followed: bool = False
    """It is not its writer's last word: more came that tells of no trouble, or all work was done before."""
    is_after_work: bool = False
    """All work was done before."""
    handled: str | None = None
    """Words beside it which say that the program went on: ``retrying``."""
    count: int = 1
    last_line: int | None = None
    """Of the last equal event."""


class LogStep(Fact, frozen=True, kw_only=True):
    """A line that counts the work done."""

    step: float
    unit: str
    """The word beside the number: ``step``, ``global_step``, ``it``, ``epoch``."""
    file_line: int
    """Lines from the end of the file are counted back where the start was not read: see `LogBook.lines`."""
    writer: LogWriter = LogWriter()
    time_s: float | None = None
    is_zoned: bool = False


class LogSign(Fact, frozen=True, kw_only=True):
    """The last line of one writer in one file: a sign of life."""

    writer: LogWriter
    file_line: int
    text: str
    time_s: float | None = None
    is_zoned: bool = False


class LogStill(Fact, frozen=True, kw_only=True):
    """An engine whose last lines of figures all tell of requests that run and of no token."""

    writer: LogWriter
    engine: str | None = None
    """Number that the line gives it: ``000``."""
    running: int
    """Requests, in the last line."""
    waiting: int
    lines: int
    """In a row."""
    file_line: int
    """Of the first of them."""
    last_line: int
    since_s: float | None = None
    until_s: float | None = None
    is_zoned: bool = False


class LogCall(Fact, frozen=True, kw_only=True):
    """One of the last collectives that a rank went into, by the line that logs each of them."""

    writer: LogWriter
    told: LogCollective
    number: str
    """As the line has it: NCCL counts in hexadecimal digits."""
    members: int | None = None
    """Ranks of its communicator; torch does not tell."""
    file_line: int


class LogBook(Fact, frozen=True, kw_only=True):
    """One log file."""

    file: str
    node: str | None = None
    """By its folder or name."""
    writer: LogWriter = LogWriter()
    """Of lines that do not say themselves who wrote them."""
    bytes: int = 0
    lines: int = 0
    modified_time_s: float | None = None
    first_time_s: float | None = None
    last_time_s: float | None = None
    is_zoned: bool = False
    """Its stamps name their zone."""
    events: tuple[LogEvent, ...] = ()
    steps: tuple[LogStep, ...] = ()
    """The last few of each writer."""
    signs: tuple[LogSign, ...] = ()
    stills: tuple[LogStill, ...] = ()
    calls: tuple[LogCall, ...] = ()
    """The last few of each writer, in their order."""
    left_out: int = 0
    """Different events beyond those that are kept."""
