"""What does a loop look at, that pauses and looks again until something has come, and who brings it? Told from the source alone.

``while len(self.buffer) < size: time.sleep(0.1)`` looks at variables: only another thread can end it. ``while not path.exists()`` looks at a file,
``while is_alive(pid)`` at a process, ``while ray.get(buffer.batch.remote()) is None`` asks somebody. The names of the functions that the condition
calls tell which, and are all that is kept. A loop that goes round for ever, or gives up after a time or a number of rounds, looks at nothing.
Where a function that waits for a condition also brings what it waits for, as the handler of a broker's requests does, another call of it may end
the wait.

`source_lines` runs this file in a child that has the standard library alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

PAUSES = frozenset({"sleep", "sched_yield"})
"""Functions that pause; who only yields its core looks again at once."""
_PLAIN = frozenset(
    "abs all any bool dict enumerate float frozenset getattr hasattr int isinstance len list max min range reversed round set sorted str sum tuple "
    "zip".split()
)
"""Builtins that look at nothing but what they are given."""
_CLOCKS = frozenset({"time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns", "now", "utcnow"})
_MOST = 12
"""Names that are kept."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def looks_at(tree: ast.Module, line: int) -> tuple[str, ...] | None:
    """Names of the functions that a loop with a pause calls to see whether it may go on; empty where it looks at variables alone.

    Its line is that of the pause, or the one with its condition: who only yields its core is met there too.

    None: no loop, one that goes round for ever or gives up by itself, or one that a flag alone ends, such as a service's main thread.
    """
    function = next((n for n in reversed([*_around(tree, line)]) if isinstance(n, _Function)), tree)
    loop = next((n for n in reversed([*_around(function, line)]) if isinstance(n, ast.While)), None)
    pauses = [c for c in _calls(loop) if _name(c) in PAUSES] if loop is not None else []
    if loop is None or not (line == loop.lineno or any(line in (c.lineno, c.end_lineno) for c in pauses)) or not pauses:
        return None
    if any(_name(c) in _CLOCKS for c in _calls(loop)):
        return None
    looked = list(_conditions(loop))
    if not looked or _counts(loop, looked):
        return None
    looked += _made_in(loop, _variables(looked))
    names = dict.fromkeys(n for c in _called_by(tree, looked) if (n := _name(c)) is not None and n not in _PLAIN and n not in PAUSES)
    if not names and not any(_is_used(function, looked, v) or _is_counted(tree, v) for v in _variables(looked)):
        return None
    return tuple(names)[:_MOST]


def brings(tree: ast.Module, line: int) -> bool | None:
    """Does the function around a wait also bring what the wait is for: put into the queue, set the event, fill what the condition looks at?

    None: the line holds no such wait, or not what it is for.
    """
    function = next((n for n in reversed([*_around(tree, line)]) if isinstance(n, _Function)), None)
    waits = [c for c in _calls(function or tree) if line in (c.lineno, c.end_lineno) and _name(c) in _WAITS]
    if function is None or not waits:
        return None
    loop = next((n for n in reversed([*_around(function, line)]) if isinstance(n, ast.While) and not isinstance(n.test, ast.Constant)), None)
    asked: list[ast.AST] = [argument.body for c in waits for argument in c.args if isinstance(argument, ast.Lambda)]
    asked = asked or ([loop.test] if loop is not None else [c.func.value for c in waits if isinstance(c.func, ast.Attribute)])
    wanted = _variables(asked)
    for node in ast.walk(function):
        given = [node.func.value] if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GIVES else []
        given += node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        if any(_base(g) in wanted for g in given if not isinstance(g, ast.Name) or isinstance(node, ast.Call)) and not _is_behind(
            function, line, node
        ):
            return True
    return False


def _is_behind(function: _Function, line: int, node: ast.AST) -> bool:
    """Is it done after the wait alone? Another call comes to the wait first then: so are the places of a pool given back, which who waits wants."""
    at = getattr(node, "lineno", line)
    around = [n for n in _around(function, line) if isinstance(n, ast.If | ast.While | ast.For | ast.AsyncFor | ast.Match)]
    inside = all(n.lineno <= at <= (n.end_lineno or n.lineno) for n in around)
    beside = (part for n in around if isinstance(n, ast.If) for part in _other_branch(n, line))
    return at > line and inside and not any(part.lineno <= at <= (part.end_lineno or part.lineno) for part in beside)


