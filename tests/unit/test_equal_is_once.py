"""What is equal is looked at once: looks of one process, ranks at one place, coroutines that many ask about."""

from __future__ import annotations

from ray_rl_debug.analyze import stacks as known_stacks
from ray_rl_debug.analyze.coroutines import find_ends
from ray_rl_debug.analyze.main_activity import Looks
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits_ranks import site_of, split_by_site
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame
from tests.unit.scenes import ALL_REDUCE, BARRIER, Stacks, process, snapshot

STEP = "step@/srv/train.py:36 <module>@/srv/train.py:60"


def test_equal_looks_are_one() -> None:
    made = Stacks()
    one = process(made, 100, "python train.py", f"{ALL_REDUCE} {STEP}", f"{ALL_REDUCE} {STEP}", f"{BARRIER} {STEP}")
    looks = Looks(known_stacks.Stacks(), made.node([one]), one)
    first, second, third = map(looks.see, one.samples)
    assert first is second
    assert [t.place.op for t in first[:1] + third[:1]] == ["all_reduce", "barrier"]


def test_ranks_are_split_by_their_call_in_their_order() -> None:
    made = Stacks()
    calls = [ALL_REDUCE, BARRIER, ALL_REDUCE, BARRIER, ALL_REDUCE]
    ranks = [process(made, 100 + r, "python train.py", f"{call} {STEP}", rank=r, size=5, kind="named") for r, call in enumerate(calls)]
    members = list(build_view(snapshot(made.node(ranks))))
    sites = split_by_site(members)
    assert [op for op, _ in sites] == ["all_reduce", "barrier"]
    assert [[m.identity.rank for m in some] for some in sites.values()] == [[0, 2, 4], [1, 3]]
    assert all(site_of(m) == site for site, some in sites.items() for m in some)


def test_the_ends_of_coroutines_are_found_once() -> None:
    chain = (AwaitFrame(function="episode", file="/job/agent.py", line=10),)
    task = AsyncTask(address=1, name="Task-1", chain=chain, awaited=Awaited(kind="future"), loop=1, tid=200, stable=True)
    made = Stacks()
    agent = process(made, 200, "python agent.py", STEP, kind="named", async_tasks=(task,))
    seen = {one.process.pid: one for one in build_view(snapshot(made.node([agent, process(made, 300, "python idle.py", STEP, kind="named")])))}
    assert seen[200].ends == find_ends(agent)
    assert seen[200].ends is seen[200].ends
    assert [end.at for end in seen[200].ends] == ["episode (agent.py:10)"]
    assert seen[300].ends == ()
