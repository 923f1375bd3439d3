"""Errors of no known kind: of what no run lives from, of one request, of a record above, and of a writer that goes on with what it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_innocents import RAISED, first, story

from ray_rl_debug.logs.words import goes_on

REFUSED = "error: the store refused block 7\n"


def test_who_goes_on_with_what_it_did_before_did_not_end(tmp_path: Path) -> None:
    routine = "weights {} sent to all engines\n"
    assert first(tmp_path, routine.format(3) + REFUSED + routine.format(4)) is None
    assert first(tmp_path, routine.format(3) + REFUSED + "the store says why on its own page\n") is not None
    assert first(tmp_path, routine.format(3) + REFUSED + "giving up\n" + routine.format(4)) is not None


def test_lines_that_come_again_and_again_behind_an_error_are_a_routine(tmp_path: Path) -> None:
    drawn = "{} prompts drawn from the set\n"
    assert first(tmp_path, REFUSED + drawn.format(64) + drawn.format(61)) is None
    assert first(tmp_path, REFUSED + drawn.format(64)) is not None
    assert first(tmp_path, f"{RAISED}KeyError: 'b'\n" + drawn.format(64) + drawn.format(61)) == "KeyError: 'b'"
    assert first(tmp_path, "Segmentation fault (core dumped)\n" + drawn.format(64) + drawn.format(61)) is not None


def test_the_routine_of_another_process_excuses_nobody(tmp_path: Path) -> None:
    row = "[rank{}]: {} prompts drawn from the set\n"
    assert first(tmp_path, row.format(0, 3) + f"[rank1]: {REFUSED}" + row.format(0, 4)) is not None
    assert first(tmp_path, row.format(1, 3) + f"[rank1]: {REFUSED}" + row.format(1, 4)) is None


@pytest.mark.parametrize(
    ("aside", "grave"),
    [
        ("Failed to connect to socket /var/run/dbus/system_bus_socket: No such file or directory", "Failed to connect to socket /run/store"),
        ("The operation took 3.2 s", "The operation failed"),
        ("the database system is starting up", "the database system is broken"),
    ],
)
def test_what_no_run_lives_from(tmp_path: Path, aside: str, grave: str) -> None:
    record = "2026-03-02 10:00:01,100 ERROR parts.py:7 -- {}\n"
    assert first(tmp_path, record.format(aside)) is None
    assert first(tmp_path, record.format(grave)) is not None
    assert first(tmp_path, record.format(f"{aside}. Giving up")) is not None


@pytest.mark.parametrize(
    ("aside", "grave"),
    [
        ("collector failed: open /sys/class/powercap/energy_uj: permission denied", "collector of weights is gone"),
        ("Failed to send usage statistics", "Failed to send weights"),
    ],
)
def test_who_only_measures_gives_up_alone(tmp_path: Path, aside: str, grave: str) -> None:
    record = "2026-03-02 10:00:01,100 ERROR parts.py:7 -- {}\n"
    assert first(tmp_path, record.format(aside)) is None
    assert first(tmp_path, record.format(f"{aside}. Giving up")) is None
    assert first(tmp_path, record.format(grave)) is not None


def test_an_exception_below_a_warning_is_the_warnings_next_line(tmp_path: Path) -> None:
    note = "2026-11-08 07:31:40,263 - 3894762 - env.loop - {} - Exception of the environment in task 9\n"
    after = "2026-11-08 07:31:41,002 - 3894762 - env.loop - INFO - saves the episode\n"
    assert first(tmp_path, f"{note.format('WARNING')}TimeoutError:\nwaited for 10 s\n{after}") is None
    assert first(tmp_path, f"{note.format('WARNING').replace('Exception of', 'opens')}TimeoutError:\n") is not None
    assert first(tmp_path, f"{note.format('WARNING')}{RAISED}TimeoutError:\n") is not None


def test_a_web_server_tells_of_one_request(tmp_path: Path) -> None:
    said = "2026/11/23 08:03:11 [error] 31#31: *7 connect() failed (111: Connection refused) while connecting to upstream{}\n"
    assert first(tmp_path, said.format(', request: "GET /health HTTP/1.1"')) is None
    assert first(tmp_path, said.format("")) is not None


def test_who_said_that_errors_will_come_of_its_end(tmp_path: Path) -> None:
    asked = "[2026-03-12 15:02:45,320 E 301 301] logging.cc:440: *** SIGTERM received at time=1773327765 on cpu 14 ***\n"
    assert first(tmp_path, f"INFO 03-12 15:02:45 ray.py:104] Shutting down the workers. An error about SIGTERM is expected here.\n{asked}") is None
    assert first(tmp_path, f"INFO 03-12 15:02:45 ray.py:104] Shutting down the workers.\n{asked}") is not None


def test_what_ray_says_of_an_object_is_followed_by_its_owner(tmp_path: Path) -> None:
    lost = "(raylet, ip=10.0.0.4) [2026-02-02 10:00:00,001 E 91 91] (raylet) object_manager.cc:311: Push for 77aa failed: node 88bb is gone\n"
    owner = "(driver pid=8) [2026-02-02 10:00:09,001 I 8 40] object_recovery_manager.cc:88: Object 77aa {}\n"
    assert first(tmp_path, lost + owner.format("recovered by running its task again")) is None
    assert first(tmp_path, lost) is not None


def test_cards_that_are_well_later(tmp_path: Path) -> None:
    failed = "kernel: NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x65:1290)\n"
    assert first(tmp_path, f"{failed}job 812: 8 GPUs healthy\n") is None
    assert first(tmp_path, f"{failed}job 812: 7 GPUs found, but 8 are asked for\n") is not None


def test_the_process_of_a_java_machine_stands_below_its_first_words(tmp_path: Path) -> None:
    crash = "# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb) at pc=0x00007f2d, pid=4011, tid=4030\n#\n"
    told = story(tmp_path, crash)
    assert told is not None and told.first is not None and told.first.who[0].pid == 4011


@pytest.mark.parametrize(
    "line",
    [
        "Fatal glibc error: pthread_mutex_lock.c:450 (__pthread_mutex_lock_full): assertion failed: e != ESRCH || !robust",
        "libgomp: Thread creation failed: Resource temporarily unavailable",
        "Timeout (0:10:00)!",
    ],
)
def test_bare_lines_of_an_end(tmp_path: Path, line: str) -> None:
    assert first(tmp_path, f"{line}\n") == line


def test_a_machine_in_front_of_a_program_without_any_time(tmp_path: Path) -> None:
    told = story(tmp_path, "node-3 torchrun: etcd.EtcdConnectionFailed: Read timed out.\n")
    assert told is not None and told.first is not None and told.first.who[0].node == "node-3"


def test_a_value_that_is_printed_at_level_error_tells_of_none(tmp_path: Path) -> None:
    record = "E0803 20:42:47.064138    1445 resources.go:46] allocatable: {}\n"
    assert first(tmp_path, record.format("map[pods:{{110 0} DecimalSI}]")) is None
    assert first(tmp_path, record.format("map[pods:{{lost}}]")) is not None


@pytest.mark.parametrize(
    "told",
    [
        "simulator exited with code 139{}, a new one was started",
        "error: engine 3 did not answer{}, it was replaced",
        "error: IBGDA not available (peer module: No such file or directory){}, kernels of one machine only",
    ],
)
def test_what_took_the_place_of_it_is_said_in_the_same_line(tmp_path: Path, told: str) -> None:
    assert first(tmp_path, f"{told.format('')}\n") is None
    assert first(tmp_path, f"{told.split('{}')[0]}\n") is not None


def test_a_process_in_brackets_crashed(tmp_path: Path) -> None:
    told = story(tmp_path, "Subprocess scheduler_0 (pid=8812) crashed with exit code -6.\n")
    assert told is not None and told.first is not None and told.first.who[0].pid == 8812
    assert first(tmp_path, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.\n") is not None


@pytest.mark.parametrize("words", ["registering again", "read it anew", "tries another display", "a new one was started"])
def test_who_does_it_again(tmp_path: Path, words: str) -> None:
    record = "2026-11-23 08:02:01,120 - worker - ERROR - the scheduler did not know it, {}\n"
    assert first(tmp_path, record.format(words)) is None
    assert first(tmp_path, record.format("failed again")) is not None
    assert first(tmp_path, record.format("after 3 tries")) is not None


@pytest.mark.parametrize("next_line", ["Lock released, plan goes on", "release rl has been upgraded"])
def test_what_a_tool_says_next(tmp_path: Path, next_line: str) -> None:
    assert first(tmp_path, f"Error: it is still in use\n{next_line}\n") is None
    assert first(tmp_path, "Error: it is still in use\nsee the manual\n") is not None


def test_a_job_that_had_to_make_room(tmp_path: Path) -> None:
    told = "2026-11-23T08:41:10Z job 01K5 canceled: {} by a job of higher priority\n"
    assert first(tmp_path, told.format("preempted")) is not None
    assert first(tmp_path, told.format("preempted, requeued")) is None


def test_the_score_of_one_answer_is_said_with_its_error(tmp_path: Path) -> None:
    said = "(Reward pid=8) ERROR:2026-11-23 08:02:01,110:Timeout in computing the answer of uid 8f1a{}\n"
    assert first(tmp_path, said.format(", returns 0.0")) is None
    assert first(tmp_path, said.format("")) is not None
    assert first(tmp_path, said.format(", reward 0.0, giving up")) is not None


def test_who_answers_again(tmp_path: Path) -> None:
    refused = "pdsh@head: gpu-7: mcmd: connect failed: Connection refused\n"
    assert first(tmp_path, f"{refused}gpu-7 answers now\n") is None
    assert first(tmp_path, f"{refused}gpu-7 is not responding\n") is not None


def test_the_next_command_of_a_shell_is_no_message(tmp_path: Path) -> None:
    lacks = f"$ python fix.py\n{RAISED}ModuleNotFoundError: No module named 'foo'\n"
    assert first(tmp_path, f"{lacks}$ pip install foo\nSuccessfully installed foo-1.0\n") is None
    assert first(tmp_path, f"{lacks}$ nvidia-smi\n") is not None


def test_a_disk_is_full_in_small_letters(tmp_path: Path) -> None:
    assert first(tmp_path, "docker: failed to register layer: write /usr/lib/libx.so: no space left on device\n") is not None


def test_the_status_of_an_answer_is_no_exit_status(tmp_path: Path) -> None:
    record = 'level=error ts=2026-11-23T08:02:01.110Z caller=client.go:430 msg="the batch was lost: server returned {} 429"\n'
    assert first(tmp_path, record.format("HTTP status")) is None
    assert first(tmp_path, record.format("exit status")) is not None
    told = story(tmp_path, "multiprocessing worker (pid 9120) was terminated by signal 11\n")
    assert told is not None and told.first is not None and told.first.who[0].pid == 9120


@pytest.mark.parametrize(
    "denied",
    [
        "cannot go on without rank 3",
        "nobody answers on port 8000",
        "none of the engines responds",
        "0 of 8 engines are ready",
        "No server is reachable",
    ],
)
def test_who_denies_that_it_goes_on_excuses_nothing(denied: str) -> None:
    assert goes_on(denied, behind=True) is None


@pytest.mark.parametrize(
    "told", ["the run goes on", "server 3 did not start, server 4 answers", "all engines are ready", "no GPU found, using CPU instead"]
)
def test_who_says_that_it_goes_on(told: str) -> None:
    assert goes_on(told, behind=True) is not None


def test_an_actor_may_be_called_an_agent(tmp_path: Path) -> None:
    assert first(tmp_path, "(search_agent pid=7) ERROR main.py:9 -- The index is gone\n") == "The index is gone"
    assert first(tmp_path, "Nov 23 08:00:00 gpu-3 node_agent[812]: ERROR The index is gone\n") is None


def test_a_warning_of_python_ends_nothing_whatever_it_speaks_of(tmp_path: Path) -> None:
    said = "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).\n"
    assert first(tmp_path, f"UserWarning: {said}") is None
    assert first(tmp_path, f"RuntimeError: {said}") is not None


def test_an_exception_that_says_when_it_is_tried_again(tmp_path: Path) -> None:
    assert first(tmp_path, "transport.ConnectionTimeout: no answer, next try in 30 s\n") is None
    assert first(tmp_path, "transport.ConnectionTimeout: no answer in 30 s\n") is not None


def test_code_that_was_tried_has_a_verdict(tmp_path: Path) -> None:
    raised = (
        'candidate 3 printed\nTraceback (most recent call last):\n  File "/tmp/ab12/answer.py", line 3, in <module>\n    1/0\nZeroDivisionError: x\n'
    )
    assert first(tmp_path, f"{raised}verdict: RE\n") is None
    assert first(tmp_path, f"{raised}verdict: the job ended\n") is not None
