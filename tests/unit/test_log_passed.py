"""What passed, was foreseen or belongs to an end ends no run; beside each the failure that only looks like it."""

from __future__ import annotations

from pathlib import Path

from test_log_innocents import RAISED, first, story


def test_a_connection_that_is_restored_has_passed_but_who_was_thrown_out_lost_its_files(tmp_path: Path) -> None:
    lost = "[ 812.1] LustreError: 11-0: data-MDT0000-mdc-ff: operation obd_ping to node 10.0.0.8@o2ib failed: rc = -107\n"
    thrown = "[ 812.2] LustreError: 167-0: data-OST0003-osc-ff: This client was evicted by data-OST0003; work in progress will fail.\n"
    back = "[ 840.1] Lustre: data-MDT0000-mdc-ff: Connection restored to 10.0.0.7@o2ib (at 10.0.0.7@o2ib)\n"
    assert first(tmp_path, lost + back) is None
    assert first(tmp_path, lost) is not None
    told = story(tmp_path, thrown + back)
    assert told is not None and told.first is not None and told.first.signature == "RRD6287"


def test_a_helper_that_was_asked_to_end_after_the_work_failed_not(tmp_path: Path) -> None:
    ended = "ERROR 03-02 10:00:02 workers.py:12] Worker Helper pid 77 died, exit code: {}\n"
    assert first(tmp_path, "INFO:     Finished server process [70]\n" + ended.format(-15)) is None
    assert first(tmp_path, "INFO:     Finished server process [70]\n" + ended.format(-11)) is not None
    assert first(tmp_path, "INFO:     Started server process [70]\n" + ended.format(-15)) is not None


def test_several_records_of_one_source_file_are_one_complaint(tmp_path: Path) -> None:
    power = "E0302 10:00:01.100000 44 gauges.cc:{}] failed to get the {} of card 0\n"
    both = power.format(213, "power") + power.format(225, "clock")
    assert first(tmp_path, f"{both}I0302 10:00:02.100000 44 server.cc:19] Started the service\n") is None
    assert first(tmp_path, both) is not None
    other = power.format(213, "power") + power.format(9, "weights").replace("gauges", "loader")
    assert first(tmp_path, f"{other}I0302 10:00:02.100000 44 server.cc:19] Shutting down\n") is not None


def test_one_bare_line_of_an_exception_ends_nothing_where_work_is_counted_behind_it(tmp_path: Path) -> None:
    bare = "AttributeError: 'Factory' object has no attribute 'GetShape'\n"
    assert first(tmp_path, f"{bare}Loading shards: 100%|##########| 4/4 [00:06<00:00,  1.61s/it]\n") is None
    assert first(tmp_path, bare) is not None
    assert first(tmp_path, f"{RAISED}{bare}Loading shards: 100%|##########| 4/4 [00:06<00:00,  1.61s/it]\n") is not None


def test_a_thread_that_feeds_a_queue_takes_the_next_object(tmp_path: Path) -> None:
    raised = (
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/multiprocessing/queues.py", line 244, in {}\n    send(obj)\n'
        "OSError: [Errno 9] Bad file descriptor\n"
    )
    assert first(tmp_path, raised.format("_feed") + "Epoch: 3 of 9\n") is None
    assert first(tmp_path, raised.format("_feed")) is not None
    assert first(tmp_path, raised.format("get") + "Epoch: 3 of 9\n") is not None


def test_what_will_only_fail_one_day_ends_nothing_where_work_goes_on(tmp_path: Path) -> None:
    full = (
        "(raylet) [2026-03-02 10:01:09,001 E 88 88] (raylet) file_system_monitor.cc:116: /tmp/ray is over 95% full, available space: "
        "3 GB; capacity: 98 GB. Object creation will fail if spilling is required.\n"
    )
    assert first(tmp_path, f"{full}(Task pid=9) step: 12 - loss: 0.4\n{full}") is None
    assert first(tmp_path, f"(Task pid=9) step: 12 - loss: 0.4\n{full}") is not None


def test_another_folder_is_taken_instead(tmp_path: Path) -> None:
    refused = "slurmstepd: error: Unable to create the folder [/local/u]: Permission denied\n"
    assert first(tmp_path, f"{refused}slurmstepd: error: Setting TMPDIR to /tmp\n") is None
    assert first(tmp_path, refused) is not None
    absent = "slurmstepd: error: couldn't chdir to `/home/u': No such file or directory"
    assert first(tmp_path, f"{absent}: going to /tmp instead\n") is None
    assert first(tmp_path, f"{absent}\n") is not None