def requests_bring(tree: ast.Module, line: int) -> bool | None:
    """Does what a coroutine waits for, or looks at again and again, come with another request to the same server?

    So it is where a route of the server brings it, as the line tells that makes a function one; or another branch of the same function, as the
    commands of a protocol are. What a request gives back when it is through is none: who waits for that has all others before it.

    None: the line holds no such wait, or not what it is for.
    """
    function = next((n for n in reversed([*_around(tree, line)]) if isinstance(n, _Function)), None)
    waits = [c for c in _calls(function or tree) if line in (c.lineno, c.end_lineno) and _name(c) in _WAITS]
    awaited = [n.value for n in ast.walk(function or tree) if isinstance(n, ast.Await) and n.lineno == line and not isinstance(n.value, ast.Call)]
    looks = looks_at(tree, line) == ()
    if function is None or not (waits or awaited or looks):
        return None
    loop = next((n for n in reversed([*_around(function, line)]) if isinstance(n, ast.While)), None)
    asked: list[ast.AST] = [argument.body for c in waits for argument in c.args if isinstance(argument, ast.Lambda)]
    asked += [loop.test] if looks and loop is not None else []
    wanted = _variables(asked)
    held = [*awaited, *(c.func.value for c in waits if isinstance(c.func, ast.Attribute)), *(a for c in waits for a in c.args[:1])]
    objects = _linked(function, {base for n in held if (base := _base(n)) not in (None, "asyncio")})
    beside = [n for test in ast.walk(function) if isinstance(test, ast.If) for n in _other_branch(test, line)]
    if any(_gives(n, wanted | objects, set()) or _wakes(n, objects) for n in beside):
        return True
    others = [n for n in ast.walk(tree) if isinstance(n, _Function) and n is not function and _is_route(tree, n)]
    return any(_gives(other, wanted | objects, _shared(other)) or _wakes(other, _linked(other, objects)) for other in others)


def _other_branch(test: ast.If, line: int) -> list[ast.stmt]:
    in_body, in_else = (any(n.lineno <= line <= (n.end_lineno or n.lineno) for n in branch) for branch in (test.body, test.orelse))
    return test.orelse if in_body else test.body if in_else else []


def _gives(part: ast.AST, wanted: set[str], shared: set[str]) -> bool:
    """Does it put something into one of these, or assign a variable that it shares?"""
    for node in ast.walk(part):
        given = [node.func.value] if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GIVES else []
        given += node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        if any(_base(g) in wanted for g in given if not isinstance(g, ast.Name) or isinstance(node, ast.Call) or g.id in shared):
            return True
    return False


def _shared(function: _Function) -> set[str]:
    return {name for n in ast.walk(function) if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}


def _linked(function: _Function, names: Iterable[str | None]) -> set[str]:
    """These and the variables that hold the same objects in a function: ``event = self.events[number]``, ``pending[number] = future``."""
    found = {name for name in names if name is not None}
    for node in [*ast.walk(function)] * 2:
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
            pairs = [(node.func.value, argument) for argument in node.args]
        else:
            continue
        for a, b in pairs:
            both = {base for n in (a, b) if (base := _base(_inside(n))) is not None}
            found |= both if both & found else set()
    return found


def _inside(node: ast.AST) -> ast.AST:
    """``self.pending`` of ``self.pending.pop(number)``."""
    return node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS else node


_KEEPS = frozenset({"append", "add", "setdefault", "get", "pop", "popleft"})


def _wakes(part: ast.AST, objects: set[str]) -> bool:
    """Does it tell those who wait at a condition to look again, set their event, or give their future a result?"""
    calls = (c for c in _calls(part) if isinstance(c.func, ast.Attribute) and c.func.attr in _WAKES)
    return any(_base(_inside(c.func.value)) in objects for c in calls if isinstance(c.func, ast.Attribute))


_WAKES = frozenset({"notify", "notify_all", "set", "set_result", "set_exception", "put", "put_nowait"})


def _is_route(tree: ast.Module, function: _Function) -> bool:
    """Is it decorated as a route, or handed to a call that makes one?"""
    decorators = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    if any(isinstance(d, ast.Attribute) and d.attr in _ROUTES for d in decorators):
        return True
    return any(_name(c) in _ROUTES and any(function.name == _base(a) for a in c.args) for c in _calls(tree))


_ROUTES = frozenset("get post put delete patch route api_route websocket add_get add_post add_put add_route add_api_route".split())


