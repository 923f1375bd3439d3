"""What samples of stacks miss: short calls between pauses, where cores are rare, and bytes that go out between pauses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, IDLE, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, State
from ray_rl_debug.model.snapshot import Snapshot, Socket, Thread

ASKS = f"{RAY_GET} Trainer.wait_for_batch@app/trainer.py:9 Trainer.fit@app/trainer.py:4 {EXECUTOR} {MAIN}"


def polls_a_buffer(*, producer: str, cpu_s: float = 0.9) -> Snapshot:
    """A trainer met in its calls to a buffer that answers; whoever fills the buffer is in the given state."""
    stacks = Stacks()
    processes = [
        process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1)]),
        process(stacks, 100, "ray::Trainer.fit", ASKS, cpu_s=cpu_s, refs=[task_id(2)]),
        process(stacks, 101, "ray::Buffer", IDLE),
    ]
    death = {"death": "its process vanished", "death_kind": "crashed"} if producer == "DEAD" else {}
    actors = [actor(1, "Trainer", 100), actor(2, "Buffer", 101), actor(3, "Rollout", 102, state=producer, **death)]
    cores = [core(100, running=[1], actor_number=1), core(101, actor_number=2, done=5)]
    return snapshot(stacks.node(processes), ray_state(actors=actors, cores=cores))


def test_who_asks_ray_again_and_again_moves() -> None:
    taken = polls_a_buffer(producer="PENDING_CREATION")
    assert build_view(taken).seen["node1/100"].motion is Motion.MOVING
    report = diagnose(taken)
    assert [(f.cause, f.certainty) for f in report.findings if f.cause is Cause.STRAGGLER] == []


@pytest.mark.parametrize(("calls", "cause"), [(("sleep",), Cause.PRODUCER_DIED), ((), Cause.STRAGGLER)], ids=["a pause", "no pause"])
def test_who_is_met_in_the_moment_between_two_pauses_sleeps(calls: tuple[str, ...], cause: Cause) -> None:
    """Its thread runs when the kernel is asked, at a line that does nothing but sleep."""
    taken = polls_a_buffer(producer="DEAD", cpu_s=0.02)
    stacks = Stacks()
    pause = process(stacks, 100, "ray::Trainer.fit", ASKS.removeprefix(f"{RAY_GET} "))
    pause = replace(pause, threads=(replace(pause.threads[0], state="R"),))
    others = [
        process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1)]),
        process(stacks, 101, "ray::Buffer", IDLE),
    ]
    node = stacks.node([pause, *others])
    frames = tuple(replace(f, calls=calls) if f.function == "Trainer.wait_for_batch" else f for f in node.frames)
    report = diagnose(replace(taken, nodes=(replace(node, frames=frames),)))
    assert report.findings[0].cause is cause


@pytest.mark.parametrize(
    ("slices", "samples", "motion"),
    [
        (900, 1, Motion.MOVING),
        (900, 3, Motion.MOVING),
        (8, 1, Motion.UNKNOWN),
        (8, 3, Motion.FROZEN),
        (90, 30, Motion.FROZEN),
        (900, 30, Motion.MOVING),
    ],
    ids=["one sample, calls", "three samples, calls", "one sample, still", "three samples, still", "stopped thirty times", "thirty samples, calls"],
)
def test_a_driver_whose_short_calls_come_back_is_met_in_ray_get_each_time(slices: int, samples: int, motion: Motion) -> None:
    """It uses little processor time; its thread wakes with each answer. What py-spy's own stops wake does not count."""
    stacks = Stacks()
    one = process(stacks, 100, "ray::Trainer.fit", *[ASKS] * max(samples, 2), cpu_s=0.02, refs=[task_id(2)])
    one = replace(one, samples=one.samples[:samples], threads=(replace(one.threads[0], run_slices=slices),))
    assert build_view(snapshot(stacks.node([one]))).seen["node1/100"].motion is motion


@pytest.mark.parametrize(
    "at", ["take@app/trainer.py:12 Trainer.fit@app/trainer.py:5", "Trainer.fit@app/trainer.py:5", "Trainer.wait_for_batch@app/trainer.py:8"]
)
@pytest.mark.parametrize("cpu_s", [0.02, 1.5])
def test_who_comes_to_ray_get_or_leaves_it_moves(at: str, cpu_s: float) -> None:
    """On a slow core a driver of many short calls takes much processor time; it is no endless loop for that."""
    stacks = Stacks()
    one = process(stacks, 100, "ray::Trainer.fit", ASKS, f"{at} {EXECUTOR} {MAIN}", ASKS, cpu_s=cpu_s)
    assert build_view(snapshot(stacks.node([one]))).seen["node1/100"].motion is Motion.MOVING


def test_who_waits_for_ray_at_one_line_and_then_at_another_moves() -> None:
    stacks = Stacks()
    trainer = process(stacks, 100, "ray::Trainer.fit", ASKS, ASKS, ASKS.replace("trainer.py:4", "trainer.py:5"))
    assert build_view(snapshot(stacks.node([trainer]))).seen["node1/100"].motion is Motion.MOVING


def test_processor_time_of_other_threads_does_not_wake_a_wait_for_ray() -> None:
    (node,) = polls_a_buffer(producer="ALIVE").nodes
    blind = [replace(p, threads=()) if p.pid == 100 else p for p in node.processes]
    assert build_view(snapshot(replace(node, processes=tuple(blind)))).seen["node1/100"].motion is not Motion.MOVING


