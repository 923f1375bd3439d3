"""Live servers that answer as vLLM and SGLang do (recorded numbers), and servers that mean no good."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.plain_http import Answer, Get, get_all
from ray_rl_debug.model.snapshot import EngineState

pytestmark = pytest.mark.integration

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "engines"
VLLM = 'vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_waiting{engine="0"} 1.0\nvllm:generation_tokens_total{engine="0"} '
SGLANG = 'sglang:num_running_reqs{tp_rank="0"} 1.0\nsglang:realtime_tokens_total{mode="decode",tp_rank="0"} 5.0\n'
IS_PAUSED = {"/is_paused": (200, '{"is_paused":true}'), "/is_sleeping": (200, '{"is_sleeping":false}')}


class Engine:
    """A running server: its pid, port, child, and what it was asked."""

    def __init__(self, pid: int, folder: Path) -> None:
        self.pid, self._folder = pid, folder
        self.port, self.child = (int(w) for w in (folder / "port.txt").read_text().split())

    def asked(self) -> list[str]:
        file = self._folder / "asked.txt"
        return file.read_text().split() if file.exists() else []

    def state(self, **options: object) -> EngineState | None:
        node = collect_node(CollectOptions(pids=(self.pid,), samples=1, async_tasks=False, logs=False, **options))  # type: ignore[arg-type]
        assert not [g for g in node.gaps if "engine" in g.what]
        assert all(p.engine is None for p in node.processes if p.pid != self.pid)
        return next(p for p in node.processes if p.pid == self.pid).engine


STUCK = """
import asyncio, sys
asked = []
async def is_paused():
    await asyncio.get_running_loop().create_future()
async def handle(reader, writer):
    path = (await reader.readuntil(b"\\r\\n\\r\\n")).split()[1].decode()
    asked.append(path)
    print(*asked, flush=True)
    if path != "/metrics":
        await is_paused()
    writer.write(b'HTTP/1.0 200 OK\\r\\n\\r\\nvllm:generation_tokens_total{engine="0"} 5\\n')
    writer.close()
async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
Start = Callable[..., Engine]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def run(metrics: str, switches: dict[str, tuple[int, str]] | None = None, *, program: str = "vllm serve") -> Engine:
            (tmp_path / "metrics.txt").write_text(metrics)
            (tmp_path / "switches.json").write_text(json.dumps(switches or {}))
            name, verb = program.split()
            script = tmp_path / name
            shutil.copy(HERE / "engine_server.py", script)
            argv = [sys.executable, str(script), verb, "--model", "secret-model", str(tmp_path)]
            child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
            stack.callback(_end, child)
            assert child.stdout is not None
            child.stdout.readline()
            return Engine(child.pid, tmp_path)

        yield run


def _end(child: subprocess.Popen[str]) -> None:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait(10)
    if child.stdout is not None:
        child.stdout.close()


def test_an_engine_that_generates_tells_its_numbers_and_is_asked_nothing_more(start: Start) -> None:
    engine = start(VLLM + "{tokens}\n", IS_PAUSED)
    state = engine.state()
    assert state is not None
    assert (state.kind, state.port, state.answered, state.reason) == ("vllm", engine.port, True, None)
    assert (state.running, state.waiting, state.generated_tokens_before, state.generated_tokens) == (2, 1, 1007, 1014)
    assert state.is_paused is None and state.between_s is not None and state.between_s > 0
    assert engine.asked() == ["/metrics", "/metrics"]


def test_an_engine_that_stands_is_asked_whether_it_is_paused(start: Start) -> None:
    engine = start(VLLM + "5\n", IS_PAUSED)
    state = engine.state()
    assert state is not None
    assert (state.is_paused, state.is_sleeping, state.generated_tokens_before, state.generated_tokens) == (True, False, 5, 5)
    assert engine.asked() == ["/metrics", "/metrics", "/is_paused", "/is_sleeping"]


def test_the_report_has_one_line_of_it(start: Start) -> None:
    engine = start(VLLM + "5\n", IS_PAUSED)
    argv = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--pid", str(engine.pid), "--samples", "1", "-q", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    lines = [p["engine"] for p in json.loads(done.stdout)["processes"] if p["engine"]]
    assert len(lines) == 1
    said, _, seconds = lines[0].partition(" tokens in ")
    assert said == f"vllm on port {engine.port}: 2 running, 1 waiting, 0"
    assert seconds.endswith(" s, paused")


def test_outside_of_development_mode_nothing_tells_of_a_pause(start: Start) -> None:
    engine = start(VLLM + "5\n")
    state = engine.state()
    assert state is not None
    assert (state.answered, state.is_paused, state.is_sleeping, state.reason) == (True, None, None, None)
    assert engine.asked() == ["/metrics", "/metrics", "/is_paused"]


def test_a_server_over_a_stopped_process_is_not_called_into(start: Start) -> None:
    engine = start(VLLM + "5\n", IS_PAUSED)
    os.kill(engine.child, signal.SIGSTOP)
    state = engine.state()
    assert state is not None
    assert (state.answered, state.is_paused) == (True, None)
    assert engine.asked() == ["/metrics", "/metrics"]


