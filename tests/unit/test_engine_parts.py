"""Inference engines: their processes by name, who waits in them for whom, and what is no hang."""

from __future__ import annotations

import msgspec
import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, EndedProcess, EngineState, LogLine, Process, Snapshot, Socket

MAIN_LOOP = "Runner.run@asyncio/runners.py:118 run@uvloop/__init__.py:92 ServeSubcommand.cmd@vllm/entrypoints/cli/serve.py:156"
MONITOR = (
    "_PollLikeSelector.select@selectors.py:415 wait@multiprocessing/connection.py:947"
    " CoreEngineProcManager.monitor_engine_liveness@vllm/v1/engine/utils.py:356 Thread.run@threading.py:982"
)
RING = (
    "Poller.poll@zmq/sugar/poll.py:106 SpinCondition.wait@vllm/distributed/device_communicators/shm_broadcast.py:210"
    " MessageQueue.acquire_read@vllm/distributed/device_communicators/shm_broadcast.py:864"
    " MessageQueue.dequeue@vllm/distributed/device_communicators/shm_broadcast.py:971"
)
CORE_RESTS = (
    "Condition.wait@threading.py:327 Queue.get@queue.py:171 EngineCoreProc._process_input_queue@vllm/v1/engine/core.py:1588"
    " EngineCoreProc.run_engine_core@vllm/v1/engine/core.py:1496"
)
CORE_WAITS = (
    f"{RING} MultiprocExecutor.collective_rpc.<locals>.get_response@vllm/v1/executor/multiproc_executor.py:440"
    " EngineCore.step@vllm/v1/engine/core.py:674"
)
WORKER_RESTS = f"{RING} WorkerProc.worker_busy_loop@vllm/v1/executor/multiproc_executor.py:1041"
FORWARD = "Worker.execute_model@vllm/v1/worker/gpu_worker.py:70 WorkerProc.worker_busy_loop@vllm/v1/executor/multiproc_executor.py:1050"
ALL_REDUCE = (
    "OpOverloadPacket.__call__@torch/_ops.py:1279 _CPUSHMDistributed.all_reduce@vllm/distributed/device_communicators/cpu_communicator.py:275"
    f" {FORWARD}"
)
SERVER, CORE, FIRST, SECOND = 100, 200, 300, 301
COMMAND = "/opt/env/bin/python3 /opt/env/bin/vllm … --port 8100"


def task(address: int, *frames: tuple[str, str], kind: str = "event") -> AsyncTask:
    chain = tuple(AwaitFrame(function=function, file=file, line=1) for function, file in frames)
    return AsyncTask(address=address, name=f"Task-{address}", chain=chain, awaited=Awaited(kind=kind, address=address), stable=True, tid=SERVER)


SERVES = task(1, ("Server.main_loop", "uvicorn/server.py"), ("sleep", "asyncio/tasks.py"), kind="sleep")
OUTPUTS = task(2, ("AsyncMPClient._ensure_output_queue_task.<locals>.process_outputs_socket", "vllm/v1/engine/core_client.py"), kind="future")


def request(address: int) -> AsyncTask:
    return task(address, ("AsyncLLM.generate", "vllm/v1/engine/async_llm.py"), ("RequestOutputCollector.get", "vllm/v1/engine/output_processor.py"))


def vllm(
    *, core: str = CORE_RESTS, workers: tuple[str, str] = (WORKER_RESTS, WORKER_RESTS), requests: int = 0, state: EngineState | None = None
) -> Snapshot:
    stacks = Stacks()
    tasks = (SERVES, OUTPUTS, *(request(10 + i) for i in range(requests)))
    server = process(
        stacks, SERVER, COMMAND, MAIN_LOOP, kind="named", wchan="do_epoll_wait", extra_threads=[("MPClientEngineMonitor", MONITOR)], async_tasks=tasks
    )
    server = msgspec.structs.replace(server, engine=state)
    below = [
        process(stacks, CORE, "VLLM::EngineCore", core, kind="child", ppid=SERVER, wchan="futex_do_wait" if core == CORE_RESTS else "do_poll"),
        *(worker(stacks, pid, i, text) for i, (pid, text) in enumerate(zip((FIRST, SECOND), workers, strict=True))),
    ]
    return snapshot(stacks.node([server, *below]))


def worker(stacks: Stacks, pid: int, rank: int, text: str) -> Process:
    cpu_s = 1.9 if text == ALL_REDUCE else 0.0
    return process(stacks, pid, f"VLLM::Worker_TP{rank}", text, kind="child", ppid=CORE, wchan="do_poll" if cpu_s == 0 else None, cpu_s=cpu_s)


