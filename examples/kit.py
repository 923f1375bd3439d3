"""What the example programs share: the truth beside each scenario, the seats of its processes, and the stage that starts them."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ports import free_port

SCENARIOS: dict[str, Scenario] = {}


@dataclasses.dataclass(frozen=True)
class Truth:
    """What a right diagnosis says. Names are those of seats; a ``label:`` names what is not a living process."""

    state: str
    """``hang``, or what a run that is no hang may be called, divided by ``|``."""
    cause: str | None
    culprits: tuple[str, ...]
    """At least one of them must be named."""
    victims: tuple[str, ...]
    """None of them may be named."""
    phase: str


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One program that hangs on purpose, or only looks like it."""

    name: str
    story: str
    truth: Truth
    start: Callable[[Stage], Any]
    """Starts the job; returns the ObjectRef that the driver waits for, or None for an interactive driver."""
    ready: tuple[str, ...]
    """Seats that must have reached the fatal line."""
    nodes: int
    settle_s: float
    """Time for the others to arrive where they will wait."""


def scenario(
    *,
    story: str,
    cause: str | None,
    phase: str,
    culprits: Sequence[str] = (),
    victims: Sequence[str] = (),
    ready: Sequence[str] = (),
    state: str = "hang",
    nodes: int = 1,
    settle_s: float = 1.5,
) -> Callable[[Callable[[Stage], Any]], Callable[[Stage], Any]]:
    """Register a function ``start(stage)`` under its own name."""

    def register(start: Callable[[Stage], Any]) -> Callable[[Stage], Any]:
        truth = Truth(state=state, cause=cause, culprits=tuple(culprits), victims=tuple(victims), phase=phase)
        SCENARIOS[start.__name__] = Scenario(start.__name__, story, truth, start, tuple(ready or culprits), nodes, settle_s)
        return start

    return register


@dataclasses.dataclass(frozen=True)
class Seat:
    """One process's place in the job, and how it tells the outside where it is."""

    name: str
    folder: str
    rank: int = 0
    world: int = 1
    port: int = 0
    """Where the ranks meet."""
    tool_port: int = 0
    rank_by: str = "name"
    """Where the rank can be learned: the actor's ``name``, the ``late`` environment, or the ``runtime_env``."""

    def sit(self) -> None:
        """Leave this process's pid for the runner."""
        self._write("pid")

    def arrive(self) -> None:
        """Say that the next line is the fatal one."""
        self._write("there")

    def child(self, name: str) -> Seat:
        return dataclasses.replace(self, name=name)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _write(self, what: str) -> None:
        unfinished = Path(self.folder, f"{self.name}.{what}.tmp")
        unfinished.write_text(str(os.getpid()))
        unfinished.rename(Path(self.folder, f"{self.name}.{what}"))


class Stage:
    """Starts the actors of one scenario on the running cluster."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.kept: list[Any] = []
        """References that must not be collected while the job runs."""
        self.port = free_port()

    def seat(self, name: str, **more: Any) -> Seat:
        return Seat(name=name, folder=self.folder, port=self.port, **more)

    def actor(self, cls: type, called: str, /, *args: Any, seat: Seat | None = None, **options: Any) -> Any:
        """An actor of `cls`, whose first argument is its seat. Named like the seat unless ``name=None`` is given."""
        import ray

        settings = {"num_cpus": 0, "name": called, **options}
        if settings["name"] is None:
            del settings["name"]
        handle = ray.remote(cls).options(**settings).remote(seat or self.seat(called), *args)
        self.kept.append(handle)
        return handle

    def ranks(self, cls: type, world: int, *, rank_by: str = "name", tool_port: int = 0, size: int | None = None) -> list[Any]:
        """`world` actors ``trainer_0``..., spread over the nodes; they believe to be `size` (default: as many as there are)."""
        import ray

        handles = []
        for rank in range(world):
            seat = self.seat(f"trainer_{rank}", rank=rank, world=size or world, tool_port=tool_port, rank_by=rank_by)
            options: dict[str, Any] = {"num_cpus": 1, "scheduling_strategy": "SPREAD", "name": f"policy_trainer_{rank}"}
            if rank_by != "name":
                options["name"] = None
            if rank_by == "runtime_env":
                options["runtime_env"] = {"env_vars": seat_environment(seat)}
            handles.append(self.actor(cls, seat.name, seat=seat, **options))
        ray.get([h.pid.remote() for h in handles])
        return handles

    def loop(self, trainers: list[Any], calls: str, *, steps: int = 1_000_000) -> Any:
        """The single controller, an actor; returns the reference the driver waits for."""
        controller = self.actor(TrainingLoop, "controller")
        return controller.run_training.remote(trainers, calls.split(), steps)

    def tool_server(self) -> int:
        """A tool server in a process of its own that takes requests and never answers; its port."""
        program = os.path.join(os.path.dirname(__file__), "silent_tool_server.py")
        child = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        port = int(child.stdout.readline())
        Path(self.folder, "tool_server.pid").write_text(str(child.pid))
        self.kept.append(child)
        return port


class TrainingLoop:
    """Calls one method after another on all ranks, as the single controller of an RL trainer does."""

    def __init__(self, seat: Seat) -> None:
        seat.sit()

    def run_training(self, trainers: list[Any], calls: list[str], steps: int) -> int:
        import ray

        ray.get([t.setup_distributed.remote() for t in trainers])
        for step in range(1, steps + 1):
            for call in calls:
                ray.get([getattr(t, call).remote(step) for t in trainers])
        return steps

    def launch(self, trainers: list[Any]) -> int:
        """Wait for every rank's start, whatever becomes of it."""
        import ray

        started = [t.setup_distributed.remote() for t in trainers]
        done, _ = ray.wait(started, num_returns=len(started))
        return len(done)


def seat_environment(seat: Seat) -> dict[str, str]:
    """What torch's ``env://`` start reads."""
    return {"RANK": str(seat.rank), "WORLD_SIZE": str(seat.world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(seat.port)}
