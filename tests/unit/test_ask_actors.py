"""Which actors may be asked for their coroutines, what comes of it, and that each call has its deadline."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
from scenes import MAIN, NODE_ID, Stacks, actor, core, process, ray_state, snapshot

from ray_rl_debug.capture.quiet_actors import choose_actors, with_answers
from ray_rl_debug.cluster.ask_actors import ask_actors
from ray_rl_debug.cluster.driver_messages import AskActors, Called, Told
from ray_rl_debug.in_job import task_helper
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap, Snapshot

LOOP = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607 run@threading.py:982"
BLOCKED = "call@/job/agent.py:4 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607 run@threading.py:982"
ANSWER = b'[{"address": 7, "name": "Task-7", "chain": [{"function": "Agent.episode", "file": "agent.py", "line": 3}], "awaited": {"kind": "event"}}]'


def scene(loop: str | None = LOOP, *, queued: int | None = 0, name: str | None = "agent", state: str = "S", tasks: Any = None) -> Snapshot:
    stacks = Stacks()
    threads = [("AsyncIO Thread: default", loop)] if loop else []
    one = process(stacks, 100, "ray::Agent.run", MAIN, extra_threads=threads, async_tasks=tasks, state=state)
    gap = Gap(id=gaps.ASYNC_UNREAD, where="node1/100", what="asyncio tasks", reason="no known layout of CPython 3.99")
    node = msgspec.structs.replace(stacks.node([one]), gaps=(gap,))
    cores = [msgspec.structs.replace(core(100, running=[1], actor_number=1), queue_length=queued)]
    return snapshot(node, ray_state(actors=[actor(1, "Agent", 100, name=name, namespace="job")], cores=cores))


def chosen(whole: Snapshot) -> list[Any]:
    assert whole.ray is not None
    return choose_actors(whole.ray.actors, whole.ray.core_workers, whole.nodes)


def test_an_idle_loop_that_could_not_be_read_is_asked() -> None:
    ((found, node, one),) = chosen(scene())
    assert (found.name, node.name, one.pid) == ("agent", "node1", 100)


def test_nobody_else_is_asked() -> None:
    assert chosen(scene(tasks=())) == []  # it was read
    assert chosen(scene(loop=None)) == []  # a synchronous actor
    assert chosen(scene(BLOCKED)) == []
    assert chosen(scene(queued=3)) == []
    assert chosen(scene(queued=None)) == []
    assert chosen(scene(name=None)) == []
    assert chosen(scene(state="T")) == []


def test_an_answer_closes_the_gap() -> None:
    whole = scene()
    asked = chosen(whole)
    node = with_answers({NODE_ID: whole.nodes[0]}, asked, {asked[0][0].actor_id: ANSWER})[NODE_ID]
    assert node.gaps == ()
    (task,) = node.processes[0].async_tasks or ()
    assert (task.name, task.chain[0].function) == ("Task-7", "Agent.episode")


def test_no_answer_leaves_it_open() -> None:
    whole = scene()
    for said in (b"", b"no JSON", b'{"a": 1}'):
        node = with_answers({NODE_ID: whole.nodes[0]}, chosen(whole), {"1" * 32: said, f"{1:032x}": said})[NODE_ID]
        assert (node.processes[0].async_tasks, len(node.gaps)) == (None, 1)


def test_each_actor_is_answered_for_within_the_deadline() -> None:
    class Ray:
        cloudpickle = SimpleNamespace(register_pickle_by_value=lambda module: None)

        @staticmethod
        def get_actor(name: str, namespace: str) -> Any:
            if name == "gone":
                raise ValueError(f"no {name} in {namespace}")
            return SimpleNamespace(__ray_call__=SimpleNamespace(remote=lambda call: (name, call)))

        @staticmethod
        def wait(refs: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
            assert (num_returns, timeout <= 0.2) == (1, True)
            return [r for r in refs if r[0] == "good"][:1], []

        @staticmethod
        def get(ref: Any, timeout: float) -> bytes:
            assert timeout == 1.0
            return bytes(ref[1](None))

    said: list[Told] = []
    names = ("good", "gone", "mute")
    ask_actors(Ray, AskActors(actors=tuple(Called(actor_id=n, name=n, namespace="job") for n in names), deadline_s=0.2), said.append)
    assert {t.actor_id: t.data for t in said} == {"good": task_helper.tell(), "gone": b"", "mute": b""}
