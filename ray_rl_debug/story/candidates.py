"""The failures of all logs on one clock: which the run survived, which only follow from others, and which may be the first."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Mapping, Sequence

import msgspec

from ray_rl_debug import signatures
from ray_rl_debug.logs.ends import ENDS_RUN, GIVES_UP, OF_ASKING
from ray_rl_debug.logs.others import OF_CLUSTERS
from ray_rl_debug.logs.steps import BAR
from ray_rl_debug.logs.words import EXCEPTION, TELLS_OLDER
from ray_rl_debug.model.snapshot.log_book import LogBook, LogEvent, LogStep, LogWriter
from ray_rl_debug.signatures import Signature
from ray_rl_debug.story.clocks import Shift, is_comparable
from ray_rl_debug.story.people import is_same

STEPS_ON = 2
"""So many steps of anybody after a failure mean that the run went on."""
_ENDED_FROM_OUTSIDE = re.compile(
    rf"\bSIGTERM\b|\bSIGINT\b|exit(?:ed)?(?: with)?(?: exit)? ?code[^\d-]{{0,12}}{OF_ASKING}\b"
    r"|signal (?:15|2)\b|^KeyboardInterrupt|^SystemExit"
    r"|^[Tt]erminat(?:ed|ing)\b|[:\d] +Terminated\b|\b[Tt]erminating\b"
    r"|\b(?:was|were|been|being|is|are|got|[Pp]rocess(?:es)?|[Ww]orkers?|[Jj]ob|[Rr]ank|[Cc]hild|[Tt]ask|[Pp]od|[Cc]ontainer|[Ss]erver)\b[^.'\"\n]{0,40}\b[Tt]erminated\b"
)
"""The word alone is also a flag of an environment: ``Env done entry 'terminated' was True``."""
_ASKED = re.compile(r"\b(?:SIGTERM|SIGINT|(?:15|2)) death signal\b|\bkilled by `ray\.kill`")
"""Of torchrun, which ends its ranks because somebody ended it; of Ray, of an actor that the program ended by a call."""
_CANCELLED = re.compile(r"^(?:[\w.]+\.)?(?:TaskCancelledError|CancelledError|AsyncioActorExit)\b")
"""Somebody did not want the result any longer, or an actor of Ray's left, as its program told it."""
_ENDED_BY_ITSELF = re.compile(r"\b(?:exit ?code|code|status|signal)[ :=]*[(\[]?(?!-?(?:15|2|143|130|0)\b)(?:-?\d|SIG(?!TERM|INT))|\babruptly\b")
"""Beside such words: it ended with another code or signal, and nobody told it to."""
_ENDS_ITSELF = re.compile(r"Terminating (?:the )?process (?:after|because)\b|.{0,120}\bwill now abort\b")
"""torch's watchdog of its own process, and Open MPI: the reason stands in the lines above."""
_ONLY_KILLED = re.compile(r"Killed$")
"""A shell's word on its child."""
_NAME_ALONE = re.compile(r"\W{0,4}(?:(?:\[?PG[^\]\n]{0,60})?\b(?:[Rr]ank|[Pp]id|[Pp]rocess|[Ww]orker|[Nn]ode) ?#?\d{1,8})?\W{0,4}$")
"""An error whose first line only says of whom it is: ``Rank 2``, and torch's report below."""
TOLD_TO_END = "the process was told to end"
NOTED = "logged as a note"
WENT_ON = "went on: "
"""How an excuse begins: by the level of the line, and by work that was counted behind it. `taken_back` knows these two by their first words."""
_BY_OTHERS = re.compile(
    r"^(?:[^:\n]{1,80}: )?(?:[\w.]*\.)?"
    r"(?:BrokenPipeError|ConnectionResetError|ConnectionAbortedError|ConnectionRefusedError|EOFError|CancelledError|KeyboardInterrupt|SystemExit"
    r"|ServerDisconnectedError|RemoteDisconnected|RemoteProtocolError|ConnectError|ClientConnectorError|ActorDiedError|ActorUnavailableError|WorkerCrashedError|RayActorError|EngineDeadError|OwnerDiedError"
    r"|ChildFailedError|ProcessRaisedException|ProcessExitedException|BrokenProcessPool|TaskCancelledError|NodeDiedError|ObjectLostError|DistBackendError|DistNetworkError)\b"
)
"""Exceptions that a process raises because another one went."""
_IN_VAIN = re.compile(
    r"^(?:[^:\n]{1,80}: )?(?:[\w.]*\.)?(?:TimeoutError|GetTimeoutError|TimeoutExpired|ReadTimeout|ConnectTimeout|PoolTimeout|ReadTimeoutError"
    r"|ServerTimeoutError|FutureTimeoutError|DeadlineExceeded|queue\.Empty|Empty|zmq\.error\.Again)\b"
    r"|^(?:[\w.]*Error: )?Timed out (?:receiving|waiting|while waiting)\b"
)
"""Exceptions of a process that waited for another one in vain."""
_CLOCK_RAN_OUT = re.compile(r"^Timeout \(\d+:\d\d:\d\d")
"""Of faulthandler, which somebody told to dump all stacks when a time is over. It ends the process only where it was told that, too."""
_EXCEPTION_FIRST = re.compile(r"^[\w.]+(?:Error|Exception)\b")
_FOR_MEMORY = re.compile(r"\boom[-_]kill|[Oo]ut of memory: Killed process|: tasks? [\d,-]+: Out Of Memory")
_ON_THE_CARD = re.compile(r"\bblock: \[\d+,\d+,\d+\], thread: \[")
_CARD_FAILED = re.compile(r"\bdevice-side assert triggered")
"""The first is what code on a GPU prints, without any process; the second is the error that its process raises then."""
_SHORT_OF_MEMORY = re.compile(r"\binsufficient shared memory \(shm\)")
_LOADER_KILLED = re.compile(r"\bDataLoader worker \(pid(?:\(s\))? \d+\) is killed")
"""The same pair of a DataLoader: its child says why, and names nobody; the parent names the child."""
_CHILD_FAILED = re.compile(r"\bChildFailedError:")
_ROOT_CAUSE = "(first observed failure)"
"""How torchrun heads the rank that it saw end first, below its error."""
_AGENT_SAW = re.compile(r"\bfailed \(exitcode: -?\d+\) local_rank: \d+ ")
"""What torchrun's agent logs of the child that ended, before it raises: the block below its error may be cut off."""
_TASK_ENDED = re.compile(r"^[\w.-]{1,80}: tasks? \d[\d,-]{0,80}: ")
"""What srun says of the tasks of a node; the helper of Slurm on that node, which tells why, often names none."""
_SIGNALLED = re.compile(rf"{_TASK_ENDED.pattern}(?:Terminated|Killed)$")
_CANCELLED_BY_SLURM = re.compile(r"\bCANCELLED AT \S+ DUE TO ")
_OF_ACTOR = re.compile(r"\b[Tt]he actor is dead because its worker process has died\b|^\W{0,4}(?:Worker exit type: |the actor's node was )")
"""Lines below Ray's news of a dead actor, printed by whoever called it."""
VICTIM_LINES = 20
"""So near behind the news that memory ran out stands the line that names whom the kernel ended; so near behind what code on a GPU prints that of its
process."""
_THROWN = re.compile(r"^terminate called after throwing an instance of '(?:\w+::)*(?P<name>\w+)'")
"""An uncaught exception of C++: it tells what its class tells."""


