"""Causes that pasted stacks tell alone: what is named first, and as how sure; and looks that name nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Report

GET = "    get_objects (ray/_private/worker.py:850)\n    get (ray/_private/worker.py:2667)\n"
IDLE_WORKER = """Process 991: VLLM::Worker_TP0
Thread 991 (idle): "MainThread"
    acquire_read (vllm/distributed/device_communicators/shm_broadcast.py:436)
    dequeue (vllm/distributed/device_communicators/shm_broadcast.py:500)
    worker_busy_loop (vllm/v1/executor/multiproc_executor.py:519)
"""


def reported(folder: Path, text: str, name: str = "post.md") -> Report:
    (folder / name).write_text(text)
    snapshot = load([folder / name]).snapshot
    assert snapshot is not None
    return diagnose(snapshot)


def stack(pid: int, frames: str, title: str = "python train.py") -> str:
    return f'Process {pid}: {title}\nPython v3.12.3 (/usr/bin/python3)\n\nThread {pid} (idle): "MainThread"\n{frames}\n'


def pipeline(function: str, pid: int) -> str:
    file = "megatron/core/pipeline_parallel/p2p_communication.py"
    return stack(pid, f"    _communicate ({file}:376)\n    {function} ({file}:461)\n    train_step (training.py:711)\n")


BARRIER = "    barrier (torch/distributed/distributed_c10d.py:4628)\n    barrier (vllm/distributed/utils.py:190)\n    sync (trl_client.py:3)\n"
TWO_LOCKS = """~~~~ Stack of flusher (139812340012800) ~~~~
  File "/w/a.py", line 14, in flush
    with self._data:

~~~~ Stack of MainThread (139812340012801) ~~~~
  File "/w/a.py", line 98, in put
    self._index.acquire()
