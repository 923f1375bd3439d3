"""What a line of source waits for, where the stack alone does not say.

``work.wait()`` of a collective, ``lock.acquire()`` and ``with lock:`` are calls into C that leave no frame: all three show a line of own code
that sleeps in a futex. The source tells the first from the others: the names that a line with a ``wait``, ``get`` or ``sleep`` calls, and the
names of the calls that made what it waits on (``work = dist.irecv(...)`` ... ``work.wait()``). Of a line that sleeps it also tells whether the
function around it could hand anything to the rest of the program (see `source_reach`), and what the loop around it looks at before it goes on
(see `source_loops`); of one that takes a lock, and of those around it, which one (see `source_locks`). Names are all that is kept, as in a stack.

Sources lie on shared file systems, and one that hangs is what people call us for: a child process reads them, local ones first, and of these the
program's own, as libraries' files are large. It runs this
file with ``-I -S``, so the standard library alone is imported here. A child that the kernel does not let go is left behind, once: its mount is not
touched again.
"""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray_rl_debug.model.source_line import SourceLine

MAX_SOURCE_BYTES = 1 << 20
TOTAL_S = 0.3
"""Of the processor, for all lines of a node; files that are left then are not read."""
WALL_S = 1.2
"""The same by the clock: on a loaded machine a child gets a small share of a core."""
START_S = 2.0
"""For the start of the child that reads them, on a loaded machine."""
MAX_LINES, MAX_PATH = 400, 200
"""One argument of a program holds 128 KiB."""
CLOCK_SLACK_S = 1.0
"""Of the clocks of a file system and the kernel; a source edited after its process began no longer tells what runs."""


_silent_mounts: set[str] = set()
"""Those that held a child of this process beyond its deadline."""
_WAIT = re.compile(rb"\b(?:wait|wait_for|await|get|sleep|sched_yield|while)\b")
_TAKES = re.compile(rb"\b(?:with|acquire)\b")


def read_calls(
    lines: Mapping[int, tuple[int, str, int]],
    *,
    proc: Path = Path("/proc"),
    total_s: float = TOTAL_S,
    run: Callable[..., Any] | None = None,
    only_under: bool = False,
) -> dict[int, SourceLine]:
    """What lines of source call, by the keys of `lines`.

    Args:
        lines: Per key a process id, the file as that process names it, the line number.
        proc: Where the process file system is; files are read below the root of their process.
        total_s: For all of them together, once the child runs.
        run: As `run_bounded`, which returns a `programs.Finished`.
        only_under: Ask of these lines which locks they hold, and nothing else.
    """
    from ray_rl_debug.bounded.programs import run_bounded
    from ray_rl_debug.collect.mounts import read_mounts

    named = ((key, pid, file, line) for key, (pid, file, line) in lines.items())
    wanted = [one for one in named if one[2].startswith("/") and one[2].endswith(".py") and len(one[2]) < MAX_PATH]
    if not wanted or total_s <= 0:
        return {}
    tables = {pid: read_mounts(pid, proc) for pid in {pid for _, pid, _, _ in wanted}}
    mounts = {one: tables[one[1]].network(one[2]) for one in wanted}
    wanted = sorted((one for one in wanted if mounts[one] not in _silent_mounts), key=lambda one: (mounts[one] is not None, _is_package(one[2])))
    wanted = wanted[:MAX_LINES]
    if not wanted:
        return {}
    try:
        done = (run or run_bounded)([sys.executable, "-I", "-S", __file__, json.dumps([str(proc), total_s, only_under, wanted])], total_s + START_S)
    except OSError:
        return {}
    told = dict(_answers(done.out))
    if done.timed_out and (mount := next((mounts[one] for one in wanted if one[0] not in told), None)) is not None:
        _silent_mounts.add(mount)
    return told


def _is_package(file: str) -> bool:
    """Was it installed? Files of the program come first: one large file of a library takes the time of many."""
    return "/site-packages/" in file or "/dist-packages/" in file


def _answers(out: bytes) -> Iterator[tuple[int, SourceLine]]:
    """What the child wrote, line by line, as far as it came."""
    import msgspec

    from ray_rl_debug.model.source_line import SourceLine

    for line in out.splitlines():
        try:
            yield msgspec.json.decode(line, type=tuple[int, SourceLine])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return


def main(order: str) -> None:
    """The child: one line of JSON for each line of source, as soon as it is known."""
    proc, total_s, only_under, wanted = json.loads(order)
    until_cpu_s, until_s = time.process_time() + total_s, time.monotonic() + max(total_s, WALL_S)
    for key, found in find_lines(wanted, Path(proc), until_cpu_s, until_s, only_under=only_under):
        sys.stdout.write(json.dumps([key, {name: told for name, told in found.items() if told is not None}]) + "\n")
        sys.stdout.flush()


