"""Servers of real engines, started for tests: ready, asked, brought back to rest between two troubles, ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from engines import client, environments, processes
from frameworks.environments import Recipe, python

sys.path.append(str(Path(__file__).parents[2] / "examples"))  # for who runs it without pytest
from ports import free_port

READY_S = 400.0
HERE = Path(__file__).parent
LONG = 30000
"""Tokens of a request that does not end by itself while we look."""
MODEL = ("--served-model-name", "tiny", "--host", "127.0.0.1")


def model() -> Path:
    """The tiny model, made once beside the environments: two layers, hidden size 128, 320 tokens."""
    target = environments.VLLM.home() / "assets"
    if not (target / "model" / "config.json").exists():
        command = [str(python(environments.VLLM)), str(environments.TRAINER / "assets.py"), str(target), "128", "32768"]
        subprocess.run(command, check=True, capture_output=True, env=environments.for_vllm(target), timeout=300)
    return target / "model"


class Server:
    """A running server and its folder."""

    is_engine = True
    path = "/v1/completions"
    body: dict[str, object] = {"model": "tiny", "prompt": "hello", "ignore_eos": True, "temperature": 0.8}  # noqa: RUF012
    rest: tuple[tuple[str, object], ...] = ()
    """Calls (path and body) that bring the server back to rest."""

    def __init__(self, recipe: Recipe, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self.recipe, self.command, self.more = recipe, command, variables
        self.folder = Path(tempfile.mkdtemp(prefix="rre", dir="/tmp"))
        self.port = free_port()

    @property
    def pid(self) -> int:
        return self.child.pid

    def variables(self) -> dict[str, str]:
        raise NotImplementedError

    def where(self) -> tuple[str, ...]:
        """The options by which the command looks at this server."""
        return ("--here", "--pid", str(self.pid))

    def is_ready(self) -> bool:
        assert self.child.poll() is None, self.log()[-3000:]
        with contextlib.suppress(client.Refused):
            client.call(self.port, "GET", "/health", seconds=5)
            return True
        return False

    def start(self) -> None:
        program = str(python(self.recipe))
        command = [program if part == "python" else part.replace("BIN", str(Path(program).parent)) for part in self.command]
        with (self.folder / "log").open("wb") as log:
            self.child = subprocess.Popen(
                [*command, "--port", str(self.port)],
                env=self.variables(),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )
        try:
            processes.until(self.is_ready, READY_S, f"ready: {self.command}", every=0.5)
            self.settle()
        except BaseException:
            self.stop()
            raise

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def load(self, count: int = 2, tokens: int = LONG) -> client.Load:
        return client.Load(self.port, self.path, {**self.body, "max_tokens": tokens}, count)

    def find(self, pattern: str) -> int:
        return processes.find(self.pid, pattern)

    def ask(self, method: str, path: str, body: object = None, seconds: float = client.CALL_S) -> str:
        return client.call(self.port, method, path, body, seconds)

    def settle(self) -> None:
        """At rest and answering; what a trouble left behind is undone."""
        for path, body in self.rest:
            with contextlib.suppress(client.Refused):
                self.ask("POST", path, body)
        with self.load(1, tokens=8) as load:
            processes.until(lambda: load.running() == 0, 120, "an answer")
            assert load.pieces() > 0, load.streams[0].trouble

    def held(self, place: str, rank: int, arrive: Callable[[], object] = lambda: None) -> contextlib.AbstractContextManager[None]:
        return held(self.folder, place, rank, arrive)

    def stop(self) -> None:
        processes.end(self.child.pid, grace_s=8)
        self.child.wait(10)


class Vllm(Server):
    rest = (("/resume", None), ("/wake_up", None), ("/abort_requests", {}))

    def __init__(self, *options: str, **variables: str) -> None:
        fixed = ("--dtype", "bfloat16", "--enforce-eager", "--max-model-len", "32768", "--max-num-seqs", "4", *MODEL)
        command = ("BIN/vllm", "serve", str(model()), *fixed, "--worker-extension-cls", "troubles.Extension", *options)
        super().__init__(environments.VLLM, command, variables)

    def variables(self) -> dict[str, str]:
        return environments.for_vllm(self.folder, **self.more)


class Sglang(Server):
    rest = (("/continue_generation", {}), ("/abort_request", {"abort_all": True}))

    def __init__(self, *options: str, folder: Path | None = None, **variables: str) -> None:
        fixed = "--device cpu --attention-backend torch_native --sampling-backend pytorch --grammar-backend none --disable-cuda-graph --dtype float32"
        size = "--mem-fraction-static 0.1 --max-total-tokens 40000 --enable-metrics"
        command = ("python", "-m", "sglang.launch_server", "--model-path", str(folder or model()), *fixed.split(), *size.split(), *MODEL, *options)
        super().__init__(environments.SGLANG, command, variables)

    def variables(self) -> dict[str, str]:
        return environments.for_sglang(self.folder, **self.more)


@contextlib.contextmanager
def held(folder: Path, place: str, rank: int, arrive: Callable[[], object] = lambda: None) -> Iterator[None]:
    """This rank waits at this place, to which ``arrive`` brings it, until the end of the context."""
    order, here = folder / f"{place}.{rank}", folder / f"{place}.{rank}.here"
    order.touch()
    try:
        arrive()
        processes.until(here.exists, 60, f"rank {rank} at {place}")
        yield
    finally:
        order.unlink()
        waiting = here.read_text() if here.exists() else ""
        if waiting:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(waiting), signal.SIGRTMIN + 5)
        here.unlink(missing_ok=True)


def metric(server: Server, name: str) -> float:
    """The sum of a metric over its labels."""
    values = [line.rpartition(" ")[2] for line in server.ask("GET", "/metrics").splitlines() if line.startswith((name + "{", name + " "))]
    return sum(map(float, values))


def answered(server: Server, path: str) -> object:
    return json.loads(server.ask("GET", path))
