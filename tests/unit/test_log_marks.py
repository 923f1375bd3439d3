"""Who wrote a line, by the marks that a sixth, unseen lot of logs showed: hosts of pdsh, ranks as fields, process numbers beside logger names."""

from __future__ import annotations

import calendar
from typing import Any

import pytest

from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.logs.named import named_in, writer_of_file
from ray_rl_debug.logs.stamps import find_stamp
from ray_rl_debug.logs.steps import read_step


@pytest.mark.parametrize(
    ("line", "node", "text"),
    [
        ("worker-1: Traceback (most recent call last):", "worker-1", "Traceback (most recent call last):"),
        ("gpu03.cluster: [2026-02-03 04:05:06,789] [ERROR] [launch.py:341:end] gone", "gpu03.cluster", "gone"),
        ('rl-node-12:   File "/w/a.py", line 3, in f', "rl-node-12", 'File "/w/a.py", line 3, in f'),
        ("trainer-7d9f-x2 main 2026-05-01T10:00:00.000000001Z gone", "trainer-7d9f-x2", "gone"),
        ("cn12 2026-05-01 10:00:00,001 gone", "cn12", "gone"),
        ("step 2026-05-01 10:00:00,001 gone", None, "step 2026-05-01 10:00:00,001 gone"),
        ("ValueError: worker-1: no such name", None, "ValueError: worker-1: no such name"),
        ("loss2: 0.5", None, "loss2: 0.5"),
        ("gpu_mem_0: 12 GB", None, "gpu_mem_0: 12 GB"),
        ("gpu0: 79%", None, "gpu0: 79%"),
        ("worker_loss_1: -0.3", None, "worker_loss_1: -0.3"),
        ("gpu0: 79 ranks are up", "gpu0", "79 ranks are up"),
        ("worker failed: no reason", None, "worker failed: no reason"),
    ],
)
def test_a_host_in_front_of_its_lines(line: Any, node: Any, text: Any) -> None:
    head = read_head(line)
    assert (head.writer.node, head.text) == (node, text)


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("2026-10-10 10:01:01.733 | ERROR    | rl.boot:main:77 - rank=2 could not load", "2", "could not load"),
        ("2026-03-04 05:06:07.891 | ERROR    | rl.fsdp2:step:212 - [rank 3] forward failed", "3", "forward failed"),
        ("2026-03-04 05:06:07 ERROR Rank 3: found NaN", "3", "found NaN"),
        ("2026-03-04 05:06:07 INFO rank 3 of 8 is up", None, "rank 3 of 8 is up"),
        ("rank=2 is what the text speaks of", None, "rank=2 is what the text speaks of"),
    ],
)
def test_a_rank_as_a_field_of_a_record(line: Any, rank: Any, text: Any) -> None:
    head = read_head(line)
    assert (head.writer.rank, head.text) == (rank, text)


def test_a_process_number_beside_the_name_of_the_logger() -> None:
    head = read_head("2026-02-14 09:10:11,222 [ERROR] (Process-9100 agents.runner)   [Worker 2] crashed")
    assert (head.writer.pid, head.level) == (9100, "E")
    assert read_head("2026-02-14 09:10:11,222 [ERROR] (Process-9) crashed").writer.pid is None  # Python's name of a child


def test_an_exception_behind_a_stamp_is_no_name_of_a_logger() -> None:
    assert read_head("2026-02-14 09:10:11 ERROR pyarrow.lib.ArrowInvalid: Not an Arrow file").text == "pyarrow.lib.ArrowInvalid: Not an Arrow file"
    assert read_head("2026-02-14 09:10:11 ERROR verl.workers.Worker: Not an Arrow file").text == "Not an Arrow file"


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("Node failure on cn0421", "cn0421"),
        ("pdsh@head: worker-4: ssh exited with exit code 255", "worker-4"),
        ("3m2s        Warning   Evicted   pod/rl-worker-3    The node was low on resource: memory.", "rl-worker-3"),
    ],
)
def test_a_machine_that_a_tool_speaks_of(text: Any, node: Any) -> None:
    named = named_in(text)
    assert named is not None and named.node == node


@pytest.mark.parametrize(
    ("near", "stamp", "year"),
    [("2026-11-22", "E0504", 2026), ("2026-11-22", "E0101", 2026), ("2026-12-31", "E0101", 2027), ("2026-01-02", "E1231", 2025)],
)
def test_a_stamp_without_a_year_is_not_far_behind_the_end_of_its_log(near: Any, stamp: Any, year: Any) -> None:
    y, m, d = (int(part) for part in near.split("-"))
    found = find_stamp(f"{stamp} 09:00:00.000 7 a.cc:1] x", near_s=float(calendar.timegm((y, m, d, 12, 0, 0))))
    assert found is not None
    assert found.time_s == calendar.timegm((year, int(stamp[1:3]), int(stamp[3:]), 9, 0, 0))


