"""The processes in one stream of lines: which dump and thread a head or a frame belongs to."""

from __future__ import annotations

import msgspec

from ray_rl_debug.formats.dump import CodePlace, DumpThread
from ray_rl_debug.formats.pasted import joined, kernel, name_lines
from ray_rl_debug.formats.pasted.belongs import begun, is_of_another, is_rest_of_cut, is_same_thread
from ray_rl_debug.formats.pasted.events import Frames, Head
from ray_rl_debug.formats.pasted.frames import placed_in
from ray_rl_debug.formats.pasted.gdb import BUILT_IN
from ray_rl_debug.formats.pasted.label import Label
from ray_rl_debug.formats.pasted.left import Left
from ray_rl_debug.formats.pasted.lines import Line, indent_of
from ray_rl_debug.formats.pasted.loops import Loop
from ray_rl_debug.formats.pasted.name_lines import NameLines
from ray_rl_debug.formats.pasted.open_stack import OpenStack
from ray_rl_debug.formats.pasted.partial import Partial, is_awaited, is_main_of_another, is_named_so, set_names, set_same, set_writer, with_label
from ray_rl_debug.formats.pasted.several_tools import is_of_another_tool, main_of, note_raised, number_as_gdb_counts
from ray_rl_debug.formats.pasted.times import Times

MAX_THREADS = 50_000
NEAR = 8
"""Lines between what one tool shows of a process and what another one does."""


