"""Real verl with a real vLLM in its server actor: one trainer rank, one replica, an agent that asks a tool, validation and checkpoints."""

from __future__ import annotations

import contextlib
import shutil
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from engines import environments, processes, servers
from frameworks import trainer_run
from frameworks.environments import python

OPTIONS = """
    trainer.n_gpus_per_node=1 actor_rollout_ref.rollout.enforce_eager=True +actor_rollout_ref.rollout.enable_sleep_mode=False
    actor_rollout_ref.rollout.free_cache_engine=False actor_rollout_ref.rollout.gpu_memory_utilization=0.2 actor_rollout_ref.rollout.max_num_seqs=8
    actor_rollout_ref.rollout.load_format=auto trainer.total_epochs=100000 trainer.test_freq=5 trainer.save_freq=7 trainer.max_actor_ckpt_to_keep=1
    actor_rollout_ref.rollout.agent.default_agent_loop=tool_user
""".split()
STANDS_S = 10.0
"""A step takes three seconds, with a validation or a checkpoint some more."""
UPDATED = "update_weights done"


class Tool:
    """A server that gives each question one line, unless it is told to keep its answers."""

    def __init__(self) -> None:
        self.gives = threading.Event()
        self.gives.set()
        self.kept = 0
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.rfile.readline()
                outer.kept += not outer.gives.is_set()
                outer.gives.wait()
                with contextlib.suppress(OSError):
                    self.wfile.write(b"42\n")

        socketserver.ThreadingTCPServer.daemon_threads = True
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @contextlib.contextmanager
    def withheld(self) -> Iterator[None]:
        self.kept = 0
        self.gives.clear()
        try:
            yield
        finally:
            self.gives.set()

    def close(self) -> None:
        self.gives.set()
        self.server.shutdown()
        self.server.server_close()


class Trainer:
    """The trainer, from its start to its end."""

    is_engine = True

    def __init__(self, *options: str, await_steps: bool = True, **more: str) -> None:
        self.options: Sequence[str] = options
        self.more, self.is_awaited = more, await_steps
        self.folder = Path(tempfile.mkdtemp(prefix="rrv", dir="/tmp"))

    def start(self) -> None:
        self.tool = Tool()
        program = python(environments.FRAMEWORKS)
        python(environments.VLLM)
        variables = environments.for_verl(self.folder, TOOL_PORT=str(self.tool.port), **self.more)
        assets = [str(program), str(environments.TRAINER / "assets.py"), str(self.folder)]
        subprocess.run(assets, check=True, capture_output=True, env=variables, timeout=300)
        (self.folder / "agents.yaml").write_text("- name: tool_user\n  _target_: agents.ToolUser\n")
        places = (
            f"actor_rollout_ref.rollout.agent.agent_loop_config_path={self.folder}/agents.yaml",
            f"trainer.default_local_dir={self.folder}/checkpoints",
        )
        self.run = trainer_run.start(self.folder, program, variables, servers.model(), [*OPTIONS, *places, *self.options])
        try:
            if self.is_awaited:
                self.run.await_steps(2, 900)
            else:
                processes.until(self._has_raylet, 120, "a raylet")
        except BaseException:
            self.stop()
            raise

    def _has_raylet(self) -> bool:
        with contextlib.suppress(StopIteration):
            return bool(self.run.address())
        return False

    @property
    def pid(self) -> int:
        return self.run.child.pid

    def where(self) -> tuple[str, ...]:
        return ("--address", self.run.address())

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def find(self, pattern: str) -> int:
        return processes.find(self.pid, pattern)

    def await_weights(self) -> None:
        """Until the next weight update is done: the next thing is generation."""
        seen = self.log().count(UPDATED)
        processes.until(lambda: self.log().count(UPDATED) > seen, 60, "a weight update")

    def await_stand(self, seconds: float = 90.0) -> None:
        """Until no step has ended for a while."""
        seen = [-1]

        def stands() -> bool:
            before, seen[0] = seen[0], self.run.steps()
            return before == seen[0]

        processes.until(stands, seconds, "the run stands", every=STANDS_S)

    @contextlib.contextmanager
    def asked(self, word: str) -> Iterator[None]:
        (self.folder / "trouble").write_text(word)
        try:
            yield
        finally:
            (self.folder / "trouble").unlink()

    @contextlib.contextmanager
    def held(self, place: str) -> Iterator[None]:
        with servers.held(self.folder, place, 0):
            yield

    def settle(self) -> None:
        self.run.await_steps(2, 120)

    def stop(self) -> None:
        memory = processes.shared_memory(processes.below(self.pid))
        self.run.end()
        for file in memory:
            file.unlink(missing_ok=True)
        self.tool.close()
        shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)
