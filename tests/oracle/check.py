"""Does `solve` agree with the simulator? Four questions to each look at a run.

1. The hope of every task is the best that may become of it (`prospects.py`), also when some processes are hidden.
2. Nobody with the hope STANDS ever moves in the rest of the run; in small programs, in any run.
3. At the stop, whoever has not ended has the hope STANDS, but for the hearts that beat for ever.
4. Who frees all roots frees everybody; and a root stays even if everybody outside of it goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from oracle import program as p
from oracle.generate import random_program
from oracle.prospects import freed_by, prospects
from oracle.simulator import ALIVE, ENDED, World, run
from oracle.translation import Translation

from ray_rl_debug.analyze import roots as roots_module
from ray_rl_debug.analyze import solve as solve_module
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.solve import Activity, Outlook, Solution, Wait

Solve = Callable[[Iterable[Activity], Iterable[Wait]], Solution]
Roots = Callable[[Solution], tuple[Root, ...]]

_State = tuple[object, ...]
_Steps = list[tuple[tuple[str, ...], _State]]
"""Out of one state: who moves, and what state follows."""


class Law:
    """What is judged; errors are planted here."""

    def __init__(self, solve: Solve = solve_module.solve, roots: Roots = roots_module.roots) -> None:
        self.solve = solve
        self.roots = roots


def disagreement(program: p.Program, seed: int, law: Law) -> str | None:
    """What is wrong in one run of a program; the run and the moments of looking follow from the seed."""
    rng = random.Random(seed)
    world = World(program)
    looks = {rng.randint(0, 25) for _ in range(3)}
    hung: set[str] = set()
    for number, move in enumerate(run(world, rng)):
        if number in looks:
            wrong, found = _look(world, law, rng)
            if wrong is not None:
                return wrong
            hung |= found
        if hung.intersection(move.movers):
            return f"{sorted(hung.intersection(move.movers))} had no hope, and moved"
    wrong, found = _look(world, law, rng)
    expected = {task for task, status in world.status.items() if status != ENDED and not (isinstance(world.op(task), p.Beat) and world.may_run(task))}
    if wrong is None and found - {t for t, s in world.status.items() if s == ENDED} != expected:
        return f"at the stop {sorted(expected)} hang, and {sorted(found)} have no hope"
    return wrong


def _look(world: World, law: Law, rng: random.Random) -> tuple[str | None, set[str]]:
    """What is wrong at one moment, and who has no hope."""
    processes = sorted({task.process for task in world.program.tasks.values()})
    hidden = frozenset(rng.sample(processes, min(rng.randint(1, 2), len(processes))))
    seen: dict[bool, set[str]] = {}
    for unseen in (frozenset[str](), hidden):
        view = Translation(world, unseen, half_seen=rng.random() < 0.5)
        solution = law.solve(view.activities.values(), view.waits)
        for task, best in prospects(world, unseen).items():
            hope = solution.hope.get(task, Outlook.UNSEEN)
            if hope != best:
                hiding = f" when {sorted(unseen)} are hidden" if unseen else ""
                return f"{task} has the hope {hope.name}, and the best that may become of it is {best.name}{hiding}", set()
        seen[bool(unseen)] = {task for task in world.program.tasks if solution.hope.get(task) == Outlook.STANDS}
        if not unseen:
            wrong = _wrong_roots(world, solution, law.roots(solution))
            if wrong is not None:
                return wrong, set()
    if not seen[True] <= seen[False]:
        return f"{sorted(seen[True] - seen[False])} have no hope only because {sorted(hidden)} are hidden", set()
    return None, seen[False]


def _wrong_roots(world: World, solution: Solution, roots: tuple[Root, ...]) -> str | None:
    tasks = set(world.program.tasks)
    stands = {task for task in tasks if solution.hope[task] == Outlook.STANDS and world.status[task] != ENDED}
    accused = {name for root in roots for name in root.nodes}
    # a queue that nobody fills is a root without a task: freeing tasks does not help those who wait for it
    beyond_help = {waiter for root in roots if not tasks.intersection(root.nodes) for waiter in root.waiters}
    left = stands - beyond_help - freed_by(world, accused & tasks)
    if left:
        return f"{sorted(left)} would still stand if all roots {sorted(accused)} went on"
    for root in roots:
        inside = tasks.intersection(root.nodes)
        lifted = inside & freed_by(world, tasks - inside) if stands & inside else set()
        if lifted:
            return f"the root {root.nodes} is none: {sorted(lifted)} would go on if the others did"
    return None


def moves_of_a_hung_task(program: p.Program, law: Law, most_states: int = 400) -> str | None:
    """Question 2 in every run of a small program; no answer for a program with too many states."""
    following: dict[_State, _Steps] = {}
    first = World(program)
    pending = [first]
    worlds: dict[_State, World] = {first.key(): first}
    while pending:
        world = pending.pop()
        steps: _Steps = []
        for move in world.moves():
            after = world.copy()
            after.apply(move)
            key = after.key()
            steps.append((move.movers, key))
            if key not in worlds:
                worlds[key] = after
                pending.append(after)
        following[world.key()] = steps
        if len(worlds) > most_states:
            return None
    later: dict[_State, set[str]] = {}
    for key in _last_first(following):
        later[key] = {task for movers, after in following[key] for task in (*movers, *later[after])}
        world = worlds[key]
        view = Translation(world)
        hope = law.solve(view.activities.values(), view.waits).hope
        wrong = {task for task in later[key] if hope[task] == Outlook.STANDS}
        if wrong:
            return f"{sorted(wrong)} have no hope, and move in some run"
    return None


def _last_first(following: dict[_State, _Steps]) -> list[_State]:
    """States, each after all that follow it; there is no way back, since every move uses up an operation."""
    order: list[_State] = []
    done: set[_State] = set()
    for start in following:
        path = [(start, iter(following[start]))] if start not in done else []
        done.add(start)
        while path:
            for _, after in path[-1][1]:
                if after not in done:
                    done.add(after)
                    path.append((after, iter(following[after])))
                    break
            else:
                order.append(path.pop()[0])
    return order


def shrink(program: p.Program, fails: Callable[[p.Program], bool]) -> p.Program:
    """A small program that still fails: tasks emptied, operations left out, also inside of calls, as long as one of these keeps it failing."""
    while True:
        smaller = next((candidate for candidate in _smaller(program) if fails(candidate)), None)
        if smaller is None:
            return program
        program = smaller


def _smaller(program: p.Program) -> Iterator[p.Program]:
    for name, task in program.tasks.items():
        if task.code and not isinstance(task.code[0], p.Serve):
            yield _with_code(program, name, ())
    for name, task in program.tasks.items():
        for code in _shorter(task.code):
            yield _with_code(program, name, code)


def _shorter(code: tuple[p.Op, ...]) -> Iterator[tuple[p.Op, ...]]:
    for i, op in enumerate(code):
        if not isinstance(op, p.Serve):
            yield (*code[:i], *code[i + 1 :])
        if isinstance(op, p.Call):
            yield from ((*code[:i], replace(op, code=inner), *code[i + 1 :]) for inner in _shorter(op.code))


def _with_code(program: p.Program, name: str, code: tuple[p.Op, ...]) -> p.Program:
    return replace(program, tasks={**program.tasks, name: replace(program.tasks[name], code=code)})


def check_many(seeds: Iterable[int], law: Law | None = None) -> str | None:
    """The first program that fails, with its seed, made small; None if all agree."""
    law = law or Law()
    for seed in seeds:
        program = random_program(random.Random(seed))
        wrong = disagreement(program, seed, law)
        if wrong is not None:
            small = shrink(program, lambda candidate, seed=seed: disagreement(candidate, seed, law) is not None)  # type: ignore[misc]
            return f"seed {seed}: {wrong}\nmade small: {disagreement(small, seed, law)}\n{small}"
    return None


def ends_stuck(seed: int) -> bool:
    """Somebody other than an idle lane or a heart is left when nothing can happen any more."""
    world = World(random_program(random.Random(seed)))
    for _ in run(world, random.Random(seed)):
        pass
    return any(status == ALIVE and not isinstance(world.op(task), p.Beat | p.Serve) for task, status in world.status.items())
