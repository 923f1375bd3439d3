"""Ray that does not start: which reason is told, from stacks, sockets and the logs of old and new Ray."""

from __future__ import annotations

import msgspec
import pytest
from scenes import IDLE, Stacks, process, ray_state, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Finding, State
from ray_rl_debug.model.snapshot import LogLine, Process, Snapshot, Socket
from ray_rl_debug.signatures.match import Matcher

CONNECT = "connect@ray/_private/worker.py:2729 init@ray/_private/worker.py:2040 wrapper@ray/_private/client_mode_hook.py:104 main@/app/train.py:8"
SEARCH = "Node._init_gcs_client@ray/_private/node.py:996 Node.__init__@ray/_private/node.py:192 init@ray/_private/worker.py:1992 main@/app/train.py:8"
RAY_START = (
    "Node._init_gcs_client@ray/_private/node.py:996 Node.get_gcs_client@ray/_private/node.py:952"
    " Node.start_head_processes@ray/_private/node.py:1651 Node.__init__@ray/_private/node.py:416 start@ray/scripts/scripts.py:1074"
    " main@ray/scripts/scripts.py:3021"
)
LATE = "[2026-11-21 00:11:06,234 E 29 29] (raylet) worker_pool.cc:660: Some workers of the worker process({}) have not registered within the timeout."
REFUSED = (
    "[2026-11-21 00:10:09,1 C 11 11] core_worker_process.cc:247: Failed to register worker to Raylet: IOError: Failed to read data from the socket"
)
REFUSED_OLD = "core_worker.cc:203: Failed to register worker 01000000ffff to Raylet. IOError: [RayletClient] Unable to register worker with raylet."
TAKEN = "grpc_server.cc:141: Check failed: server_ Failed to start the grpc server. The specified port is 6402. This means that Ray's core components"
TOKEN = "InvalidAuthToken: Authentication token is missing or incorrect"
THREADS = "E1121 00:06:32 354 thd.cc:157] pthread_create failed: Resource temporarily unavailable"


def lines(*texts: str, file: str = "raylet.err") -> tuple[LogLine, ...]:
    found = []
    for i, text in enumerate(texts, 1):
        signature = Matcher().match_line(text)
        assert signature is not None, text
        found.append(LogLine(file=f"/tmp/ray/session_latest/logs/{file}", line_number=i, text=text, signature=signature.id))
    return tuple(found)


def taken(stack: str, *logs: LogLine, more: tuple[Process, ...] = (), sockets: tuple[Socket, ...] = (), cpus: int = 1) -> Snapshot:
    stacks = Stacks()
    driver = msgspec.structs.replace(process(stacks, 100, "python train.py", stack, kind="driver"), sockets=sockets or None)
    return snapshot(stacks.node([driver, *more], log_lines=logs, cpus_allowed=cpus))


def only(given: Snapshot) -> Finding:
    report = diagnose(given)
    assert report.verdict.state is State.HANG
    assert report.findings[0].id == "RRD406"
    assert report.findings[0].cause is Cause.RAYLET_START
    return report.findings[0]


def starting(count: int) -> tuple[Process, ...]:
    raylet = Process(pid=50, title="raylet", kind="raylet")
    workers = (Process(pid=200 + i, title="python setup_worker.py …", kind="ray-worker", state="R") for i in range(count))
    return (raylet, *workers)


def test_too_many_workers_on_one_core_are_counted():
    found = only(taken(CONNECT, *lines(LATE.format(1), LATE.format(2), LATE.format(3)), more=starting(127)))
    assert "its workers do not register in time (127 workers are starting on 1 core)" in found.summary
    assert [w.label for w in found.who][1:] == ["raylet"]
    assert found.certainty is Certainty.LIKELY
    assert [e.kind for e in found.evidence] == ["stack", "proc", "log", "log"]
    assert "ray start --num-cpus" in " ".join(found.remedy)


@pytest.mark.parametrize(
    ("stack", "logs", "words"),
    [
        (CONNECT, lines(REFUSED), "the raylet is gone or did not come up"),
        (CONNECT, lines(REFUSED_OLD), "the raylet is gone or did not come up"),
        (RAY_START, lines(TAKEN, file="gcs_server.err"), "a port of Ray is taken"),
        (SEARCH, lines(TOKEN, file="driver.log"), "the token is refused"),
        (CONNECT, lines(THREADS, LATE.format(9)), "the limit of processes is reached"),
    ],
)
def test_the_log_names_the_reason(stack, logs, words):
    assert words in only(taken(stack, *logs)).summary


def test_an_address_that_nobody_answers():
    silent = Socket(family="tcp", state="SYN_SENT", local="10.0.0.1:4000", remote="172.17.0.1:6379")
    found = only(taken(SEARCH, sockets=(silent,)))
    assert "no process answers at 172.17.0.1:6379" in found.summary
    assert any("ip route get 172.17.0.1" in r for r in found.remedy)


def test_a_raylet_that_is_gone_while_the_gcs_answers():
    stack = "get_node_to_connect_for_driver@ray/_private/services.py:550 Node.__init__@ray/_private/node.py:234 " + SEARCH.split(" ", 2)[2]
    found = only(taken(stack, more=(Process(pid=9, title="gcs_server", kind="gcs"),)))
    assert "the GCS answers but knows no live raylet on this node" in found.summary
    assert "raylet.err" in found.remedy[0]


def test_a_gcs_that_is_not_there():
    assert "no GCS answers, and none runs on this node" in only(taken(SEARCH)).summary
    assert "the GCS does not answer" in only(taken(SEARCH, more=(Process(pid=9, title="gcs_server", kind="gcs"),))).summary


@pytest.mark.parametrize(
    ("stack", "kind", "state", "words"),
    [
        (CONNECT, "raylet", "T", "the raylet (pid 50) is stopped (state T)"),
        (CONNECT, "raylet", "Z", "the raylet (pid 50) has ended"),
        (SEARCH, "gcs", "T", "the GCS (pid 50) is stopped (state T)"),
    ],
)
def test_a_daemon_that_cannot_answer_is_the_culprit(stack, kind, state, words):
    logs = lines(LATE.format(1)) if state == "T" else ()
    found = only(taken(stack, *logs, more=(Process(pid=50, title=kind, kind=kind, state=state),)))
    assert words in found.summary
    assert ([w.pid for w in found.who], found.certainty) == ([50], Certainty.PROVEN)
    assert [e.kind for e in found.evidence[:2]] == ["proc", "stack"]


def test_without_any_reason_it_is_only_possible():
    report = diagnose(taken(CONNECT))
    assert report.findings[0].certainty is Certainty.POSSIBLE


def test_a_driver_that_works_is_not_accused_for_old_lines():
    stacks = Stacks()
    worker = process(stacks, 101, "ray::IDLE", IDLE)
    driver = process(
        stacks, 100, "python train.py", "get@ray/_private/worker.py:3009 main@/app/train.py:9", "step@/app/train.py:20", kind="driver", cpu_s=1.5
    )
    node = stacks.node([driver, worker], log_lines=lines(LATE.format(7)))
    assert [f for f in diagnose(snapshot(node, ray_state())).findings if f.id == "RRD406"] == []