@pytest.mark.parametrize(("written", "motion"), [(20_000_000, Motion.MOVING), (40_000, Motion.FROZEN), (None, Motion.FROZEN)])
def test_a_writer_that_is_met_in_its_pauses_is_known_by_its_bytes(written: int | None, motion: Motion) -> None:
    stacks = Stacks()
    saves = f"Trainer.save_checkpoint@app/trainer.py:9 {EXECUTOR} {MAIN}"
    one = process(stacks, 100, "ray::Trainer.save_checkpoint", saves, wchan="hrtimer_nanosleep", syscall=230)
    taken = snapshot(stacks.node([replace(one, written_bytes=written)]))
    assert build_view(taken).seen["node1/100"].motion is motion


def test_who_waits_for_one_object_is_frozen() -> None:
    taken = polls_a_buffer(producer="ALIVE", cpu_s=0.02)
    assert build_view(taken).seen["node1/100"].motion is Motion.FROZEN


def test_a_dead_producer_is_named_though_the_poller_was_never_met_in_its_pause() -> None:
    report = diagnose(polls_a_buffer(producer="DEAD"))
    assert (report.verdict.state, report.findings[0].cause, {w.pid for w in report.findings[0].who}) == (State.HANG, Cause.PRODUCER_DIED, {102})


@pytest.mark.parametrize(
    ("slices", "quiet_s", "threads", "motion"),
    [
        (166, 0.1, [], Motion.MOVING),
        (166, 30.0, [], Motion.FROZEN),
        (6, 0.1, [], Motion.FROZEN),
        (166, 0.1, [("beside", "read@app/http.py:3")], Motion.FROZEN),
    ],
    ids=["data comes in", "only looks", "looked at only", "data may be for another thread"],
)
def test_a_receiver_of_many_connections_is_met_in_its_select_each_time(
    slices: int, quiet_s: float, threads: list[tuple[str, str]], motion: Motion
) -> None:
    """It takes what comes in within microseconds and selects again: no sample shows that."""
    stacks = Stacks()
    peers = [
        Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:4000", remote=f"127.0.0.1:500{i}", inode=i, fd=4 + i, quiet_s=quiet)
        for i, quiet in enumerate((40.0, quiet_s))
    ]
    one = process(
        stacks, 100, "python buffer.py", "take@app/buffer.py:5", kind="child", wchan="poll_schedule_timeout", sockets=peers, extra_threads=threads
    )
    one = replace(one, threads=(replace(one.threads[0], run_slices=slices), *one.threads[1:]))
    assert build_view(snapshot(stacks.node([one]))).seen["node1/100"].motion is motion


@pytest.mark.parametrize(
    ("calls", "slices", "kind", "motion"),
    [
        (("wait", "batch_isend_irecv"), 475, Kind.P2P, Motion.MOVING),
        (("wait", "batch_isend_irecv"), 6, Kind.P2P, Motion.FROZEN),
        (("sleep",), 475, Kind.SLEEP, Motion.FROZEN),
        (None, 475, Kind.SLEEP, Motion.FROZEN),
    ],
    ids=["it went on to a pause", "its wait naps in C", "it sleeps there", "the line was not read"],
)
def test_a_rank_that_the_kernel_meets_in_a_pause_has_left_its_wait(calls: tuple[str, ...] | None, slices: int, kind: Kind, motion: Motion) -> None:
    stacks = Stacks()
    rank = process(stacks, 100, "python train.py", "exchange@app/train.py:22", kind="named", wchan="hrtimer_nanosleep", syscall=230, rank=0, size=2)
    gloo = Thread(tid=101, comm="pt_gloo_runloop", state="S")
    rank = replace(rank, threads=(replace(rank.threads[0], run_slices=slices), gloo))
    node = stacks.node([rank])
    frames = tuple(replace(f, calls=calls) for f in node.frames)
    one = build_view(snapshot(replace(node, frames=frames))).seen["node1/100"]
    assert (one.kind, one.motion) == (kind, motion)


@pytest.mark.parametrize(("state", "slices", "motion"), [("R", 67, Motion.BUSY), ("R", 6, Motion.FROZEN), ("S", 67, Motion.FROZEN)])
def test_who_runs_when_the_kernel_is_asked_does_not_stand(state: str, slices: int, motion: Motion) -> None:
    """Where cores are rare it got little of them, and its line may have been left meanwhile. The looks wake a thread as well."""
    stacks = Stacks()
    one = process(stacks, 100, "python train.py", "train@app/train.py:27", kind="named")
    one = replace(one, threads=(replace(one.threads[0], state=state, run_slices=slices, cpu_s=0.16),))
    assert build_view(snapshot(stacks.node([one]))).seen["node1/100"].motion is motion


@pytest.mark.parametrize(("call", "motion"), [("wait4", Motion.MOVING), ("recvfrom", Motion.FROZEN)])
def test_nobody_reads_a_socket_in_a_wait_for_a_child(call: str, motion: Motion) -> None:
    stacks = Stacks()
    reads = "SocketIO.readinto@socket.py:706 HTTPResponse.begin@http/client.py:325 urlopen@urllib/request.py:216 main@app/main.py:48"
    one = process(stacks, 100, "python main.py", reads, kind="named")
    one = replace(one, threads=(replace(one.threads[0], call=call, run_slices=6),))
    assert build_view(snapshot(stacks.node([one]))).seen["node1/100"].motion is motion
