"""The lines of one writer in their order: what each of them is, and where it goes."""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.formats.dump import Said
from ray_rl_debug.formats.pasted import commands, gdb, kernel, labels, led, lone_names, said, sentences, told_of, tracebacks
from ray_rl_debug.formats.pasted.boxes import Box
from ray_rl_debug.formats.pasted.classify import classify, cut_frame, is_same_row, may_tell, symbol, unread_row
from ray_rl_debug.formats.pasted.columns import Columns
from ray_rl_debug.formats.pasted.cpp_traceback import CppTraceback
from ray_rl_debug.formats.pasted.events import Event, Frames, Gone, Head, Row
from ray_rl_debug.formats.pasted.flight_findings import Findings
from ray_rl_debug.formats.pasted.left import Left
from ray_rl_debug.formats.pasted.lines import Line, indent_of, relabelled
from ray_rl_debug.formats.pasted.loose import dotted_name
from ray_rl_debug.formats.pasted.partial import Partial, of_rank, set_names
from ray_rl_debug.formats.pasted.processes import Processes
from ray_rl_debug.formats.pasted.tables import Tables

_PDB_PROMPT = re.compile(r"^\((?:Pdb|Pdb\+\+|rpdb|pudb)\)|^ipdb> ")
"""A debugger waits here for a person; above stand the frames that it showed."""
_BARE_PROMPT = re.compile(r"(?:\((?:Pdb|Pdb\+\+|rpdb|pudb)\)|ipdb>)\s{0,8}$")
_PDB = ("interaction", "pdb.py", 0)
_RULE = re.compile(r"^(?:-{8,80}|:{14})$")
"""Over and under names of machines (``clush -b``), or of files (``more``)."""
_ENTRY = re.compile(r"\s{0,12}(?:[-*+•]|\d{1,2}[.)]) ")
_SOURCE = 4
"""How deep the source code between frames stands at least."""
_PER_RANK = re.compile(
    r"\b(?:per|by|of each|for each|of every|for every) (?:global )?rank\b|每个? ?(?:rank|卡|进程)|各个? ?(?:rank|卡|进程)", re.IGNORECASE
)
_RANKS_BELOW = re.compile(r"\s{0,8}(?:- )?[\"']?(?:ranks|by_rank|per_rank|stacks_by_rank)[\"']?:\s{0,4}[{]?\s{0,4}$")
"""A key of YAML or JSON, below which each rank is a key."""
_KEY = re.compile(r"\s{0,12}(?:- )?[\"']?(?P<rank>\d{1,5})[\"']?:\s{0,4}[\[{]?\s{0,4}$")
_SAME_AS = re.compile(r"\W{0,6}(?:the )?(?:same|identical)(?: stack| trace| place)? (?:as|to) (?P<who>[\w #-]{2,40}?)\W{0,6}$", re.IGNORECASE)
_RANK_FIRST = re.compile(r"[^\w\n]{0,8}(?P<rank>\d{1,5})[\])]?[\s:|.,=-]{1,12}(?P<rest>[^\s\d].{0,4000})$")
_MOST_RANKS = 1_200
_PID_IN_LOG = re.compile(r"\bPID[:= ]{1,2}(\d{1,9})\b")