"""


LOADER = "torch/utils/data/dataloader.py"
EPOCH = "    epoch (train.py:80)\n    main (train.py:99)\n"
AT_GPU = stack(7001, "    synchronize (torch/cuda/__init__.py:985)\n    timer (train.py:55)\n    main (train.py:80)\n").replace("idle", "active")


def experts() -> str:
    calls = [("dispatch", 30), ("dispatch", 30), ("combine", 41)]
    heads = [f"rank {k}\nThread {k + 7} (active)\n" for k in range(3)]
    return "".join(f"{h}    {name} (deep_ep/buffer.py:{n})\n    run_batch (scheduler.py:{n})\n\n" for h, (name, n) in zip(heads, calls, strict=True))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (stack(7, f"{GET}    get_placement_groups (verl/single_controller/ray/base.py:101)\n    fit (main.py:9)\n"), "ray-pending"),
        (f"rank 0\n{pipeline('send_forward', 7)}\nrank 1\n{pipeline('send_backward', 8)}", "p2p-mismatch"),
        (stack(7, BARRIER) + IDLE_WORKER, "weight-sync-mismatch"),
        (TWO_LOCKS, "lock-deadlock"),
        (experts(), "collective-mismatch"),
        (
            AT_GPU + stack(7002, "    permute (aug.py:14)\n    batch (train.py:41)\n    main (train.py:78)\n").replace("idle", "active+gil"),
            "straggler",
        ),
        (stack(9, f"    poll (multiprocessing/popen_fork.py:28)\n    _shutdown_workers ({LOADER}:942)\n{EPOCH}"), "dataloader-stuck"),
        ("Rank 1 is stuck inside `loss.backward()`.\n\nRank 0 is stuck in `total_loss.item()`.\n", "straggler"),
        (stack(9, f"    __next__ ({LOADER}:280)\n{EPOCH}"), "dataloader-stuck"),
    ],
    ids=[
        "placement-group",
        "both-send",
        "engine-at-rest",
        "two-locks",
        "expert-parallel",
        "one-at-its-gpu",
        "end-of-loaders",
        "asks-result",
        "next-batch",
    ],
)
def test_what_is_named_first_is_only_possible(tmp_path: Path, text: str, cause: str) -> None:
    first = reported(tmp_path, text).findings[0]
    assert (first.cause.value, first.certainty.value) == (cause, "possible")


@pytest.mark.parametrize(
    "text",
    [
        # a wait with a time limit, beside an engine at rest
        stack(310, "    wait (threading.py:359)\n    main (server.py:402)\n") + IDLE_WORKER,
        # a thread that waits for Ray may wake the main one
        stack(77, "    wait (threading.py:355)\n    get (queue.py:171)\n    train_loop (sft.py:51)\n").rstrip("\n")
        + '\nThread 99 (idle): "Executor"\n    wait (ray/_private/worker.py:2960)\n    run (ray/data/_internal/streaming_executor.py:250)\n',
    ],
)
def test_loops_and_threads_that_others_wake_are_no_deadlock(tmp_path: Path, text: str) -> None:
    assert [f for f in reported(tmp_path, text).findings if f.cause.value == "lock-deadlock"] == []


def test_who_is_inside_of_a_library_is_at_work_where_its_callers_were_not_copied(tmp_path: Path) -> None:
    text = "Rank 3 is stuck in `loads` (`pickle.py:1210`), all others wait in `barrier` (`torch/distributed/distributed_c10d.py:4628`).\n"
    first = reported(tmp_path, text).findings[0]
    assert (first.cause.value, first.certainty.value, first.who[0].rank) == ("straggler", "possible", 3)


def test_a_helper_thread_inside_of_a_library_is_not_at_work(tmp_path: Path) -> None:
    idle = "Thread 0x7F4A (active)\n    main_loop (ray/worker.py:1005)\n    <module> (ray/workers/default_worker.py:105)\n"
    helpers = "Thread 0x7FB6 (active)\n    _periodically_flush (ray/profiling.py:97)\n    run (threading.py:864)\n    _bootstrap (threading.py:884)\n"
    cut = "Thread 0x7FB7 (active)\n    recv (redis/_compat.py:79)\n    _read_from_socket (redis/connection.py:174)\n"
    ps = "0.1  0.1 1751908 151888 pts/0  Sl   12:48   0:01 ray_worker"
    text = f"Stack dump for lab     20768  {ps}\n{helpers}{idle}\nStack dump for lab     20769  {ps}\n{helpers}{cut}"
    assert reported(tmp_path, text).findings == ()


def test_a_wait_without_a_limit_is_named(tmp_path: Path) -> None:
    report = reported(tmp_path, stack(310, "    wait (threading.py:355)\n    main (server.py:402)\n") + IDLE_WORKER)
    assert [f.cause.value for f in report.findings] == ["lock-deadlock"]


def test_the_end_of_a_files_name_is_the_process(tmp_path: Path) -> None:
    text = 'Thread 0x00007f01 (most recent call first):\n  File "/w/a.py", line 20 in run\n  File "/w/a.py", line 98 in <module>\n'
    (tmp_path / "STACK_DUMP_for_worker_9002.log").write_text(text)
    (tmp_path / "stack_dump_20260321.log").write_text(text)
    snapshot = load(sorted(tmp_path.iterdir())).snapshot
    assert snapshot is not None
    assert sorted(p.pid for n in snapshot.nodes for p in n.processes) == [0, 9002]


@pytest.mark.parametrize(
    "stem", ["stack_dump_20260321_101500", "trace-2026-03-21-101500", "stacks.20260321T1015.101530", "traceback_step_1200", "dump_2026"]
)
def test_a_time_or_a_step_at_the_end_of_a_files_name_is_no_process(tmp_path: Path, stem: str) -> None:
    text = 'Thread 0x00007f01 (most recent call first):\n  File "/w/a.py", line 20 in run\n  File "/w/a.py", line 98 in <module>\n'
    (tmp_path / f"{stem}.log").write_text(text)
    snapshot = load([tmp_path / f"{stem}.log"]).snapshot
    assert snapshot is not None
    assert [p.pid for n in snapshot.nodes for p in n.processes] == [0]


def test_a_function_far_out_that_is_called_after_a_placement_group_waits_for_none(tmp_path: Path) -> None:
    frames = f"{GET}    train_step (train.py:7)\n    run_with_placement_group (main.py:9)\n"
    assert "ray-pending" not in {f.cause.value for f in reported(tmp_path, stack(7, frames)).findings}


LAUNCHER = "    _invoke_run (torch/distributed/elastic/agent/server/api.py:862)\n    main (torch/distributed/run.py:812)\n    <module> (torchrun:8)\n"
LOOP = """    select (selectors.py:468)
    _run_once (asyncio/base_events.py:1949)
    run_until_complete (asyncio/base_events.py:674)
    main (serve.py:4)
