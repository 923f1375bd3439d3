"""Servers and command lines of the rollout tests, run by a Python that has Transformers and OpenAI's client."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
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

from ray_rl_debug.commands.cli import main

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


def make_models(folder: Path) -> Path:
    done = subprocess.run(
        [interpreter(), str(HERE / "models.py"), str(folder)], env=variables(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


class SmallServer:
    """`server.py`, running."""

    def __init__(self, folder: Path, dtype: str = "float32") -> None:
        self.port = free_port()
        self.command = [interpreter(), str(HERE / "server.py"), str(folder), str(self.port), dtype]

    def __enter__(self) -> SmallServer:
        self.child = subprocess.Popen(self.command, env=variables(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        processes.until(self.is_ready, 120, "the small server", every=0.3)
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.communicate()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def is_ready(self) -> bool:
        assert self.child.poll() is None, self.child.communicate()[1].decode()[-3000:]
        with contextlib.suppress(client.Refused):
            client.call(self.port, "GET", "/v1/models", seconds=5)
            return True
        return False

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
    """``rayrl-debug rollout ...``; in this process where it can be, since importing Transformers takes longer than all the rest."""
    words = ["rollout", *map(str, arguments)]
    if interpreter() != sys.executable:
        command = [interpreter(), "-m", "ray_rl_debug", *words]
        return subprocess.run(command, env=variables(), capture_output=True, text=True, timeout=seconds, check=False)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def compared(*arguments: object) -> dict[str, Any]:
    """The document that ``rollout compare --json`` prints, with its exit code."""
    done = run("compare", *arguments, "--json", "-q")
    assert done.returncode in (0, 1, 3), done.stderr[-3000:]
    return {**json.loads(done.stdout), "exit": done.returncode, "err": done.stderr}


def causes(found: dict[str, Any]) -> list[str]:
    """Of the findings that are trouble."""
    return [f["cause"] for f in found["findings"] if f["is_trouble"]]
