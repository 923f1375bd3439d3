"""``metrics --follow --engine`` beside the real vLLM and SGLang: their numbers at work, and what is said when one ends."""

from __future__ import annotations

import contextlib
import json
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import environments
from engines.servers import Server, Sglang, Vllm

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]
WAIT_S = 120.0


@contextlib.contextmanager
def serving(name: str) -> Iterator[Server]:
    if reason := environments.VLLM.build() or (environments.SGLANG.build() if name == "sglang" else None):
        pytest.skip(reason)
    server: Server = {"vllm": Vllm, "sglang": Sglang}[name]()
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Following:
    """The command, line by line."""

    def __init__(self, log: Path, server: Server, output: Path) -> None:
        where = ["--engine", f"http://127.0.0.1:{server.port}", "-o", str(output)]
        command = [sys.executable, "-m", "ray_rl_debug", "metrics", str(log), "--follow", "--interval", "1", *where]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: queue.Queue[str] = queue.Queue()
        self.seen: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.lines.put(line)

    def until(self, pattern: str) -> str:
        """The next line of this form."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                self.seen.append(self.lines.get(timeout=1))
                if re.search(pattern, self.seen[-1]):
                    return self.seen[-1]
        raise AssertionError(f"no line like {pattern!r} in {self.seen[-20:]}")


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_the_engine_beside_the_steps_and_its_end(name: str, tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")
    log = tmp_path / "train.log"
    log.write_text("".join(f"step:{s} - actor/grad_norm:{1 + 0.01 * (s % 3)}\n" for s in range(1, 31)))
    with serving(name) as server:
        follows = Following(log, server, tmp_path / "out")
        try:
            follows.until(r"step 30")
            follows.until(r"engine: 0 running, 0 waiting, cache \d+%, 0 tokens/s \(idle: the time goes elsewhere\)")
            with server.load(2) as load:
                load.await_tokens()
                follows.until(r"engine: 2 running, 0 waiting, cache \d+%, [1-9][\d,]* tokens/s")
                with log.open("a") as file:
                    file.write("step:31 - actor/grad_norm:1.0\n")
                follows.until(r"step 31")
                server.stop()
            follows.until(r"engine: .+ \(it answered until \d+ s ago: it has ended, or does not serve now\)")
        finally:
            follows.child.send_signal(signal.SIGINT)
            follows.child.wait(60)
    assert follows.child.returncode == 130
    numbers = [json.loads(line) for line in (tmp_path / "out" / "engine.jsonl").read_text().splitlines()]
    busy = [n for n in numbers if n.get("running") == 2]
    assert busy and all(0 < n["kv_usage"] <= 1 for n in busy[1:])
    assert {n.get("step") for n in numbers} == {30, 31}
    assert numbers[-1]["silent_s"] > 0
