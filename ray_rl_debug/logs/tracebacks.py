"""Python tracebacks in the middle of logs: with marks in front of each line, between lines of others, chained, cut, or wrapped by a mail."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

import msgspec

from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.words import ANY_NAME, EXCEPTION
from ray_rl_debug.model.snapshot.log_book import LogWriter

START = "Traceback (most recent call last)"
MAX_LINES = 600
"""Of one block with all that stands between; recursion prints a thousand frames, but Python folds them."""
MAX_STRANGERS = 200
"""Lines of others in between after which it is no longer looked for."""
MAX_WITHOUT_FRAME = 8
"""Lines behind the first one; a traceback without a frame so far is none."""
FRAME = re.compile(r'^File "(?P<file>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
REMOTE = re.compile(r"\bray::[^()\n]{1,160}\(\) \(pid=\d+")
"""Behind such a line Ray puts the frames and the error of the process that it names."""
_CHAIN = re.compile(r"^(?:During handling of the above exception|The above exception was the direct cause)")
_ORIGINAL = "Original Traceback"
"""Behind what torch raises again, ``KeyError: Caught KeyError in DataLoader worker process 3.``: where it was raised first, in the other process."""
_MARKS = re.compile(r"^[\s~^|+-]*$|^\[Previous line repeated|^\.\.\.")
_GROUP = re.compile(r"^[ |+-]*(?=[^ |+-])")
_LIBRARY = re.compile(r"site-packages|dist-packages|/lib/python3|<frozen|<string>|^/usr/lib/")
RESULT = re.compile(r"^[a-z]+[A-Z]\w*Error: ")
"""What a C library's result means, behind the error that it became: ``ncclRemoteError: A call failed``."""
_PROMPT = re.compile(r"(?:\([\w.-]{1,40}\) )?(?:[\w.-]{1,40}@[\w.-]{1,60}:\S{1,80})?[$#] \S")
"""Where a shell waits for the next command, no message goes on."""
MAX_MESSAGE = 6
"""Lines behind the last line of a traceback, which may belong to its message."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One traceback, or a chain of them."""

    last: str
    """What was raised in the end; empty when the text is cut before it."""
    first: str | None
    """What was raised first, when that is something else."""
    frame: str | None
    lines: tuple[str, ...]
    """All lines of it, without what stood in front."""
    head: Head
    """Of its first line."""
    message: tuple[str, ...] = ()
    """Lines of the message that follow the last line."""
    ran_text: bool = False
    """A program ran text as code, and that code raised. Code given to Python itself begins with such a frame."""
    taken: tuple[int, ...] = ()
    """Which of the given lines are its own, counted from 0."""
    begins_in: str | None = None
    """File of the outermost frame: of whom it was caught by, or of the program that it ended."""
    is_caught: bool | None = None
    """It begins inside a function: that function caught it. What nobody catches is told from the first line of the program (False)."""
    last_at: int = 0
    """Place of `last` among `taken`."""
    remote: str | None = None
    """Of calls of Ray within each other, the line that names the process of the innermost."""


def read_block(heads: Iterable[Head]) -> Block | None:
    """The traceback whose first line comes first in `heads`; None when nothing of a traceback follows that line."""
    reader: _Reader | None = None
    for number, head in enumerate(heads):
        if number > MAX_LINES:
            break
        if reader is None:
            reader = _Reader(head)
        elif reader.take(number, head) is _Step.STOP:
            break
    return reader.block() if reader is not None else None


_Frame = tuple[str, str, str]
"""File, line and function."""


class _Step(enum.Enum):
    """What becomes of a line, and so of those behind it."""

    KEEP = enum.auto()
    SKIP = enum.auto()
    STOP = enum.auto()


