"""The rules on small snapshots: each hang named, each quiet case silent. Expected values are written out."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from scenes import (
    ALL_REDUCE,
    BARRIER,
    EXECUTOR,
    IDLE,
    MAIN,
    NODE_ID,
    RAY_GET,
    RECV,
    RENDEZVOUS,
    Stacks,
    actor,
    core,
    process,
    ray_state,
    snapshot,
    task_id,
)

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import (
    AsyncTask,
    Awaited,
    AwaitFrame,
    CollectiveEntry,
    FlightRecord,
    Local,
    OwnedTask,
    Process,
    RayNode,
    RayPlacementGroup,
    RayState,
    RayTask,
    Snapshot,
    Socket,
    TaskHistory,
)

UPDATE = f"Trainer.step@app/trainer.py:40 Trainer.update_policy@app/trainer.py:20 {EXECUTOR} {MAIN}"
REWARD = f"Trainer.compute_reward@app/trainer.py:60 {EXECUTOR} {MAIN}"


def ranks(*rows: tuple[str, dict[str, object]], title: str = "ray::Trainer.update_policy") -> Snapshot:
    stacks = Stacks()
    found = []
    for i, (text, more) in enumerate(rows):
        options = {"rank": i, "size": len(rows), "title": title, **more}
        found.append(process(stacks, 100 + i, str(options.pop("title")), text, **options))  # type: ignore[arg-type]
    return snapshot(stacks.node(found))


def straggler() -> Snapshot:
    busy = f"normalize@app/reward.py:9 {REWARD}"
    other = f"normalize@app/reward.py:10 {REWARD}"
    stacks = Stacks()
    found = [process(stacks, 100 + i, "ray::Trainer.compute_reward", f"{ALL_REDUCE} {REWARD}", rank=i, size=3) for i in range(2)]
    found.append(process(stacks, 102, "ray::Trainer.compute_reward", busy, other, busy, rank=2, size=3, cpu_s=1.9))
    task = RayTask(task_id=task_id(2), name="Trainer.compute_reward", state="RUNNING", pid=102, state_times_s={"RUNNING": 150.0})
    history = TaskHistory(name="Trainer.compute_reward", count=3, longest_s=0.4)
    ray = ray_state(
        actors=[actor(i, "Trainer", 100 + i) for i in range(3)], tasks=[task], cores=[core(102, running=[2], actor_number=2)], history=[history]
    )
    return snapshot(stacks.node(found), ray)


def mismatch() -> Snapshot:
    late = f"{BARRIER} Trainer.sync_metrics@app/trainer.py:80 {UPDATE}"
    return ranks((f"{ALL_REDUCE} {UPDATE}", {}), (f"{ALL_REDUCE} {UPDATE}", {}), (late, {}), (f"{ALL_REDUCE} {UPDATE}", {}))


def skipped() -> Snapshot:
    return ranks((f"{ALL_REDUCE} {UPDATE}", {}), (IDLE, {"title": "ray::Trainer"}), (f"{ALL_REDUCE} {UPDATE}", {}))


def stalled() -> Snapshot:
    return ranks(*[(f"{ALL_REDUCE} {UPDATE}", {}) for _ in range(4)])


def cleanup() -> Snapshot:
    leaving = f"Thread.join@threading.py:1100 Trainer.shutdown_engine@app/trainer.py:90 Trainer.finish@app/trainer.py:88 {EXECUTOR} {MAIN}"
    waiting = f"{BARRIER} Trainer.finish@app/trainer.py:95 {EXECUTOR} {MAIN}"
    return ranks((waiting, {}), (leaving, {}), (waiting, {}), title="ray::Trainer.finish")


def swallowed() -> Snapshot:
    leaving = f"{BARRIER} Trainer._shutdown_groups@app/trainer.py:99 {UPDATE}"
    return ranks((f"{ALL_REDUCE} {UPDATE}", {}), (leaving, {}), (f"{ALL_REDUCE} {UPDATE}", {}))


def src(rank: int) -> tuple[Local, ...]:
    return (Local(frame=0, name="src", value=str(rank)),)


def p2p_ring() -> Snapshot:
    return ranks(
        (f"{BARRIER} {UPDATE}", {}), (f"{RECV} {UPDATE}", {"locals_": src(2)}), (f"{RECV} {UPDATE}", {"locals_": src(1)}), (f"{BARRIER} {UPDATE}", {})
    )


def p2p_ring_recorded() -> Snapshot:
    """The recorders know nothing of the two recvs, only that ranks 1 and 2 have not enqueued the others' barrier."""
    taken = p2p_ring()
    (node,) = taken.nodes
    done = CollectiveEntry(group="0", seq=1, op="gloo:barrier", state="completed", retired=True, created_time_s=190.0)
    waits = CollectiveEntry(group="0", seq=2, op="gloo:barrier", state="scheduled", retired=False, created_time_s=191.0)
    records = tuple(
        FlightRecord(
            source=f"fr_{i}",
            rank=i,
            pid=100 + i,
            groups={"0": (0, 1, 2, 3)},
            entries=(done, waits) if i in (0, 3) else (done,),
            taken_time_s=200.0,
            first_record=0,
            enqueued={"0": 2 if i in (0, 3) else 1},
        )
        for i in range(4)
    )
    return msgspec.structs.replace(taken, nodes=(msgspec.structs.replace(node, flight_records=records),))


