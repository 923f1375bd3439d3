"""Programs beside the engines: AReaL's rollouts on a real vLLM, and pools of reward workers. Each says its steps in a file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from engines import processes, servers
from frameworks.environments import environment, python

HERE = Path(__file__).parent


class Stepping:
    """A program that counts its steps in ``FOLDER/step``."""

    is_engine = False

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rrp", dir="/tmp"))

    def launch(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        with (self.folder / "log").open("wb") as log:
            self.child = subprocess.Popen(command, env=dict(variables), stdout=log, stderr=subprocess.STDOUT, cwd=self.folder, start_new_session=True)
        try:
            self.await_steps(2, 240)
        except BaseException:
            self.stop()
            raise

    def steps(self) -> int:
        assert self.child.poll() is None, (self.folder / "log").read_text(errors="replace")[-3000:]
        file = self.folder / "step"
        return int(file.read_text()) if file.exists() else 0

    def await_steps(self, more: int, seconds: float) -> None:
        first = self.steps()
        processes.until(lambda: self.steps() >= first + more, seconds, "steps")

    def await_stand(self, quiet_s: float = 8.0, seconds: float = 90.0) -> None:
        seen = [-1]

        def stands() -> bool:
            before, seen[0] = seen[0], self.steps()
            return before == seen[0]

        processes.until(stands, seconds, "the program stands", every=quiet_s)

    def where(self) -> tuple[str, ...]:
        return ("--here", "--pid", str(self.child.pid))

    def settle(self) -> None:
        self.await_steps(2, 120)

    def stop(self) -> None:
        processes.end(self.child.pid)
        self.child.wait(10)


class Pool(Stepping):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def start(self) -> None:
        self.launch([sys.executable, str(HERE / "pool_program.py"), self.kind, str(self.folder)], environment())


class Areal(Stepping):
    """The server and its client; both are looked at."""

    is_engine = True

    def start(self) -> None:
        self.server = servers.Vllm("--middleware", "gates.ArealGates")
        self.server.start()
        command = [str(python()), str(HERE / "areal_client.py"), str(self.folder), str(self.server.port), str(servers.model())]
        try:
            self.launch(command, environment())
        except BaseException:
            self.server.stop()
            raise

    def find(self, pattern: str) -> int:
        return self.server.find(pattern)

    def where(self) -> tuple[str, ...]:
        return ("--here", "--pid", str(self.server.pid), "--pid", str(self.child.pid))

    def stop(self) -> None:
        super().stop()
        self.server.stop()
