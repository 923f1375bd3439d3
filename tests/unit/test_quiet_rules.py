"""What made healthy runs look hung, one small snapshot each: and the hang beside it that must still be named."""

from __future__ import annotations

import msgspec
import pytest
from scenes import ALL_REDUCE, BARRIER, EXECUTOR, IDLE, MAIN, NODE_ID, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OwnedTask, Process, RayNode, RayTask, TaskHistory

LOADER = "_MultiProcessingDataLoaderIter._try_get_data@torch/utils/data/dataloader.py:1251 Trainer.fit@app/trainer.py:12 <module>@app/train.py:3"
FETCH = "Prompts.__getitem__@app/data.py:9 _worker_loop@torch/utils/data/_utils/worker.py:349 <module>@app/train.py:3"
CALL = ("run_async_func_or_coro_in_event_loop.<locals>.async_func", None)


def sure(report: Report) -> list[str]:
    return [f.cause.value for f in report.findings if f.certainty is not Certainty.POSSIBLE]


def with_slices(one: Process, slices: int) -> Process:
    return msgspec.structs.replace(one, threads=(msgspec.structs.replace(one.threads[0], run_slices=slices), *one.threads[1:]))


@pytest.mark.parametrize(("slices", "accused"), [(90, []), (2, ["dataloader-stuck"])])
def test_a_loader_that_delivers(slices: int, accused: list[str]) -> None:
    stacks = Stacks()
    owner = with_slices(process(stacks, 100, "python train.py", LOADER, kind="named"), slices)
    worker = process(stacks, 101, "python train.py", FETCH, kind="child", ppid=100)
    assert sure(diagnose(snapshot(stacks.node([owner, worker])))) == accused


@pytest.mark.parametrize(
    ("place", "call", "accused"),
    [("load_image@app/data.py:4", 230, []), ("read_shard@app/data.py:6", 0, ["dataloader-stuck"])],
    ids=["an item that pauses", "an item that never comes"],
)
def test_a_loader_whose_item_takes_long(place: str, call: int, accused: list[str]) -> None:
    stacks = Stacks()
    owner = process(stacks, 100, "python train.py", LOADER, kind="named")
    worker = process(stacks, 101, "python train.py", f"{place} {FETCH}", kind="child", ppid=100, syscall=call, wchan="folio_wait_bit_common")
    found = diagnose(snapshot(stacks.node([owner, worker])))
    assert sure(found) == accused
    assert [f.cause.value for f in found.findings] == ["dataloader-stuck"]


@pytest.mark.parametrize(("samples", "accused"), [(1, []), (3, ["collective-mismatch"])])
@pytest.mark.parametrize("other", ["idle", "elsewhere"])
def test_ranks_met_once_in_different_places(other: str, samples: int, accused: list[str]) -> None:
    """The samples of a moment are of different moments for different ranks: in a run at work they differ as a rule."""
    stacks = Stacks()
    update = f"{ALL_REDUCE} Trainer.update@app/trainer.py:30 {EXECUTOR} {MAIN}"
    reward = f"{BARRIER} Trainer.score@app/trainer.py:20 {EXECUTOR} {MAIN}"
    texts = [update, update, IDLE if other == "idle" else reward]
    ranks = [process(stacks, 100 + i, "ray::Trainer.update", text, rank=i, size=3) for i, text in enumerate(texts)]
    ranks = [msgspec.structs.replace(one, samples=one.samples[:samples]) for one in ranks]
    found = diagnose(snapshot(stacks.node(ranks)))
    assert sure(found) == accused
    assert {f.cause.value for f in found.findings} == {"collective-mismatch"}


