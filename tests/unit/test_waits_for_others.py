"""Who waits for whom where no ObjectRef or collective says it: siblings, calls at a condition, rings of file locks, named ranks, lost tasks."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, MAIN, RAY_GET, RECV, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, FileLock, Local, ObjectRefWait, OpenFile, OwnedTask, Process, Snapshot, Thread

BROADCAST = "broadcast@torch/distributed/distributed_c10d.py:2800 wrapper@torch/distributed/c10d_logger.py:81"
STEP = f"Trainer.step@app/trainer.py:40 {EXECUTOR} {MAIN}"
WAITS = f"Condition.wait@threading.py:355 Gate.wait_version@app/gate.py:12 {EXECUTOR} {MAIN}"


def edges(taken: Snapshot) -> set[tuple[str, str, str]]:
    return {(e.source.rpartition("/")[2], e.target.rpartition("/")[2], e.why) for e in find_waits(build_view(taken)).graph.edges}


def accused(taken: Snapshot) -> tuple[State, Cause | None, set[int | None], Certainty | None]:
    report = diagnose(taken)
    first = report.findings[0] if report.findings else None
    if first is None:
        return report.verdict.state, None, set(), None
    return report.verdict.state, first.cause, {w.pid for w in first.who}, first.certainty


def test_ranks_that_name_different_sources() -> None:
    stacks = Stacks()

    def rank(number: int, source: int) -> Process:
        named = (Local(frame=0, name="src", value=str(source)),)
        return process(stacks, 100 + number, "ray::Trainer.step", f"{BROADCAST} {STEP}", rank=number, size=4, locals_=named)

    state, cause, who, certainty = accused(snapshot(stacks.node([rank(0, 0), rank(1, 2), rank(2, 0), rank(3, 0)])))
    assert (state, cause, who, certainty) == (State.HANG, Cause.COLLECTIVE_MISMATCH, {101}, Certainty.LIKELY)
    state, cause, who, _ = accused(snapshot(stacks.node([rank(0, 0), rank(1, 0), rank(2, 0), rank(3, 0)])))
    assert cause is not Cause.COLLECTIVE_MISMATCH


def test_a_named_rank_that_cannot_be_placed_leaves_the_receiver_a_victim() -> None:
    stacks = Stacks()
    source = (Local(frame=0, name="src", value="0"),)
    receivers = [process(stacks, 100 + i, "ray::Trainer.step", f"{RECV} {STEP}", locals_=source) for i in range(2)]
    reader = process(stacks, 102, "ray::Trainer.step", f"load@app/load.py:5 {STEP}", wchan="wait_for_partner", syscall=257)
    actors = [actor(i, "Trainer", 100 + i) for i in range(3)]
    state, cause, who, _ = accused(snapshot(stacks.node([*receivers, reader]), ray_state(actors=actors)))
    assert (state, cause, who) == (State.HANG, Cause.BLOCKED_IO, {102})


def test_siblings_at_one_silent_line_are_victims_of_the_one_elsewhere() -> None:
    stacks = Stacks()
    alike = [process(stacks, 100 + i, "ray::Store.go", f"Store.go@app/store.py:9 {EXECUTOR} {MAIN}") for i in range(2)]
    reader = process(stacks, 102, "ray::Store.go", f"Store.warm@app/store.py:5 {EXECUTOR} {MAIN}", wchan="wait_for_partner", syscall=257)
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1), task_id(2), task_id(3)])
    actors = [actor(i, "Store", 100 + i) for i in range(3)]
    cores = [core(100 + i, running=[1 + i], actor_number=i) for i in range(3)]
    taken = snapshot(stacks.node([*alike, reader, driver]), ray_state(actors=actors, cores=cores))
    assert {("100", "102", "same call"), ("101", "102", "same call")} <= edges(taken)
    state, cause, who, _ = accused(taken)
    assert (state, cause, who) == (State.HANG, Cause.BLOCKED_IO, {102})


@pytest.mark.parametrize(("trainer_cpu_s", "state"), [(1.9, State.UNKNOWN), (0.01, State.HANG)])
def test_calls_at_a_condition_wait_for_the_next_call(trainer_cpu_s: float, state: State) -> None:
    stacks = Stacks()
    gate = process(stacks, 100, "ray::Gate.wait_version", WAITS, extra_threads=[("Thread-7", WAITS)], syscall=202, wchan="futex_do_wait")
    rollout = process(stacks, 101, "ray::Rollout.run", f"{RAY_GET} Rollout.run@app/roll.py:3 {EXECUTOR} {MAIN}", refs=[task_id(1)])
    trainer = process(stacks, 102, "ray::Trainer.fit", f"Trainer.fit@app/fit.py:3 {EXECUTOR} {MAIN}", cpu_s=trainer_cpu_s)
    if trainer_cpu_s < 1:
        trainer = process(stacks, 102, "ray::Trainer", MAIN)
    actors = [actor(i, name, 100 + i) for i, name in enumerate(("Gate", "Rollout", "Trainer"))]
    cores = [core(100, running=[1, 2], actor_number=0), core(101, running=[3], actor_number=1), core(102, running=[4], actor_number=2)]
    report = diagnose(snapshot(stacks.node([gate, rollout, trainer]), ray_state(actors=actors, cores=cores)))
    assert report.verdict.state is state
    assert not any(w.pid == 100 for f in report.findings for w in f.who) or state is State.HANG


@pytest.mark.parametrize(
    ("helper", "certainty"),
    [
        ([], Certainty.PROVEN),
        ([("loader", "Queue.get@queue.py:171 load@app/load.py:4")], Certainty.PROVEN),
        ([("keeper", "keep@app/keep.py:4")], None),
    ],
    ids=["alone", "with a thread that waits", "with a thread at work that may let go"],
)
def test_processes_that_hold_each_others_file_locks(helper: list[tuple[str, str]], certainty: Certainty | None) -> None:
    stacks = Stacks()
    pair = [
        process(
            stacks,
            100 + i,
            "ray::Cache.fill",
            f"Cache.fill@app/cache.py:{3 + i} {EXECUTOR} {MAIN}",
            syscall=73,
            wchan="locks_lock_inode_wait",
            extra_threads=helper,
        )
        for i in range(2)
    ]
    if certainty is None:
        pair = [replace(p, threads=(p.threads[0], *(replace(t, state="R", wchan=None, cpu_s=1.9) for t in p.threads[1:]))) for p in pair]
    locks = [
        FileLock(lock=lock, kind="FLOCK", access="WRITE", pid=pid, device="08:01", inode=lock, waiting=waiting)
        for lock, pid, waiting in ((1, 100, False), (1, 101, True), (2, 101, False), (2, 100, True))
    ]
    actors = [actor(i, "Cache", 100 + i) for i in range(2)]
    state, cause, who, found = accused(snapshot(stacks.node(pair, locks=tuple(locks)), ray_state(actors=actors)))
    if certainty is None:
        assert found in (None, Certainty.POSSIBLE)
        assert state is not State.HANG
    else:
        assert (state, cause, who, found) == (State.HANG, Cause.LOCK_DEADLOCK, {100, 101}, certainty)


def pool(*children: str, replaced_s: float | None = None) -> Snapshot:
    """`replaced_s`: how much later than the others the last worker was started."""
    stacks = Stacks()
    waits = f"MapResult.wait@multiprocessing/pool.py:765 Pool.map@multiprocessing/pool.py:367 Scorer.score@app/score.py:9 {EXECUTOR} {MAIN}"
    parent = process(stacks, 100, "ray::Scorer.score", waits)
    inside = [process(stacks, 200 + i, "python", text, kind="child", ppid=100) for i, text in enumerate(children)]
    if replaced_s is not None:
        inside = [replace(p, start_time_s=150.0 + replaced_s * (p is inside[-1])) for p in inside]
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1)])
    cores = [core(100, running=[1], actor_number=0)]
    return snapshot(stacks.node([parent, *inside, driver]), ray_state(actors=[actor(0, "Scorer", 100)], cores=cores))


IDLE_WORKER = "get@multiprocessing/queues.py:365 worker@multiprocessing/pool.py:114"


@pytest.mark.parametrize(
    ("replaced_s", "certainty"),
    [(1.0, Certainty.LIKELY), (0.1, Certainty.POSSIBLE), (None, Certainty.POSSIBLE)],
    ids=["replaced", "as old", "unread"],
)
def test_a_pool_whose_task_died_with_its_worker(replaced_s: float | None, certainty: Certainty) -> None:
    """Where no worker took the place of another, one that was not seen may have the task."""
    _, cause, who, found = accused(pool(IDLE_WORKER, IDLE_WORKER, replaced_s=replaced_s))
    assert (cause, who, found) == (Cause.LOCK_DEADLOCK, {100}, certainty)


@pytest.mark.parametrize(("title", "cause"), [("EngineCore", Cause.ENGINE_DIED), ("feeder", Cause.PRODUCER_DIED)])
def test_a_child_that_died_under_its_server_is_named(title: str, cause: Cause) -> None:
    taken = pool("main@app/engine.py:1")
    (node,) = taken.nodes
    dead = [replace(p, state="Z", samples=(), threads=(), title=title) if p.pid == 200 else p for p in node.processes]
    taken = replace(taken, nodes=(replace(node, processes=tuple(dead)),))
    state, found, who, _ = accused(taken)
    assert (state, found, who) == (State.HANG, cause, {200})


def test_a_pool_one_of_whose_workers_is_at_work() -> None:
    taken = pool(IDLE_WORKER, "grade@app/score.py:30 worker@multiprocessing/pool.py:125")
    assert ("100", "201", "queue of a child") in edges(taken)
    assert not any(f.cause is Cause.LOCK_DEADLOCK for f in diagnose(taken).findings)


def test_a_child_that_cannot_end_for_a_thread_of_its_own_is_named_without_its_parent() -> None:
    stacks = Stacks()
    start = f"BaseProcess.start@multiprocessing/process.py:121 Judge.run@app/judge.py:9 {EXECUTOR} {MAIN}"
    ends = f"_shutdown@threading.py:1590 BaseProcess._bootstrap@multiprocessing/process.py:332 {start}"
    joins = f"Popen.poll@multiprocessing/popen_fork.py:27 BaseProcess.join@multiprocessing/process.py:149 Judge.run@app/judge.py:9 {EXECUTOR} {MAIN}"
    logger = [("logger", "Queue.get@queue.py:171 Thread.run@threading.py:982 Thread._bootstrap@threading.py:1002")]
    parent = process(stacks, 100, "ray::Judge.run", joins, syscall=61, wchan="do_wait")
    child = process(stacks, 200, "ray::Judge.run", ends, kind="child", ppid=100, syscall=202, wchan="futex_do_wait", extra_threads=logger)
    cores = [core(100, running=[1], actor_number=0)]
    found = accused(snapshot(stacks.node([parent, child]), ray_state(actors=[actor(0, "Judge", 100)], cores=cores)))
    assert found == (State.HANG, Cause.LOCK_DEADLOCK, {200}, Certainty.LIKELY)


def with_refs(one: Process, before: str, now: str) -> Process:
    def wait(number: str) -> tuple[ObjectRefWait, ...]:
        return (ObjectRefWait(call="get", object_ids=(number + "00000001",), tid=one.pid),)

    return replace(one, object_refs=wait(now), object_refs_before=wait(before) if before != now else ())


@pytest.mark.parametrize(("before", "motion"), [(1, Motion.MOVING), (2, Motion.FROZEN)])
def test_a_driver_that_waits_for_another_object_moves(before: int, motion: Motion) -> None:
    stacks = Stacks()
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver")
    view = build_view(snapshot(stacks.node([with_refs(driver, task_id(before), task_id(2))])))
    assert view.seen["node1/1"].motion is motion


def test_of_all_it_owns_a_driver_waits_for_what_comes() -> None:
    stacks = Stacks()
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver")
    serves = process(stacks, 100, "ray::Server.serve", f"get@queue.py:171 Server.serve@app/serve.py:4 {EXECUTOR} {MAIN}", syscall=202)
    trains = process(stacks, 101, "ray::Trainer.step", STEP)
    owned = [OwnedTask(task_id=task_id(n), name=name, status=None, actor_id=None) for n, name in ((1, "serve"), (2, "step"))]
    cores = [core(1, owned=owned), core(100, running=[1], actor_number=0), core(101, running=[2], actor_number=1, done=9)]
    actors = [actor(0, "Server", 100), actor(1, "Trainer", 101)]
    report = diagnose(snapshot(stacks.node([driver, serves, trains]), ray_state(actors=actors, cores=cores)))
    assert (report.verdict.state, report.findings) == (State.HEALTHY, ())


def test_a_thread_that_trains_tells_more_than_the_main_thread_that_polls() -> None:
    stacks = Stacks()
    polls = f"Trainer.go@app/trainer.py:8 {EXECUTOR} {MAIN}"
    trains = "Trainer.load@app/trainer.py:20 Trainer.train_in_background@app/trainer.py:15 run@threading.py:982"
    one = process(stacks, 100, "ray::Trainer.go", polls, extra_threads=[("trainer", trains)], wchan="hrtimer_nanosleep", syscall=230)
    opens = Thread(tid=1100, comm="python", state="S", cpu_s=0.0, wchan="wait_for_partner", syscall=257)
    one = msgspec.structs.replace(one, threads=(one.threads[0], opens))
    telling = build_view(snapshot(stacks.node([one]))).seen["node1/100"].telling
    assert telling is not None
    assert telling.name == "trainer"


@pytest.mark.parametrize(("slices", "certainty"), [(0, Certainty.LIKELY), (2, Certainty.POSSIBLE)])
def test_a_script_whose_shell_wakes_up_goes_on(slices: int, certainty: Certainty) -> None:
    stacks = Stacks()
    waits = f"Popen._wait@subprocess.py:2011 run@subprocess.py:550 Scorer.score@app/score.py:9 {EXECUTOR} {MAIN}"
    parent = process(stacks, 100, "ray::Scorer.score", waits, syscall=61, wchan="do_wait", arg0=200)
    shell = process(stacks, 200, "bash", "x@x:1", kind="child", ppid=100)
    thread = Thread(tid=200, comm="bash", state="S", cpu_s=0.0, wchan="do_wait", syscall=61, run_slices=slices)
    shell = replace(shell, comm="bash", samples=(), threads=(thread,))
    tool = process(stacks, 300, "tool", "x@x:1", kind="child", ppid=200, wchan="wait_for_partner", syscall=257)
    tool = replace(tool, samples=())
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1)])
    ray = ray_state(actors=[actor(0, "Scorer", 100)], cores=[core(100, running=[1], actor_number=0)])
    assert accused(snapshot(stacks.node([parent, shell, tool, driver]), ray))[3] is certainty


def spawned_ranks(*texts: str, in_group: bool = True) -> Snapshot:
    """A parent that joins, and children that know their ranks from arguments alone."""
    stacks = Stacks()
    joins = "Popen.poll@multiprocessing/popen_fork.py:27 Process.join@multiprocessing/process.py:149 main@app/main.py:4"
    found = [process(stacks, 50, "python main.py", joins, kind="named", syscall=61, wchan="do_wait", arg0=100)]
    for i, text in enumerate(texts):
        child = process(stacks, 100 + i, "python", f"{text} spawn_main@multiprocessing/spawn.py:122", kind="child", ppid=50)
        group = Thread(tid=300 + i, comm="pt_gloo_runloop", state="S", cpu_s=0.0)
        found.append(replace(child, threads=(*child.threads, *([group] if in_group else []))))
    return snapshot(stacks.node(found))


ALL_REDUCE = "all_reduce@torch/distributed/distributed_c10d.py:3200 train@app/train.py:9"


def test_children_of_one_parent_in_a_process_group_are_ranks_of_one_world() -> None:
    late = "barrier@torch/distributed/distributed_c10d.py:5356 validate@app/train.py:30"
    state, cause, who, _ = accused(spawned_ranks(ALL_REDUCE, ALL_REDUCE, late))
    assert (state, cause, who) == (State.HANG, Cause.COLLECTIVE_MISMATCH, {102})


def test_a_parent_that_joins_a_rank_that_waits_for_others_is_not_in_its_way() -> None:
    for taken in (spawned_ranks(ALL_REDUCE, "think@app/train.py:50"), spawned_ranks(ALL_REDUCE, ALL_REDUCE, in_group=False)):
        report = diagnose(taken)
        assert not any(w.pid in (50, 100) for f in report.findings for w in f.who), report.verdict.summary


@pytest.mark.parametrize(("slices", "motion"), [(210, Motion.FROZEN), (1800, Motion.MOVING)])
def test_a_busy_network_thread_of_gloo_proves_that_collectives_complete(slices: int, motion: Motion) -> None:
    stacks = Stacks()
    one = process(stacks, 100, "ray::Trainer.step", STEP, wchan="hrtimer_nanosleep", syscall=230)
    loop = Thread(tid=301, comm="gloo_tcp_loop", state="S", cpu_s=0.01, run_slices=slices)
    taken = snapshot(stacks.node([replace(one, threads=(*one.threads, loop))]))
    assert build_view(taken).seen["node1/100"].motion is motion


def test_a_launcher_is_as_stuck_as_the_child_it_joins_and_not_accused() -> None:
    stacks = Stacks()
    joins = "Popen.wait@subprocess.py:1264 main@app/launch.py:4"

    def launched(*texts: str, cpu_s: float = 0.0) -> Snapshot:
        parent = process(stacks, 50, "python launch.py", joins, kind="named", syscall=61, wchan="do_wait", arg0=100)
        return snapshot(stacks.node([parent, process(stacks, 100, "python", *texts, kind="child", ppid=50, cpu_s=cpu_s)]))

    reads = launched("load@app/load.py:5 main@app/train.py:9")
    works = launched("think@app/train.py:5 main@app/train.py:9", "think@app/train.py:6 main@app/train.py:9", cpu_s=1.9)
    assert 50 not in accused(reads)[2]
    assert accused(works)[0] is not State.HANG


def test_functions_of_a_program_given_as_text_are_own_code() -> None:
    stacks = Stacks()
    one = process(stacks, 100, "python", "spin@<string>:4 train@<string>:9 <module>@<string>:12", kind="named", cpu_s=1.9)
    helper = process(stacks, 101, "python", "main@multiprocessing/resource_tracker.py:200 <module>@<string>:1", kind="child")
    view = build_view(snapshot(stacks.node([one, helper])))
    paths = {key: seen.place.path for key, seen in view.seen.items() if seen.place is not None}
    assert [function for function, _, _ in paths["node1/100"]] == ["spin", "train"]
    assert paths["node1/101"] == ()


def test_a_put_of_large_objects_may_go_on() -> None:
    stacks = Stacks()
    puts = f"Worker.put_object@ray/_private/worker.py:891 put@ray/_private/worker.py:3084 Writer.fill@app/fill.py:4 {EXECUTOR} {MAIN}"
    writer = process(stacks, 100, "ray::Writer.fill", puts, syscall=45, wchan="unix_stream_read_generic", arg0=7)
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1)])
    ray = ray_state(actors=[actor(0, "Writer", 100)], cores=[core(100, running=[1], actor_number=0)])
    assert diagnose(snapshot(stacks.node([writer, driver]), ray)).verdict.state is State.UNKNOWN


@pytest.mark.parametrize(("kind", "accuses"), [("sleep", False), ("future", True)])
def test_a_future_that_a_coroutine_at_work_may_complete(kind: str, accuses: bool) -> None:
    stacks = Stacks()
    waits = "Future.result@concurrent/futures/_base.py:451 run_until_all_finished@app/daemon.py:717 main@app/main.py:4"
    loops = "run_forever@asyncio/base_events.py:607 run@threading.py:982"
    looks = AsyncTask(address=1, name="Task-1", chain=(AwaitFrame(function="look_again", file="/job/daemon.py", line=5),), awaited=Awaited(kind=kind))
    one = process(stacks, 100, "python main.py", waits, kind="named", extra_threads=[("loop", loops)], async_tasks=(looks,))
    report = diagnose(snapshot(stacks.node([one])))
    assert any(f.certainty is not Certainty.POSSIBLE for f in report.findings) is accuses, report.verdict.summary


def test_an_exporter_that_pauses_between_two_tries_is_no_deadlock() -> None:
    stacks = Stacks()
    pauses = "Condition.wait@threading.py:331 Event.wait@threading.py:629 export@opentelemetry/exporter/otlp/common/http.py:234 step@app/agent.py:9"
    report = diagnose(snapshot(stacks.node([process(stacks, 100, "python agent.py", pauses, kind="named", syscall=202)])))
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings), report.verdict.summary


@pytest.mark.parametrize(("in_group", "cause"), [(True, Cause.RANK_DIED), (False, Cause.PRODUCER_DIED)])
def test_survivors_that_pause_outside_the_collective_still_wait_for_a_rank(in_group: bool, cause: Cause) -> None:
    stacks = Stacks()
    pauses = f"Trainer.wait_for_restart@app/trainer.py:9 {EXECUTOR} {MAIN}"
    ranks = [process(stacks, 100 + i, "ray::Trainer.go", pauses, wchan="hrtimer_nanosleep", syscall=230) for i in range(2)]
    if in_group:
        ranks = [replace(r, threads=(*r.threads, Thread(tid=r.pid + 500, comm="pt_gloo_runloop", state="S"))) for r in ranks]
    actors = [actor(i, "Trainer", 100 + i) for i in range(2)]
    dead = actor(2, "Trainer", 102, state="DEAD", death="its process vanished", death_kind="crashed")
    cores = [core(100 + i, running=[i + 1], actor_number=i) for i in range(2)]
    _, found, who, certainty = accused(snapshot(stacks.node(ranks), ray_state(actors=[*actors, dead], cores=cores)))
    assert (found, who, certainty) == (cause, {102}, Certainty.LIKELY)


SQLITE = f"Cache.save@app/cache.py:9 {EXECUTOR} {MAIN}"
FILELOCK = f"acquire@filelock/_api.py:300 __enter__@filelock/_api.py:400 Cache.fetch@app/cache.py:9 {EXECUTOR} {MAIN}"


@pytest.mark.parametrize(
    ("tries", "calls", "kind", "access", "expected"),
    [
        (SQLITE, (), "POSIX", "WRITE", True),
        (SQLITE, ("sleep",), "POSIX", "WRITE", False),
        (SQLITE, None, "POSIX", "WRITE", False),
        (SQLITE, (), "POSIX", "READ", False),
        (SQLITE, (), "FLOCK", "WRITE", False),
        (FILELOCK, ("sleep",), "FLOCK", "WRITE", True),
        (FILELOCK.replace("filelock/", "app/"), ("sleep",), "FLOCK", "WRITE", False),
    ],
)
def test_a_lock_that_is_tried_again_and_again(tries: str, calls: tuple[str, ...] | None, kind: str, access: str, expected: bool) -> None:
    stacks = Stacks()
    reads = f"Cache.fill@app/cache.py:4 {EXECUTOR} {MAIN}"
    file = OpenFile(fd=9, path="/data/model.lock", kind="file", inode=7, device="08:01", writable=True)
    pair = [
        process(stacks, 100, "ray::Cache.save", tries, wchan="hrtimer_nanosleep", syscall=230),
        process(stacks, 101, "ray::Cache.fill", reads, wchan="wait_for_partner", syscall=257),
    ]
    keeps_open = {100: tries == SQLITE, 101: True}
    pair = [replace(p, files=(file,) if keeps_open[p.pid] else ()) for p in pair]
    locks = (FileLock(lock=1, kind=kind, access=access, pid=101, device="08:01", inode=7),)
    actors = [actor(i, f"Cache{i}", 100 + i) for i in range(2)]
    node = stacks.node(pair, locks=locks)
    node = replace(node, frames=tuple(replace(f, calls=calls) if f.function in ("Cache.save", "acquire") else f for f in node.frames))
    taken = snapshot(node, ray_state(actors=actors))
    assert (("100", "101", "file lock") in edges(taken)) is expected
    if expected:
        state, cause, who, _ = accused(taken)
        assert (state, cause, who) == (State.HANG, Cause.BLOCKED_IO, {101})


@pytest.mark.parametrize(
    ("tries", "driver_cpu_s", "state"),
    [(SQLITE, 0.0, State.HANG), (SQLITE, 1.9, State.UNKNOWN), (FILELOCK, 0.0, State.UNKNOWN)],
    ids=["nobody is left to call", "somebody may call", "which file is not seen"],
)
def test_an_idle_process_that_keeps_a_lock(tries: str, driver_cpu_s: float, state: State) -> None:
    stacks = Stacks()
    file = OpenFile(fd=9, path="/data/model.lock", kind="file", inode=7, device="08:01", writable=True)
    waiter = process(stacks, 100, "ray::Cache.save", tries, wchan="hrtimer_nanosleep", syscall=230)
    processes = [
        replace(waiter, files=(file,) if tries == SQLITE else ()),
        replace(process(stacks, 101, "ray::Cache", MAIN), files=(file,)),
        process(stacks, 1, "driver", "train@app/main.py:7", kind="driver", cpu_s=driver_cpu_s, wchan=None if driver_cpu_s else "futex_do_wait"),
    ]
    locks = (FileLock(lock=1, kind="POSIX" if tries == SQLITE else "FLOCK", access="WRITE", pid=101, device="08:01", inode=7),)
    actors = [actor(i, "Cache", 100 + i) for i in range(2)]
    node = stacks.node(processes, locks=locks)
    node = replace(node, frames=tuple(replace(f, calls=()) if f.function == "Cache.save" else f for f in node.frames))
    report = diagnose(snapshot(node, ray_state(actors=actors)))
    (kept,) = [f for f in report.findings if "still holds the lock" in f.summary]
    assert ({w.pid for w in kept.who}, kept.certainty is Certainty.POSSIBLE) == ({101}, state is State.UNKNOWN)
    assert report.verdict.state is state