def p2p_short() -> Snapshot:
    return ranks((f"{BARRIER} {UPDATE}", {}), (f"{RECV} {UPDATE}", {"locals_": src(0)}), (f"{RECV} {UPDATE}", {"locals_": src(1)}))


def stopped() -> Snapshot:
    return ranks((f"{ALL_REDUCE} {UPDATE}", {}), (f"{ALL_REDUCE} {UPDATE}", {"state": "T"}), (f"{ALL_REDUCE} {UPDATE}", {}))


def died_in_init() -> Snapshot:
    text = f"{RENDEZVOUS} Trainer.init_model@app/trainer.py:10 {EXECUTOR} {MAIN}"
    stacks = Stacks()
    found = [process(stacks, 100 + i, "ray::Trainer.init_model", text, rank=i, size=3) for i in range(2)]
    dead = actor(2, "Trainer", 102, state="DEAD", death="SIGKILL", death_kind="killed")
    return snapshot(stacks.node(found), ray_state(actors=[actor(0, "Trainer", 100), actor(1, "Trainer", 101), dead]))


def absent_in_init() -> Snapshot:
    text = f"{RENDEZVOUS} Trainer.init_model@app/trainer.py:10 {EXECUTOR} {MAIN}"
    loading = f"Trainer.load_weights_from_hub@app/trainer.py:13 Trainer.init_model@app/trainer.py:10 {EXECUTOR} {MAIN}"
    return ranks((text, {}), (text, {}), (loading, {}), title="ray::Trainer.init_model")


def weight_sync() -> Snapshot:
    syncing = f"{BARRIER} Trainer.update_weights@app/trainer.py:70 {EXECUTOR} {MAIN}"
    serving = f"Engine.decode@app/engine.py:12 Engine.serve@app/engine.py:9 {EXECUTOR} {MAIN}"
    return ranks((syncing, {}), (syncing, {}), (serving, {"title": "ray::Trainer.serve_rollouts"}), title="ray::Trainer.update_weights")


def hung_open() -> Snapshot:
    saving = f"Trainer.write_shard@app/trainer.py:33 Trainer.save_checkpoint@app/trainer.py:30 {EXECUTOR} {MAIN}"
    waiting = f"{BARRIER} Trainer.save_checkpoint@app/trainer.py:31 {EXECUTOR} {MAIN}"
    return ranks((saving, {"wchan": "wait_for_partner", "syscall": 257}), (waiting, {}), (waiting, {}), title="ray::Trainer.save_checkpoint")


def silent_server() -> Snapshot:
    stacks = Stacks()
    call = f"SocketIO.readinto@socket.py:706 post@requests/api.py:115 Trainer.verify@app/trainer.py:61 {REWARD}"
    client = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:50000", remote="127.0.0.1:8000", fd=9)
    server = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:8000", remote="127.0.0.1:50000", fd=5)
    found = [
        process(stacks, 100, "ray::Trainer.compute_reward", call, rank=0, size=2, sockets=[client], syscall=45, arg0=9),
        process(stacks, 101, "ray::Trainer.compute_reward", f"{ALL_REDUCE} {REWARD}", rank=1, size=2),
        process(stacks, 300, "python tool_server", "wait@threading.py:320 handle@tool.py:5", kind="child", sockets=[server]),
    ]
    return snapshot(stacks.node(found))