def goes_round(tree: ast.Module, line: int) -> bool | None:
    """Does a pause lie in a loop that nothing ends? Whoever is there keeps a rhythm, and has nothing in its hands while it pauses.

    None: the line holds no pause.
    """
    function = next((n for n in reversed([*_around(tree, line)]) if isinstance(n, _Function)), tree)
    if not any(line in (c.lineno, c.end_lineno) and _name(c) in PAUSES for c in _calls(function)):
        return None
    loop = next((n for n in reversed([*_around(function, line)]) if isinstance(n, ast.While | ast.For | ast.AsyncFor)), None)
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and not any(_ways_out(loop))


def gives_up(tree: ast.Module, line: int) -> bool | None:
    """Does a pause lie in a loop that a clock ends, by its condition or by a way out behind a look at the time?

    None: the line holds no pause.
    """
    function = next((n for n in reversed([*_around(tree, line)]) if isinstance(n, _Function)), tree)
    if not any(line in (c.lineno, c.end_lineno) and _name(c) in PAUSES for c in _calls(function)):
        return None
    loop = next((n for n in reversed([*_around(function, line)]) if isinstance(n, ast.While | ast.For | ast.AsyncFor)), None)
    if not isinstance(loop, ast.While):
        return False
    tests = [loop.test, *(n.test for around, _ in _ways_out(loop) for n in around if isinstance(n, ast.If))]
    return any(_name(c) in _CLOCKS for test in tests for c in _calls(test))


def ended_by(tree: ast.Module, line: int) -> tuple[str, ...] | None:
    """Methods of its class that set the flag which alone ends the loop around a pause; empty where none does.

    None: the line holds no pause, its loop ends otherwise, or the function around it sets the flag itself.
    """
    around = [*_around(tree, line)]
    function = next((n for n in reversed(around) if isinstance(n, _Function)), None)
    class_ = next((n for n in reversed(around) if isinstance(n, ast.ClassDef)), None)
    if function is None or class_ is None or not any(line in (c.lineno, c.end_lineno) and _name(c) in PAUSES for c in _calls(function)):
        return None
    loop = next((n for n in reversed([*_around(function, line)]) if isinstance(n, ast.While | ast.For | ast.AsyncFor)), None)
    flag = _flag(loop.test) if isinstance(loop, ast.While) and not any(_ways_out(loop)) else None
    if loop is None or flag is None or flag in _set_in(loop):
        return None
    methods = [m for m in class_.body if isinstance(m, _Function) and m is not function and m.name != "__init__"]
    return tuple(m.name for m in methods if flag in _set_in(m))[:_MOST]


