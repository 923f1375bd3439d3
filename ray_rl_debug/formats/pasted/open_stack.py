"""The stack that is being read: its frames, the threads it belongs to, and what ends it."""

from __future__ import annotations

import re
from keyword import iskeyword

from ray_rl_debug.formats.dump import CodePlace, DumpThread
from ray_rl_debug.formats.pasted.events import Frames, Head
from ray_rl_debug.formats.pasted.lines import indent_of
from ray_rl_debug.formats.pasted.orientation import is_outermost_first
from ray_rl_debug.formats.pasted.tracebacks import error_of

_WITH = re.compile(r"^with [^()\n]{1,200}:$")
_CALLED = re.compile(r"\b([A-Za-z_]\w{0,60})\(")
_MAX_CALLS = 8
_CLEAR = 2
"""How plainly the frames must tell their order, where the form of their lines tells one."""
_QUOTED = ("traceback", "faulthandler", "pystack")
"""Sources of a frame that is written as Python writes it."""
_LOCALS = re.compile(r"^\s*(?:Arguments|Locals):\s*$")


class OpenStack:
    """Frames as they come; turned innermost first when the stack ends."""

    def __init__(self) -> None:
        self.threads: list[DumpThread] = []
        """Threads that share the frames to come: several heads may stand over one stack."""
        self.frames: list[CodePlace] = []
        self.is_headless = False
        self.interruptions = 0
        """Lines that are no frames, after the last frame."""
        self._is_quoted = False
        """Has every frame so far the form of Python's own (``File "a.py", line 3``)? Then a line between two of them is source code."""
        self._is_in_c = False
        """Are all frames so far of C?"""
        self.blanks = 0
        self.traceback_indent: int | None = None
        """Of the head of a traceback, whose frames have source code between them and end with an error."""
        self.indent = 0
        """Of the first frame."""
        self._order: str | None = None
        self._is_order_usual = False
        self._is_resumed = False
        self._soft: str | None = None
        self._is_double_spaced = False
        self._last_number = -1
        self._has_native = False
        self._has_files = False
        self._native_at: int | None = None
        """Where the next C frame goes, if they are listed below Python's."""
        self._locals_indent: int | None = None
        self._source: str | None = None
        """The line of source below the last frame."""
        self._has_source = False
        """Did such a line stand below one of the frames?"""
        self._depth: int | None = None
        """Of the last frame, where they are a tree."""
        self._is_flat = False
        """Do all frames stand in one column?"""

    def begin(self, thread: DumpThread, *, order: str | None, is_headless: bool, is_order_usual: bool = False) -> None:
        """Frames that come now are this thread's. An order that is only usual gives way to one that the frames tell."""
        thread.frames = self.frames
        self.threads.append(thread)
        self.is_headless = is_headless
        self.interruptions = 0
        self._order = order
        self._is_order_usual = is_order_usual

    def resume(self, thread: DumpThread) -> None:
        """More outer frames of a thread that was closed."""
        self.close()
        self.frames = list(thread.frames)
        self.begin(thread, order="inner", is_headless=False)
        self.traceback_indent, self._is_resumed, self._has_native = 0, True, True

    def inside(self, thread: DumpThread) -> None:
        """C frames of a thread whose Python frames another tool has shown: they lie inside of these."""
        self.close()
        self.frames = list(thread.frames)
        self.begin(thread, order="inner", is_headless=False)
        self._native_at = 0

    def reopen(self, thread: DumpThread, head: Head) -> None:
        """The thread comes once more, with more frames than before."""
        thread.tid = thread.tid if thread.tid is not None else head.tid
        self.begin(thread, order=head.order, is_headless=False)

    def shares(self, head: Head, source: str) -> bool:
        """Two heads over one stack are what people write of equal threads; py-spy writes a head alone for a thread without Python frames."""
        if head.is_also:
            return bool(self.threads) and not self.frames
        if not self.threads or self.frames or not head.source == source == "py-spy":
            return False
        last = self.threads[-1]
        if last.name is None and head.name is not None and head.active is not None:
            return False  # as py-spy writes them: it names the threads that Python began
        return last.active == head.active or None in (last.active, head.active)

    def append(self, frames: Frames, indent: int) -> None:
        """Take the frames of a line."""
        if not self.threads:
            return
        if self._is_branch(frames):
            return
        self._depth = frames.depth
        of_python = frames.source in _QUOTED or (frames.source == "gdb" and not frames.native and frames.is_certain)  # py-bt's own form
        self._is_quoted = of_python and (self._is_quoted or not self.frames or self._is_in_c)
        self._is_in_c = frames.native and (self._is_in_c or not self.frames)
        if not self.frames or self._is_resumed:
            self.indent, self._is_resumed = indent, False
        if frames.native and frames.number == 0 and self.frames and not self._has_native:
            self._native_at = 0  # "py-bt" first and "bt" below it: the C frames of the same thread, inside of Python's
        # A tool's stack runs one way, also where somebody joined some of its lines with arrows the other way.
        is_turned = frames.is_whole and self._order == "inner" and frames.order == "outer"
        places = frames.places[::-1] if is_turned else frames.places
        if self._native_at is not None and frames.native and frames.number is not None:
            self.frames[self._native_at : self._native_at] = places
            self._native_at += len(places)
        else:
            self.frames.extend(places)
        self._has_native = self._has_native or frames.native
        self._has_files = self._has_files or any(file for _, file, _ in places)
        self._soft = self._soft or frames.order
        if self._is_order_usual and frames.order and not frames.is_whole:
            self._order = frames.order
        self.interruptions = 0
        self._source = frames.code
        self._last_number = frames.number if frames.number is not None else self._last_number

    def _is_branch(self, frames: Frames) -> bool:
        """Is it of another branch of a tree? The first one is that in which the thread was met most often. A flat list has no branches."""
        if frames.depth is None or self._depth is None or not self.frames or frames.depth > self._depth:
            return False
        self._is_flat = self._is_flat or (len(self.frames) == 1 and frames.depth == self._depth)
        return not self._is_flat

    def takes(self, frames: Frames, indent: int) -> bool:
        """Do these frames go on with this stack? Without a head, they may begin another one."""
        if not self.threads:
            return False
        if not self.frames:
            return True
        if (frames.number is not None and frames.number <= self._last_number) or (frames.is_whole and self.is_headless):
            return False
        if self.is_source_between and frames.source in _QUOTED and indent == self.indent:
            return True
        if self.is_interrupted and (indent != self.indent or indent == 0):
            return frames.number is not None
        if self.blanks and not self._is_double_spaced:
            if len(self.frames) == 1 and self.blanks == 1:
                self._is_double_spaced = True
                return True
            return not self.is_headless or frames.number is not None
        return True

    @property
    def is_interrupted(self) -> bool:
        """Did a line that is no frame come after the last frame?"""
        return self.interruptions > 0

    @property
    def is_of_names(self) -> bool:
        """Has none of its frames a file?"""
        return bool(self.frames) and not self._has_files

    @property
    def is_source_between(self) -> bool:
        """May the line that came after the last frame be its source code? Forms and chats take off the blanks before it."""
        return self._is_quoted and self.interruptions == 1 and not self.blanks

    def may_be_source(self, text: str) -> bool:
        """Does a line stand below a frame of Python's own form, and deeper than it? Then it is no name of a function."""
        return self._is_quoted and bool(self.frames) and not self.is_interrupted and not self.blanks and indent_of(text) > self.indent

    @property
    def is_numbered(self) -> bool:
        """Do its frames have numbers? Then the next number tells whether the stack goes on, whatever stands between."""
        return bool(self.frames) and self._last_number >= 0

    def takes_symbol(self, text: str) -> bool:
        """May a name alone be a frame here? In a stack of a tool, with the indentation of its frames."""
        if not self.threads or self.is_headless or self.is_interrupted or self.blanks or self.traceback_indent is not None:
            return False
        return not self.frames or indent_of(text) == self.indent

    def is_local(self, text: str) -> bool:
        """Lines below ``Arguments:`` and ``Locals:`` (py-spy --locals) are values of the user's, and are never read."""
        indent = indent_of(text)
        if _LOCALS.match(text) and self.threads:
            self._locals_indent = indent
            return True
        if self._locals_indent is not None and indent > self._locals_indent:
            return True
        self._locals_indent = None
        return False

    def is_source(self, text: str) -> bool:
        """Is this the source code between the frames of a traceback?"""
        if self.traceback_indent is None or not self.frames:
            return False
        indent = indent_of(text)
        is_source = indent > self.indent and 'File "' not in text and "File '" not in text
        if is_source:
            self.note_source(text)
        return is_source

    def note_source(self, text: str) -> None:
        """A line below a frame and deeper than it: what the frame executes."""
        if self.frames and self._source is None and indent_of(text) > self.indent:
            self._source, self._has_source = text.strip(), True

    def is_behind_traceback(self, text: str) -> bool:
        """Is this the first line behind the frames of a traceback? Where its blanks are gone, it may be source code."""
        if not self.frames or self.traceback_indent is None or indent_of(text) > self.traceback_indent:
            return False
        return not (self._is_quoted and not self.interruptions and self.indent <= self.traceback_indent) or error_of(text) is not None

    def close(self) -> None:
        """The stack is whole."""
        if self.frames:
            order = self._order
            if order is None and self._soft == "outer" and self._has_source:
                order = "outer"  # only what Python writes so has its source between the frames
            if order is None:
                turned = is_outermost_first(self.frames, least=_CLEAR if self._soft else 1)
                order = ("outer" if turned else "inner") if turned is not None else self._soft or "inner"
            if order == "outer":
                self.frames.reverse()
                calls = calls_of(self._source) if self._source is not None else None
                for thread in self.threads:
                    thread.calls = calls
        self.threads = []
        self.frames = []
        self.interruptions = 0
        self._is_quoted = False
        self.traceback_indent = None
        self._soft = None
        self._source, self._has_source = None, False
        self._depth, self._is_flat = None, False
        self._is_double_spaced = False
        self._last_number = -1
        self._locals_indent = None
        self._native_at, self._has_native, self._has_files = None, False, False


def calls_of(source: str) -> tuple[str, ...] | None:
    """Names that a line of source calls, and no more of it; None where it shows none.

    ``with self._lock:`` → ``("__enter__",)``; ``ok = self._lock.acquire(timeout=3)`` → ``("acquire",)``.
    """
    if _WITH.match(source):
        return ("__enter__",)
    names = tuple(dict.fromkeys(n for n in _CALLED.findall(source[:400]) if not iskeyword(n)))
    return names[:_MAX_CALLS] or None