class _Reader:
    """Reads a traceback line by line: its frames up to the error, then its message, and again where another one is chained to it."""

    def __init__(self, first: Head) -> None:
        self.begun = self.same = first
        self.kept, self.taken = [first.text], [0]
        self.remote = first.text if REMOTE.search(first.text) else None
        self.frames: list[_Frame] = []
        self.first_frames: list[_Frame] | None = None
        self.of_callers: list[_Frame] = []
        self.raised_again: list[_Frame] | None = None
        self.finals: list[str] = []
        self.message: list[str] = []
        self.framed: Head | None = None
        self.in_frames, self.strangers, self.last_at = True, 0, 0

    def take(self, number: int, head: Head) -> _Step:
        """The next line, the `number`-th of those given."""
        if number == 1 and head.writer == LogWriter() and FRAME.match(head.text):
            self.same = msgspec.structs.replace(self.same, writer=LogWriter())  # marks stand in the first line of a record only
        if not _is_same(head, self.same):
            self.strangers += 1
            return _Step.STOP if self.strangers > MAX_STRANGERS or (self.finals and not self.in_frames) else _Step.SKIP
        text = _GROUP.sub("", head.text) if head.text.startswith(("|", "+")) else head.text
        step = self._among_frames(number, head, text) if self.in_frames else self._behind_error(number, head, text)
        if step is _Step.KEEP:
            self.kept.append(text)
            self.taken.append(number)
        return step

    def _among_frames(self, number: int, head: Head, text: str) -> _Step:
        """A frame, a line of source, or the error at the end of them."""
        if found := FRAME.match(text):
            self.frames.append((found["file"], found["line"], found["function"] or "?"))
            self.framed = head
        elif START in text:
            if not self.frames and not self.finals:
                return _Step.STOP  # another one begins: nothing of this one followed
        elif not text or _MARKS.match(text) or (head.indent > self.same.indent and not EXCEPTION.match(text)):
            pass  # a line of source below its frame
        elif EXCEPTION.match(text) or (ANY_NAME.match(text) and head.indent <= self.same.indent and self.frames):
            self._take_error(text)
        elif self.framed is not None and self.taken[-1] == number - 1 and FRAME.match(self.kept[-1]) and _is_marked_alike(head, self.framed):
            pass  # the same where a collector took the blanks off and marks every line
        elif _begins_record(head, self.begun) or (not self.frames and number > MAX_WITHOUT_FRAME):
            return _Step.STOP  # another record begins: the traceback was cut
        return _Step.KEEP

    def _take_error(self, text: str) -> None:
        is_first = self.raised_again is not None
        self.finals.insert(0 if is_first else len(self.finals), text)
        self.last_at = self.last_at if is_first else len(self.taken)
        self.in_frames, self.message = REMOTE.search(text) is not None, []
        if self.in_frames:  # the frames so far are the caller's
            self.remote = text if self.first_frames is None else self.remote
            self.of_callers, self.frames = self.of_callers or self.frames, []
        elif self.first_frames is None:
            self.first_frames = self.frames

    def _behind_error(self, number: int, head: Head, text: str) -> _Step:
        """A chained traceback, or a line of the message."""
        if _CHAIN.match(text):
            self.in_frames, self.frames, self.message = True, [], []
            return _Step.KEEP
        if text.startswith(_ORIGINAL) and self.raised_again is None:
            self.in_frames, self.raised_again, self.frames, self.first_frames, self.message = True, self.frames, [], None, []
            return _Step.KEEP
        if START in text:
            return _Step.STOP  # of its own
        if not text:
            return _Step.SKIP
        if len(self.message) >= MAX_MESSAGE or _begins_record(head, self.begun) or _PROMPT.match(text):
            return _Step.STOP
        self.message.append(text)
        if RESULT.match(text) or _is_same_record(head, self.same):
            self.taken.append(number)
        return _Step.SKIP

    def block(self) -> Block | None:
        """What was read; None without a frame and an error."""
        if not self.frames and not self.finals:
            return None
        outermost = self.raised_again or self.frames
        inner = self.first_frames or self.frames or self.of_callers
        last = self.finals[-1] if self.finals else ""
        return Block(
            last=last,
            first=self.finals[0] if self.finals and self.finals[0] != last else None,
            frame=_innermost(inner),
            lines=tuple(self.kept),
            head=self.begun,
            message=tuple(self.message),
            ran_text=_ran_text(inner),
            taken=tuple(self.taken),
            remote=self.remote,
            begins_in=outermost[0][0] if outermost else None,
            is_caught=_is_caught(*outermost[0]) if outermost else None,
            last_at=self.last_at,
        )


def _begins_record(head: Head, first: Head | None) -> bool:
    """Does another record begin? Where the first line of the traceback has a stamp and no level, all lines have one."""
    if first is not None and _is_same_record(head, first):
        return False
    return head.level is not None or (head.is_stamped and not (first is not None and first.is_stamped and first.level is None))


def _is_marked_alike(head: Head, first: Head) -> bool:
    return (head.level, head.source, head.is_stamped) == (first.level, first.source, first.is_stamped)


def _is_same_record(head: Head, first: Head) -> bool:
    """A logger that repeats its head for each line of a record has one place and one time for all of them."""
    return head.source is not None and (head.source, head.level, head.time_s) == (first.source, first.level, first.time_s)


def _is_same(head: Head, first: Head) -> bool:
    """May the line belong to the writer of the first? One with no mark may, unless the first has one."""
    a, b = head.writer, first.writer
    return (a.pid, a.rank, a.program, a.node) == (b.pid, b.rank, b.program, b.node)


def _is_caught(file: str, _line: str, function: str) -> bool | None:
    if function == "<module>":
        return None if file.startswith("<") or _WRITTEN.match(file) else False
    return None if function == "?" or file.startswith("<frozen") or _STARTS.search(file) else True  # nothing begins in a frozen module: it is cut


_STARTS = re.compile(
    r"_raylet\.pyx$|multiprocessing/(?:process|spawn|popen_\w+)\.py$|threading\.py$|runpy\.py$|asyncio/runners\.py$|concurrent/futures/process\.py$|ray/_private/workers/"
)
_WRITTEN = re.compile(r"^(?:/private)?/(?:var/)?(?:tmp|dev/shm)/(?!ray/)|^/(?:sandbox|judge|submissions?|testbed)/")
"""Where a program writes the code that it tries, and where images of tasks hold it; Ray keeps the code of a job itself below ``/tmp/ray``."""


def _ran_text(frames: list[_Frame]) -> bool:
    """`exec` calls the text ``<string>``, as ``python -c`` does; another name, such as ``<candidate>``, the program has given it itself.

    So it has code that it wrote into a folder for passing files.
    """
    if frames and frames[0][2] == "<module>" and _WRITTEN.match(frames[0][0]):
        return True
    as_string = any(file == "<string>" and function == "<module>" for file, _, function in frames[1:]) and frames[0][0] != "<string>"
    return as_string or any(_OWN_TEXT.fullmatch(file) for file, _, _ in frames)


_OWN_TEXT = re.compile(
    r"<(?!string|stdin|console|ipython|frozen|decorator-gen|attrs generated|__\w+__|eval_with_key|doctest|stringsource)[\w -]{1,60}>"
)
"""Not what Python, IPython and libraries (attrs, numpy, torch.fx) call text that they compile."""


def _innermost(frames: list[_Frame]) -> str | None:
    """The innermost frame of code that is no library; of libraries alone, the innermost."""
    if not frames:
        return None
    own = [f for f in frames if not _LIBRARY.search(f[0])]
    return frame_text(*(own or frames)[-1])


def frame_text(file: str, line: str, function: str) -> str:
    """``train.py:44 in fit``"""
    return f"{file.rsplit('/', 1)[-1]}:{line} in {function}"