class Class(enum.IntEnum):
    """How near to its cause a failure stands; the nearest first."""

    OWN = 0
    """The process failed by itself, as far as its words say."""
    LATE = 1
    """It tells of trouble that began some time before: a timeout, an exit code."""
    ECHO = 2
    """It follows from, or repeats, what happened to another process."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One failure of one writer."""

    event: LogEvent
    book: LogBook
    signature: Signature | None
    time_s: float | None
    """On the common clock; None where only an old stamp stands above it."""
    since_s: float
    """Not earlier than this, on the common clock."""
    by_s: float
    """Not later than this, on the common clock: without a time of its own, it came before the first stamp behind it in its file; else infinite."""
    class_: Class
    survived: str | None = None
    """Why it is known that the program went on."""
    why: str | None = None
    """Why it is of its class."""

    @property
    def subject(self) -> LogWriter:
        """Who failed: whom the text names, else who wrote it."""
        return self.event.about or self.event.writer


def names_exception(text: str) -> bool:
    """Does a text begin with the name of an exception? A line of level error alone says less."""
    return _EXCEPTION_FIRST.match(text) is not None


def last_line(event: LogEvent) -> int:
    """Where all that was read of it ends: the last of equal failures, or the line of a traceback that is shown."""
    return max(event.last_line or 0, event.text_line or 0, event.file_line)