def test_a_service_of_systemd_is_no_machine() -> None:
    head = read_head("Jan 10 10:00:00 n12 systemd[1]: ray-worker.service: Main process exited, code=killed, status=9/KILL", near_s=1.7e9)
    assert head.writer.node == "n12"
    assert read_head("slurmstepd-phoenix-07: error: *** JOB 1 ON phoenix-07 CANCELLED").writer.node == "phoenix-07"


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("step 101: reward 0.2", 101.0),
        ("Step 7: loss=0.31", 7.0),
        ("Step 2: add both sides", None),
        ("step 12:30", None),
        ("After step 9 it hangs", None),
    ],
)
def test_a_step_before_a_colon_counts_with_a_metric_behind_it(text: Any, step: Any) -> None:
    found = read_step(text)
    assert (found[0] if found else None) == step


def test_a_folder_of_a_node_with_a_letter() -> None:
    assert writer_of_file("node-b/server.log").node == "node-b"
    assert writer_of_file("node-names/server.log").node is None


@pytest.mark.parametrize(
    ("mark", "wanted"),
    [
        ("(worker1, rank=1, pid=2233, ip=10.0.0.2) ", {"rank": "1", "pid": 2233, "ip": "10.0.0.2"}),
        ("[1,mpirank:3,algo-1]<stderr>:", {"rank": "3", "node": "algo-1"}),
        ("[1,3]<stderr>:", {"rank": "3"}),
        ("[3]: ", {"rank": "3"}),
        ("gpu-7: rank3: ", {"rank": "3", "node": "gpu-7"}),
        ("<11>Jan 01 10:00:00 gpu-7 train[992]: ", {"pid": 992, "node": "gpu-7"}),
        ("2026-01-01T10:00:00+00:00 gpu-7 train[993]: ", {"pid": 993, "node": "gpu-7"}),
        ("  0%|          | 0/10 [00:00<?, ?it/s][rank3]: ", {"rank": "3"}),
        (
            "6%|#| 3/50 [6:28:43<94:39:17,  1.37it/s, loss=2.6, step=3.2e+4, tokens=2.56e+7, lr=1e-06, reward=0.5][E G.cpp:45] [Rank 3] ",
            {"rank": "3"},
        ),
        ("2026-01-01 10:00:00.000 | ERROR | __main__:<module>:3 - [pid=55] ", {"pid": 55}),
        ("[2026-01-01 10:00:00,000][pid 57][ERROR] ", {"pid": 57}),
        ("[node-3:58] ", {"node": "node-3", "pid": 58}),
        ("[launch.py:341] ", {}),
        ("(Sampler(3) pid=92) ", {"pid": 92, "program": "Sampler(3)"}),
    ],
)
def test_marks_of_launchers_and_loggers(mark: str, wanted: dict[str, Any]) -> None:
    head = read_head(f"{mark}IndexError: list index out of range", near_s=1.79e9)
    told = {key: value for key in ("node", "ip", "pid", "rank", "program") if (value := getattr(head.writer, key)) is not None}
    assert head.text == "IndexError: list index out of range"
    assert {key: told.get(key) for key in wanted} == wanted and (wanted or not told)


def test_progress_in_front_of_a_line_stays_where_no_mark_follows() -> None:
    assert read_step(read_head("Epoch 1:  20%|## | 2/10 [00:02<00:08,  1.00it/s]saving").text) == (2.0, "it")


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("2026-11-21 10:00:00,123 ERROR trainer[123]: out of room", "E", "trainer[123]: out of room"),
        ("2026-11-21T10:00:00Z WARNING vllm.core[7]: slow", "W", "vllm.core[7]: slow"),
    ],
)
def test_a_level_between_a_stamp_and_a_logger_is_no_host(line: str, level: str, text: str) -> None:
    head = read_head(line)
    assert (head.writer.node, head.level, head.text) == (None, level, text)


@pytest.mark.parametrize("inner", ["step:120", "train_step:1200", "seed:42", "epoch:10", "port:8080", "trl.trainer:412", "rl-trainer:330"])
def test_a_name_and_a_number_in_brackets_are_no_host_and_process(inner: str) -> None:
    head = read_head(f"[{inner}] loss 0.3")
    assert (head.writer.node, head.writer.pid) == (None, None)


@pytest.mark.parametrize(("inner", "node", "pid"), [("pid:4242", None, 4242), ("node:12", None, None), ("gpu03.rack:4242", "gpu03.rack", 4242)])
def test_keys_in_brackets_mean_what_they_say(inner: str, node: str | None, pid: int | None) -> None:
    head = read_head(f"[{inner}] loss 0.3")
    assert (head.writer.node, head.writer.pid) == (node, pid)


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-01-01 10:00:00 agent INFO tool returned exit code 1", "I"),
        ("2026-01-01 10:00:00 agent        DEBUG    tool returned exit code 1", "D"),
        ("2026-01-01 10:00:00 app.agent ERROR tool failed", "E"),
        ("2026-01-01 10:00:00 got ERROR from the server", None),
    ],
)
def test_a_level_behind_the_name_of_a_logger(line: str, level: str | None) -> None:
    assert read_head(line).level == level


