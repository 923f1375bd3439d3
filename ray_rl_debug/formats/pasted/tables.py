"""Tables in a text: listings of ``ps``, wait channels, ``/proc/PID/status``, asyncio tasks."""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import DumpThread
from ray_rl_debug.formats.pasted import kernel, lsof, ps
from ray_rl_debug.formats.pasted.asyncio_tools import TaskReader
from ray_rl_debug.formats.pasted.events import Head, Row
from ray_rl_debug.formats.pasted.lines import Line
from ray_rl_debug.formats.pasted.partial import Partial, set_names
from ray_rl_debug.formats.pasted.plain_table import OF_NAMES, PlainTable
from ray_rl_debug.formats.pasted.process_tree import Tree
from ray_rl_debug.formats.pasted.strace import StraceReader

MAX_ROWS = 5_000
_ANSWERS_WITHIN = 3
"""Lines below ``grep State /proc/12/status`` in which its answer stands."""
_ENDED = "<defunct>"
"""How ``ps`` marks a process that has ended, also where no column tells states."""
_NUMBERS = re.compile(r"\d{1,9}(?: ?[-–,] ?\d{1,6}){0,64}")


class Tables:
    """Rows become dumps without stacks."""

    def __init__(self, dumps: list[Partial]) -> None:
        self.tasks = TaskReader()
        self.node: str | None = None
        """The machine that was named last: its prompt stands above the listing."""
        self.named: Head | None = None
        """Who was named above this line."""
        self._dumps = dumps
        self._columns: tuple[str, ...] | None = None
        self._status: Partial | None = None
        self._asked: tuple[int, int] | None = None
        """The last line that names a ``/proc/PID/status``, and that pid."""
        self._strace = StraceReader()
        self._rows = 0
        self._titles: list[str] = []
        self._plain = PlainTable()
        self._tree = Tree()

    def titled(self, text: str) -> str:
        """A row of a Markdown table with the title of the column before each number: ``| rank 0 | pid 9001 |``."""
        if text.lstrip().startswith("||"):
            text = text.replace("||", "| ")  # the heading of a table in Jira
        text = self._plain.as_markdown(text)
        stripped = text.strip()
        if not stripped.startswith("|") or len(stripped) > 8_000:
            return text
        cells = [c.strip() for c in stripped.strip("|").split("|")]
        words = [c.lower().strip("*`") for c in cells]
        if any(w in OF_NAMES for w in words):
            self._titles = words
            return text
        if len(cells) != len(self._titles):
            return text
        told = [
            f"{OF_NAMES[t]} {c}" if t in OF_NAMES and (_NUMBERS.fullmatch(c.strip("*` ")) or OF_NAMES[t] == "node") else c
            for t, c in zip(self._titles, cells, strict=True)
        ]
        return f"| {' | '.join(told)} |"

    def takes(self, line: Line) -> bool:
        """Is the line a part of a table?"""
        text = line.text
        self._tree.note(text, line.number)
        if (asked := kernel.asked_status(text)) is not None:
            self._asked = (line.number, asked)
        if self._columns is not None:
            row = ps.row(text, self._columns)
            if row is not None:
                if not ps.is_of_kernel(row):
                    self.add(line, row)
                return True
            self._columns = None
        if self.tasks.feed(text, line.number):
            return True
        if columns := ps.heading(text) or ps.asked_columns(text):
            self._columns = columns
            return True
        if (state := kernel.status(text)) is not None and self._take_status(line, *state):
            return True
        if (told := kernel.pair(text) or self._strace.feed(text) or lsof.read(text)) is not None:
            self.add(line, told)
            return True
        return False

    def end(self) -> None:
        """A blank line or the end of a block: the listing is over."""
        self._columns = None
        self._plain.end()
        self._tree.end()

    def add(self, line: Line, row: Row) -> Partial:
        """One process of a table."""
        self._rows += 1
        if (top := self._tree.top(line.text, line.number)) is not None:
            self._dumps.append(Partial(threads=[], source="ps", pid=top[0], title=top[1], line=line.number - 1, node=line.node or self.node))
        state = row.state or ("Z" if row.title is not None and row.title.endswith(_ENDED) else None)
        ppid = row.ppid if row.ppid is not None else self._tree.parent(line.text, row.pid)
        dump = Partial(threads=[], source="ps", pid=row.pid, ppid=ppid, state=state, title=row.title, line=line.number, node=line.node or self.node)
        if row.tid is not None or row.wchan is not None:
            dump.threads.append(DumpThread(frames=(), tid=row.tid or row.pid, wchan=row.wchan, call=row.call))
        if self.named is not None and self.named.pid == row.pid and self.named.ranks:
            set_names(dump, self.named)
        if row.file is not None:
            dump.files = [row.file]
        if self._rows <= MAX_ROWS:
            self._dumps.append(dump)
        return dump

    def _take_status(self, line: Line, key: str, value: str) -> bool:
        if key in ("Pid", "Tgid") and value.isdecimal():
            self._status = self.add(line, Row(pid=int(value)))
        elif self._status is not None and key == "State":
            self._status.state = value
        elif key == "State" and self._asked is not None and line.number - self._asked[0] <= _ANSWERS_WITHIN:
            self.add(line, Row(pid=self._asked[1], state=value))
        elif self._status is not None and key == "PPid" and value.isdecimal():
            self._status.ppid = int(value)
        else:
            return False
        return True
