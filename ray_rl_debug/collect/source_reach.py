"""Can a function hand anything to the rest of its program? A heartbeat cannot, and so it wakes nobody who waits at a queue.

Told from the source alone: a function is *apart* if it uses its own variables, builtins, plain constants of its file, harmless parts of the standard
library, and functions that are apart themselves, in its file or in one beside it. Whatever else it names, a parameter, ``self``, a queue of the
module, a package, may be what somebody waits for. So the answer *apart* is trusted, and any other means that nobody knows.

`source_lines` runs this file in a child that has the standard library alone.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator

_HARMLESS = frozenset(
    "bin bool bytes chr dict divmod enumerate float format hash hex int isinstance len list max min oct open ord pow print range repr reversed round "
    "set slice sorted str sum tuple zip abs all any".split()
)
"""Builtins that reach nothing but what they are given."""
_MODULES = frozenset(
    "time datetime pathlib json math random statistics string re uuid shutil tempfile platform hashlib base64 struct textwrap".split()
)
"""Modules that neither start threads nor know what the program holds."""
_PARTS = {
    "os": frozenset(
        "environ getenv getpid getppid path makedirs mkdir listdir stat replace rename remove unlink utime getloadavg cpu_count uname sep".split()
    ),
    "asyncio": frozenset({"sleep"}),
    "anyio": frozenset({"sleep", "current_time"}),
    "sys": frozenset({"argv", "platform", "version", "executable"}),
}
"""Of these modules only some parts."""
_MOST = 30
"""Functions that are followed; one that needs more is no heartbeat."""

Find = Callable[[str], ast.Module | None]
"""The module of a name that lies beside the file; None where there is none."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_apart(tree: ast.Module, line: int, find: Find) -> bool:
    """Does the function around a line, called without arguments, hand nothing to the rest of the program, as far as the source tells?"""
    around = [n for n in ast.walk(tree) if isinstance(n, _Function) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    if len(around) != 1 or around[0] not in tree.body or any(_arguments(around[0])):
        return False
    return _Reach(find).function_is_apart(tree, around[0])


class _Reach:
    def __init__(self, find: Find) -> None:
        self._find = find
        self._seen: list[_Function] = []

    def function_is_apart(self, tree: ast.Module, function: _Function) -> bool:
        """Its own body, and all that it calls in its file and in those beside it."""
        if any(function is one for one in self._seen):
            return True
        self._seen.append(function)
        if len(self._seen) > _MOST or function.decorator_list:
            return False
        own = {*_arguments(function), *(n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))}
        own |= {n.name for n in ast.walk(function) if isinstance(n, ast.ExceptHandler) and n.name}
        parts: set[int] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom | ast.Lambda | ast.ClassDef):
                return False
            if isinstance(node, _Function) and node is not function:
                return False
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
                return False  # it changes something, and nobody knows whose
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in own:
                if not self._part_is_apart(tree, node.value.id, node.attr):
                    return False
                parts.add(id(node.value))
            if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
                return False
        names = (n for n in _body(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in own and id(n) not in parts)
        return all(self._name_is_apart(tree, name.id) for name in names)

    def _part_is_apart(self, tree: ast.Module, name: str, part: str) -> bool:
        """``time.sleep``, ``kit.folder``, ``LIMIT.real``."""
        module = _imported(tree, name)
        if module is None:
            return self._name_is_apart(tree, name)
        return self._is_harmless(module, part)

    def _name_is_apart(self, tree: ast.Module, name: str) -> bool:
        made = [n for n in tree.body if name in _made(n)]
        if not made:
            kind = getattr(builtins, name, None)
            return name in _HARMLESS or (isinstance(kind, type) and issubclass(kind, BaseException))
        if len(made) > 1 or any(name in n.names for n in ast.walk(tree) if isinstance(n, ast.Global)):
            return False
        one = made[0]
        if isinstance(one, _Function):
            return self.function_is_apart(tree, one)
        if isinstance(one, ast.ImportFrom) and not one.level and one.module is not None:
            return self._is_harmless(one.module, next(a.name for a in one.names if (a.asname or a.name) == name))
        return isinstance(one, ast.Assign | ast.AnnAssign) and isinstance(one.value, ast.Constant)

    def _is_harmless(self, module: str, part: str) -> bool:
        root = module.partition(".")[0]
        if root in _PARTS or root in _MODULES or root in sys.stdlib_module_names:
            return module in _MODULES or part in _PARTS.get(module, ())
        tree = self._find(module)
        return tree is not None and self._name_is_apart(tree, part)


def _body(function: _Function) -> Iterator[ast.AST]:
    """What runs when it is called: annotations and defaults do not."""
    for statement in function.body:
        yield from ast.walk(statement)


def _arguments(function: _Function) -> Iterator[str]:
    a = function.args
    for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
        if argument is not None:
            yield argument.arg


def _imported(tree: ast.Module, name: str) -> str | None:
    """The module that a name of the file stands for."""
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if (alias.asname or alias.name.partition(".")[0]) == name:
                    return alias.name if alias.asname else alias.name.partition(".")[0]
    return None


def _made(statement: ast.stmt) -> set[str]:
    """Names that a statement of a module makes; those inside of ``if`` and ``try`` as well."""
    if isinstance(statement, _Function | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).partition(".")[0] for a in statement.names}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