def abba() -> Snapshot:
    main = f"Saver.flush@app/saver.py:20 {UPDATE}"
    writer = "Saver.write@app/saver.py:33 Thread.run@threading.py:982"
    return ranks((main, {"extra_threads": [("writer", writer)], "wchan": "futex_do_wait"}), (f"{BARRIER} {UPDATE}", {}))


def ray_ring() -> Snapshot:
    stacks = Stacks()
    found = [
        process(stacks, 100, "ray::Scorer.score", f"{RAY_GET} Scorer.score@app/s.py:5 {EXECUTOR} {MAIN}", refs=[task_id(3)]),
        process(stacks, 101, "ray::Server.generate", f"{RAY_GET} Server.generate@app/g.py:5 {EXECUTOR} {MAIN}", refs=[task_id(4)]),
        process(stacks, 102, "ray::Runner.fit", f"{RAY_GET} Runner.fit@app/r.py:5 {EXECUTOR} {MAIN}", refs=[task_id(1)]),
    ]
    first, second = f"{1:032x}", f"{2:032x}"
    cores = [
        core(100, running=[1], actor_number=1, owned=[OwnedTask(task_id=task_id(3), name="Server.generate", actor_id=second)]),
        core(101, running=[3], actor_number=2, owned=[OwnedTask(task_id=task_id(4), name="Scorer.score", actor_id=first)]),
        core(102, running=[9], actor_number=3, owned=[OwnedTask(task_id=task_id(1), name="Scorer.score", actor_id=first)]),
    ]
    return snapshot(stacks.node(found), ray_state(actors=[actor(1, "Scorer", 100), actor(2, "Server", 101), actor(3, "Runner", 102)], cores=cores))


def pending_group() -> Snapshot:
    stacks = Stacks()
    found = [process(stacks, 100, "ray::Runner.fit", f"{RAY_GET} Runner.build_pool@app/r.py:5 {EXECUTOR} {MAIN}", refs=[task_id(5)])]
    name = "bundle_reservation_check_func"
    tasks = [RayTask(task_id=task_id(5), name=name, state="PENDING_NODE_ASSIGNMENT", placement_group_id="pg1")]
    group = RayPlacementGroup(placement_group_id="pg1", name="train_pool", state="PENDING", bundles=({"GPU": 8.0},))
    ray = ray_state(actors=[actor(1, "Runner", 100)], tasks=tasks, groups=[group], cores=[core(100, running=[1], actor_number=1)])
    machine = RayNode(node_id=NODE_ID, ip="10.0.0.1", host="node1", alive=True, resources={"GPU": 4.0})
    return snapshot(stacks.node(found), msgspec.structs.replace(ray, nodes=(machine,)))


def queued_behind() -> Snapshot:
    stacks = Stacks()
    found = [
        process(stacks, 100, "ray::Engine.serve_forever", f"Engine.serve_forever@app/e.py:9 {EXECUTOR} {MAIN}", wchan="hrtimer_nanosleep"),
        process(stacks, 102, "ray::Runner.fit", f"{RAY_GET} Runner.fit@app/r.py:5 {EXECUTOR} {MAIN}", refs=[task_id(7)]),
    ]
    cores = [
        core(100, running=[1], actor_number=1),
        core(102, running=[9], actor_number=3, owned=[OwnedTask(task_id=task_id(7), name="Engine.pause", actor_id=f"{1:032x}")]),
    ]
    return snapshot(stacks.node(found), ray_state(actors=[actor(1, "Engine", 100), actor(3, "Runner", 102)], cores=cores))


def leaked_semaphore() -> Snapshot:
    stacks = Stacks()
    awaited = Awaited(kind="semaphore", detail="Semaphore value=0", address=1, value=0)
    chain = (
        AwaitFrame(function="Agent.episode", file="app/agent.py", line=12),
        AwaitFrame(function="Semaphore.acquire", file="asyncio/locks.py", line=390),
    )
    tasks = tuple(AsyncTask(address=i, name=f"Task-{i}", chain=chain, awaited=awaited) for i in range(16))
    loop = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607 run@threading.py:982"
    found = [
        process(stacks, 100, "ray::Agent.generate_sequences", MAIN, extra_threads=[("AsyncIO Thread: default", loop)], async_tasks=tasks),
        process(stacks, 102, "ray::Runner.fit", f"{RAY_GET} Runner.fit@app/r.py:5 {EXECUTOR} {MAIN}", refs=[task_id(1)]),
    ]
    cores = [
        core(100, running=[1], actor_number=1),
        core(102, running=[9], actor_number=3, owned=[OwnedTask(task_id=task_id(1), name="Agent.generate_sequences", actor_id=f"{1:032x}")]),
    ]
    return snapshot(stacks.node(found), ray_state(actors=[actor(1, "Agent", 100), actor(3, "Runner", 102)], cores=cores))