def accused(report: Report) -> list[tuple[Cause, list[int | None]]]:
    return [(f.cause, [w.pid for w in f.who]) for f in report.findings if f.certainty is not Certainty.POSSIBLE]


def test_an_idle_engine_is_healthy() -> None:
    report = diagnose(vllm())
    assert report.verdict.state is State.HEALTHY
    assert report.findings == ()


def test_a_request_in_flight_and_a_scheduler_at_rest_are_a_pause() -> None:
    report = diagnose(vllm(requests=2))
    assert report.verdict.state is State.HANG
    assert accused(report) == [(Cause.ENGINE_PAUSED, [SERVER, CORE])]
    assert "2 requests in flight" in report.verdict.summary


def test_what_the_endpoint_says_makes_a_pause_proven() -> None:
    report = diagnose(vllm(requests=1, state=EngineState(kind="vllm", answered=True, is_paused=True)))
    assert report.findings[0].certainty is Certainty.PROVEN
    assert any(e.kind == "endpoint" for e in report.findings[0].evidence)


def test_an_engine_whose_tokens_flow_is_not_paused() -> None:
    state = EngineState(kind="vllm", answered=True, generated_tokens_before=10, generated_tokens=500)
    assert diagnose(vllm(requests=1, state=state)).verdict.state is State.HEALTHY


def test_the_rank_that_is_not_in_the_collective_is_the_cause() -> None:
    stuck = f"hold@app/plugin.py:31 {FORWARD}"
    report = diagnose(vllm(core=CORE_WAITS, workers=(ALL_REDUCE, stuck), requests=1))
    assert report.verdict.state is State.HANG
    assert accused(report) == [(Cause.STRAGGLER, [SECOND])]
    assert {v.pid for v in report.findings[0].victims} == {SERVER, CORE, FIRST}
    assert report.findings[0].who[0].label == "vLLM TP worker 1 (pid 301)"


def test_a_stopped_worker_comes_before_all_who_wait_for_it() -> None:
    whole = vllm(core=CORE_WAITS, requests=1)
    node = whole.nodes[0]
    processes = tuple(msgspec.structs.replace(p, state="T") if p.pid == FIRST else p for p in node.processes)
    report = diagnose(msgspec.structs.replace(whole, nodes=(msgspec.structs.replace(node, processes=processes),)))
    assert report.findings[0].certainty is Certainty.PROVEN
    assert accused(report)[0] == (Cause.PROCESS_STOPPED, [FIRST])


def without_core(*tasks: AsyncTask) -> Snapshot:
    stacks = Stacks()
    return snapshot(stacks.node([process(stacks, SERVER, COMMAND, MAIN_LOOP, kind="named", wchan="do_epoll_wait", async_tasks=tasks)]))


def test_a_server_that_outlives_its_core_is_told() -> None:
    report = diagnose(without_core(SERVES))
    assert report.findings[0].cause is Cause.ENGINE_DIED
    assert report.findings[0].who[0].label == "vLLM engine core of vLLM server"


@pytest.mark.parametrize("tasks", [(), (SERVES, OUTPUTS)], ids=["it does not serve yet", "its core is on another machine"])
def test_a_server_without_a_core_of_its_own_may_be_well(tasks: tuple[AsyncTask, ...]) -> None:
    assert diagnose(without_core(*tasks)).findings == ()


def test_who_ended_during_the_window_is_named_with_its_pid() -> None:
    whole = without_core(SERVES, OUTPUTS)
    node = msgspec.structs.replace(whole.nodes[0], ended=(EndedProcess(pid=CORE, ppid=SERVER, title="VLLM::EngineCore", kind="child"),))
    report = diagnose(msgspec.structs.replace(whole, nodes=(node,)))
    assert accused(report) == [(Cause.ENGINE_DIED, [CORE])]


def test_a_worker_of_ray_that_listens_may_be_starting() -> None:
    stacks = Stacks()
    listens = (Socket(family="tcp", state="LISTEN", local="10.0.0.1:8000", inode=1),)
    server = process(stacks, SERVER, "ray::vLLMHttpServer", "main_loop@ray/_private/worker.py:1069", sockets=listens)
    assert diagnose(snapshot(stacks.node([server]))).findings == ()