class Stream:
    """One writer's lines. `dumps` are shared by all streams of a text, so that they stay in its order."""

    def __init__(self, dumps: list[Partial], machines: frozenset[str] = frozenset(), left: Left | None = None) -> None:
        self._machines = machines
        """Names that stand alone in a line over the stacks of a machine."""
        self._left = left if left is not None else Left()
        self._found = Processes(dumps, self._left)
        self._tables = Tables(dumps)
        self._findings = Findings()
        self._box = Box()
        self._cpp = CppTraceback()
        self._columns = Columns()
        self._task_label: Head | None = None
        self._per_rank: int | None = None
        """The last line that says that what follows is told by rank: its numbers are ranks."""
        self._entry: int | None = None
        """How deep the last frame stands, if it is an entry of a list."""
        self._ruled = 0
        """The last line that is a rule and nothing else."""

    def feed(self, line: Line) -> None:
        """Take one line."""
        if self._box.begins_inside(line.text):
            self._take(line, Head(level="thread", source="traceback", order="outer"))
        plain = self._box.plain(line.text)
        if plain is None:
            return
        if plain is not line.text:
            line = msgspec.structs.replace(line, text=plain)
        text = line.text
        if line.fence:
            # "`cat /proc/812/stack`" and its output in a block of code: the head still waits for its frames.
            if line.in_fence or self._found.stack.frames or not self._found.is_head_above(line.number):
                self._found.end_stack()
            self._tables.end()
            self._found.has_words = False
            return
        if not text.strip():
            self._end_columns(line)
            self._blank()
            return
        if not text.strip(" ~^"):
            return  # below a line of source: which part of it is executed
        if _RULE.match(text):
            self._ruled = line.number
        elif self._ruled == line.number - 1 and self._ruled and (nodes := labels.of_file(text) or labels.folded(text)) is not None:
            self._found.end_stack()
            self._found.label.set(nodes, line.number)
            return
        if gdb.wants_interpreter(text):
            self._found.wants_interpreter(line.number)
            return
        if self._found.stack.is_local(text) or self._found.stack.is_source(text):
            return
        if text.lstrip().startswith("|") and self._columns.takes(text):
            self._found.end_stack()
            return
        self._end_columns(line)
        if (titled := self._tables.titled(text)) is not text:
            text, line = titled, msgspec.structs.replace(line, text=titled)
        self._tables.node, self._tables.named = self._found.label.node, self._found.label.held(line.number)
        if self._tables.takes(line):
            if self._tables.tasks.line == line.number:
                self._task_label = self._found.label.held(line.number)
            self._found.end_stack()
            return
        events = (
            self._cpp.feed(text) or self._of_task(line) or (classify(text) if self._found.stack.threads or not line.stamped or may_tell(text) else ())
        )
        if not events and self._found.stack.takes_symbol(text):
            alone = symbol(text) or (cut_frame(text) if not self._found.stack.frames else None)
            events = (alone,) if alone is not None else ()
        if not events and (placed := self._found.in_same_file(text)) is not None:
            events = (placed,)
        below_frame = self._found.stack.may_be_source(text)
        if not events and not below_frame and self._found.may_be_name(line) and (named := dotted_name(text)) is not None:
            events = (Frames(places=(named,)),)
        if not events and not below_frame and self._found.take_name(line):
            return
        if events:
            begins = any(isinstance(e, Head) and e.level in ("thread", "process") for e in events)
            if line.part and (begins or not self._found.stack.frames):
                self._set_part(line, line.part)
            if any(isinstance(e, Frames) for e in events):
                self._left.see(line.number, text)
            for event in events:
                self._take(line, event)
            self._entry = indent_of(text) if _ENTRY.match(text) and isinstance(events[-1], Frames) and not line.in_fence else None
            self._found.stack.blanks = 0
            return
        if (failed := unread_row(text)) is not None:
            told_of.unread_row(self._found, line, *failed)
            return
        if (same := is_same_row(text)) is not None:
            told_of.same_as_before(self._found, line, same)
            return
        self._other(line)

    def _end_columns(self, line: Line) -> None:
        """A table whose columns are processes is over."""
        for head, frames in self._columns.end():
            self._found.end_stack()
            self._found.new(head, line.number - 1, line)
            places = tuple(place for one in frames for place in one.places)
            self._found.frames(line, Frames(places=places, is_whole=True, is_certain=True, order=frames[0].order))

    def _is_by_rank(self, line: Line) -> bool:
        """Are the numbers of this part of the text ranks?"""
        return self._per_rank is not None and line.number - self._per_rank < _MOST_RANKS

    def _of_task(self, line: Line) -> tuple[Event, ...]:
        """A line with the number of a task in front (``srun --label``). A number before a frame alone is that of a list."""
        if self._is_by_rank(line):
            numbered = _RANK_FIRST.match(line.text)
            if numbered is not None and (events := led.read(f"rank {numbered['rank']}: {numbered['rest']}")):
                return events
        told = relabelled(line)
        if told is None:
            return ()
        text, rank = told
        events = classify(text)
        if any(isinstance(e, Head) and e.level in ("thread", "process") for e in events) and (
            self._found.current is None or self._found.current.rank != rank
        ):
            self._found.label.set(Head(level="label", ranks=(rank,), is_new=True), line.number)
        return events

    def finish(self) -> None:
        """The text has ended."""
        self._end_columns(Line(number=(self._found.current.line or 1) if self._found.current is not None else 1, text=""))
        self._found.finish()
        if self._found.times.seen_twice is not None:
            told_of.look_again(self._found, *self._found.times.seen_twice)
        tasks = self._tables.tasks
        if tasks.tasks:
            dump = (
                self._found.current
                if self._found.current is not None and not self._found.current.threads
                else self._found.new(self._task_label, tasks.line or 1)
            )
            dump.tasks = tasks.finish()
            dump.source = "asyncio"

    def _other(self, line: Line) -> None:
        """A line that no reader of stacks knows."""
        text = line.text
        if self._entry is not None and self._found.stack.is_headless and indent_of(text) > self._entry and _ENTRY.match(text):
            return  # what somebody remarks on a frame that is an entry of a list
        self._left.see(line.number, text)
        if _PDB_PROMPT.match(text) and self._found.current is not None and self._found.stack.frames:
            self._found.end_stack()
            stopped = self._found.current.threads[-1]
            stopped.frames = [_PDB, *stopped.frames]
            return
        if _BARE_PROMPT.match(text):
            self._found.at_prompt(_PDB)
        if self._found.stack.is_behind_traceback(text) and self._end_traceback(line):
            return
        if kernel.ends(text):
            self._found.end_stack()
            return
        expected = self._found.label.is_near(line.number) or (self._found.current is not None and not self._found.current.threads)
        expected = expected or bool(self._found.loop)
        if unread := said.unread(text, expected=expected):
            told_of.unread(self._found, line, unread)
            return
        if (found := self._findings.feed(text)) is not None:
            self._found.end_stack()
            self._found.label.set(found, line.number)
            return
        if (told := _PID_IN_LOG.search(text)) is not None:
            self._found.told_pid = (line.number, int(told[1]))
        if line.part:
            self._set_part(line, line.part, pid=int(told[1]) if told is not None and text.rstrip().endswith(":") else None)
        elif not line.stamped:
            self._words(line, text)
        self._found.stack.note_source(text)
        self._found.stack.interruptions += 1
        # In the middle of a stack, a remark of the writer's stands in the same block of code.
        stack = self._found.stack
        if stack.is_headless and not (stack.is_numbered or stack.is_source_between or (line.in_fence and stack.indent > 0)):
            self._found.end_stack()
        # A line of source code may be the first that somebody copied of a stack.
        self._found.has_words = self._found.has_words or not (line.in_fence and indent_of(text) >= _SOURCE)
        if self._found.doubt(line) and self._found.stack.is_behind_traceback(text):
            self._end_traceback(line)

    def _words(self, line: Line, text: str) -> None:
        """A sentence: whose stack comes next, or how many others are at the place of the last one."""
        is_head = text.rstrip(" `*_").endswith(":") or text.lstrip().startswith("#")
        if loop := commands.loop_of(text):
            self._found.end_stack()
            self._found.loop.begin(loop, len(self._found.dumps))
            return
        if commands.is_tool(text):
            self._found.tool_at = line.number
        if _PER_RANK.search(text) or _RANKS_BELOW.match(text):
            self._per_rank = line.number
        if self._is_by_rank(line) and (key := _KEY.match(text)) is not None:
            self._found.end_stack()
            self._found.label.set(Head(level="label", ranks=(int(key["rank"]),), is_new=True), line.number)
            return
        if (as_other := _SAME_AS.match(text)) is not None and (held := self._found.label.held(line.number)) is not None:
            told_of.same_as(self._found, line, held, labels.read(f"{as_other['who']}:"))
            return
        text = labels.leading(text)
        label = labels.read(text)
        if label is None and self._machines and (name := lone_names.name_in(text)) in self._machines:
            label = lone_names.head_of(name)
        comment = commands.comment_of(text)
        remark = said.remark(comment or text)
        is_head = is_head or comment is not None
        if (pause_s := commands.pause_s(text)) is not None:
            self._found.times.apart_s = pause_s
        if (clock_s := said.clock_s(text)) is not None:
            self._found.times.looked_at(clock_s)
        self._found.flush_weak()
        dump = self._found.current if self._found.current is not None and self._found.current.threads else None
        if remark is not None and remark.kind == "again" and dump is not None and (label is None or remark.apart_s) and not is_head:
            told_of.look_again(self._found, line, remark.apart_s)
            return
        if remark is not None and remark.kind == "again" and dump is None and remark.apart_s:
            self._found.times.seen_twice = (line, remark.apart_s)
            return
        if remark is not None and remark.kind == "apart":
            self._found.times.apart_s = remark.apart_s
            if label is None and dump is not None:
                label = Head(level="label", pid=dump.pid, title=dump.title, label=dump.label, is_new=True)
        elif remark is not None and is_head and (label is not None or remark.kind == "except"):
            label = label or Head(level="label", label="other ranks", is_new=True)
            label = msgspec.structs.replace(label, said=said.of_others(remark, label.ranks))
        elif remark is not None and dump is not None:
            at = said.as_rank(text) if remark.kind == "same" else None
            (of_rank(self._found.dumps, at) or dump).said.append((line.number, remark))
            return
        points_above = text.lstrip().startswith(("^", "↑")) or sentences.points_above(text)
        if label is not None and points_above and dump is not None and not (dump.ranks or dump.label or (dump.pid and label.pid)):
            self._found.end_stack()
            set_names(dump, label)  # the writer points at the stack above
        elif label is not None:
            self._found.end_stack()
            self._found.label.set(label, line.number)

    def _set_part(self, line: Line, part: str, pid: int | None = None) -> None:
        """SGLang stamps the first line of what a part of it writes, and tells there whom it lets a tool dump."""
        self._found.label.set(Head(level="label", title=f"sglang::scheduler_{part.replace(' ', '_')}", pid=pid, is_new=True), line.number)

    def _take(self, line: Line, event: Event) -> None:
        if isinstance(event, Frames):
            self._found.frames(line, event)
        elif isinstance(event, Row):
            self._found.stack.close()
            self._tables.add(line, event)
        elif isinstance(event, Said):
            told_of.fatal(self._found, line, event)
        elif isinstance(event, Gone):
            return
        elif event.level == "thread":
            if event.source == "traceback" and self._found.stack.is_behind_traceback(line.text):
                # "RuntimeError: it failed: Traceback (most recent call last):"
                self._end_traceback(line)
                self._found.is_chained = True
            self._found.thread(line, event)
        elif event.level == "version":
            if self._found.current is not None:
                self._found.current.python = self._found.current.python or event.python
                self._found.current.ppid = self._found.current.ppid or event.ppid
        elif event.level == "process":
            if self._found.stack.is_behind_traceback(line.text):
                # "RayTaskError(KeyError): ray::Actor.step() (pid=7)": what failed in the caller, and whose frames come next
                self._end_traceback(line)
            self._found.process(line, event)
        else:
            self._found.end_stack()
            self._found.label.set(event, line.number)

    def _blank(self) -> None:
        self._found.stack.blanks += 1
        self._tables.end()
        if self._found.stack.frames and self._found.stack.blanks >= 2 and self._found.stack.is_headless:
            self._found.end_stack()

    def _end_traceback(self, line: Line) -> bool:
        """The line behind the frames of a traceback says what went wrong. Was it that line?"""
        error = tracebacks.error_of(line.text)
        if error is not None and self._found.current is not None and not tracebacks.is_interrupt(error):
            self._found.current.said.append((line.number, Said(kind="failed", text=error[:300])))
        self._found.is_chained = tracebacks.is_chain(line.text)
        self._found.stack.close()
        return error is not None