HANGS: tuple[tuple[Callable[[], Snapshot], Cause, list[int | None]], ...] = (
    (straggler, Cause.STRAGGLER, [102]),
    (mismatch, Cause.COLLECTIVE_MISMATCH, [102]),
    (skipped, Cause.COLLECTIVE_MISMATCH, [101]),
    (stalled, Cause.COLLECTIVE_STALLED, [None]),
    (cleanup, Cause.CLEANUP_DEADLOCK, [101]),
    (swallowed, Cause.CLEANUP_DEADLOCK, [101]),
    (p2p_ring, Cause.P2P_MISMATCH, [101, 102]),
    (p2p_ring_recorded, Cause.P2P_MISMATCH, [101, 102]),
    (p2p_short, Cause.P2P_MISMATCH, [100]),
    (stopped, Cause.PROCESS_STOPPED, [101]),
    (died_in_init, Cause.RANK_DIED, [102]),
    (absent_in_init, Cause.INIT_DEADLOCK, [102]),
    (weight_sync, Cause.WEIGHT_SYNC_MISMATCH, [102]),
    (hung_open, Cause.BLOCKED_IO, [100]),
    (silent_server, Cause.BLOCKED_IO, [100, 300]),
    (abba, Cause.LOCK_DEADLOCK, [100]),
    (ray_ring, Cause.RAY_GET_CYCLE, [100, 101]),
    (pending_group, Cause.RAY_PENDING, [None]),
    (queued_behind, Cause.RAY_QUEUED_CALL, [100]),
    (leaked_semaphore, Cause.ASYNCIO_STUCK, [100]),
)


@pytest.mark.parametrize(("build", "cause", "pids"), HANGS, ids=[h[0].__name__ for h in HANGS])
def test_hang_is_named(build: Callable[[], Snapshot], cause: Cause, pids: list[int | None]) -> None:
    report = diagnose(build())
    assert report.verdict.state is State.HANG, report.verdict
    root = report.findings[0]
    assert (root.cause, sorted((w.pid or 0) for w in root.who)) == (cause, sorted(p or 0 for p in pids))
    assert not {w.pid for w in root.victims} & {p for p in pids if p}
    assert root.evidence
    assert root.remedy


def moving(snap: Snapshot) -> Snapshot:
    """The same snapshot, but every process finished Ray tasks during the window."""
    node = snap.nodes[0]
    cores = tuple(core(p.pid, done=3) for p in node.processes)
    actors = tuple(actor(p.pid, "Trainer", p.pid) for p in node.processes)
    return Snapshot(taken_time_s=200.0, nodes=snap.nodes, ray=ray_state(actors=actors, cores=cores))


QUIET = (mismatch, skipped, stalled, cleanup, swallowed, p2p_ring, absent_in_init, weight_sync, hung_open, abba, leaked_semaphore)


@pytest.mark.parametrize("build", QUIET, ids=[b.__name__ for b in QUIET])
def test_nobody_is_accused_while_tasks_finish(build: Callable[[], Snapshot]) -> None:
    report = diagnose(moving(build()))
    assert not [f for f in report.findings if f.certainty is not Certainty.POSSIBLE]
    assert report.verdict.state is State.HEALTHY


def test_a_call_that_is_not_overdue_is_slow_not_hung() -> None:
    snap = straggler()
    assert snap.ray is not None
    slow = RayState(
        address=snap.ray.address,
        actors=snap.ray.actors,
        tasks=(RayTask(task_id=task_id(2), name="Trainer.compute_reward", state="RUNNING", pid=102, state_times_s={"RUNNING": 197.0}),),
        core_workers=snap.ray.core_workers,
        history=(TaskHistory(name="Trainer.compute_reward", count=2, longest_s=4.0),),
    )
    report = diagnose(Snapshot(taken_time_s=200.0, nodes=snap.nodes, ray=slow))
    assert report.verdict.state is State.SLOW
    assert report.findings == ()


def test_busy_without_history_is_unknown_and_asks_for_a_longer_window() -> None:
    snap = straggler()
    report = diagnose(Snapshot(taken_time_s=200.0, nodes=snap.nodes))
    assert report.verdict.state is State.UNKNOWN
    assert "--interval" in (report.verdict.next or "")