def _flag(test: ast.AST) -> str | None:
    """``stopped`` of ``not self.stopped``, also of ``not self.stopped.is_set()``."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Call) and not test.args and _name(test) == "is_set" and isinstance(test.func, ast.Attribute):
        test = test.func.value
    is_own = isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name) and test.value.id == "self"
    return test.attr if is_own and isinstance(test, ast.Attribute) else None


def _set_in(node: ast.AST) -> set[str]:
    """Attributes that are assigned there, and events that are set or cleared."""
    found: set[str] = set()
    for one in ast.walk(node):
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AugAssign | ast.AnnAssign) else []
        found |= {t.attr for t in targets if isinstance(t, ast.Attribute)}
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in ("set", "clear"):
            found |= {one.func.value.attr} if isinstance(one.func.value, ast.Attribute) else set()
    return found


def takes(tree: ast.Module, line: int) -> bool | None:
    """Does a pause lie in a loop over what a coroutine is sent, piece by piece? Then it has one in its hands, unlike one that keeps a rhythm.

    None: the line holds no pause.
    """
    function = next((n for n in reversed([*_around(tree, line)]) if isinstance(n, _Function)), tree)
    if not any(line in (c.lineno, c.end_lineno) and _name(c) in PAUSES for c in _calls(function)):
        return None
    loop = next((n for n in reversed([*_around(function, line)]) if isinstance(n, ast.While | ast.For | ast.AsyncFor)), None)
    return isinstance(loop, ast.AsyncFor) or (isinstance(loop, ast.While) and any(isinstance(n, ast.Await) for n in ast.walk(loop.test)))


_WAITS = frozenset({"wait", "wait_for", "get"})
_GIVES = frozenset("append appendleft add put put_nowait extend insert update setdefault set release".split())


def _base(node: ast.AST) -> str | None:
    """The variable, or attribute by its last name, behind ``lists[name]``, ``self.answers[0]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _around(node: ast.AST, line: int) -> Iterator[ast.stmt]:
    """Statements that hold a line, the innermost last."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    yield from sorted(found, key=lambda n: n.lineno)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Call))


def _name(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else None


def _conditions(loop: ast.While) -> Iterator[ast.AST]:
    """What must hold, or come, before a loop is left: its own condition, else those of its ways out."""
    if not isinstance(loop.test, ast.Constant):
        yield loop.test
    for around, way_out in _ways_out(loop):
        if isinstance(way_out, ast.Raise):
            continue
        for node in around:
            if isinstance(node, ast.If):
                yield node.test
            elif isinstance(node, ast.With | ast.AsyncWith):
                yield from (item.context_expr for item in node.items)
            elif isinstance(node, ast.Try):  # what may raise is what it tries again
                yield from (n for n in node.body if isinstance(n, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return))


def _ways_out(loop: ast.While) -> Iterator[tuple[tuple[ast.AST, ...], ast.AST]]:
    """Statements that leave a loop, each with those around it inside of the loop, outermost first."""
    pending: list[tuple[tuple[ast.AST, ...], ast.AST, bool]] = [((), statement, True) for statement in loop.body]
    while pending:
        around, node, breaks = pending.pop()
        if isinstance(node, ast.Return | ast.Raise) or (isinstance(node, ast.Break) and breaks):
            yield around, node
        if isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            continue
        is_loop = isinstance(node, ast.While | ast.For | ast.AsyncFor)
        here = (*around, node)
        for field, value in ast.iter_fields(node):
            children = [c for c in (value if isinstance(value, list) else [value]) if isinstance(c, ast.stmt | ast.ExceptHandler | ast.match_case)]
            # what follows a failure was not tried in vain
            inner = around if isinstance(node, ast.Try) and field != "body" else here
            pending += [(inner, child, breaks and not is_loop) for child in children]


def _counts(loop: ast.While, looked: list[ast.AST]) -> bool:
    """Does it leave after a number of rounds? Then some condition looks at a variable that the loop itself changes without asking anybody."""
    counted = {n.target.id for n in ast.walk(loop) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and not any(_calls(n.value))}
    tests = [*looked, *(n.test for around, _ in _ways_out(loop) for n in around if isinstance(n, ast.If))]
    return any(isinstance(n, ast.Name) and n.id in counted for test in tests for n in ast.walk(test))


def _variables(looked: list[ast.AST]) -> set[str]:
    """Variables, and attributes by their last name, that conditions look at."""
    found: set[str] = set()
    for node in (n for test in looked for n in ast.walk(test)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
    called = {_name(c) for test in looked for c in _calls(test)}
    return {v for v in found if v not in called and v not in ("self", "cls")}


def _made_in(loop: ast.While, variables: set[str]) -> list[ast.AST]:
    """What the loop gives to the variables that it looks at."""
    found: list[ast.AST] = []
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if variables & {v for t in targets for v in _variables([t])}:
                found.append(node.value)
    return found


def _called_by(tree: ast.Module, looked: list[ast.AST]) -> Iterator[ast.Call]:
    """Calls of conditions, and those in functions of the same file that they call, or look at as properties."""
    direct = [c for test in looked for c in _calls(test)]
    yield from direct
    wanted = {_name(c) for c in direct} | {n.attr for test in looked for n in ast.walk(test) if isinstance(n, ast.Attribute)}
    for function in ast.walk(tree):
        if isinstance(function, _Function) and function.name in wanted:
            yield from (c for statement in function.body for c in _calls(statement))


def _is_counted(tree: ast.Module, variable: str) -> bool:
    """Is it an attribute that is counted up or down, as no signal sets a flag?"""
    counted = (n.target for n in ast.walk(tree) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add | ast.Sub))
    return any(isinstance(target, ast.Attribute) and target.attr == variable for target in counted)


def _is_used(function: ast.AST, looked: list[ast.AST], variable: str) -> bool:
    """Does the function do more with a variable than look at it and set it to a constant? Else it is a flag, which a signal may set."""
    inside = {id(n) for test in looked for n in ast.walk(test)}
    flags: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            flags |= {id(t) for t in node.targets}
        elif isinstance(node, ast.arguments):
            flags |= {id(n) for n in ast.walk(node)}
    return any(
        id(n) not in inside and id(n) not in flags and variable == (n.attr if isinstance(n, ast.Attribute) else n.id)
        for n in ast.walk(function)
        if isinstance(n, ast.Attribute | ast.Name)
    )