def waited_in_vain(text: str) -> bool:
    """Does an error say that its process waited for another, which did not come?"""
    return _IN_VAIN.match(text) is not None


def is_light(event: LogEvent, signature: Signature | None) -> bool:
    """Does one count of work behind it say that it was survived? Then one count before it is no work that stopped by it."""
    return signature is None and (event.caught is True or (event.kind == "error" and not (event.level and GIVES_UP.search(event.text))))


def was_told_to_end(one: Candidate) -> bool:
    """Is it the end of a process that somebody else ended, with a signal or from a keyboard?"""
    is_told = (
        one.event.kind in ("death", "known")
        or one.event.text.startswith("KeyboardInterrupt")
        or any(found is not None for found in (_CANCELLED.match(one.event.text), _ASKED.search(one.event.text)))
    )
    return one.why == TOLD_TO_END and is_told


def candidates(books: Sequence[LogBook], moved: Mapping[str, Shift]) -> list[Candidate]:
    """All failures, on the common clock, in the order in which the files have them."""
    failed = {w for b in books for e in b.events if e.about is None and e.kind != "known" for w in [e.writer]}
    steps = [(_at(s.time_s, b, moved), s, b) for b in books for s in b.steps if s.time_s is not None]
    found = []
    for book in books:
        known = [*((e.file_line, e.time_s) for e in book.events if not e.is_time_old), *((s.file_line, s.time_s) for s in book.steps)]
        stamps = sorted((line, _at(at, book, moved)) for line, at in known if at is not None)
        for event in book.events:
            signature = signatures.find(event.signature) if event.signature else None
            if event.kind == "known" and (signature is None or signature.effect == "info"):
                continue
            since_s = _at(event.time_s, book, moved) if event.time_s is not None else -math.inf
            time_s = since_s if event.time_s is not None and not event.is_time_old else None
            class_, why = _class(event, signature, failed)
            found.append(
                Candidate(
                    event=event,
                    book=book,
                    signature=signature,
                    time_s=time_s,
                    since_s=since_s,
                    by_s=time_s if time_s is not None else _before_next(event, stamps),
                    class_=class_,
                    survived=_survived(event, signature, book, time_s, steps, moved),
                    why=why,
                )
            )
    return _ended_by_slurm(_with_actors(_with_victims(found)))


def _with_actors(found: Sequence[Candidate]) -> list[Candidate]:
    """Lines that go on about a dead actor are about that actor, which the caller has just named."""
    told = [c for c in found if c.event.about is not None]
    dead: dict[tuple[str, int], LogWriter] = {}
    for one in found:
        if one.event.about is None and _OF_ACTOR.search(one.event.text):
            line = one.event.file_line
            near = [
                c
                for c in told
                if c.book is one.book and is_same(c.event.writer, one.event.writer) and line - VICTIM_LINES <= c.event.file_line < line
            ]
            if near:
                dead[one.book.file, line] = max(near, key=lambda c: c.event.file_line).subject
    return [_about(c, dead.get((c.book.file, c.event.file_line))) for c in found]


def _ended_by_slurm(found: Sequence[Candidate]) -> list[Candidate]:
    """Tasks that a signal ended did not fail where Slurm says near them that it cancelled the step, and why; either line may be written first."""
    why = [c for c in found if _CANCELLED_BY_SLURM.search(c.event.text)]
    return [_as_echo(c, "Slurm says itself why it ended the tasks") if _SIGNALLED.match(c.event.text) and _is_near(c, why) else c for c in found]


def _as_echo(one: Candidate, why: str) -> Candidate:
    return msgspec.structs.replace(one, class_=Class.ECHO, why=why)


def _is_near(one: Candidate, others: Sequence[Candidate]) -> bool:
    return any(c.book is one.book and abs(c.event.file_line - one.event.file_line) <= VICTIM_LINES for c in others)


def _about(one: Candidate, who: LogWriter | None) -> Candidate:
    return one if who is None else msgspec.structs.replace(one, event=msgspec.structs.replace(one.event, about=who))


