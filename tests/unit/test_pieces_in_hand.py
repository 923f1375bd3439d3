"""A coroutine that passes work on by design, and what others of its process wait for while it waits for an answer."""

from __future__ import annotations

import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Socket

LOOP = (
    "EpollSelector.select@selectors.py:468 BaseEventLoop._run_once@asyncio/base_events.py:1884 BaseEventLoop.run_forever@asyncio/base_events.py:607"
)


def task(number: int, awaited: Awaited, *functions: str) -> AsyncTask:
    chain = tuple(AwaitFrame(function=f, file="aiohttp/client.py" if f == "_request" else "app/serve.py", line=number) for f in functions)
    return AsyncTask(address=number, name=f"Task-{number}", chain=chain, awaited=awaited, stable=True, tid=103)


def tcp(local: int, remote: int | None, fd: int) -> Socket:
    there = f"127.0.0.1:{remote}" if remote is not None else None
    state = "ESTABLISHED" if remote is not None else "LISTEN"
    return Socket(family="tcp", state=state, local=f"127.0.0.1:{local}", remote=there, fd=fd, quiet_s=30.0 if remote is not None else None)


@pytest.mark.parametrize(("name", "has_piece"), [("dispatch", True), ("rollout_worker", True), ("heartbeat", False)])
def test_what_a_dispatcher_waits_for_others_wait_for_too(name: str, has_piece: bool) -> None:
    stacks = Stacks()
    tasks = (task(38, Awaited(kind="future", detail="Future", address=90), "complete"), task(44, Awaited(kind="socket", fd=9), name, "_request"))
    served = [tcp(5000, None, 6), tcp(5000, 4000, 7), tcp(4100, 6000, 9)]
    gateway = process(stacks, 103, "python serve.py", LOOP, kind="named", syscall=232, wchan="ep_poll", sockets=served, async_tasks=tasks)
    engine = process(stacks, 104, "python engine.py", "generate@app/engine.py:5", kind="named", sockets=[tcp(6000, None, 3), tcp(6000, 4100, 4)])
    edges = find_waits(build_view(snapshot(stacks.node([gateway, engine])))).graph.edges
    assert [(e.source, e.target) for e in edges] == ([("node1/103", "node1/104")] if has_piece else [])


def test_without_others_that_wait_it_is_at_rest() -> None:
    stacks = Stacks()
    tasks = (task(44, Awaited(kind="socket", fd=9), "dispatch", "_request"),)
    gateway = process(stacks, 103, "python serve.py", LOOP, kind="named", sockets=[tcp(4100, 6000, 9)], async_tasks=tasks)
    engine = process(stacks, 104, "python engine.py", "generate@app/engine.py:5", kind="named", sockets=[tcp(6000, None, 3), tcp(6000, 4100, 4)])
    assert find_waits(build_view(snapshot(stacks.node([gateway, engine])))).graph.edges == ()
