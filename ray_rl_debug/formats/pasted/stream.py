"""The processes in one stream of lines: heads, frames and remarks in the order in which they come."""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.formats.dump import DumpThread, Said
from ray_rl_debug.formats.pasted import labels, said, tracebacks
from ray_rl_debug.formats.pasted.classify import classify, may_tell, symbol
from ray_rl_debug.formats.pasted.events import Event, Frames, Gone, Head, Row
from ray_rl_debug.formats.pasted.flight_findings import Findings
from ray_rl_debug.formats.pasted.label import Label
from ray_rl_debug.formats.pasted.lines import Line, relabelled
from ray_rl_debug.formats.pasted.open_stack import OpenStack
from ray_rl_debug.formats.pasted.partial import Partial, is_named_so, set_names, set_same, set_writer, with_label
from ray_rl_debug.formats.pasted.tables import Tables

MAX_THREADS = 50_000
_PID_IN_LOG = re.compile(r"\bPID[:= ]{1,2}(\d{1,9})\b")


class Stream:
    """One writer's lines. `dumps` are shared by all streams of a text, so that they stay in its order."""

    def __init__(self, dumps: list[Partial]) -> None:
        self.dumps = dumps
        self._dump: Partial | None = None
        self._stack = OpenStack()
        self._label = Label()
        self._tables = Tables(dumps)
        self._findings = Findings()
        self._weak: list[tuple[Line, Frames]] = []
        self._apart_s: float | None = None
        self._is_chained = False
        self._told_pid: tuple[int, int] | None = None
        self._task_label: Head | None = None
        self._count = 0

    def feed(self, line: Line) -> None:
        """Take one line."""
        text = line.text
        if line.fence:
            self._end_stack()
            self._tables.end()
            return
        if not text.strip():
            self._blank()
            return
        if self._stack.is_local(text) or self._stack.is_source(text):
            return
        text = self._tables.titled(text)
        if self._tables.takes(line):
            if self._tables.tasks.line == line.number:
                self._task_label = self._label.held(line.number)
            self._end_stack()
            return
        events = self._of_task(line) or (classify(text) if self._stack.threads or not line.stamped or may_tell(text) else ())
        if not events and self._stack.takes_symbol(text) and (alone := symbol(text)) is not None:
            events = (alone,)
        if events:
            if line.part and not self._stack.frames:
                self._set_part(line, line.part)
            for event in events:
                self._take(line, event)
            self._stack.blanks = 0
            return
        self._other(line)

    def _of_task(self, line: Line) -> tuple[Event, ...]:
        """A line with the number of a task in front (``srun --label``). A number before a frame alone is that of a list."""
        told = relabelled(line)
        if told is None:
            return ()
        text, rank = told
        events = classify(text)
        if any(isinstance(e, Head) and e.level in ("thread", "process") for e in events) and (self._dump is None or self._dump.rank != rank):
            self._label.set(Head(level="label", ranks=(rank,), is_new=True), line.number)
        return events

    def finish(self) -> None:
        """The text has ended."""
        self._end_stack()
        tasks = self._tables.tasks
        if tasks.tasks:
            dump = self._dump if self._dump is not None and not self._dump.threads else self._new(self._task_label, tasks.line or 1)
            dump.tasks = tasks.finish()
            dump.source = "asyncio"

    def _other(self, line: Line) -> None:
        """A line that no reader of stacks knows."""
        text = line.text
        if self._stack.is_behind_traceback(text) and self._end_traceback(line):
            return
        expected = self._label.is_near(line.number) or (self._dump is not None and not self._dump.threads)
        if unread := said.unread(text, expected=expected):
            self._unread(line, unread)
            return
        if (found := self._findings.feed(text)) is not None:
            self._end_stack()
            self._label.set(found, line.number)
            return
        if (told := _PID_IN_LOG.search(text)) is not None:
            self._told_pid = (line.number, int(told[1]))
        if line.part:
            self._set_part(line, line.part)
        elif not line.stamped:
            self._words(line, text)
        self._stack.is_interrupted = True
        # In the middle of a stack, a remark of the writer's stands in the same block of code.
        if self._stack.is_headless and not (line.in_fence and self._stack.indent > 0):
            self._end_stack()
        if self._weak and _indent(text) <= _indent(self._weak[-1][0].text):
            self._weak = []

    def _words(self, line: Line, text: str) -> None:
        """A sentence: whose stack comes next, or how many others are at the place of the last one."""
        is_head = text.rstrip(" `*_").endswith(":") or text.lstrip().startswith("#")
        label = labels.read(text)
        remark = said.remark(text)
        self._flush_weak()
        dump = self._dump if self._dump is not None and self._dump.threads else None
        if remark is not None and remark.kind == "apart":
            self._apart_s = remark.apart_s
            if label is None and dump is not None:
                label = Head(level="label", pid=dump.pid, title=dump.title, label=dump.label, is_new=True)
        elif remark is not None and is_head and label is not None:
            label = msgspec.structs.replace(label, said=remark)
        elif remark is not None and dump is not None:
            dump.said.append((line.number, remark))
            return
        if label is not None:
            self._end_stack()
            self._label.set(label, line.number)

    def _set_part(self, line: Line, part: str) -> None:
        """SGLang stamps the first line of what a part of it writes."""
        self._label.set(Head(level="label", title=f"sglang::scheduler_{part.replace(' ', '_')}", is_new=True), line.number)

    def _unread(self, line: Line, unread: Said) -> None:
        dump = self._dump
        label = self._label.held(line.number) if self._label.is_near(line.number) else None
        if unread.pid is not None and (dump is None or dump.pid != unread.pid or dump.threads):
            dump = self._new(Head(level="label", pid=unread.pid), line.number)
        elif dump is None or (dump.threads and (label is not None or not dump.said)):
            dump = self._new(label, line.number, line)
        self._stack.close()
        dump.said.append((line.number, unread))

    def _take(self, line: Line, event: Event) -> None:
        if isinstance(event, Frames):
            self._take_frames(line, event)
        elif isinstance(event, Row):
            self._stack.close()
            self._tables.add(line, event)
        elif isinstance(event, Said):
            self._take_fatal(line, event)
        elif isinstance(event, Gone):
            return
        elif event.level == "thread":
            self._thread(line, event)
        elif event.level == "version":
            if self._dump is not None:
                self._dump.python = self._dump.python or event.python
        elif event.level == "process":
            self._end_stack()
            held = self._label.held(line.number)
            self._label.use()
            self._new(event if held is None else with_label(event, held), line.number, line)
        else:
            self._end_stack()
            self._label.set(event, line.number)

    def _take_fatal(self, line: Line, fatal: Said) -> None:
        self._end_stack()
        pid = self._told_pid[1] if self._told_pid is not None and line.number - self._told_pid[0] <= 4 else None
        dump = self._new(Head(level="process", source="faulthandler", pid=pid), line.number, line)
        dump.said.append((line.number, fatal))

    def _thread(self, line: Line, head: Head) -> None:
        """The head of a thread: of the process that is open, or of another."""
        if not self._shares(head):
            self._end_stack()
        dump = self._dump
        label = self._label.held(line.number)
        known = dump.keys.get(head.key) if dump is not None and head.key is not None else None
        if dump is not None and known is not None and head.source == "gdb" and dump.threads[known].tid == head.tid:
            self._stack.reopen(dump.threads[known], order=head.order)
            return
        if dump is not None and head.source == "gdb" and head.key is None and dump.source == "gdb" and dump.threads:
            # py-bt shows the Python frames of the thread whose C frames were shown before.
            self._stack.resume(dump.threads[dump.keys.get("1", -1)])
            return
        again = dump is not None and (known is not None or (head.name == "MainThread" and any(t.name == "MainThread" for t in dump.threads)))
        if dump is None or again or self._is_other(dump, head, label):
            same = dump if again and label is None and dump is not None and head.pid in (None, dump.pid) and not head.label else None
            dump = self._new(with_label(head, label) if label is not None else head, line.number, line, like=same)
        elif label is not None:
            set_names(dump, label)
        if label is not None:
            self._label.use()
        if not dump.threads and head.source is not None:
            dump.source = head.source
        self._is_chained = False
        self._count += 1
        if self._count > MAX_THREADS:
            return
        thread = DumpThread(
            frames=(),
            tid=head.tid,
            name=head.name,
            active=head.active,
            owns_gil=head.owns_gil,
            waits_for_gil=head.waits_for_gil,
        )
        if head.key is not None:
            dump.keys[head.key] = len(dump.threads)
        dump.threads.append(thread)
        self._stack.begin(thread, order=head.order, is_headless=False, is_order_usual=head.source == "py-spy")
        if head.order != "inner" and head.source == "traceback":
            self._stack.traceback_indent = _indent(line.text)

    def _shares(self, head: Head) -> bool:
        """Two heads over one stack are what people write of equal threads; py-spy writes a head alone for a thread without Python frames."""
        if not self._stack.threads or self._stack.frames or head.source != "py-spy" or self._dump is None or self._dump.source != "py-spy":
            return False
        last = self._stack.threads[-1]
        return last.active == head.active or None in (last.active, head.active)

    def _is_other(self, dump: Partial, head: Head, label: Head | None) -> bool:
        """Is the thread of another process than the dump that is open?"""
        has_threads = bool(dump.threads)
        current_again = head.owns_gil is True and head.source == "faulthandler" and any(t.owns_gil for t in dump.threads)
        another_traceback = head.source == "traceback" and head.order == "outer" and not self._is_chained
        return (
            (head.pid is not None and dump.pid not in (None, head.pid))
            or (head.label is not None and head.label != (dump.label or ""))
            or (has_threads and (label is not None or dump.source != head.source or dump.is_headless or current_again or another_traceback))
        )

    def _take_frames(self, line: Line, frames: Frames) -> None:
        indent = _indent(line.text)
        if frames.head is not None:
            self._thread(line, frames.head)
            if not self._stack.frames:
                self._append(line, frames)
            self._stack.close()
            return
        if self._stack.takes(frames, indent):
            self._append(line, frames)
            return
        self._stack.close()
        is_awaited = self._dump is not None and not self._dump.threads and self._dump.source != "ps"
        if frames.is_certain or is_awaited or self._label.held(line.number) is not None or (frames.is_whole and len(frames.places) > 1):
            self._flush_weak()
            self._headless(line, frames)
            return
        if self._weak and (line.number - self._weak[-1][0].number > 3 or self._weak[-1][0].in_fence != line.in_fence):
            self._weak = []
        self._weak.append((line, frames))
        self._flush_weak()

    def _flush_weak(self) -> None:
        """Two lines that look like frames, one below the other, are a stack."""
        if len(self._weak) < 2:
            return
        held, self._weak = self._weak, []
        self._headless(*held[0])
        for line, frames in held[1:]:
            self._append(line, frames)

    def _headless(self, line: Line, frames: Frames) -> None:
        """A stack without a head of its own."""
        label = self._label.held(line.number)
        dump = self._dump
        if dump is not None and not dump.threads and not dump.tasks and label is None and dump.source != "ps":
            if frames.source != "text" or dump.source == "text":
                dump.source = frames.source
        elif label is not None:
            dump = self._new(label, line.number, line)
            dump.source = frames.source
            self._label.use()
            if frames.is_whole:
                # Whole stacks one below the other, under one name, are samples of one process.
                self._label.keep(label)
        elif dump is not None and frames.source == "call-trace" and dump.source == frames.source:
            dump.threads, dump.line = [], line.number
        elif dump is not None and frames.weight and dump.source == frames.source:
            dump = self._new(None, line.number, line, like=dump)
        else:
            dump = self._new(None, line.number, line)
            dump.source = frames.source
        dump.is_headless = True
        dump.weight = frames.weight
        thread = DumpThread(frames=())
        dump.threads.append(thread)
        has_order = frames.source in ("gdb", "collective", "native", "kernel", "pystack", "py-spy raw", "call-trace")
        self._stack.begin(thread, order=frames.order if has_order else None, is_headless=True)
        if frames.source == "traceback":
            # The head was cut off; the error may still stand below.
            self._stack.traceback_indent = max(0, _indent(line.text) - 2)
        self._append(line, frames)

    def _append(self, line: Line, frames: Frames) -> None:
        self._stack.append(frames, _indent(line.text))
        if self._dump is not None:
            self._dump.native = self._dump.native or frames.native

    def _blank(self) -> None:
        self._stack.blanks += 1
        self._tables.end()
        if self._stack.frames and self._stack.blanks >= 2 and self._stack.is_headless:
            self._end_stack()

    def _end_traceback(self, line: Line) -> bool:
        """The line behind the frames of a traceback says what went wrong. Was it that line?"""
        error = tracebacks.error_of(line.text)
        if error is not None and self._dump is not None and not tracebacks.is_interrupt(error):
            self._dump.said.append((line.number, Said(kind="failed", text=error[:300])))
        self._is_chained = tracebacks.is_chain(line.text)
        self._stack.close()
        return error is not None

    def _end_stack(self) -> None:
        self._flush_weak()
        self._stack.close()

    def _new(self, head: Head | None, number: int, line: Line | None = None, *, like: Partial | None = None) -> Partial:
        dump = Partial(threads=[], source=(head.source if head else None) or "text", line=number)
        if line is not None:
            set_writer(dump, line)
        if like is not None:
            set_same(dump, like)
            dump.after_s = self._apart_s
        if head is not None:
            if self._apart_s is not None and any(d.threads and is_named_so(d, head) for d in self.dumps[-64:]):
                dump.after_s = self._apart_s
            set_names(dump, head)
            if head.said is not None:
                dump.said.append((number, head.said))
            elif head.count is not None:
                dump.said.append((number, Said(kind="same", text=f"{head.count} processes", count=head.count)))
        self.dumps.append(dump)
        self._dump = dump
        return dump


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
