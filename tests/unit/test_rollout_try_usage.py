"""What ``rollout try`` is given wrongly costs one clear sentence, and never a trial."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ray_rl_debug.commands.cli import main
from ray_rl_debug.commands.rollout_try import _endpoints, _gate, _rollout_of, _rows
from ray_rl_debug.endpoints.greeting import greet
from ray_rl_debug.model.errors import EndpointError, UnreadableFileError, UsageError


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["agent"], "'agent' is not MODULE:CLASS"),
        (["agent.py:"], "is not MODULE:CLASS"),
        (["/no/such/agent.py:Agent"], "there is no file /no/such/agent.py"),
        (["agent.py:Agent:run"], "is not MODULE:CLASS"),
        ([f"{Path(__file__).parents[2]}/LICENSE:Agent"], "LICENSE is no Python file"),
        (["a:B", "--init", "{"], "--init is no JSON"),
        (["a:B", "--extra", "[1]"], "--extra is no JSON object"),
        (["a:B", "--concurrency", "1,x"], "is no list of whole numbers"),
        (["a:B", "--concurrency", "0"], "is no list of whole numbers"),
        (["a:B", "--endpoint", "ftp://x"], "is no URL"),
        (["a:B", "--data", "/no/such/file"], "cannot read /no/such/file"),
        (["a:B", "--config", "/no/such/file"], "cannot read /no/such/file"),
        (["a:B", "--python", "/no/such/python"], "cannot start /no/such/python"),
    ],
)
def test_what_cannot_be_is_said_at_once(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["rollout", "try", *arguments, "--json", "-q", "--stand-in" if "--endpoint" not in arguments else "-v"])
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert said in error["message"]
    assert error["hint"] and "Traceback (most recent call last)" not in err
    assert code in (2, 3)


AGENTS = """
class Sums:
    async def run(self, data, **extra): return 1.0
class Empty: pass
class Needs:
    def __init__(self, key): pass
    async def run(self, data, **extra): return 1.0
def make(): return Sums()
"""


@pytest.mark.parametrize(
    ("target", "said", "cure"),
    [
        ("agents:Agent", "agents has no Agent", "name what it has: Sums, Empty, Needs, make"),
        ("agent:Sums", "importing agent failed: ModuleNotFoundError", "run it in the folder that holds agent, or name the file: path/agent.py:CLASS"),
        ("needs:Sums", "No module named 'no_such_package'", "give --python PATH"),
        ("torn:Sums", "importing torn failed: SyntaxError", "mend the module"),
        ("agents:Empty", "it has neither run(self, data", "async def run(self, data"),
        ("agents:Needs", "missing 1 required positional argument: 'key'", "give its arguments: --init"),
    ],
)
def test_a_class_that_cannot_be_called_has_a_cure_of_its_own(
    target: str, said: str, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("agents", AGENTS), ("needs", "import no_such_package\n"), ("torn", "class Sums(:\n")):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["rollout", "try", target, "--stand-in", "--json", "-q"]) == 1
    result = json.loads(capsys.readouterr().out)["results"][0]
    assert (said in result["measured"], cure in result["remedy"]) == (True, True)
    assert result["measured"].count("Error") <= 1


class Odd(BaseHTTPRequestHandler):
    """A server that is no healthy inference server; the first word of the path says in which way."""

    def do_GET(self) -> None:
        way = self.path.split("/")[1]
        if way == "silent":
            time.sleep(30)
        if way == "ends":
            return
        told = {"page": b"<html><body>Welcome</body></html>", "torn": b'{"data": ['}.get(way, b"{}")
        self.send_response({"sick": 503, "keys": 401, "bare": 404}.get(way, 200))
        self.send_header("Content-Type", "text/html" if way == "page" else "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    listening.daemon_threads = True
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_address[1]}"
    listening.shutdown()


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("page", "answers with a page for people"),
        ("sick", "answers with status 503"),
        ("silent", "gives no answer in 0.5 s"),
        ("ends", "ends the connection without an answer"),
    ],
)
def test_a_server_that_is_none_is_told_before_any_episode(way: str, said: str, odd: str) -> None:
    with pytest.raises(EndpointError, match=said) as e:
        greet(f"{odd}/{way}/v1", "none", 0.5)
    assert e.value.hint


def test_a_server_that_is_not_there_costs_no_episode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollout", "try", "a:B", "--endpoint", "http://127.0.0.1:9", "-q"]) == 3
    assert capsys.readouterr().err.startswith("error: http://127.0.0.1:9/v1/models cannot be reached: Connection refused\nhint:  start the server")


@pytest.mark.parametrize("way", ["keys", "bare", "torn", "well"])
def test_a_server_that_may_be_right_for_the_agent_is_let_through(way: str, odd: str) -> None:
    greet(f"{odd}/{way}/v1", "none", 5.0)


@pytest.mark.parametrize("text", ["", "\n\n", "{", "[1]\n", '{"a": 1}\n{"a": \n', "\x00\x01", "[" * 5000])
def test_rows_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(UnreadableFileError):
        _rows(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is no YAML"),
        ("a: 2026-13-45", "is no YAML"),
        ("rollout: 1", "has no section rollout"),
        ("[" * 5000, "is no YAML"),
        ("# " + "x" * (5 << 20), "is larger than a configuration"),
    ],
    ids=["cut off", "a thirteenth month", "no section", "deep", "large"],
)
def test_a_configuration_that_cannot_be_read(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text(text)
    with pytest.raises(UnreadableFileError, match=said):
        _rollout_of(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for read in (_rollout_of, _rows):
        with pytest.raises(UnreadableFileError, match="cannot read"):
            read(path)


def test_rows_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n' * 10_000)
    assert len(_rows(path)) == 4096


def test_addresses_of_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AREAL_LLM_SERVER_ADDRS", "10.0.0.1:30000,10.0.0.2:30000")
    assert _endpoints(()) == ("http://10.0.0.1:30000/v1", "http://10.0.0.2:30000/v1")
    assert _endpoints(("https://api.example/v1/",)) == ("https://api.example/v1",)
    monkeypatch.delenv("AREAL_LLM_SERVER_ADDRS")
    assert _endpoints(()) == ()


GIVEN = {"max_concurrent_rollouts": None, "max_head_offpolicyness": None, "consumer_batch_size": None, "batch_size": 256, "config": None}


def test_the_gate_of_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text("rollout:\n  consumer_batch_size: ${train_dataset.batch_size}\n  max_head_offpolicyness: 2\ntrain_dataset:\n  batch_size: 64\n")
    gate = _gate({**GIVEN, "config": path})
    assert gate is not None
    assert (gate.batch_size, gate.consumer_batch_size, gate.max_offpolicyness, gate.max_concurrent) == (256, 64, 2, None)
    assert _gate({**GIVEN, "config": path, "max_head_offpolicyness": 5}).max_offpolicyness == 5  # type: ignore[union-attr]
    assert _gate(GIVEN) is None


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "rollout: 5\n", "x: 1\n", "\xff", "&a [*a, *a]: {"])
def test_configurations_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises((UnreadableFileError, UsageError)):
        _gate({**GIVEN, "config": path})
