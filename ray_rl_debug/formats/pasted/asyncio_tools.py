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

_MOST_FRAMES = 200
_PRINTED = re.compile(
    r"<Task (?:pending|cancelling) name='(?P<name>[^'\n]{1,200})' coro=<(?P<function>[\w.<>]{1,200})\(\)(?: running| wrapped)? at "
    r"(?P<file>[^>\n]{1,400}?):(?P<line>\d{1,7})>"
)
_STACK_FOR = re.compile(r"^\W{0,12}Stack for <Task ")
"""What ``Task.print_stack`` writes over its frames."""
_QUOTED = re.compile(r"^(?P<indent>\s{0,40})File \"(?P<file>[^\"]{1,400})\", line (?P<line>\d{1,7}), in (?P<function>[\w.<>]{1,200})\s*$")
_FRAME_OBJECT = re.compile(
    r"<frame at 0x[0-9a-fA-F]{1,16}, file '(?P<file>[^'\n]{1,400})', line (?P<line>\d{1,7}), code (?P<function>[\w.<>]{1,200})>"
)
"""How Python prints a frame, as of ``Task.get_stack()`` or of a chain of ``cr_await``."""
_GRAPH = re.compile(r"^(?P<indent>[\s|]{0,200})\* (?:Task|Future)\((?:name='(?P<name>[^'\n]{1,200})', )?id=(?P<id>0x[0-9a-fA-F]{1,16})\)\s*$")
_GRAPH_TITLE = re.compile(r"^[\s|]{0,200}\+ (?:Call stack|Awaited by):\s*$")
_GRAPH_FRAME = re.compile(
    r"^[\s|]{0,200}\|\s{1,8}File ['\"](?P<file>[^'\"]{1,400})['\"], line (?P<line>\d{1,7}), in (?:async )?(?:generator )?(?P<function>[\w.<>]{1,200})"
    r"(?:\(\))?\s*$"
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
        self._graph: list[tuple[int, Task]] = []
        self._shown: tuple[int, Task, int] | None = None
        """The last line of a task's own stack, the task, and how deep its frames stand."""
        self._printed: tuple[int, Task, bool] | None = None
        """The last line of a printed task or of its frames, the task, and whether it has frames."""

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
            self._shown = (number, self.tasks[-1], -1) if len(printed) == 1 and _STACK_FOR.match(text) else None
            self._printed = (number, self.tasks[-1], False) if len(printed) == 1 else None
            return True
        if self._printed is not None and self._frame_objects(text, number):
            return True
        if self._shown is not None and self._shown_frame(text, number):
            return True
        if self._graph and (_GRAPH_TITLE.match(text) or self._graph_frame(text)):
            return True
        if "* " in text and (node := _GRAPH.match(text)) is not None:
            self._graph_task(node, number)
            return True
        if "(T) " in text and (task := _TASK.match(text)):
            self._task(task, number)
            return True
        if self._tree and text.strip() and (coroutine := _CORO.match(text)) and any(c in text for c in "│├└|"):
            self._coroutine(coroutine)
            return True
        self._tree, self._graph = [], []
        return False

    def finish(self) -> list[Task]:
        """All tasks, each with those that it waits for."""
        for awaiter, awaited in self._awaiters:
            if awaiter in self._of_address and awaited not in self._of_address[awaiter].awaits:
                self._of_address[awaiter].awaits.append(awaited)
        self._awaiters = []
        return self.tasks

    def _shown_frame(self, text: str, number: int) -> bool:
        """Is it one of the frames below ``Stack for <Task ...>``, or the source below one? They take the place of the one that the head names."""
        at, task, depth = self._shown or (0, Task(name="", chain=[], number=0), 0)
        frame = _QUOTED.match(text) if number == at + 1 else None
        if frame is not None and depth in (-1, len(frame["indent"])) and len(task.chain) < _MOST_FRAMES:
            place = (frame["function"], frame["file"], int(frame["line"]))
            task.chain = [place] if depth == -1 else [*task.chain, place]
            self._shown = (number, task, len(frame["indent"]))
            return True
        if number == at + 1 and 0 <= depth < len(text) - len(text.lstrip()):
            self._shown = (number, task, depth)
            return True
        self._shown = None
        return False

    def _frame_objects(self, text: str, number: int) -> bool:
        """Are these frames below a printed task, outermost first? They take the place of the one that the task names."""
        at, task, has_frames = self._printed or (0, Task(name="", chain=[], number=0), False)
        frames = list(_FRAME_OBJECT.finditer(text)) if number == at + 1 and "<frame at" in text else []
        if not frames:
            self._printed = None
            return False
        places = [(f["function"], f["file"], int(f["line"])) for f in frames]
        task.chain = [*task.chain, *places][:_MOST_FRAMES] if has_frames else places[:_MOST_FRAMES]
        self._printed = (number, task, True)
        return True

    def _graph_task(self, found: re.Match[str], number: int) -> None:
        self.line = self.line or number
        depth = len(found["indent"])
        while self._graph and self._graph[-1][0] >= depth:
            self._graph.pop()
        task = Task(name=found["name"] or f"Future {found['id']}", chain=[], number=len(self.tasks) + 1)
        self.tasks.append(task)
        if self._graph:
            task.awaits.append(self._graph[-1][1].number)
        self._graph.append((depth, task))

    def _graph_frame(self, text: str) -> bool:
        """A frame of ``print_call_graph``, innermost first."""
        frame = _GRAPH_FRAME.match(text)
        task = self._graph[-1][1]
        if frame is not None and len(task.chain) < _MOST_FRAMES:
            task.chain.insert(0, (frame["function"], frame["file"], int(frame["line"])))
        return frame is not None

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
        if len(task.chain) < _MOST_FRAMES:
            task.chain.append((found["function"], found["file"] or "", int(found["line"] or 0)))
