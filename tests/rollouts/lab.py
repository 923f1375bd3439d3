"""Servers and command lines of the rollout tests, run by a Python that has Transformers and OpenAI's client."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from engines import client, environments, processes
from frameworks.environments import python
from ports import free_port

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NEEDED = ("torch", "transformers", "openai", "aiohttp")


@cache
def interpreter() -> str:
    """This Python, if it has what is needed, else the one of the real vLLM, if that was built; skips where there is none."""
    if all(importlib.util.find_spec(name) for name in NEEDED):
        return sys.executable
    if (environments.VLLM.home() / "complete").exists():
        return str(python(environments.VLLM))
    pytest.skip(f"needs {', '.join(NEEDED)} (pip install 'ray-rl-debug[rollout]'), or the environment of the engines' tests")


def variables(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "OPENAI_API_KEY")}
    return {**kept, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **more}


class Worker:
    """`worker.py`, started at its first command and kept until the tests end."""

    def __init__(self) -> None:
        command = [interpreter(), str(HERE / "worker.py")]
        self.child = subprocess.Popen(command, env=variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        atexit.register(self.child.kill)

    def ask(self, what: dict[str, object], seconds: float) -> tuple[int, str, str]:
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.write(json.dumps(what) + "\n")
        self.child.stdin.flush()
        if not select.select([self.child.stdout], [], [], seconds)[0]:
            self.child.kill()
        line = self.child.stdout.readline()
        assert line, self.child.communicate()[1][-3000:]
        code, out, err = json.loads(line)
        return code, out, err


@cache
def worker() -> Worker:
    return Worker()


def make_models(folder: Path) -> Path:
    worker().ask({"make": str(folder)}, 300)
    return folder


class SmallServer:
    """`server.py`, running: one process for several engines, each a folder and a precision, with a port of its own."""

    def __init__(self, *engines: tuple[Path, str]) -> None:
        self.engines = [SmallEngine(folder, dtype) for folder, dtype in engines]

    def __enter__(self) -> list[SmallEngine]:
        command = [interpreter(), str(HERE / "server.py"), *(f"{e.port}={e.dtype}={e.folder}" for e in self.engines)]
        self.child = subprocess.Popen(command, env=variables(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        processes.until(self.is_ready, 120, "the small server", every=0.3)
        return self.engines

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.communicate()

    def is_ready(self) -> bool:
        assert self.child.poll() is None, self.child.communicate()[1].decode()[-3000:]
        with contextlib.suppress(client.Refused):
            for engine in self.engines:
                client.call(engine.port, "GET", "/v1/models", seconds=5)
            return True
        return False


class SmallEngine:
    """One of a small server."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self.folder, self.dtype, self.port = folder, dtype, free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def ask(self, path: str, body: Any) -> str:
        return client.call(self.port, "POST", path, body, 60)

    @contextlib.contextmanager
    def trouble(self, **what: object) -> Iterator[None]:
        self.ask("/trouble", what)
        try:
            yield
        finally:
            self.ask("/trouble", {})


def run(*arguments: object, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    """``rayrl-debug rollout ...``"""
    words = ["rollout", *map(str, arguments)]
    return subprocess.CompletedProcess(words, *worker().ask({"words": words}, seconds))


def compared(*arguments: object) -> dict[str, Any]:
    """The document that ``rollout compare --json`` prints, with its exit code."""
    done = run("compare", *arguments, "--json", "-q")
    assert done.returncode in (0, 1, 3), done.stderr[-3000:]
    return {**json.loads(done.stdout), "exit": done.returncode, "err": done.stderr}


def causes(found: dict[str, Any]) -> list[str]:
    """Of the findings that are trouble."""
    return [f["cause"] for f in found["findings"] if f["is_trouble"]]