def test_a_zombie_that_ended_well_is_no_death() -> None:
    whole = vllm()
    node = whole.nodes[0]
    ended = process(Stacks(), 400, "", kind="child", ppid=SERVER, state="Z", async_tasks=None)
    ended = msgspec.structs.replace(ended, comm="VLLM::EngineCor", samples=(), threads=(), exit_code=0)
    report = diagnose(msgspec.structs.replace(whole, nodes=(msgspec.structs.replace(node, processes=(*node.processes, ended)),)))
    assert [f for f in report.findings if f.cause is Cause.ENGINE_DIED] == []


SENDER = (
    "Socket.send@zmq/sugar/socket.py:713 BucketedWeightSender.async_send_weights@verl/workers/rollout/vllm_rollout/bucketed_weight_transfer.py:113"
    " ActorRolloutRefWorker.update_weights@verl/workers/engine_workers.py:804"
)


@pytest.mark.parametrize("is_connected", [False, True])
def test_weights_that_nobody_receives(is_connected: bool) -> None:
    whole = vllm()
    node = whole.nodes[0]
    stacks = Stacks()
    stacks.frames = {(f.function, f.file, f.line or 0): i for i, f in enumerate(node.frames)}
    stacks.stacks = {stack: i for i, stack in enumerate(node.stacks)}
    path = "/tmp/rl-zmq-replica-0-rank-0.sock"
    sockets = [Socket(family="unix", state="LISTEN", local=path, inode=1)]
    if is_connected:
        sockets.append(Socket(family="unix", state="ESTABLISHED", local=path, remote="", inode=2, peer_inode=3))
    sender = process(stacks, 500, "ray::WorkerDict.actor_rollout_update_weights", SENDER, wchan="do_poll", sockets=sockets)
    others = list(node.processes)
    if is_connected:
        moving = process(
            stacks, SECOND, "VLLM::Worker_TP1", f"load@app/a.py:1 {FORWARD}", f"copy@app/b.py:2 {FORWARD}", kind="child", ppid=CORE, cpu_s=1.0
        )
        moving = msgspec.structs.replace(moving, sockets=(Socket(family="unix", state="ESTABLISHED", local="", remote=path, inode=3, peer_inode=2),))
        others[-1] = moving
    report = diagnose(snapshot(stacks.node([*others, sender])))
    claims = [f for f in report.findings if f.cause is Cause.WEIGHT_SYNC_MISMATCH]
    assert len(claims) == (0 if is_connected else 1)
    if claims:
        assert {w.pid for w in claims[0].who} == {FIRST, SECOND}
        assert 500 in {v.pid for v in claims[0].victims}


@pytest.mark.parametrize(
    ("title", "label", "rank"),
    [
        ("VLLM::EngineCore_DP1", "vLLM engine core DP1", None),
        ("VLLM::Worker_TP1", "vLLM TP worker 1", 1),
        ("VLLM::Worker_DP0_PP1_TP2", "vLLM worker DP0 PP1 TP2", 2),
        ("MINE::Worker", "vLLM worker", None),
        ("VLLM::APIServer_1", "vLLM server 1", None),
        ("VLLM::DPCoordinator", "vLLM DP coordinator", None),
        ("sglang::scheduler_DP1_TP0", "SGLang scheduler DP1 TP0", 0),
        ("sglang::scheduler", "SGLang scheduler", None),
        ("sglang::detokenizer", "SGLang detokenizer", None),
        ("/usr/bin/python3 -m sglang.launch_server --port 30000", "SGLang server", None),
        (COMMAND, "vLLM server", None),
    ],
)
def test_names_that_people_know(title: str, label: str, rank: int | None) -> None:
    stacks = Stacks()
    one = build_view(snapshot(stacks.node([process(stacks, 7, title, "f@app/a.py:1", kind="named")]))).seen["node1/7"]
    assert (one.name, one.identity.rank, one.identity.role) == (label, rank, "engine")


@pytest.mark.parametrize("title", ["ray::WorkerDict.update", "python3 train.py", "/opt/env/bin/python3 -c …"])
def test_others_are_no_parts(title: str) -> None:
    stacks = Stacks()
    one = build_view(snapshot(stacks.node([process(stacks, 7, title, "f@app/a.py:1", kind="named")]))).seen["node1/7"]
    assert one.identity.part is None


WAITS_FOR_ENDS = "_PollLikeSelector.select@selectors.py:415 wait@multiprocessing/connection.py:947 {} main@app/run.py:9"