@pytest.mark.parametrize(("status", "is_ready", "is_paused"), [(200, True, False), (503, False, None)])
def test_sglang_says_whether_it_is_ready(start: Start, status: int, is_ready: bool, is_paused: bool | None) -> None:
    engine = start(SGLANG, {"/ready": (status, "")}, program="sglang serve")
    state = engine.state()
    assert state is not None
    assert (state.kind, state.is_ready, state.is_paused, state.running, state.generated_tokens) == ("sglang", is_ready, is_paused, 1, 5)
    assert engine.asked() == ["/metrics", "/metrics", "/ready"]


def test_without_metrics_a_server_may_still_say_that_it_is_ready(start: Start) -> None:
    engine = start("", {"/ready": (503, "")}, program="sglang serve")
    state = engine.state()
    assert state is not None
    assert (state.answered, state.reason, state.is_ready, state.port) == (False, "/metrics: no numbers of the engine", False, engine.port)


def test_a_core_that_hangs_is_asked_once(tmp_path: Path) -> None:
    (tmp_path / "vllm").write_text(STUCK)
    child = subprocess.Popen([sys.executable, str(tmp_path / "vllm"), "serve"], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        reasons = []
        for _ in range(2):
            node = collect_node(CollectOptions(pids=(child.pid,), samples=1, logs=False))
            state = node.processes[0].engine
            assert state is not None and state.answered and state.is_paused is None
            reasons.append(state.reason)
        lines = [child.stdout.readline().split() for _ in range(5)]
    finally:
        _end(child)
    assert reasons == ["/is_paused: no answer in time", "/is_paused: an earlier request has no answer yet"]
    assert lines[-1] == ["/metrics", "/metrics", "/is_paused", "/metrics", "/metrics"]


def test_nobody_is_asked_when_that_is_switched_off(start: Start) -> None:
    engine = start(VLLM + "5\n", IS_PAUSED)
    assert engine.state(engine_endpoints=False) is None
    assert engine.asked() == []


def test_a_stopped_server_costs_no_more_than_the_two_looks(start: Start) -> None:
    engine = start(VLLM + "5\n")
    os.kill(engine.pid, signal.SIGSTOP)
    began = time.monotonic()
    state = engine.state()
    assert time.monotonic() - began < 5
    assert state is not None
    assert (state.answered, state.reason, state.generated_tokens) == (False, "/metrics: no answer in time", None)


def test_the_command_line_switches_it_off(start: Start) -> None:
    engine = start(VLLM + "5\n", IS_PAUSED)
    argv = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--pid", str(engine.pid), "--samples", "1", "--no-engine-endpoints", "-q", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(done.stdout)["schema"].startswith("rayrl-debug/report/")
    assert engine.asked() == []


def serve(stack: ExitStack, behave: Callable[[socket.socket], None]) -> int:
    """A server on the loopback that does with each connection what `behave` does."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(1 << 16)
                    behave(connection)
                except OSError:
                    pass  # the client had enough

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    stack.callback(thread.join, 10)
    stack.callback(listener.shutdown, socket.SHUT_RDWR)
    return int(listener.getsockname()[1])


def drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def flood(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(bytes(1 << 16))


def headers_for_ever(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"x: y\r\n" * 1000)


def says(answer: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(answer)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BEHAVIOURS: dict[str, tuple[Callable[[socket.socket], None], Answer | str]] = {
    "silent": (lambda connection: connection.recv(1) and None, "no answer in time"),
    "drip": (drip, "no answer in time"),
    "flood": (flood, "more than 1 MiB"),
    "headers": (headers_for_ever, "it does not speak HTTP"),
    "large": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nx"), "more than 1 MiB"),
    "cut off": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx"), "cut off"),
    "chunked": (says(CHUNKED + b"1\r\nx\r\nB;a=b\r\n0\r\n\r\n0\r\n\r\n0\r\n0\r\n\r\n"), Answer(200, b"x0\r\n\r\n0\r\n\r\n0")),
    "chunks without end": (says(CHUNKED + b"5\r\nhello\r\n"), "cut off"),
    "wrong chunks": (says(CHUNKED + b"zebra\r\n0\r\n\r\n"), "cut off"),
    "huge chunk": (says(CHUNKED + b"ffffff\r\nx\r\n"), "cut off"),
    "other": (says(b"\x00\x00\x18\x04\x00\x00\x00\x00\x00\r\n\r\n"), "it does not speak HTTP"),
    "closed": (says(b""), "it does not speak HTTP"),
    "redirect": (says(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\n\r\n"), Answer(307, b"")),
    "whole": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"), Answer(200, b"yes")),
}


def test_all_servers_together_cost_one_deadline() -> None:
    with ExitStack() as stack:
        ports = [serve(stack, behave) for behave, _ in BEHAVIOURS.values()]
        with socket.create_server(("127.0.0.1", 0)) as gone:
            closed = int(gone.getsockname()[1])
        began, used = time.monotonic(), time.process_time()
        answers = get_all([Get("127.0.0.1", port, "/metrics") for port in (*ports, closed)], began + 1.0)
        assert time.monotonic() - began < 2.0
        assert time.process_time() - used < 1.5
    assert dict(zip(BEHAVIOURS, answers, strict=False)) == {name: expected for name, (_, expected) in BEHAVIOURS.items()}
    assert answers[-1] == "connection refused"


def test_a_long_path_is_refused_before_anything_is_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(AssertionError):
        get_all([Get("127.0.0.1", int(server.getsockname()[1]), "/" + "x" * 60)], time.monotonic() + 1)