"""


@pytest.mark.parametrize(("frames", "word"), [(LAUNCHER, "pgrep -P 7"), (LOOP, "asyncio pstree 7")], ids=["launcher", "event-loop"])
def test_what_to_dump_of_those_that_wait_by_design(tmp_path: Path, frames: str, word: str) -> None:
    assert word in reported(tmp_path, stack(7, frames)).next_dumps[0].command


POOL = """Process 48: python -c spawn_main
Thread 48 (idle): "MainThread"
    join (threading.py:1149)
    shutdown (concurrent/futures/thread.py:239)
    verify (reward/math_worker.py:88)
Thread 49 ({state}): "ThreadPoolExecutor-3_0"
    simplify (sympy/simplify/simplify.py:610)
    expr_eq (grader.py:455)
    run (concurrent/futures/thread.py:59)
    _worker (concurrent/futures/thread.py:93)
"""


def test_a_thread_that_is_joined_and_computes_is_the_one_that_keeps_it(tmp_path: Path) -> None:
    first = reported(tmp_path, POOL.format(state="active+gil")).findings[0]
    assert (first.cause.value, first.who[0].thread) == ("straggler", "ThreadPoolExecutor-3_0")


def test_a_thread_that_is_joined_and_rests_is_in_a_deadlock(tmp_path: Path) -> None:
    assert reported(tmp_path, POOL.format(state="idle")).findings[0].cause.value == "lock-deadlock"


DESYNC = """[rank2]:[E1115 16:42:37.784743622 ProcessGroupNCCL.cpp:1936] Rank 2
\t - [2] Timeout at collective: ALLREDUCE, #730
\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
\t   - {told}
"""


@pytest.mark.parametrize(
    ("told", "cause", "who"),
    [
        ("[0, 1, 2, 3] joined but didn't finish collective #730 (count from 1)", "collective-stalled", "network or device between the ranks"),
        ("[3] finished collective #729, but didn't join collective #730 (count from 1)", "straggler", "rank 3"),
    ],
)
def test_what_torch_says_of_the_ranks_that_are_out_of_step_is_the_answer(tmp_path: Path, told: str, cause: str, who: str) -> None:
    first = reported(tmp_path, DESYNC.format(told=told)).findings[0]
    assert (first.cause.value, first.certainty.value, first.who[0].label) == (cause, "possible", who)


REFUSED = """[2026-08-04 11:58:42 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
[2026-08-04 11:58:42 TP1] Pyspy dump for PID 713:
Error: Failed to copy Py_Version symbol
Reason: Permission denied (os error 13)
"""


def test_a_watchdog_whose_tool_was_refused_needs_the_right_to_look(tmp_path: Path) -> None:
    report = reported(tmp_path, REFUSED)
    assert "SYS_PTRACE" in str(report.next_dumps[0]) and "713" in report.next_dumps[0].command
    assert [f.cause.value for f in report.findings] == ["collective-stalled"]


def test_a_barrier_of_which_only_the_name_is_told_is_a_collective(tmp_path: Path) -> None:
    first = reported(tmp_path, "rank 0 is in `barrier` while the others are in `all_reduce`. Only rank 0 saves.\n").findings[0]
    assert (first.cause.value, first.certainty.value) == ("collective-mismatch", "possible")


def test_a_group_of_which_only_the_name_is_told_waits_for_its_ranks(tmp_path: Path) -> None:
    first = reported(tmp_path, "rank 0 is stuck in `init_process_group` of `_init_group` (ppo_actor.py:118).\n").findings[0]
    assert (first.cause.value, first.certainty.value) == ("init-deadlock", "possible")


def test_who_waits_for_a_future_beside_an_idle_engine_keeps_nobody(tmp_path: Path) -> None:
    core = stack(9901, "    get (queue.py:171)\n    _process_input_queue (vllm/v1/engine/core.py:801)", "VLLM::EngineCore")
    asks = "    wait (threading.py:355)\n    result (concurrent/futures/_base.py:451)\n    generate (rollout/server.py:301)\n"
    assert reported(tmp_path, f"{core}\n{stack(9800, asks)}").findings == ()


def test_a_result_of_the_gpu_may_be_told_with_its_place(tmp_path: Path) -> None:
    text = "- All scheduler ranks are stuck in `result.copy_done.synchronize()` at `scheduler/batch_result_processor.py:635` (py-spy).\n"
    first = reported(tmp_path, text).findings[0]
    assert (first.cause.value, first.certainty.value) == ("collective-stalled", "possible")


ALL_REDUCE = "    all_reduce (torch/distributed/distributed_c10d.py:2810)\n"
CORES = """DP0:
```
Thread 1454 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2810)
    has_unfinished_dp (vllm/config/parallel.py:331)
    run_busy_loop (vllm/v1/engine/core.py:1172)
```
DP1:
```
Thread 1455 (idle): "MainThread"
    get (queue.py:171)
    _process_input_queue (vllm/v1/engine/core.py:801)
    run_busy_loop (vllm/v1/engine/core.py:1142)
```
"""


def test_a_rank_that_rests_while_another_is_in_a_collective_has_left_it_out(tmp_path: Path) -> None:
    first = reported(tmp_path, CORES).findings[0]
    assert (first.cause.value, first.certainty.value, [w.pid for w in first.who]) == ("collective-mismatch", "possible", [1455])


def test_an_actor_that_rests_is_the_rank_that_its_class_lacks(tmp_path: Path) -> None:
    update = stack(11, f"{ALL_REDUCE}    update_policy (verl/workers/actor/dp_actor.py:400)", "ray::WorkerDict.actor_rollout_update_actor")
    rests = stack(12, "    main_loop (ray/_private/worker.py:966)\n    <module> (ray/_private/workers/default_worker.py:289)", "ray::WorkerDict")
    first = reported(tmp_path, f"rank 0:\n```\n{update}```\nrank 1:\n```\n{rests}```\n").findings[0]
    assert (first.cause.value, first.certainty.value, [w.pid for w in first.who]) == ("collective-mismatch", "possible", [12])


def test_ranks_that_wait_where_another_one_rests_are_at_rest(tmp_path: Path) -> None:
    file = "sglang/srt/managers/scheduler.py"
    takes = stack(501, f"    recv_pyobj (zmq/sugar/socket.py:1012)\n    recv_requests ({file}:1110)", "sglang::scheduler_TP0")
    follows = stack(502, f"{ALL_REDUCE}    broadcast_pyobj (sglang/srt/utils.py:11)\n    recv_requests ({file}:1141)", "sglang::scheduler_TP1")
    assert reported(tmp_path, takes + follows).findings == ()


def test_an_event_loop_without_work_is_no_wait_for_the_work_of_others(tmp_path: Path) -> None:
    loop = "    select (selectors.py:468)\n    _run_once (asyncio/base_events.py:1878)\n    run_forever (asyncio/base_events.py:607)"
    rests = stack(501, f"{loop}\n    run (asyncio/runners.py:44)\n    rank (/srv/update.py:62)")
    waits = stack(502, f"{ALL_REDUCE}    rank (/srv/update.py:70)")
    first = reported(tmp_path, f"rank 0:\n```\n{waits}```\nrank 1:\n```\n{rests}```\n").findings[0]
    assert (first.cause.value, first.certainty.value, [w.pid for w in first.who]) == ("collective-mismatch", "possible", [501])


def test_who_runs_code_of_its_own_beside_a_backward_pass_is_waited_for(tmp_path: Path) -> None:
    logs = "    to_tensor (core/module.py:619)\n    log (core/module.py:447)\n    step (train.py:653)"
    back = "    backward (torch/autograd/__init__.py:200)\n    backward (torch/_tensor.py:487)\n    step (train.py:601)"
    first = reported(tmp_path, f"{stack(7, logs)}\n{stack(8, back)}").findings[0]
    assert (first.cause.value, first.certainty.value, [w.pid for w in first.who]) == ("straggler", "possible", [7])


def test_a_debugger_that_asks_shows_the_one_frame_in_which_it_stands(tmp_path: Path) -> None:
    text = "(Server pid=1867) > /srv/rl/server.py(71)wake_up()\n(Server pid=1867) -> for w in self.workers:\n(Server pid=1867) (Pdb) \n"
    first = reported(tmp_path, text).findings[0]
    assert first.cause.value == "blocked-io"
    assert "debugger" in first.summary or "pdb" in first.summary


def test_who_makes_a_store_of_torch_waits_for_the_others(tmp_path: Path) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/w/vllm_client.py", line 210, in init_communicator\n    pg = Group.create(host)\n'
        '  File "/w/utils.py", line 250, in create\n    store = TCPStore(\nKeyboardInterrupt\n'
    )
    snapshot = load([_written(tmp_path, text)]).snapshot
    assert snapshot is not None
    assert [s.place.op for s in build_view(snapshot).seen.values() if s.place is not None] == ["TCPStore"]


def _written(folder: Path, text: str) -> Path:
    (folder / "post.md").write_text(text)
    return folder / "post.md"


def test_what_each_step_finalizes_is_no_end(tmp_path: Path) -> None:
    reduce = "    all_reduce (torch/distributed/distributed_c10d.py:2501)\n"
    text = stack(1, f"{reduce}    finalize_model_grads (finalize.py:40)\n    step (train.py:9)\n") + stack(2, f"{reduce}    loss (train.py:7)\n")
    assert [f.cause.value for f in reported(tmp_path, text).findings if f.root] == ["collective-mismatch"]


def test_several_under_one_name_are_told_of_as_one_of_them(tmp_path: Path) -> None:
    text = "Rank 0 is in `dist.barrier` of `save`, and the other ranks are in `dist.all_reduce` of `close`."
    assert "each of the other ranks" in str([f.who for f in reported(tmp_path, text).findings])


def test_source_behind_a_frame_tells_that_it_takes_a_lock(tmp_path: Path) -> None:
    text = '127\n  File "api.py", line 129, in validate run = self.db.get_run(run_id)\n     File "db.py", line 363, in get_run with self.run_lock:\n'
    first = reported(tmp_path, text).findings[0]
    assert first.cause.value == "lock-deadlock"
    assert "get_run (db.py:363)" in first.summary


def test_what_gdb_shows_of_c_alone_is_no_other_look(tmp_path: Path) -> None:
    table = '(gdb) info threads\n* 1    Thread 0x7fc73ac5d700 (LWP 5242) "python"    select_poll_poll () at Modules/selectmodule.c:219\n'
    text = f"{table}\n" + stack(5242, f"    _try_get_data ({LOADER}:990)\n    __next__ ({LOADER}:521)\n{EPOCH}")
    assert reported(tmp_path, text).verdict.state.value == "hang"


def test_the_interpreter_that_ends_waits_in_an_object(tmp_path: Path) -> None:
    frames = ["poll () from /lib/libc.so.6", "zmq::ctx_t::terminate () at src/ctx.cpp:1", "Py_FinalizeEx ()"]
    text = "(gdb) bt\n" + "".join(f"#{number}  0x00007f in {frame}\n" for number, frame in enumerate(frames))
    assert reported(tmp_path, text).findings[0].cause.value == "cleanup-deadlock"


def test_a_list_may_name_what_is_not_known(tmp_path: Path) -> None:
    text = "- `sweeper`: blocked in `list_paths` (`store.py:8`)\n- **decay**: waiting in `acquire` (`jobs.py:3`)\n"
    (tmp_path / "post.md").write_text(text)
    snapshot = load([tmp_path / "post.md"]).snapshot
    assert snapshot is not None
    assert sorted(s.identity.label for s in build_view(snapshot)) == ["decay", "sweeper"]


def test_ranks_of_two_roles_are_two_worlds(tmp_path: Path) -> None:
    reduce, barrier = "`all_reduce` (distributed_c10d.py:25) <- `update` (a.py:3)", "`barrier` (distributed_c10d.py:46) <- `values` (c.py:9)"
    critic = f"* critic rank 0: `tokenize` (c.py:4) <- `values` (c.py:9)\n* critic rank 1: {barrier}\n"
    text = f"* actor rank 0: {reduce}\n* actor rank 1: {reduce}\n{critic}"
    first = reported(tmp_path, text).findings[0]
    assert (first.cause.value, [w.label for w in first.who]) == ("straggler", ["critic/0"])


def test_a_cell_with_a_state_between_its_names_is_a_stack(tmp_path: Path) -> None:
    rows = "".join(f"| {rank} | `all_gather (distributed_c10d.py:30)` |\n" for rank in range(3))
    text = f"| rank | where |\n|---|---|\n{rows}| 3 | `gc.collect`, active+gil, `periodic (utils.py:40)` |\n"
    first = reported(tmp_path, text).findings[0]
    assert (first.cause.value, first.who[0].rank) == ("straggler", 3)


def test_an_arrow_before_called_by_points_outward(tmp_path: Path) -> None:
    (tmp_path / "post.md").write_text("rank 0: `_load` (serialization.py:15) -> called by `load_all` (utils.py:17)\n")
    snapshot = load([tmp_path / "post.md"]).snapshot
    assert snapshot is not None
    assert [f.function for f in snapshot.nodes[0].frames] == ["_load", "load_all"]


def test_the_lock_of_a_file_of_python_is_a_lock(tmp_path: Path) -> None:
    frames = ["do_futex_wait () at sem.c:1", "PyThread_acquire_lock () at t.h:7", "_enter_buffered_busy () at bufferedio.c:29", "flush () at x.c:8"]
    text = "(gdb) bt\n" + "".join(f"#{number}  0x00007f in {frame}\n" for number, frame in enumerate(frames))
    assert reported(tmp_path, text).findings[0].cause.value == "lock-deadlock"


@pytest.mark.parametrize(
    ("text", "cause", "who"),
    [
        ("All ranks but rank 2 wait in `all_gather_object` in `sync`. Rank 2 is in `readinto` below `open_shard`.", "blocked-io", "rank/2"),
        ("Rank 0 is in `sleep_for_retry` (`urllib3/util/retry.py:36`) < `push` (`hub.py:8`), all others in `barrier`.", "blocked-io", "rank/0"),
        ("Stages 0, 1 and 2 wait in `recv_backward`; stage 3 is in `entropy_cpu` (`loss.py:33`).", "straggler", "stage 3"),
    ],
    ids=["file", "retry", "stage"],
)
def test_the_one_that_is_elsewhere_is_named_whatever_it_waits_for(tmp_path: Path, text: str, cause: str, who: str) -> None:
    first = reported(tmp_path, text).findings[0]
    assert (first.cause.value, first.who[0].label) == (cause, who)


def test_a_server_that_asks_is_nearer_to_the_work_than_its_client(tmp_path: Path) -> None:
    asks = "recv_into (socket.py:706)\npost (requests/api.py:115)\nnormalize (server.py:71)\nrun_wsgi (werkzeug/serving.py:370)\n"
    first = reported(
        tmp_path, f"trainer rank 0 is in `requests.post` (`score.py:30`), the server is here:\n\nserver (pid 4100):\n```\n{asks}```\n"
    ).findings[0]
    assert (first.cause.value, first.who[0].pid) == ("blocked-io", 4100)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "Rank 1 hangs in `_try_get_data` (`torch/utils/data/dataloader.py:1243`) under `__next__`. Rank 0 waits in `all_reduce`.",
            "dataloader-stuck",
        ),
        ("pid 30112 is in state D, wchan `jbd2_log_wait_commit`. The other 7 ranks are in `all_reduce`.", "blocked-io"),
        ("Ranks 1-7 have finished and exited with code 0. Rank 0 is still in `all_reduce` (`d.py:25`) from `evaluate` (`eval.py:77`).", "straggler"),
    ],
    ids=["place-behind-a-name", "wchan", "exited"],
)
def test_sentences_tell_of_places_the_kernel_and_ends(tmp_path: Path, text: str, cause: str) -> None:
    assert reported(tmp_path, text).findings[0].cause.value == cause
