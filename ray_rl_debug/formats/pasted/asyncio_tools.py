"""``python -m asyncio ps`` and ``pstree`` of CPython 3.14, ``asyncio.print_call_graph``, and tasks as Python prints them (``asyncio.all_tasks()``):
tasks and the coroutines that they wait in.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import Task

_PS_HEAD = re.compile(r"^\s*tid\s{2,}task id\s{2,}task name\s{2,}coroutine")
_PS_ROW = re.compile(r"^\s*(?P<tid>\d{1,12})\s{1,40}(?P<task>0x[0-9a-f]{1,16})\s{1,40}(?P<rest>\S.{0,8000})$")
_COLUMNS = re.compile(r"\s{2,}")
_TASK = re.compile(r"^(?P<indent>[\s│├└─|+`-]{0,400})\(T\) (?P<name>.{1,200}?)\s*$")
_CORO = re.compile(r"^(?P<indent>[\s│├└─|+`-]{0,400})(?P<function>[A-Za-z_<][\w.<>]{0,200})(?: (?P<file>\S{1,400}):(?P<line>\d{1,7}))?\s*$")


_PRINTED = re.compile(
    r"<Task (?:pending|cancelling) name='(?P<name>[^'\n]{1,200})' coro=<(?P<function>[\w.<>]{1,200})\(\)(?: running| wrapped)? at "
    r"(?P<file>[^>\n]{1,400}?):(?P<line>\d{1,7})>"
)
_OF_ITS_END = ("task: <Task", "future: <Task", "Task was destroyed")
"""asyncio's complaints about a task that nobody has kept: the program has ended or left it."""


class TaskReader:
    """Fed with the lines of one text; keeps the tasks."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.line: int | None = None
        self._in_ps = False
        self._tree: list[tuple[int, Task]] = []
        self._of_address: dict[int, Task] = {}
        self._awaiters: list[tuple[int, int]] = []

    def feed(self, text: str, number: int) -> bool:
        """Is this line one of a table or tree of tasks?"""
        if self._in_ps:
            if row := _PS_ROW.match(text):
                self._row(row)
                return True
            if text.strip("- \t"):
                self._in_ps = False
            else:
                return True
        if "task id" in text and _PS_HEAD.match(text):
            self._in_ps, self.line = True, self.line or number
            return True
        if "<Task " in text and not any(word in text for word in _OF_ITS_END) and (printed := list(_PRINTED.finditer(text))):
            self.line = self.line or number
            for found in printed:
                place = (found["function"], found["file"], int(found["line"]))
                self.tasks.append(Task(name=found["name"], chain=[place], number=len(self.tasks) + 1))
            return True
        if "(T) " in text and (task := _TASK.match(text)):
            self._task(task, number)
            return True
        if self._tree and text.strip() and (coroutine := _CORO.match(text)) and any(c in text for c in "│├└|"):
            self._coroutine(coroutine)
            return True
        self._tree = []
        return False

    def finish(self) -> list[Task]:
        """All tasks, each with those that it waits for."""
        for awaiter, awaited in self._awaiters:
            if awaiter in self._of_address and awaited not in self._of_address[awaiter].awaits:
                self._of_address[awaiter].awaits.append(awaited)
        self._awaiters = []
        return self.tasks

    def _row(self, row: re.Match[str]) -> None:
        cells = _COLUMNS.split(row["rest"].strip())
        name = cells[0] if cells else "?"
        stack = [n for n in cells[1].split(" -> ") if n] if len(cells) > 1 and "0x" not in cells[1] else []
        address = int(row["task"], 16)
        awaiter = int(cells[-1], 16) if len(cells) > 1 and re.fullmatch(r"0x[0-9a-f]{1,16}", cells[-1]) else 0
        if address not in self._of_address:
            # Innermost coroutine first in the table.
            task = Task(name=name[:200], chain=[(n, "", 0) for n in reversed(stack)], number=address, tid=int(row["tid"]))
            self._of_address[address] = task
            self.tasks.append(task)
        if awaiter:
            self._awaiters.append((awaiter, address))

    def _task(self, found: re.Match[str], number: int) -> None:
        self.line = self.line or number
        depth = len(found["indent"])
        while self._tree and self._tree[-1][0] >= depth:
            self._tree.pop()
        task = Task(name=found["name"], chain=[], number=len(self.tasks) + 1)
        self.tasks.append(task)
        if self._tree:
            self._tree[-1][1].awaits.append(task.number)
        self._tree.append((depth, task))

    def _coroutine(self, found: re.Match[str]) -> None:
        depth = len(found["indent"])
        while len(self._tree) > 1 and self._tree[-1][0] >= depth:
            self._tree.pop()
        task = self._tree[-1][1]
        if len(task.chain) < 200:
            task.chain.append((found["function"], found["file"] or "", int(found["line"] or 0)))