def _with_victims(found: Sequence[Candidate]) -> list[Candidate]:
    """Failures that name nobody, with whom the lines behind them name.

    Slurm's helper says that the kernel ended a process for its memory; which one it was, another program says next. Code on a GPU prints why it
    fails, without any mark of its process; which one it was, the error says that the process raises next.
    """
    nameless = [c for c in found if c.event.about is None and c.event.writer.pid is None and (c.event.writer.rank is None or _is_of_child(c))]
    told = [c for c in found if c.signature is not None and _FOR_MEMORY.search(c.event.text)] if nameless else []
    raised = [c for c in found if _CARD_FAILED.search(c.event.text)] if nameless else []
    loaders = [c for c in found if _LOADER_KILLED.search(c.event.text)] if nameless else []
    roots = [c for c in found if _ROOT_CAUSE in c.event.text] if nameless else []
    seen = [c for c in found if _AGENT_SAW.search(c.event.text)] if nameless else []
    tasks = [c for c in found if _TASK_ENDED.match(c.event.text)] if nameless else []
    victims: dict[tuple[str, int], Candidate] = {}
    for one in nameless:
        line, last = one.event.file_line, one.event.last_line or one.event.file_line
        text = one.event.text
        behind = told if one in told else raised if _ON_THE_CARD.search(text) else loaders if _SHORT_OF_MEMORY.search(text) else []
        behind = roots if _CHILD_FAILED.search(text) else behind
        if not behind and one.event.writer.program == "slurmstepd" and one.event.writer.node == one.book.writer.node:
            behind = tasks
        near = [c for c in behind if c.book is one.book and line < c.event.file_line <= last + VICTIM_LINES]
        if not near and _CHILD_FAILED.search(text):
            near = [c for c in seen if c.book is one.book and line - VICTIM_LINES <= c.event.file_line < line]
        named = [c for c in near if c.event.about is not None or behind is raised]
        # Equal lines are one event, which names only the first of those whom they speak of.
        if len({c.subject for c in named}) == 1 and all(c.event.count == 1 for c in named):
            victims[one.book.file, line] = named[0]
    return [_named_by(c, victims.get((c.book.file, c.event.file_line))) for c in found]


def _is_of_child(one: Candidate) -> bool:
    """Does the child of a rank write it, whose lines the launcher gives the mark of the rank?"""
    return _SHORT_OF_MEMORY.search(one.event.text) is not None


def _named_by(one: Candidate, other: Candidate | None) -> Candidate:
    """It is about whom the other names; a launcher's error without words of its own ends as the other tells."""
    if other is None:
        return one
    lines = other.event.lines if _ROOT_CAUSE in other.event.text else one.event.lines
    return msgspec.structs.replace(one, event=msgspec.structs.replace(one.event, about=other.subject, lines=lines))


def _before_next(event: LogEvent, stamps: Sequence[tuple[int, float]]) -> float:
    """The first time known behind an event in its file."""
    return next((at for line, at in stamps if line > event.file_line), math.inf)


def _at(time_s: float | None, book: LogBook, moved: Mapping[str, Shift]) -> float:
    shift = moved.get(book.file)
    return (time_s or 0.0) + (shift.seconds if shift else 0.0)


def _class(event: LogEvent, signature: Signature | None, failed: set[LogWriter]) -> tuple[Class, str | None]:
    if event.is_bare and signature is not None and signature.layer in OF_CLUSTERS:
        return Class.ECHO, "nothing says that this object is one of the run"
    if _CANCELLED.match(event.text) and (event.beneath is None or _CANCELLED.match(event.beneath)):
        return Class.ECHO, TOLD_TO_END
    if signature is not None:
        if signature.effect == "cascade" and _ASKED.search(event.text):
            return Class.ECHO, TOLD_TO_END
        if signature.effect == "cascade":
            return Class.ECHO, "such a line follows from the end of another process"
        if signature.late:
            return Class.LATE, "such a line comes late: what brought it about happened before"
    if event.about is not None and not is_same(event.about, event.writer) and any(is_same(event.about, w) for w in failed):
        return Class.ECHO, "it repeats what that process wrote itself"
    if (thrown := _THROWN.match(event.text)) and _BY_OTHERS.match(thrown["name"]):
        return Class.ECHO, "such an error comes when the process at the other end goes"
    if signature is not None and signature.effect == "critical":
        return Class.OWN, None
    if _ENDED_FROM_OUTSIDE.search(event.text) and not _ENDED_BY_ITSELF.search(event.text) and not _ENDS_ITSELF.match(event.text):
        return Class.ECHO, TOLD_TO_END
    if _BY_OTHERS.match(event.text) and (event.beneath is None or _BY_OTHERS.match(event.beneath)):
        return Class.ECHO, "such an error comes when the process at the other end goes"
    if _NAME_ALONE.match(event.text):
        return Class.ECHO, "it names a process and says no more"
    if waited_in_vain(event.text) or _CLOCK_RAN_OUT.match(event.text):
        return Class.LATE, "it waited for somebody else in vain, who stood still before that"
    if _ENDS_ITSELF.match(event.text) or (event.kind == "death" and ENDS_RUN.search(event.text)):
        return Class.LATE, "the process ended itself, for the reason that it gave before"
    if _ONLY_KILLED.match(event.text):
        return Class.LATE, "it tells that a process was killed, not why"
    if event.kind == "death" and re.search(r"exit ?code|error code|exit status|exited|status \d", event.text, re.IGNORECASE):
        return Class.LATE, "an exit code tells that a process ended, not why"
    return Class.OWN, None


