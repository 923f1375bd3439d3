"""``rollout record`` and ``rollout serve``: what passes is kept whole, streams too, and comes back without the engine."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration


class Engine(BaseHTTPRequestHandler):
    """Counts its answers, so that two answers to one question differ; streams when it is asked to."""

    count = 0
    keys: list[str] = []  # noqa: RUF012

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Engine.count += 1
        Engine.keys.append(self.headers.get("Authorization", ""))
        if asked.get("stream"):
            events = [f'data: {{"n": {Engine.count}, "piece": {n}}}\n\n' for n in range(3)]
            self.answer("text/event-stream", "".join([*events, "data: [DONE]\n\n"]).encode())
        elif asked.get("prompt") == "fail":
            self.answer("application/json", b'{"error": "no"}', 500)
        else:
            self.answer("application/json", json.dumps({"n": Engine.count, "asked": asked}).encode())

    def do_GET(self) -> None:
        self.answer("application/json", b'{"data": [{"id": "tiny"}]}')

    def answer(self, kind: str, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def engine() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The command, and the port that it prints."""
    command = [sys.executable, "-m", "ray_rl_debug", "rollout", *map(str, arguments), "--port", "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/v1\n", line)
        assert found, (line, child.communicate(timeout=10)[1])
        yield int(found[1]), child
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=20)
    assert child.returncode == 0


def ask(port: int, body: Any, path: str = "/v1/completions", method: str = "POST", host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer secret-key", **({"Host": host} if host else {})}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


HELLO = {"model": "tiny", "prompt": "hello", "temperature": 1}


def test_what_was_recorded_is_answered_without_the_engine(engine: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    with running("record", engine, "-o", file) as (port, _):
        models = ask(port, None, "/v1/models", "GET")
        first, second = ask(port, HELLO), ask(port, HELLO)
        stream = ask(port, {**HELLO, "stream": True})
        failed = ask(port, {"model": "tiny", "prompt": "fail"})
    assert Engine.keys[-1] == "Bearer secret-key", "the engine gets the key"
    assert "secret-key" not in file.read_text(), "the file does not"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first != second
    assert failed[0] == 500
    with running("serve", file) as (port, _):
        assert ask(port, None, "/v1/models", "GET") == models
        assert [ask(port, HELLO), ask(port, HELLO), ask(port, HELLO)] == [first, second, first]
        assert ask(port, {**HELLO, "stream": True}) == stream
        assert ask(port, {"model": "tiny", "prompt": "fail"}) == failed
        assert ask(port, {**HELLO, "temperature": 0})[0] == 200, "the same question with other sampling"
        assert ask(port, {"model": "tiny", "prompt": "new"})[0] == 404
        assert ask(port, HELLO, host="evil.example")[0] == 403, "a page in a browser is no program of this machine"
    with running("serve", file, "--any") as (port, _):
        assert ask(port, {"model": "tiny", "prompt": "new"})[0] == 200


def test_a_dead_engine_and_a_broken_file_are_told(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    with running("record", "http://127.0.0.1:9/v1", "-o", file) as (port, _):
        assert ask(port, HELLO)[0] == 502
    assert not file.exists(), "a recording without an answer is of no use, and its name stays free"
    file.write_text("")
    listener = socket.create_server(("127.0.0.1", 0))
    taken = listener.getsockname()[1]
    command = [sys.executable, "-m", "ray_rl_debug", "rollout"]
    for arguments, code in (
        (["serve", str(file)], 3),
        (["serve", __file__], 3),
        (["record", "127.0.0.1:9", "-o", str(tmp_path / "x")], 2),
        (["record", "http://127.0.0.1:9/v1", "-o", str(file)], 3),
        (["record", "http://127.0.0.1:9/v1", "-o", str(tmp_path / "y"), "--port", str(taken), "-q"], 2),
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "y").exists()
    listener.close()