@pytest.mark.parametrize(
    ("function", "is_idle"), [("supervise@app/run.py:4", True), ("monitor_children@app/run.py:4", True), ("gather_results@app/run.py:4", False)]
)
def test_watching_for_a_death_is_no_wait_for_a_result(function: str, is_idle: bool) -> None:
    stacks = Stacks()
    one = build_view(snapshot(stacks.node([process(stacks, 7, "python run.py", WAITS_FOR_ENDS.format(function), kind="named", wchan="do_poll")])))
    assert one.seen["node1/7"].is_idle is is_idle


LISTENS = Socket(inode=1, local="127.0.0.1:8100", remote=None, state="LISTEN", family="tcp")
CLIENT = Socket(inode=2, local="127.0.0.1:8100", remote="127.0.0.1:50920", state="ESTABLISHED", family="tcp")


def with_server(found: Snapshot, **more: object) -> Snapshot:
    """The same with other facts of the server."""
    node = found.nodes[0]
    changed = tuple(msgspec.structs.replace(p, **more) if p.pid == SERVER else p for p in node.processes)
    return msgspec.structs.replace(found, nodes=(msgspec.structs.replace(node, processes=changed),))


def test_unread_coroutines_and_a_connection_leave_open_whether_a_request_is_in_flight() -> None:
    report = diagnose(with_server(vllm(), async_tasks=None, sockets=(LISTENS, CLIENT)))
    assert report.verdict.state is State.UNKNOWN
    assert "its coroutines were not read. To settle it: look again" in report.verdict.summary
    assert report.findings == ()


def test_without_a_connection_no_request_can_be_in_flight() -> None:
    assert diagnose(with_server(vllm(), async_tasks=None, sockets=(LISTENS,))).verdict.state is State.HEALTHY


def test_a_connection_alone_is_no_request_where_the_coroutines_were_read() -> None:
    assert diagnose(with_server(vllm(), sockets=(LISTENS, CLIENT))).verdict.state is State.HEALTHY


def test_answers_that_nobody_reads_are_told() -> None:
    full = msgspec.structs.replace(CLIENT, tx_queue_bytes=2_800_000)
    report = diagnose(with_server(vllm(), sockets=(LISTENS, full)))
    assert report.verdict.state is State.HEALTHY
    assert "1 of its clients has not read 2.8 MB: look at 127.0.0.1:50920" in report.verdict.summary


def ending_core(log: tuple[LogLine, ...]) -> Snapshot:
    """An engine core that tidies up after its worker has died."""
    stacks = Stacks()
    tidies = "cleanup@vllm/distributed/parallel_state.py:2543 EngineCore.shutdown@vllm/v1/engine/core.py:839"
    tidies += " EngineCoreProc.run_engine_core@vllm/v1/engine/core.py:1521"
    server = process(stacks, SERVER, COMMAND, MAIN_LOOP, kind="named", wchan="do_epoll_wait", async_tasks=(SERVES,))
    core = process(stacks, CORE, "VLLM::EngineCore", tidies, kind="child", ppid=SERVER, cpu_s=0.6)
    return snapshot(stacks.node([msgspec.structs.replace(server, log_lines=log), core]))


def test_a_core_that_tidies_up_while_its_server_serves_is_lost() -> None:
    report = diagnose(ending_core(()))
    assert [f.cause for f in report.findings] == [Cause.ENGINE_DIED]
    assert report.findings[0].who[0].label == "vLLM engine core of vLLM server"
    assert any("ends: it is in cleanup (parallel_state.py:2543)" in e.text for e in report.findings[0].evidence)


def test_the_log_says_whose_death_ends_the_core() -> None:
    line = LogLine(file="log", line_number=146, text="Worker proc VllmWorker-0 died unexpectedly", signature="RRD670")
    report = diagnose(ending_core((line,)))
    assert accused(report)[0][0] is Cause.ENGINE_DIED
    assert report.findings[0].who[0].label == "vLLM worker of vLLM server"


@pytest.mark.parametrize("was_met", [False, True], ids=["before the look", "during the look"])
def test_a_server_that_has_ended_by_itself_is_no_riddle(was_met: bool) -> None:
    stacks = Stacks()
    gone = msgspec.structs.replace(process(stacks, SERVER, COMMAND, MAIN_LOOP, kind="named"), threads=(), state="Z", exit_code=0)
    gone = gone if was_met else msgspec.structs.replace(gone, samples=())
    report = diagnose(snapshot(stacks.node([gone])))
    assert report.verdict.state is State.UNKNOWN
    assert report.verdict.summary == "no verdict: vLLM server (node1 pid 100) has ended with status 0. To settle it: its log says why"
    assert report.verdict.next == "rayrl-debug report LOG"
    assert "lives" not in report.symptoms[1].measured
