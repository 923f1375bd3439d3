"""The law of waiting agrees with a simulator that knows who can never move again; and the comparison finds errors.

More programs: ``PYTHONPATH=tests python -m oracle --programs 20000``.
"""

from __future__ import annotations

import random

import pytest
from oracle import program as p
from oracle.check import Law, check_many, disagreement, ends_stuck, moves_of_a_hung_task
from oracle.generate import random_program
from oracle.mutants import planted
from oracle.prospects import prospects
from oracle.simulator import ALIVE, World, run
from oracle.translation import Translation

from ray_rl_debug.analyze.roots import roots
from ray_rl_debug.analyze.solve import Outlook, solve

PROGRAMS = 1_000
LAWS = planted()


def test_hope_and_roots_agree_with_the_simulator() -> None:
    assert (wrong := check_many(range(PROGRAMS))) is None, wrong


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_hope_and_roots_agree_in_twenty_thousand_programs() -> None:
    assert (wrong := check_many(range(20_000))) is None, wrong


def test_who_has_no_hope_moves_in_no_run_of_a_small_program() -> None:
    for seed in range(60):
        wrong = moves_of_a_hung_task(random_program(random.Random(seed), size=2), Law())
        assert wrong is None, f"small program of seed {seed}: {wrong}"


def test_many_programs_end_stuck_and_many_end_well() -> None:
    assert 0.25 < sum(ends_stuck(seed) for seed in range(300)) / 300 < 0.75


@pytest.mark.parametrize("error", LAWS)
def test_a_planted_error_is_found(error: str) -> None:
    wrong = check_many(range(3_000), LAWS[error])
    assert wrong is not None
    assert wrong.startswith("seed ")


def test_a_failing_program_is_made_small() -> None:
    wrong = check_many(range(3_000), LAWS["a ring lifts itself"])
    assert wrong is not None
    operations = [op for line in wrong.splitlines()[2:] if "/" in line for op in line.split(": ", 1)[1].split("; ")]
    assert 1 <= len(operations) <= 8, wrong


def threads(**codes: tuple[p.Op, ...]) -> dict[str, p.Task]:
    return {name: p.Task("p", code) for name, code in codes.items()}


LOCKS = {"x": p.Resource(), "y": p.Resource()}
BEHIND_A_BARRIER = (p.Join("both", "barrier"),)
"""So that both hold their first lock before either asks for its second."""
BY_HAND: dict[str, tuple[p.Program, set[str], set[str]]] = {
    "two locks in two orders": (
        p.Program(
            threads(a=(p.Take("x"), *BEHIND_A_BARRIER, p.Take("y")), b=(p.Take("y"), *BEHIND_A_BARRIER, p.Take("x")), c=(p.Reap(("a",)),)),
            resources=LOCKS,
            groups={"both": ("a", "b")},
        ),
        {"a", "b", "c"},
        {"a", "b", "x", "y"},
    ),
    "a lock whose holder has ended": (
        p.Program(threads(a=(p.Take("x"), p.Set("taken")), b=(p.Wait(("taken",)), p.Take("x"))), resources=LOCKS),
        {"b"},
        {"a"},
    ),
    "recv against all_reduce": (
        p.Program(
            threads(a=(p.Recv(("b to a",)), p.Join("all", "all_reduce")), b=(p.Join("all", "all_reduce"), p.Send("b to a"))),
            channels={"b to a": p.Channel("b", "a", 1)},
            groups={"all": ("a", "b")},
        ),
        {"a", "b"},
        {"a", "b", "all_reduce of all"},
    ),
    "two collectives of one group": (
        p.Program(threads(a=(p.Join("all", "barrier"),), b=(p.Join("all", "broadcast"),)), groups={"all": ("a", "b")}),
        {"a", "b"},
        {"a", "b", "barrier of all", "broadcast of all"},
    ),
    "a call to itself": (
        p.Program(
            threads(main=(p.Call("actor", "r", (p.Call("actor", "inner"), p.Collect(("inner",)))), p.Collect(("r",))), lane=(p.Serve("actor"),)),
            servers={"actor": ("lane",)},
        ),
        {"main", "lane"},
        {"lane", "call inner"},
    ),
    "a second lane helps": (
        p.Program(
            threads(
                main=(p.Call("actor", "r", (p.Call("actor", "inner"), p.Collect(("inner",)))), p.Collect(("r",))),
                one=(p.Serve("actor"),),
                two=(p.Serve("actor"),),
            ),
            servers={"actor": ("one", "two")},
        ),
        {"one", "two"},
        {"one", "two"},  # idle lanes: nobody is left who could call them
    ),
    "any of two results": (
        p.Program(
            threads(
                main=(p.Call("bad", "r1", (p.Wait(("never",)),)), p.Call("good", "r2"), p.Collect(("r1", "r2"), any=True)),
                lane1=(p.Serve("bad"),),
                lane2=(p.Serve("good"),),
            ),
            servers={"bad": ("lane1",), "good": ("lane2",)},
        ),
        {"lane1", "lane2"},
        {"lane1", "lane2"},
    ),
    "a coroutine that blocks its loop": (
        p.Program(
            {
                "a": p.Task("p", (p.Hold(), p.Wait(("set by b",)), p.Free()), loop="loop"),
                "b": p.Task("p", (p.Sleep(), p.Sleep(), p.Set("set by b")), loop="loop"),
                "other": p.Task("q", (p.Beat(),)),
            }
        ),
        {"a", "b"},
        {"a", "b", "loop loop"},
    ),
    "a lock that another thread's end gives back": (
        p.Program(
            {
                "holder": p.Task("p", (p.Take("flock"), p.Wait(("nobody sets it",)))),
                "ends it": p.Task("p", (p.Sleep(), p.Sleep(), p.Sleep(), p.Die())),
                "waits": p.Task("q", (p.Take("flock"),)),
                "reaps": p.Task("r", (p.Reap(("holder",)),)),
            },
            resources={"flock": p.Resource(units=1, freed_at_death=True)},
        ),
        set(),
        set(),
    ),
    "a dead producer": (
        p.Program({"a": p.Task("p", (p.Put("q"), p.Die(), p.Put("q"))), "b": p.Task("r", (p.Get("q"), p.Get("q")))}, queues={"q": p.Queue(None)}),
        {"b"},
        {"items of q"},
    ),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_programs_that_a_person_can_judge(case: str) -> None:
    """Who hangs in the end in the simulator, and which roots the law names, idle and ended tasks aside."""
    program, hung, named = BY_HAND[case]
    for seed in range(20):
        world = World(program)
        for _ in run(world, random.Random(seed)):
            pass
        if case == "a coroutine that blocks its loop" and not world.loops:
            continue  # the other coroutine was faster
        assert {task for task, status in world.status.items() if status == ALIVE and not isinstance(world.op(task), p.Beat)} == hung
        assert {task for task, best in prospects(world).items() if best is Outlook.STANDS and world.status[task] == ALIVE} == hung
        view = Translation(world)
        waited_for = [root for root in roots(solve(view.activities.values(), view.waits)) if root.waiters or hung.intersection(root.nodes)]
        assert {name for root in waited_for for name in root.nodes} == named
        assert disagreement(program, seed, Law()) is None