def _survived(
    event: LogEvent,
    signature: Signature | None,
    book: LogBook,
    time_s: float | None,
    steps: Sequence[tuple[float, LogStep, LogBook]],
    moved: Mapping[str, Shift],
) -> str | None:
    last = last_line(event)
    later = [] if TELLS_OLDER.search(event.text) else [s for s in book.steps if s.file_line > last]
    own = [s for s in later if is_same(s.writer, event.writer)]
    is_known = event.writer != LogWriter()
    if own and is_known and _went_on_itself(event, signature, own, book):
        return _went_on(own[-1])
    if is_known and event.caught is False:
        later = [s for s in later if s not in own]
    if signature is not None and signature.effect == "info" and (known := [s for s in book.steps if s.file_line > event.file_line]):
        return _went_on(known[-1])
    is_of_its_writer = event.is_own_words and bool(later) and later[-1].writer == event.writer
    enough = 1 if is_light(event, signature) or is_of_its_writer else STEPS_ON
    if len({(s.unit, s.step) for s in later}) >= (STEPS_ON if _is_drawn_again(later, event, book) else enough):
        return _went_on(later[-1])
    if event.handled is not None:
        return event.handled if event.handled.startswith(NOTED) else f"as told beside it: {event.handled}"
    if event.level == "D":
        return NOTED
    if event.level in ("I", "W") and ((signature is None and event.kind != "death") or event.kind == "traceback"):
        return f"{NOTED} or a warning"
    if time_s is not None:
        others = steps if event.caught is not False else [one for one in steps if not is_same(one[1].writer, event.writer)]
        after = {(s.unit, s.step) for at, s, b in others if at > time_s + 1.0 and is_comparable(b, book, moved)}
        if len(after) >= STEPS_ON and event.count == 1:
            unit, step = max(after, key=lambda one: one[1])
            return f"the run went on to {unit} {step:g}"
    return None


def _is_drawn_again(later: Sequence[LogStep], event: LogEvent, book: LogBook) -> bool:
    """Is the only count behind a rank's exception that of a progress bar which stands where it stood? It is drawn once more when its program ends."""
    if event.writer.rank is None or EXCEPTION.match(event.text) is None or {s.unit for s in later} != {BAR} or len({s.step for s in later}) > 1:
        return False
    return not any(s.unit == BAR and s.step < later[0].step for s in book.steps if s.file_line < event.file_line)


def _went_on_itself(event: LogEvent, signature: Signature | None, own: Sequence[LogStep], book: LogBook) -> bool:
    """Did the writer of a failure count work behind it?

    What it had counted before may be written later: by a thread, or when a buffer is emptied at its end. So what ends a process is not excused by one
    step, and what left the program's own code not at all by steps of this process that only continue those before it.
    """
    if event.caught is False:
        before = [s for s in book.steps if s.file_line < event.file_line and is_same(s.writer, event.writer) and s.unit == own[0].unit]
        if event.writer.pid is not None or (before and own[0].step > before[-1].step):
            return False
    is_grave = event.caught is False or event.kind == "death" or (signature is not None and signature.effect == "critical" and event.kind == "error")
    return len({(s.unit, s.step) for s in own}) >= (STEPS_ON if is_grave and event.handled is None else 1)


def _went_on(step: LogStep) -> str:
    return f"{WENT_ON}{step.unit} {step.step:g} at line {step.file_line}"