def test_an_error_that_was_caught_stands_above_its_traceback(tmp_path: Path) -> None:
    raised = f"{RAISED}ModuleNotFoundError: No module named 'kernels'\n"
    assert first(tmp_path, f"Error caught was: no kernels\n{raised}") is None
    assert first(tmp_path, f"Error was: no kernels\n{raised}") is not None


def test_what_a_test_prints_before_its_verdict_is_of_the_test(tmp_path: Path) -> None:
    opened = f"test_ends (tests.net.NetTest.test_ends) ... Process Process-1:\n{RAISED}RuntimeError: asked to end\n"
    assert first(tmp_path, f"{opened}ok\n") is None
    assert first(tmp_path, opened) is not None


def test_nccl_tells_of_a_failed_call_what_each_function_returned(tmp_path: Path) -> None:
    warned = "gpu3:81:90 [3] p2p.cc:264 NCCL WARN the answer has 256 bytes instead of 4\n"
    told = story(tmp_path, f"{warned}gpu3:81:90 [3] NCCL INFO transport.cc:112 -> 3\n")
    assert told is not None and told.first is not None and (told.first.who[0].node, told.first.who[0].pid) == ("gpu3", 81)
    assert first(tmp_path, f"{warned}gpu3:81:90 [3] NCCL INFO Connected after 9 tries\n") is None
    assert first(tmp_path, f"{warned}gpu3:81:90 [3] NCCL INFO group.cc:112 -> 7\n") is None


def test_an_actor_may_have_any_name(tmp_path: Path) -> None:
    died = (
        "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, "
        "ray::policy-0-2:Trainer.__init__() (pid=812, ip=10.0.0.3)\n"
    )
    told = story(tmp_path, f"{RAISED}{died}  File \"/job/policy.py\", line 4, in __init__\n    read()\nKeyError: 'scale'\n")
    assert told is not None and told.first is not None
    assert (told.first.text, told.first.who[0].pid) == ("KeyError: 'scale'", 812)


def test_a_name_in_brackets_may_stand_before_the_level(tmp_path: Path) -> None:
    assert first(tmp_path, "[Engine-LLM][ERROR] Encountered an error in forward: no room\n") is not None
    assert first(tmp_path, "[Engine-LLM][INFO] Encountered an error in forward: no room\n") is None


def test_a_name_of_capitals_before_the_level_is_that_of_a_logger(tmp_path: Path) -> None:
    absent = "2026-03-02 10:00:00 LINK ERROR plugin of the disk: libdisk.so: No such file or directory\n"
    assert first(tmp_path, f"{absent}2026-03-02 10:00:01 LINK INFO ready\n") is None
    assert first(tmp_path, absent) is not None


def test_how_far_a_rank_came_is_no_word_of_success(tmp_path: Path) -> None:
    mark = "bench.node-3 [stderr] [rank3]:[E909 09:55:46.99{} ProcessGroupNCCL.cpp:{}] [Rank 3] "
    late = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2070, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600010 milliseconds\n"
    far = "Timeout at NCCL work: 2070, last enqueued NCCL work: 2082, last completed NCCL work: 2069.\n"
    told = story(tmp_path, mark.format(6, 607) + late + mark.format(7, 1709) + far)
    assert told is not None and told.first is not None
    assert (told.first.signature, told.survived) == ("RRD645", ())


def test_what_is_raised_between_a_shutdown_and_its_end_is_noise(tmp_path: Path) -> None:
    raised = "zmq.error.ContextTerminated: Context was terminated\n"
    begins, ends = "INFO 10-01 10:00:00 [launcher.py:80] Shutting down the HTTP server.\n", "INFO:     Application shutdown complete.\n"
    assert first(tmp_path, begins + raised + ends) is None
    assert first(tmp_path, begins + raised) is not None
    assert first(tmp_path, raised + begins + ends) is not None
    assert first(tmp_path, begins.replace("the HTTP server.", "because the engine is gone") + raised + ends) is not None


def test_a_node_that_is_not_ready_is_named_by_its_row(tmp_path: Path) -> None:
    told = story(tmp_path, "NAME     STATUS     ROLES    AGE   VERSION\ngpu-11   NotReady   <none>   81d   v1.30.1\n")
    assert told is not None and told.first is not None and told.first.who[0].node == "gpu-11"
