"""A run of many ranks: one is busy in reward code, one node is silent, the rest wait in a collective; and its twin full of hostile names."""

from __future__ import annotations

from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, IDLE, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, task_id

from ray_rl_debug.model.snapshot import (
    AsyncTask,
    Awaited,
    AwaitFrame,
    Frame,
    Gap,
    Gpu,
    Node,
    OwnedTask,
    RayNode,
    RayTask,
    Snapshot,
    TaskHistory,
)

PER_NODE = 8
NOW_S = 1_790_000_000.0
SCORE = "RewardWorker.compute_score@workers/reward.py:88"
NORMALISE = f"normalise_answer@rewards/maths.py:30 grade@rewards/maths.py:12 {SCORE} {EXECUTOR} {MAIN}"
WAITS = f"{ALL_REDUCE} {SCORE} {EXECUTOR} {MAIN}"
DRIVES = f"{RAY_GET} RayTrainer.fit@trainer/loop.py:210 main@train.py:40"


def _gpu(index: int, busy: bool) -> Gpu:
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA H100 80GB HBM3",
        utilization_percent=0.0 if busy else 100.0,
        memory_used_bytes=61 << 30,
        memory_total_bytes=80 << 30,
        power_watts=92.0 if busy else 131.0,
        power_limit_watts=700.0,
    )


def _coroutine(number: int) -> AsyncTask:
    return AsyncTask(
        address=4096 + number,
        name=f"Task-{number}",
        chain=(AwaitFrame(function="run_episode", file="agent/loop.py", line=51), AwaitFrame(function="call_tool", file="agent/tools.py", line=9)),
        awaited=Awaited(kind="semaphore", detail="Semaphore value=0", address=77, value=0),
        stable=True,
    )


def big_run(ranks: int, *, culprit: int = 1) -> Snapshot:
    """`ranks` ranks, eight a node, and the driver on the first node."""
    nodes: list[Node] = []
    actors, cores, tasks = [], [], []
    for first in range(0, ranks, PER_NODE):
        stacks = Stacks()
        here = []
        for rank in range(first, min(first + PER_NODE, ranks)):
            pid = 20_000 + rank
            bad = rank == culprit
            here.append(
                process(
                    stacks,
                    pid,
                    "ray::RewardWorker.compute_score",
                    NORMALISE if bad else WAITS,
                    rank=rank,
                    size=ranks,
                    cpu_s=2.0 if bad else 0.02,
                    owns_gil=bad,
                )
            )
            actors.append(actor(rank + 1, "RewardWorker", pid))
            cores.append(core(pid, running=(rank + 1,), actor_number=rank + 1))
            times = {"PENDING_ARGS_AVAIL": NOW_S - 95.0, "RUNNING": NOW_S - 92.0}
            tasks.append(RayTask(task_id=task_id(rank + 1), name="RewardWorker.compute_score", state="RUNNING", pid=pid, state_times_s=times))
        if first == 0:
            here.append(process(stacks, 900, "python train.py", DRIVES, kind="driver", refs=(task_id(culprit + 1),), ppid=1))
            here.append(process(stacks, 901, "ray::AgentLoop", f"select@selectors.py:468 run_forever@asyncio/base_events.py:608 {IDLE}"))
            here[-1] = replace(here[-1], async_tasks=tuple(_coroutine(i) for i in range(64)))
        number = first // PER_NODE
        node_id = f"{number:056x}"
        node = replace(
            stacks.node(here),
            name=f"gpu-{number + 1:03}",
            node_id=node_id,
            ip=f"10.0.{number // 250}.{number % 250 + 1}",
            started_time_s=NOW_S - 3,
            gpus=tuple(_gpu(i, busy=first + i == culprit) for i in range(min(PER_NODE, ranks - first))),
            versions={"ray": "2.60.0", "torch": "2.13.0"},
        )
        nodes.append(node)
    by_pid = {p.pid: n.node_id for n in nodes for p in n.processes}
    table = [RayNode(node_id=n.node_id or "", ip=n.ip or "", host=n.name, alive=True) for n in nodes]
    ray = ray_state(
        actors=[replace(a, node_id=by_pid[a.pid or 0]) for a in actors],
        tasks=[replace(t, node_id=by_pid[t.pid or 0]) for t in tasks],
        cores=[
            *(replace(c, node_id=by_pid[c.pid]) for c in cores),
            replace(
                core(900, owned=tuple(OwnedTask(task_id=task_id(r + 1), name="RewardWorker.compute_score") for r in range(ranks))),
                kind="DRIVER",
                actor_id=None,
                node_id=nodes[0].node_id,
            ),
        ],
        history=[TaskHistory(name="RewardWorker.compute_score", count=412, longest_s=7.4)],
    )
    silent = RayNode(node_id="f" * 56, ip="10.0.9.9", host="gpu-999", alive=True)
    gap = Gap(
        id="RRD901",
        where="gpu-999",
        what="everything on this node",
        reason="no answer within 60 s",
        remedy="ssh gpu-999, then rayrl-debug snapshot --here",
    )
    return Snapshot(
        tool_version="1.2.3", taken_time_s=NOW_S, nodes=tuple(nodes), ray=replace(ray, nodes=(*table, silent)), gaps=(gap,), timing={"total": 7.9}
    )


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='alert(1)",
    "</title></style></script><svg onload=alert(1)>",
    "javascript:alert(1)//<a href=https://evil.example/>",
    "\x1b]0;owned\x07\u202egnp.exe\u2066",
    "]]>--><!--&lt;b&gt;&#x3c;",
    "名前" * 80,
    "x" * 5000,
)
"""Names that try to leave their element, attribute or script, to steer a terminal, to turn the text around, or to burst the page."""


def hostile_run(bad: str) -> Snapshot:
    """The run of four ranks with `bad` wherever a name, a path, a reason or a title comes from outside."""
    run = big_run(4)
    nodes = tuple(
        replace(
            n,
            name=bad,
            ip=bad,
            frames=(*(replace(f, function=f"{bad}{f.function}") for f in n.frames), Frame(function=bad, file=bad, line=3)),
            stacks=tuple((*s, len(n.frames)) for s in n.stacks),
            versions={bad: bad},
            gpus=tuple(replace(g, name=bad, throttle_reasons=(bad,)) for g in n.gpus or ()),
            processes=tuple(
                replace(
                    p,
                    title=bad,
                    async_tasks=tuple(
                        replace(
                            t,
                            name=bad,
                            chain=(AwaitFrame(function=bad, file=bad, line=1),),
                            awaited=Awaited(kind="future", detail=bad),
                        )
                        for t in p.async_tasks or ()
                    ),
                )
                for p in n.processes
            ),
        )
        for n in run.nodes
    )
    assert run.ray is not None
    ray = replace(
        run.ray,
        actors=tuple(replace(a, class_name=bad, name=bad, death=bad) for a in run.ray.actors),
        tasks=tuple(replace(t, name=bad, error=bad) for t in run.ray.tasks),
        history=(TaskHistory(name=bad, count=1, longest_s=0.1),),
        nodes=tuple(replace(n, host=bad, ip=bad) for n in run.ray.nodes),
    )
    gaps = tuple(replace(g, where=bad, what=bad, reason=bad, remedy=bad) for g in run.gaps)
    return replace(run, nodes=nodes, ray=ray, gaps=gaps, tool_version=bad, timing={bad: 1.0})
