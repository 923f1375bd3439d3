"""What a line of source waits for, where the stack alone does not say.

``work.wait()`` of a collective, ``lock.acquire()`` and ``with lock:`` are calls into C that leave no frame: all three show a line of own code
that sleeps in a futex. The source tells the first from the others: the names that a line with a ``wait``, ``get`` or ``sleep`` calls, and the
names of the calls that made what it waits on (``work = dist.irecv(...)`` ... ``work.wait()``). Names of functions are all that is kept, as in a
stack.
"""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ray_rl_debug.collect.procfs import read_stat, read_text

MAX_SOURCE_BYTES = 1 << 20
TOTAL_S = 0.3
"""For all lines of a node; files that are left then are not read."""
CLOCK_SLACK_S = 1.0
"""Of the clocks of a file system and the kernel; a source edited after its process began no longer tells what runs."""
_WAIT = re.compile(rb"\b(?:wait|get|sleep)\b")


def read_calls(lines: Mapping[int, tuple[int, str, int]], *, proc: Path = Path("/proc"), total_s: float = TOTAL_S) -> dict[int, tuple[str, ...]]:
    """Names called on lines of source, by the keys of `lines`.

    Args:
        lines: Per key a process id, the file as that process names it, the line number.
        proc: Where the process file system is; files are read below the root of their process.
        total_s: For all of them together.
    """
    until = time.monotonic() + total_s
    found: dict[int, tuple[str, ...]] = {}
    sources: dict[tuple[int, str], bytes | None] = {}
    trees: dict[tuple[int, str], ast.Module | None] = {}
    for key, (pid, file, line) in lines.items():
        if time.monotonic() > until:
            break
        which = (pid, file)
        if which not in sources:
            sources[which] = _read(pid, file, proc)
        source = sources[which]
        rows = source.split(b"\n") if source is not None else []
        if source is None or not 0 < line <= len(rows):
            continue
        if not _WAIT.search(rows[line - 1]):
            found[key] = ()
            continue
        if which not in trees:
            trees[which] = _parse(source)
        tree = trees[which]
        if tree is not None:
            found[key] = calls_at(tree, line)
    return found


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
    path = Path(f"{proc}/{pid}/root{file}")
    stat = read_stat(proc / str(pid))
    if not file.startswith("/") or path.suffix != ".py" or stat is None:
        return None
    try:
        facts = path.stat()
        uptime_s = float((read_text(proc / "uptime", 64) or "0").split()[0])
        started = time.time() - uptime_s + stat.start_ticks / os.sysconf("SC_CLK_TCK")
        if not path.is_file() or facts.st_size > MAX_SOURCE_BYTES or facts.st_mtime > started + CLOCK_SLACK_S:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def _parse(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
