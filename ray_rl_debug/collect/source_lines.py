"""What a line of source waits for, where the stack alone does not say.

``work.wait()`` of a collective, ``lock.acquire()`` and ``with lock:`` are calls into C that leave no frame: all three show a line of own code
that sleeps in a futex. The source tells the first from the others: the names that a line with a ``wait``, ``get`` or ``sleep`` calls, and the
names of the calls that made what it waits on (``work = dist.irecv(...)`` ... ``work.wait()``). Of a line that sleeps it also tells whether the
function around it could hand anything to the rest of the program (see `source_reach`), and what the loop around it looks at before it goes on
(see `source_loops`). Names of functions are all that is kept, as in a stack.

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
from pathlib import Path
from typing import Any, NamedTuple

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


class SourceLine(NamedTuple):
    """What the source tells of one line."""

    calls: tuple[str, ...]
    """Names called on it, then those of the calls that made the objects whose ``wait`` it calls; each once."""
    apart: bool | None = None
    """Of a line that sleeps: could the function around it hand nothing to the rest of the program? None of other lines."""
    looks: tuple[str, ...] | None = None
    """Of a line that pauses in a loop until something has come: what the condition of the loop calls; empty where it looks at variables alone."""
    brings: bool | None = None
    """Of a line that waits for a condition, an event or a queue: does the function around it also bring what it waits for?"""
    takes: bool | None = None
    """Of a line that pauses: does it lie in a loop over what a coroutine is sent?"""
    goes_round: bool | None = None
    """Of the same: does it lie in a loop that nothing ends?"""
    ended_by: tuple[str, ...] | None = None
    """Of the same: methods that set the flag which alone ends its loop."""
    gives_up: bool | None = None
    """Of the same: does it lie in a loop that gives up after a time?"""
    requests_bring: bool | None = None
    """Of a line where a coroutine waits or looks again: does another request to the same server bring that?"""


_silent_mounts: set[str] = set()
"""Those that held a child of this process beyond its deadline."""
_WAIT = re.compile(rb"\b(?:wait|wait_for|await|get|sleep|sched_yield|while)\b")


def read_calls(
    lines: Mapping[int, tuple[int, str, int]],
    *,
    proc: Path = Path("/proc"),
    total_s: float = TOTAL_S,
    run: Callable[..., Any] | None = None,
) -> dict[int, SourceLine]:
    """What lines of source call, by the keys of `lines`.

    Args:
        lines: Per key a process id, the file as that process names it, the line number.
        proc: Where the process file system is; files are read below the root of their process.
        total_s: For all of them together, once the child runs.
        run: As `run_bounded`, which returns a `programs.Finished`.
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
        done = (run or run_bounded)([sys.executable, "-I", "-S", __file__, json.dumps([str(proc), total_s, wanted])], total_s + START_S)
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
    for line in out.splitlines():
        try:
            key, names, apart, looks, *more = json.loads(line)
            *asked, ended_by, limit, requests = (*more, None, None, None, None, None, None)[:6]
            flags = (one if isinstance(one, bool) else None for one in (apart, *asked, limit, requests))
            is_apart, brings, takes, goes_round, gives_up, requests_bring = flags
            looked, ended = (tuple(map(str, one)) if one is not None else None for one in (looks, ended_by))
            yield int(key), SourceLine(tuple(map(str, names)), is_apart, looked, brings, takes, goes_round, ended, gives_up, requests_bring)
        except (ValueError, TypeError, OverflowError):  # the last: int() of an infinite number
            return


def main(order: str) -> None:
    """The child: one line of JSON for each line of source, as soon as it is known."""
    proc, total_s, wanted = json.loads(order)
    for key, found in find_calls(wanted, Path(proc), time.process_time() + total_s, time.monotonic() + max(total_s, WALL_S)):
        sys.stdout.write(json.dumps([key, *found]) + "\n")
        sys.stdout.flush()


def find_calls(wanted: Iterable[tuple[int, int, str, int]], proc: Path, until_cpu_s: float, until_s: float) -> Iterator[tuple[int, SourceLine]]:
    """What each line (key, process, file, line number) calls that can be read, up to a time of the processor and one of the clock."""
    sources: dict[tuple[int, str], bytes | None] = {}
    trees: dict[bytes, ast.Module | None] = {}
    is_apart: Callable[..., bool] = runpy.run_path(str(Path(__file__).with_name("source_reach.py")))["is_apart"]
    loops = runpy.run_path(str(Path(__file__).with_name("source_loops.py")))

    def tree_of(pid: int, file: str) -> ast.Module | None:
        which = (pid, file)
        source = sources[which] if which in sources else sources.setdefault(which, _read(pid, file, proc))
        if source is None:
            return None
        if source not in trees:  # the processes of a run share their source
            trees[source] = _parse(source)
        return trees[source]

    for key, pid, file, line in wanted:
        if time.process_time() > until_cpu_s or time.monotonic() > until_s:
            return
        which = (pid, file)
        if which not in sources:
            sources[which] = _read(pid, file, proc)
        source = sources[which]
        rows = source.split(b"\n") if source is not None else []
        if source is None or not 0 < line <= len(rows):
            continue
        if not _WAIT.search(rows[line - 1]):
            yield key, SourceLine(())
            continue
        tree = tree_of(pid, file)
        if tree is None:
            continue
        calls = calls_at(tree, line)

        def beside(module: str, pid: int = pid, file: str = file) -> ast.Module | None:
            return tree_of(pid, f"{file.rpartition('/')[0]}/{module}.py") if module.isidentifier() else None

        apart = is_apart(tree, line, beside) if "sleep" in calls else None
        yield key, SourceLine(calls, apart, *(loops[ask](tree, line) for ask in _ASKED))


_ASKED = ("looks_at", "brings", "takes", "goes_round", "ended_by", "gives_up", "requests_bring")


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