def calling(
    text: str,
    *,
    cpu_s: float = 0.0,
    tasks: tuple[AsyncTask, ...] | None = (),
    finished: int = 5,
    usual_s: float = 0.5,
    written: int = 0,
    beside: str | None = None,
    is_async: bool = True,
    age_s: float = 100.0,
    other_method: str | None = None,
) -> Report:
    """A driver in ray.get for a call that runs far longer than those before it; maybe beside another process that computes at ``beside``.

    `other_method` of the actor has finished calls too.
    """
    stacks = Stacks()
    driver = process(stacks, 50, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(1)])
    busy = [text, text.replace(":60", ":61"), text] if cpu_s else [text]
    loop = [("AsyncIO Thread: default", "run_forever@asyncio/base_events.py:600 run@threading.py:982")] if is_async else []
    one = process(stacks, 102, "ray::Scorer.compute_score", *busy, cpu_s=cpu_s, async_tasks=tasks, extra_threads=loop)
    one = msgspec.structs.replace(one, written_bytes=written)
    task = RayTask(task_id=task_id(1), name="Scorer.compute_score", state="RUNNING", pid=102, state_times_s={"RUNNING": 200.0 - age_s})
    history = (TaskHistory(name="Scorer.compute_score", count=finished, longest_s=usual_s),) if finished else ()
    history = (*history, TaskHistory(name=other_method, count=5, longest_s=0.1)) if other_method else history
    owned = OwnedTask(task_id=task_id(1), name="Scorer.compute_score", actor_id=f"{7:032x}")
    cores = [core(102, running=[1], actor_number=7), msgspec.structs.replace(core(50, owned=[owned]), kind="DRIVER")]
    others = [process(stacks, 103, "ray::Producer.run", beside, beside.replace(":60", ":61"), cpu_s=1.9)] if beside else []
    ray = ray_state(actors=[actor(7, "Scorer", 102)], tasks=[task], cores=cores, history=history)
    return diagnose(snapshot(stacks.node([driver, one, *others]), ray))


BUSY = f"normalise@app/score.py:60 Scorer.compute_score@app/score.py:20 {EXECUTOR} {MAIN}"


@pytest.mark.parametrize(("finished", "accused"), [(5, ["straggler"]), (1, []), (0, [])])
def test_one_call_before_is_no_habit(finished: int, accused: list[str]) -> None:
    assert sure(calling(BUSY, cpu_s=1.9, finished=finished, age_s=1000.0)) == accused


def test_one_that_works_may_take_a_rare_step() -> None:
    """An evaluation or a checkpoint after many short steps: no fellow has done the same."""
    assert sure(calling(BUSY, cpu_s=1.9)) == []


def test_a_call_that_writes_megabytes_is_at_work() -> None:
    assert sure(calling(BUSY, cpu_s=1.9, written=80 << 20)) == []


def waiting_call(awaited: Awaited, *frames: tuple[str, str]) -> tuple[AsyncTask, ...]:
    chain = tuple(AwaitFrame(function=f, file=file, line=20) for f, file in ((CALL[0], CALL[1]), *frames))  # type: ignore[arg-type]
    return (AsyncTask(address=1, name="Task-1", chain=chain, awaited=awaited, stable=True),)


QUEUE = waiting_call(
    Awaited(kind="queue", detail="Queue.get empty", value=0), ("_QueueActor.get", "ray/util/queue.py"), ("Queue.get", "asyncio/queues.py")
)


def sleeping(delay_s: float) -> tuple[AsyncTask, ...]:
    return waiting_call(Awaited(kind="sleep", delay_s=delay_s), ("Scorer.compute_score", "/app/score.py"), ("sleep", "asyncio/tasks.py"))


@pytest.mark.parametrize(
    ("tasks", "finished", "accused"),
    [
        (QUEUE, 5, []),
        (sleeping(0.05), 5, []),
        (sleeping(1.0), 1, []),
        (sleeping(1.0), 5, []),
        ((), 5, []),
    ],
    ids=["waits for the next item", "steps on", "too few to compare", "sleeps again and again", "nothing of the call is seen"],
)
def test_calls_without_an_end_in_sight(tasks: tuple[AsyncTask, ...], finished: int, accused: list[str]) -> None:
    assert sure(calling(IDLE, tasks=tasks, finished=finished)) == accused


def test_a_generator_that_is_held_back_is_no_coroutine() -> None:
    """A call of a synchronous actor without a frame of its own: its consumer does not take what it has made so far."""
    assert sure(calling(IDLE, is_async=False)) == []


@pytest.mark.parametrize(("beside", "suspects"), [(None, ["asyncio-stuck"]), (BUSY, [])], ids=["all others idle", "one at work"])
def test_an_empty_queue_that_nobody_is_about_to_fill(beside: str | None, suspects: list[str]) -> None:
    found = calling(IDLE, tasks=QUEUE, beside=beside, other_method="Scorer.add_answer").findings
    assert [(f.cause.value, f.certainty) for f in found if f.who[0].pid == 102] == [(cause, Certainty.POSSIBLE) for cause in suspects]