class Processes:
    """What the lines so far have said. `dumps` are shared by all streams of a text, so that they stay in its order."""

    def __init__(self, dumps: list[Partial], left: Left) -> None:
        self.dumps = dumps
        self._left = left
        self.current: Partial | None = None
        """The dump that is open."""
        self.stack = OpenStack()
        self.label = Label()
        self.times = Times()
        self.is_chained = False
        """The next traceback belongs to the last one."""
        self.told_pid: tuple[int, int] | None = None
        """The last line of a log that named a process id, and that id."""
        self.has_words = False
        """Did a line come that is no stack's, since the text or its block of code began?"""
        self._cut: Partial | None = None
        """A process that begins in the middle of a stack: whoever pasted it cut the heads above."""
        self.loop = Loop()
        self._lone: tuple[Line, Frames] | None = None
        """The first line of gdb's that looks like a frame and stands alone."""
        self._wants_gil = -1
        """The last line that says so of a thread without a head."""
        self._weak: list[tuple[Line, Frames]] = []
        """Lines that look like frames, and may be no stack."""
        self._names = NameLines()
        self._is_first = False
        """Does nothing stand above the one that may be none?"""
        self.last = 0
        """The line of the last frame."""
        self.tool_at = -1_000
        """The last line that names a tool and nobody: what follows is of the process above."""
        self._count = 0
        self._own_head = -1_000
        """The last line that somebody wrote over the stack of a thread."""

    def process(self, line: Line, head: Head) -> None:
        """The head of a process."""
        self.end_stack()
        held = self.label.held(line.number)
        self.label.use()
        self.new(head if held is None else with_label(head, held), line.number, line)

    def wants_interpreter(self, number: int) -> None:
        """The thread whose frames come waits for the interpreter's lock."""
        if self.stack.threads and not self.stack.is_headless:
            self.stack.threads[-1].waits_for_gil = True
        else:
            self._wants_gil = number

    def finish(self) -> None:
        """The text has ended: a frame of gdb's or of Python's own form that is the only one in it is a stack."""
        if self._lone is not None and not any(d.threads for d in self.dumps):
            self._headless(*self._lone)
        self.end_stack()

    def is_head_above(self, number: int) -> bool:
        """Does the head of a thread of the kernel's, or one that somebody wrote, stand right above this line? Its frames come."""
        if not self.stack.threads or self.current is None:
            return False
        return number - self._own_head <= 2 or (self.current.source == "kernel" and number - (self.current.line or 0) <= 2)

    def doubt(self, line: Line) -> bool:
        """A line that is no frame came: one line before it that looked like a frame was none. Source code stands deeper than its frame.

        True where that line was the end of a stack that was cut above: nothing stands over it, and only stacks have such a line.
        """
        if self._weak and indent_of(line.text) <= indent_of(self._weak[-1][0].text):
            above, frames = self._weak[-1]
            if frames.source != "traceback" or line.number != above.number + 1:
                is_cut = len(self._weak) == 1 and frames.source == "traceback" and self._is_first
                if is_cut:
                    self._headless(above, frames)
                    self._cut = self.current
                self._weak = []
                return is_cut
        return False

    def thread(self, line: Line, head: Head) -> None:
        """The head of a thread: of the process that is open, or of another."""
        self._own_head = line.number if head.source == "text" else self._own_head
        shares = self.current is not None and self.stack.shares(head, self.current.source)
        if not shares:
            self._take_lone(line, head)
            self.end_stack()
        dump = self.current
        label = self.label.held(line.number)
        if dump is not None and label is None and dump is self._cut and is_rest_of_cut(dump, head):
            dump.is_headless, dump.source = False, head.source or dump.source
        if dump is not None and head.is_chosen and head.key is not None and head.source == dump.source:
            dump.chosen = head.key
            # Whoever switches to another thread is still in the same process.
            dump.is_headless = dump.is_headless and label is not None
        known = dump.keys.get(head.key) if dump is not None and head.key is not None else None
        if dump is not None and known is not None and head.source == "gdb" and is_same_thread(dump.threads[known], head):
            self.stack.reopen(dump.threads[known], head)
            return
        is_named = label is not None and bool(label.pid or label.ranks or label.label)
        if dump is not None and head.source == "gdb" and head.key is None and dump.source == "gdb" and dump.threads and not is_named:
            # py-bt shows the Python frames of the thread whose head stands above, or whose C frames were shown before.
            is_next = not dump.threads[-1].frames and dump.chosen is None
            self.stack.resume(dump.threads[-1 if is_next else dump.keys.get(dump.chosen or "1", -1)])
            return
        again = dump is not None and (known is not None or (head.name == "MainThread" and any(t.name == "MainThread" for t in dump.threads)))
        if shares and again and head.name == "MainThread":
            # Heads of the main threads of several processes, over one stack.
            dump = self.new(head, line.number, line)
        elif dump is None or again or (self._has_moved(dump) and dump.threads) or is_of_another(dump, head, label, is_chained=self.is_chained):
            is_same = (
                again
                and label is None
                and dump is not None
                and not is_main_of_another(dump, head)
                and head.pid in (None, dump.pid)
                and not head.label
                and not self._has_moved(dump)
            )
            same = dump if is_same else None
            dump = self.new(with_label(head, label) if label is not None else head, line.number, line, like=same)
        elif label is not None:
            set_names(dump, label)
        if label is not None:
            self.label.use()
        if not dump.threads and head.source is not None:
            dump.source = head.source
            if head.said is not None and not dump.said:
                dump.said.append((line.number, head.said))
        self.is_chained = False
        self._count += 1
        if self._count > MAX_THREADS:
            return
        thread = begun(head)
        if head.key is not None:
            dump.keys[head.key] = len(dump.threads)
        dump.threads.append(thread)
        self.stack.begin(thread, order=head.order, is_headless=False, is_order_usual=head.source == "py-spy")
        if head.order != "inner" and head.source == "traceback":
            self.stack.traceback_indent = indent_of(line.text)

    def _name_shown(self, dump: Partial, head: Head) -> None:
        """The C frames that gdb showed before it listed its threads are the current one's."""
        shown = dump.threads[0] if len(dump.threads) == 1 else None
        if shown is not None and shown.tid is None and not dump.keys and head.key is not None:
            shown.tid, shown.name, dump.is_headless = head.tid, head.name, False
            dump.keys[head.key] = 0

    def _take_lone(self, line: Line, head: Head) -> None:
        """One frame right above a head of py-spy's, where nothing stood before, is the end of a stack that was cut."""
        if len(self._weak) == 1 and head.source == "py-spy" and not self.has_words:
            (above, frames), self._weak = self._weak[0], []
            if above.number == line.number - 1 and indent_of(above.text) > indent_of(line.text):
                self._headless(above, frames)

    def _has_moved(self, dump: Partial) -> bool:
        """Was another machine named since the dump began?"""
        return self.label.node is not None and dump.node != self.label.node

    def frames(self, line: Line, frames: Frames) -> None:
        """Frames: of the stack that is open, or of one without a head."""
        indent = indent_of(line.text)
        if frames.head is not None:
            if frames.head.is_chosen and self.current is not None and self.current.source == frames.head.source:
                self._name_shown(self.current, frames.head)
            self.thread(line, frames.head)
            if not self.stack.frames:
                self._append(line, frames)
            self.stack.close()
            return
        if self.stack.takes(frames, indent):
            self._append(line, frames)
            return
        self.stack.close()
        if frames.source == kernel.LOG or self._is_shown_again(line, frames):
            self._left.take(line.number)
            return
        if frames.source == "gdb" and frames.native and frames.number is None and not frames.is_certain:
            self._lone = self._lone or (line, frames)  # gdb says so when it attaches; the stack that it shows next begins there
            self._left.take(line.number)
            return
        awaited = self.current is not None and is_awaited(self.current)
        if frames.is_certain or awaited or self.label.held(line.number) is not None or (frames.is_whole and len(frames.places) > 1):
            self.flush_weak()
            self._headless(line, frames)
            return
        if self._weak and (line.number - self._weak[-1][0].number > 3 or self._weak[-1][0].in_fence != line.in_fence):
            self._weak = []
        self._is_first = not self._weak and not self.has_words
        if frames.source == "faulthandler":
            self._lone = self._lone or (line, frames)
        self._weak += [*self._names.above(line, frames), (line, frames)]
        self.flush_weak()

    def at_prompt(self, above: CodePlace) -> None:
        """A debugger asks below the one frame that it shows by itself: that is where the process stands."""
        if len(self._weak) == 1:
            line, frames = self._weak.pop()
            self._headless(line, msgspec.structs.replace(frames, places=(above, *frames.places), order="inner"))
            self.end_stack()

    def in_same_file(self, text: str) -> Frames | None:
        """``-> :2009 f``: a frame whose file is the one of the frame above."""
        above = self.stack.frames[-1] if self.stack.frames else self._weak[-1][1].places[-1] if self._weak else None
        return placed_in(above[1], text) if above is not None else None

    def may_be_name(self, line: Line) -> bool:
        """May a name with dots be a frame here? Below somebody's name, or below another frame of such a stack."""
        if self.stack.threads and self.stack.is_headless and not self.stack.is_interrupted and not self.stack.blanks:
            return True
        head = self.label.held(line.number)
        return head is not None and bool(head.ranks or head.pid or head.label or head.title) and not self.stack.frames

    def take_name(self, line: Line) -> bool:
        """A name alone below somebody's name: of two or more lines, one of which is no word of a sentence, it is a stack."""
        place = name_lines.name_in(line.text)
        if place is None:
            self._names.forget()
            return False
        stack = self.stack
        if stack.frames and stack.is_headless and not stack.is_interrupted and not stack.blanks:
            is_beside = joined.is_code(place[0]) and (indent_of(line.text) == stack.indent or line.text.lstrip(" │|").startswith(("└", "├")))
            if not (stack.is_of_names or is_beside):
                return False
            self._append(line, Frames(places=(place,)))
            return True
        head = self.label.held(line.number)
        if stack.threads or self._weak or head is None or not (head.ranks or head.pid or head.label or head.title or head.count):
            if not (stack.threads or self._weak):
                self._names.hold(line, place)
            return False
        if held := self._names.add(line, place):
            self._headless(*held[0])
            for one, frames in held[1:]:
                self._append(one, frames)
            stack.blanks = 0
        return True

    def _is_shown_again(self, line: Line, frames: Frames) -> bool:
        """gdb shows the innermost frame of a thread to which somebody switches, and then its whole stack."""
        dump = self.current
        is_alone = dump is not None and dump.is_headless and len(dump.threads) == 1 and not dump.keys and frames.number == 0
        if dump is not None and is_alone and list(dump.threads[0].frames) == list(frames.places) and dump.source == frames.source:
            self.stack.begin(dump.threads[0], order=frames.order, is_headless=True)  # told once at the stop, and again on top of the stack
            self._append(line, frames)
            return True
        at = dump.keys.get(dump.chosen) if dump is not None and dump.chosen is not None and frames.number == 0 else None
        if dump is None or at is None or dump.source != frames.source or self.label.held(line.number) is not None:
            return False
        thread = dump.threads[at]
        if len(thread.frames) > 1 or [f[0] for f in thread.frames] != [frames.places[0][0]]:
            return False
        self.stack.begin(thread, order=frames.order, is_headless=False)
        self._append(line, frames)
        return True

    def flush_weak(self) -> None:
        """Two lines that look like frames, one below the other, are a stack."""
        if len(self._weak) < 2:
            return
        held, self._weak = self._weak, []
        self._headless(*held[0])
        for line, frames in held[1:]:
            self._append(line, frames)

    def _headless(self, line: Line, frames: Frames) -> None:
        """A stack without a head of its own."""
        label = self.label.held(line.number)
        dump = self.current
        if dump is not None and label is None and line.number - self.tool_at <= NEAR and is_of_another_tool(dump, frames):
            self.stack.inside(main_of(dump))
            self._append(line, frames)
            return
        if dump is not None and label is None and is_awaited(dump):
            if frames.source != "text" or dump.source == "text":
                dump.source = frames.source
        elif label is not None:
            dump = self.new(label, line.number, line)
            dump.source = frames.source
            self.label.use()
            if frames.is_whole and self.label.is_above(line.number):
                # Whole stacks one below the other, under one name, are samples of one process.
                self.label.keep(label)
        elif dump is not None and frames.source == "call-trace" and dump.source == frames.source:
            dump.threads, dump.line = [], line.number
        elif dump is not None and frames.weight and dump.source == frames.source:
            dump = self.new(None, line.number, line, like=dump)
        else:
            dump = self.new(None, line.number, line)
            dump.source = frames.source
        dump.is_headless = True
        dump.weight = frames.weight
        note_raised(dump, line.number, frames)
        if frames.number or (not self.has_words and (indent_of(line.text) or frames.source in ("faulthandler", "traceback"))):
            self._cut = dump
        is_row_of_top = frames.source == "py-spy raw" and not frames.weight  # which shows only what runs
        thread = DumpThread(frames=(), tid=frames.tid, name=frames.name, active=True if is_row_of_top else None)
        if self._wants_gil == line.number - 1:
            thread.waits_for_gil = True
        dump.threads.append(thread)
        has_order = frames.source in ("gdb", "collective", "native", "kernel", "pystack", "py-spy raw", "call-trace")
        self.stack.begin(thread, order=frames.order if has_order else None, is_headless=True)
        if frames.source == "traceback" or frames.places[0][1] == BUILT_IN:
            # The head was cut off; the error may still stand below.
            self.stack.traceback_indent = max(0, indent_of(line.text) - 2)
        self._append(line, frames)

    def _append(self, line: Line, frames: Frames) -> None:
        self.stack.append(frames, indent_of(line.text))
        self.last = line.number
        self._left.take(line.number)
        if self.current is not None:
            self.current.native = self.current.native or frames.native
            number_as_gdb_counts(self.current, frames)

    def end_stack(self) -> None:
        """No more frames come of what is open."""
        self.flush_weak()
        self.stack.close()

    def new(self, head: Head | None, number: int, line: Line | None = None, *, like: Partial | None = None) -> Partial:
        """Another dump, with the names of a head; `like` a dump of the same process before it."""
        dump = Partial(threads=[], source=(head.source if head else None) or "text", line=number)
        if line is not None:
            set_writer(dump, line)
        if like is not None:
            set_same(dump, like)
            dump.after_s = self.times.apart_s
        if head is not None:
            if self.times.apart_s is not None and any(d.threads and is_named_so(d, head) for d in self.dumps[-64:]):
                dump.after_s = self.times.apart_s
            set_names(dump, head, number)
        dump.node = dump.node or self.label.node
        self.dumps.append(dump)
        self.current = dump
        return dump