def find_lines(
    wanted: Iterable[tuple[int, int, str, int]], proc: Path, until_cpu_s: float, until_s: float, *, only_under: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """What is told of each line (key, process, file, line number) that can be read, up to a time of the processor and one of the clock."""
    sources = _Sources(proc)
    ask = {
        name: runpy.run_path(str(Path(__file__).with_name(file)))
        for name, file in (("reach", "source_reach.py"), ("loops", "source_loops.py"), ("locks", "source_locks.py"))
    }
    for key, pid, file, line in wanted:
        if time.process_time() > until_cpu_s or time.monotonic() > until_s:
            return
        text = sources.line(pid, file, line)
        if text is None:
            continue
        waits, takes = _WAIT.search(text) and not only_under, _TAKES.search(text) and not only_under
        tree = sources.tree(pid, file) if waits or takes or only_under else None
        if tree is None:
            if not (waits or takes or only_under):
                yield key, {"calls": ()}
            continue
        told: dict[str, Any] = {"under": ask["locks"]["under"](tree, line)}
        if waits:
            told |= {"calls": calls_at(tree, line), **{fact: ask["loops"][asked](tree, line) for fact, asked in _ASKED.items()}}
            told["apart"] = ask["reach"]["is_apart"](tree, line, partial(sources.beside, pid, file)) if "sleep" in told["calls"] else None
        elif not only_under:
            told["calls"] = ()
        if takes:
            told["wants"] = ask["locks"]["wants"](tree, line)
        yield key, told


class _Sources:
    """Files of processes, each read once, and parsed once for all processes that run it."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._texts: dict[tuple[int, str], bytes | None] = {}
        self._trees: dict[bytes, ast.Module | None] = {}

    def line(self, pid: int, file: str, number: int) -> bytes | None:
        """One line; None where it cannot be read."""
        text = self._text(pid, file)
        rows = text.split(b"\n") if text is not None else []
        return rows[number - 1] if 0 < number <= len(rows) else None

    def tree(self, pid: int, file: str) -> ast.Module | None:
        text = self._text(pid, file)
        if text is None:
            return None
        if text not in self._trees:
            self._trees[text] = _parse(text)
        return self._trees[text]

    def beside(self, pid: int, file: str, module: str) -> ast.Module | None:
        """The module of this name that lies in the same folder."""
        return self.tree(pid, f"{file.rpartition('/')[0]}/{module}.py") if module.isidentifier() else None

    def _text(self, pid: int, file: str) -> bytes | None:
        which = (pid, file)
        if which not in self._texts:
            self._texts[which] = _read(pid, file, self._proc)
        return self._texts[which]


_ASKED = {name: name for name in ("brings", "takes", "goes_round", "ended_by", "gives_up", "requests_bring")} | {"looks": "looks_at"}


def calls_at(tree: ast.Module, line: int) -> tuple[str, ...]:
    """Names called on a line, then those of the calls that made the objects whose ``wait`` it calls; each once."""
    function = _function_around(tree, line)
    here = [call for call in _calls(function) if line in (call.lineno, call.end_lineno)]
    names = [name for call in here for name in _name_of(call.func)]
    for call in here:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "wait":
            # an attribute may have been set in another method
            scope = tree if isinstance(call.func.value, ast.Attribute) else function
            names += _made_by(scope, call.func.value, set())
    return tuple(dict.fromkeys(names))


def _function_around(tree: ast.Module, line: int) -> ast.AST:
    functions = (
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.lineno <= line <= (n.end_lineno or n.lineno)
    )
    return max(functions, key=lambda n: n.lineno, default=tree)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Call))


def _name_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):
        yield node.id


def _base(node: ast.AST) -> str | None:
    """The variable or attribute behind ``works[0]``, ``self.work``, ``works``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return next(_name_of(node), None)


def _made_by(function: ast.AST, waited: ast.AST, seen: set[str]) -> list[str]:
    """Names of the calls in `function` whose results `waited` can be: by assignment, by ``append``, by a loop over a list of them."""
    if isinstance(waited, ast.Call):
        return list(_name_of(waited.func))
    variable = _base(waited)
    if variable is None or variable in seen:
        return []
    seen.add(variable)
    names: list[str] = []
    for node in ast.walk(function):
        values: Iterable[ast.AST] = ()
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            flat = [t for target in targets for t in (target.elts if isinstance(target, ast.Tuple | ast.List) else [target])]
            values = [node.value] if node.value is not None and any(_base(t) == variable for t in flat) else ()
        elif isinstance(node, ast.For | ast.comprehension) and _base(node.target) == variable:
            values = [node.iter]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend", "add"):
            values = node.args if _base(node.func.value) == variable else ()
        for value in values:
            names += [name for call in _calls(value) for name in _name_of(call.func)]
            if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
                names += _made_by(function, value, seen)
    return names


def _read(pid: int, file: str, proc: Path) -> bytes | None:
    """The source; None when it is too large, not there, not ours to read, or newer than the process that runs it."""
    try:
        ticks = int((proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[19])
        uptime_s = float((proc / "uptime").read_text().split()[0])
        started = time.time() - uptime_s + ticks / os.sysconf("SC_CLK_TCK")
        mark = os.open(f"{proc}/{pid}/root{file}", os.O_PATH)  # a FIFO would make us its reader
        try:
            facts = os.fstat(mark)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_SOURCE_BYTES or facts.st_mtime > started + CLOCK_SLACK_S:
                return None
            with open(f"/proc/self/fd/{mark}", "rb") as source:
                return source.read(MAX_SOURCE_BYTES)
        finally:
            os.close(mark)
    except (OSError, ValueError, IndexError):
        return None


def _parse(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


if __name__ == "__main__":
    main(sys.argv[1])