def test_a_process_that_gets_no_core_is_not_frozen() -> None:
    """On a crowded machine a computing thread runs for few per cent of the window and is ready for the rest."""
    stacks = Stacks()
    one = process(stacks, 100, "python train.py", "matmul@app/model.py:5 main@app/train.py:9", kind="named", cpu_s=0.1)
    starved = msgspec.structs.replace(one, threads=(msgspec.structs.replace(one.threads[0], queued_s=1.5), *one.threads[1:]))
    frozen, busy = (build_view(snapshot(stacks.node([p]))).seen["node1/100"] for p in (one, starved))
    assert (frozen.motion, busy.motion) == (Motion.FROZEN, Motion.BUSY)
    assert busy.motion_reason.endswith("was ready but without a core for 75 % of the time")


def test_a_sleep_that_a_kernel_counts_as_ready_is_no_work() -> None:
    """More than the window lasted."""
    stacks = Stacks()
    one = process(stacks, 100, "python train.py", "wait@subprocess.py:1264 main@app/train.py:9", kind="named", syscall=61, cpu_s=0.0)
    slept = msgspec.structs.replace(one, threads=(msgspec.structs.replace(one.threads[0], queued_s=78.4), *one.threads[1:]))
    assert build_view(snapshot(stacks.node([slept]))).seen["node1/100"].motion is Motion.FROZEN


def queued(*, done: int, cpu_s: float, told: bool = True) -> Report:
    """Two tasks on one core: the second waits for the first to end."""
    stacks = Stacks()
    driver = process(stacks, 50, "python tokenize.py", f"{RAY_GET} main@tokenize.py:9", kind="driver", refs=[task_id(2)])
    text = f"tokenize@app/tokenize.py:3 {MAIN}"
    worker = process(stacks, 102, "ray::tokenize", text, cpu_s=cpu_s)
    tasks = [
        RayTask(task_id=task_id(1), name="tokenize", state="RUNNING", pid=102, resources={"CPU": 1.0}, state_times_s={"RUNNING": 199.0}),
        RayTask(task_id=task_id(2), name="tokenize", state="PENDING_NODE_ASSIGNMENT", resources={"CPU": 1.0}),
    ]
    owned = [OwnedTask(task_id=task_id(2), name="tokenize")]
    cores = [msgspec.structs.replace(core(50, owned=owned), kind="DRIVER"), *([core(102, running=[1], done=done)] if told else [])]
    state = msgspec.structs.replace(
        ray_state(tasks=tasks, cores=cores), nodes=(RayNode(node_id=NODE_ID, ip="", host="node1", alive=True, resources={"CPU": 1.0}),)
    )
    return diagnose(snapshot(stacks.node([driver, worker]), state))


@pytest.mark.parametrize(
    ("done", "cpu_s", "accused"), [(3, 0.0, []), (0, 1.9, []), (0, 0.0, ["ray-pending"])], ids=["tasks end", "one works", "the holder stands"]
)
def test_tasks_that_queue_behind_others(done: int, cpu_s: float, accused: list[str]) -> None:
    assert sure(queued(done=done, cpu_s=cpu_s)) == accused


def test_a_worker_that_did_not_tell_what_it_has_finished_may_work_through_a_queue() -> None:
    found = queued(done=0, cpu_s=0.0, told=False)
    assert sure(found) == []
    assert [f.cause.value for f in found.findings] == ["ray-pending"]


GRPC = f"_blocking@grpc/_channel.py:1162 __call__@grpc/_channel.py:1178 Scorer.compute_score@app/score.py:20 {EXECUTOR} {MAIN}"


@pytest.mark.parametrize(("usual_s", "accused"), [(200.0, []), (0.5, ["blocked-io"])], ids=["as long as ever", "overdue"])
def test_a_grpc_call_that_takes_as_long_as_ever(usual_s: float, accused: list[str]) -> None:
    assert sure(calling(GRPC, usual_s=usual_s)) == accused


def test_the_process_of_a_multiprocessing_manager_is_idle() -> None:
    stacks = Stacks()
    driver = process(stacks, 100, "python train.py", "ask_user@app/train.py:9 main@app/train.py:3", kind="driver", syscall=230)
    serve = "wait@threading.py:629 serve_forever@multiprocessing/managers.py:175 start@multiprocessing/managers.py:560 main@app/train.py:3"
    client = "recv@multiprocessing/connection.py:250 serve_client@multiprocessing/managers.py:230 run@threading.py:982"
    manager = process(stacks, 101, "python train.py", serve, kind="child", ppid=100, extra_threads=[("Thread-2", client)])
    taken = snapshot(stacks.node([driver, manager]))
    assert build_view(taken).seen["node1/101"].is_idle
    assert diagnose(taken).findings == ()
