"""Which lock does a line take, and which does it hold? Told from the source alone.

CPython's plain lock does not know its owner. ``with self.lock:`` leaves no frame while it waits, and the thread that has the lock shows a line
inside of such a block. The name of the lock tells that both mean the same one where all of a file agree on it: a variable of the module, an
attribute that a class sets on ``self``, a local variable that inner functions use. A parameter, or an attribute of something else, may be any lock.

`source_lines` runs this file in a child that has the standard library alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_With = ast.With | ast.AsyncWith


def wants(tree: ast.Module, line: int) -> str | None:
    """The lock that a line takes as it enters a ``with`` or calls ``acquire``; None where it takes none, or its name does not tell which."""
    around = [*_around(tree, line)]
    for node in around:
        if isinstance(node, _With) and line < node.body[0].lineno:
            at_line = [i.context_expr for i in node.items if i.context_expr.lineno <= line <= (i.context_expr.end_lineno or line)]
            return _named(around, at_line[0]) if len(at_line) == 1 else None
    inner = around[-1] if around else tree
    calls = (n for n in ast.walk(inner) if isinstance(n, ast.Call) and line in (n.lineno, n.end_lineno))
    taken = [c.func.value for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "acquire" and not c.args and not c.keywords]
    return _named(around, taken[0]) if len(taken) == 1 else None


def under(tree: ast.Module, line: int) -> tuple[str, ...]:
    """The locks of the ``with`` statements around a line, in the innermost function that holds it, outermost first."""
    around = [*_around(tree, line)]
    innermost = max((i for i, node in enumerate(around) if isinstance(node, _Function)), default=-1)
    blocks = [n for n in around[innermost + 1 :] if isinstance(n, _With) and n.body[0].lineno <= line]
    names = (_named(around, item.context_expr) for block in blocks for item in block.items)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _named(around: list[ast.stmt], lock: ast.expr) -> str | None:
    """``STATE``, ``main.lock``, ``Buffer.lock``: a name that means one lock wherever the file uses it; of a class one for each object of it."""
    scopes = [n for n in around if isinstance(n, _Function | ast.ClassDef)]
    if isinstance(lock, ast.Attribute) and isinstance(lock.value, ast.Name) and lock.value.id in ("self", "cls"):
        owner = next((n.name for n in reversed(scopes) if isinstance(n, ast.ClassDef)), None)
        return f"{owner}.{lock.attr}" if owner is not None else None
    if not isinstance(lock, ast.Name):
        return None
    for depth in range(len(scopes), 0, -1):
        scope = scopes[depth - 1]
        if not isinstance(scope, _Function):
            continue  # names of a class are not seen in its methods
        bound, of_module = _bound(scope)
        if lock.id in of_module:
            break
        if lock.id in _parameters(scope):
            return None
        if lock.id in bound:
            return ".".join([*(s.name for s in scopes[:depth]), lock.id])
    return lock.id


def _parameters(function: _Function) -> set[str]:
    of = function.args
    return {a.arg for a in (*of.posonlyargs, *of.args, *of.kwonlyargs, *(x for x in (of.vararg, of.kwarg) if x is not None))}


def _bound(function: _Function) -> tuple[set[str], set[str]]:
    """Local variables of a function, by any statement of its own that binds one; and the names that it declares to be the module's."""
    found: set[str] = set()
    outer: set[str] = set()
    of_module: set[str] = set()
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Global):
            of_module.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            outer.update(node.names)
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)
    return found - outer - of_module, of_module


def _around(tree: ast.Module, line: int) -> Iterator[ast.stmt]:
    """Statements that hold a line, the innermost last."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    yield from sorted(found, key=lambda n: (n.lineno, -(n.end_lineno or n.lineno)))