@pytest.mark.parametrize(
    ("line", "is_stamped", "level", "text"),
    [
        ("2026-05-05T05:00:01.123456789Z Traceback (most recent call last):", False, None, "Traceback (most recent call last):"),
        ("2026-05-05T05:00:01.1Z (Task pid=3) ready", False, None, "ready"),
        ("2026-05-05T05:00:01.1Z 2026-02-14 09:10:11.222 | DEBUG    | envs:step:8 - ls failed", True, "D", "ls failed"),
        ("2026-05-05T05:00:01.1Z [2026-02-14 09:10:11,222] [ERROR] gone", True, "E", "gone"),
        ("2026-05-05T05:00:01Z ERROR gone", True, "E", "gone"),
        ("2026-05-05T05:00:01Z  WARN router: gone", True, "W", "router: gone"),
        ("2026-05-05 05:00:01,100 gone", True, None, "gone"),
        ("May  5 05:00:01 node-3 python[77]: gone", False, None, "gone"),
    ],
)
def test_who_collects_lines_stamps_each_of_them(line: str, is_stamped: bool, level: str | None, text: str) -> None:
    head = read_head(line, near_s=1777957201.0)
    assert (head.is_stamped, head.level, head.text) == (is_stamped, level, text)
    assert head.time_s == calendar.timegm((2026, 5, 5, 5, 0, 1)) + (0.1 if ".1Z" in line or ",100" in line else 0.123456789 if ".123" in line else 0)


def test_a_counted_step_behind_a_stamp_is_no_name_of_a_logger() -> None:
    assert read_step(read_head("2026-05-05 05:00:01,100 step:14 - critic/score/mean:0.3").text) == (14.0, "step")
    assert read_head("2026-05-05 05:00:01,100 trainer:14 - ready").text == "ready"


def test_an_exception_behind_a_stamp_keeps_its_first_letter() -> None:
    assert read_head("2026-05-05 05:00:01 ZeroDivisionError: division by zero").text == "ZeroDivisionError: division by zero"
    assert read_head("2026-05-05 05:00:01 Z gone").is_zoned


def test_no_logger_is_named_behind_the_stamp_of_who_collects_lines() -> None:
    raised = "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: model.path"
    assert read_head(f"2026-05-05T05:00:01.1Z {raised}").text == raised
    assert read_head("2026-05-05 05:00:01,100 rl.boot.main: gone").text == "gone"


def test_marks_that_name_rank_and_level_between_others() -> None:
    head = read_head("[ERROR] 2026-10-11-15:09:34 (PID:2969, Device:0, RankID:101) ERR00100 PTA call acl api failed.")
    assert (head.writer.pid, head.writer.rank, head.level) == (2969, "101", "E")
    head = read_head("[node-3][[44612,1],7][btl_tcp.c:559:mca_btl_tcp_recv_blocking] recv(52) failed: Connection reset by peer (104)")
    assert (head.writer.node, head.writer.rank, head.source) == ("node-3", "7", "btl_tcp.c:559")
    assert head.text == "recv(52) failed: Connection reset by peer (104)"
    head = read_head("[2026-07-02 12:00:11] loop.py:88 CRITICAL the shard is gone")
    assert (head.level, head.text) == ("F", "the shard is gone")
    assert read_head("[2026-07-02 12:00:11] loop.py:88 says CRITICAL things").level is None


def test_a_level_in_front_of_a_stamp_and_the_module_of_a_rust_program_behind_it() -> None:
    head = read_head("E 04-02 13:13:02 controller.py:471] the cluster is gone", near_s=1775_000_000.0)
    assert (head.level, head.source, head.text) == ("E", "controller.py:471", "the cluster is gone")
    head = read_head("2026-11-02 10:22:41  ERROR router_rs::routers::router: src/routers/router.rs:311: nobody is left")
    assert (head.level, head.text) == ("E", "nobody is left")
    assert read_head("[ERROR] 2026-10-11-15:09:34 (PID:324, Device:5, RankID:-1) ERR02005 DIST internal error").writer.rank is None


def test_the_name_of_a_logger_in_front_of_a_level_without_any_time() -> None:
    head = read_head("distributed.nanny - ERROR - Worker process died unexpectedly")
    assert (head.level, head.text) == ("E", "Worker process died unexpectedly")
    assert read_head("a.b - c").level is None


def test_a_name_may_stand_before_the_letter_of_a_level() -> None:
    head = read_head("[NeMo W 2026-01-01 10:00:00 log_utils:405] ModuleNotFoundError: No module named 'x'")
    assert (head.level, head.text) == ("W", "ModuleNotFoundError: No module named 'x'")
    assert read_head("[took 3 W 2026-01-01 10:00:00] x").level is None
