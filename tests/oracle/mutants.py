"""The law with one planted error: a line of its source is replaced, all else stays."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from types import ModuleType

import msgspec
from oracle.check import Law

from ray_rl_debug.analyze import roots, solve
from ray_rl_debug.analyze.solve import Activity, Outlook, Solution, Wait

SOLVE = {
    "any_of is taken as all_of": ("sorted(waits)", "sorted(msgspec.structs.replace(w, any_of=(n,)) for w in waits for n in w.any_of)"),
    "only the first of any_of counts": ("for name in wait.any_of:", "for name in wait.any_of[:1]:"),
    "one wait that can end is enough": ("if unmet[waiter] == 0 and", "if"),
    "each helper of a wait counts as one wait": ("if ways_out[number] == 0:", "if True:"),
    "help goes one step only": ("risen.append(waiter)", "pass"),
    "one wait is missing": ("sorted(waits)", "sorted(waits)[1:]"),
    "a wait that nobody could end is no wait": ("sorted(waits)", "sorted(w for w in waits if w.any_of)"),
    "who waits for nothing goes on": ("or DOUBT[activity.certainty]]", "or (0 if name in unmet else 5)]"),
    "who was not seen stands": ("Activity(id=name, outlook=Outlook.UNSEEN", "Activity(id=name, outlook=Outlook.STANDS"),
    "who was not seen moves": ("Activity(id=name, outlook=Outlook.UNSEEN", "Activity(id=name, outlook=Outlook.MOVES"),
    "known waits heal the unseen": ("and known[waiter].outlook is not Outlook.UNSEEN", ""),
    "a time limit hides who helps": ("outlook is not Outlook.UNSEEN", "outlook is Outlook.STANDS"),
    "WAKES and UNSEEN are swapped": ("Outlook.UNSEEN, Outlook.WAKES, Outlook.MOVES)", "Outlook.WAKES, Outlook.UNSEEN, Outlook.MOVES)"),
    "sleepers count as moving": ("_LEVELS[activity.outlook]", "(_LEVELS[activity.outlook] + (activity.outlook == 2))"),
}
ROOTS = {
    "waiters on the way are roots too": ("if len(finer) == len(part)", "if True or len(finer) == len(part)"),
    "a root must have no exit": ("if waits or not keeping[name]}", "if len(waits) == len(keeping[name])}"),
    "a root is one activity": ("members[part[name]].append(name)", "members[part[name]] = [name]"),
    "low links are not passed on": ("low[path[-1][0]] = min(low[path[-1][0]], low[node])", "pass"),
}


def planted() -> dict[str, Law]:
    """All laws with one error, by what is wrong with them."""
    laws = {name: Law(solve=_changed(solve, old, new).solve) for name, (old, new) in SOLVE.items()}
    laws |= {name: Law(roots=_changed(roots, old, new).roots) for name, (old, new) in ROOTS.items()}
    return laws | {"a ring lifts itself": Law(solve=_ring_lifted)}


def _changed(module: ModuleType, old: str, new: str) -> ModuleType:
    """A copy of the module with other functions; its structs and enums stay the same classes, so that facts fit both."""
    source = inspect.getsource(module)
    assert old in source, f"{module.__name__} has no {old!r} any more: plant this error where its code is now"
    tree = ast.parse(source.replace(old, new))
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ClassDef) and node.bases)]
    copy = ModuleType(module.__name__)
    vars(copy).update(vars(module))
    exec(compile(tree, module.__name__, "exec"), vars(copy))
    return copy


def _ring_lifted(activities: Iterable[Activity], waits: Iterable[Wait]) -> Solution:
    """The greatest fixpoint instead of the least: all have hope until somebody takes it."""
    waits = list(waits)
    solution = solve.solve(activities, waits)
    hope = dict.fromkeys(solution.hope, Outlook.MOVES)
    before: dict[str, Outlook] = {}
    while hope != before:
        before = dict(hope)
        ways: dict[str, Outlook] = {}
        for wait in waits:
            way_out = max((hope[name] for name in wait.any_of), default=Outlook.STANDS)
            ways[wait.waiter] = min(way_out, ways.get(wait.waiter, Outlook.MOVES))
        for name, activity in solution.activities.items():
            is_unseen = activity.outlook is Outlook.UNSEEN
            hope[name] = Outlook.UNSEEN if is_unseen else max(activity.outlook, ways.get(name, Outlook.STANDS))
    return msgspec.structs.replace(solution, hope=hope)