def test_idle_job_is_healthy() -> None:
    stacks = Stacks()
    node = stacks.node([process(stacks, 100 + i, "ray::Trainer", IDLE, rank=i, size=2) for i in range(2)])
    report = diagnose(snapshot(node, ray_state(actors=[actor(i, "Trainer", 100 + i) for i in range(2)])))
    assert (report.verdict.state, report.findings) == (State.HEALTHY, ())


def test_the_chain_runs_from_the_driver_to_the_root() -> None:
    report: Report = diagnose(queued_behind())
    chain = [(link.waiter.label, link.why, link.target.label) for link in report.findings[0].chain]
    assert chain == [("Runner", "ray.get (queued)", "Engine")]


def test_the_same_snapshot_gives_the_same_report() -> None:
    assert diagnose(mismatch()) == diagnose(mismatch())


def test_a_forked_child_is_no_rank() -> None:
    stacks = Stacks()
    parent: Process = process(stacks, 100, "ray::Trainer.update_policy", f"{ALL_REDUCE} {UPDATE}", rank=0, size=2)
    other = process(stacks, 101, "ray::Trainer.update_policy", f"{ALL_REDUCE} {UPDATE}", rank=1, size=2)
    child = process(stacks, 102, "ray::Trainer.update_policy", "get@queue.py:5 _loop@app/x.py:5", rank=0, size=2, kind="child", ppid=100)
    worlds = diagnose(snapshot(stacks.node([parent, other, child]))).worlds
    assert [(w.ranks, w.missing) for w in worlds] == [((0, 1), ())]


def paused_engine() -> Snapshot:
    stacks = Stacks()
    chain = (
        AwaitFrame(function="Engine.generate", file="app/engine.py", line=30),
        AwaitFrame(function="Engine.wait_for_resume", file="app/engine.py", line=22),
    )
    tasks = tuple(
        AsyncTask(address=i, name=f"Task-{i}", chain=chain, awaited=Awaited(kind="event", detail="Event unset", address=1)) for i in range(4)
    )
    loop = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607 run@threading.py:982"
    found = [
        process(stacks, 100, "ray::InferenceEngine.generate", MAIN, extra_threads=[("AsyncIO Thread: default", loop)], async_tasks=tasks),
        process(stacks, 102, "ray::Runner.fit", f"{RAY_GET} Runner.fit@app/r.py:5 {EXECUTOR} {MAIN}", refs=[task_id(1)]),
    ]
    owned = OwnedTask(task_id=task_id(1), name="InferenceEngine.generate", actor_id=f"{1:032x}")
    cores = [core(100, running=[1], actor_number=1), core(102, running=[9], actor_number=3, owned=[owned])]
    return snapshot(stacks.node(found), ray_state(actors=[actor(1, "InferenceEngine", 100), actor(3, "Runner", 102)], cores=cores))


def test_a_paused_engine_is_told_from_a_stuck_one() -> None:
    report = diagnose(paused_engine())
    assert (report.verdict.state, report.findings[0].cause) == (State.HANG, Cause.ENGINE_PAUSED)
    assert diagnose(leaked_semaphore()).findings[0].cause is Cause.ASYNCIO_STUCK


def ended(*finished: str) -> Report:
    stacks = Stacks()
    found = [process(stacks, 100 + i, "ray::Trainer", IDLE, rank=i, size=2) for i in range(2)]
    found.append(process(stacks, 103, "ray::Runner", IDLE))
    history = [TaskHistory(name=name, count=1, longest_s=0.5) for name in finished]
    return diagnose(snapshot(stacks.node(found), ray_state(actors=[actor(3, "Runner", 103)], history=history)))


def test_a_job_without_a_single_step_is_finished_and_said_so() -> None:
    report = ended("Trainer.__init__", "Runner.__init__", "Trainer.init_model", "Runner.fit")
    assert (report.verdict.state, report.findings[0].cause) == (State.FINISHED, Cause.ZERO_STEPS)


@pytest.mark.parametrize("finished", [("Trainer.init_model", "Trainer.fit"), ("Trainer.fit",)])
def test_steps_inside_of_one_call_on_the_ranks_are_not_seen_and_not_denied(finished: tuple[str, ...]) -> None:
    assert ended(*finished).findings == ()


def test_a_job_that_did_steps_is_only_idle() -> None:
    assert ended("Trainer.init_model", "Trainer.update_policy", "Runner.fit").findings == ()
