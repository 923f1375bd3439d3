"""Real verl with a real vLLM: a run that trains, and each trouble between the two."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from engines.processes import kill, stopped, until
from engines.trainers import Trainer
from engines.truth import HEALTHY, STARTING, Case, Trouble, Truth

PROGRAMS: dict[str, Callable[[], Trainer]] = {
    "verl": Trainer,
    # Without it verl ends with an error when an engine dies in the middle of generation, and nothing hangs.
    "verl-refilling": lambda: Trainer("trainer.v1.sampler.sync_refill_failed_groups=True"),
    "verl-starting": lambda: Trainer(await_steps=False),
    "verl-failing-receiver": lambda: Trainer(await_steps=False, KEEP_WEIGHTS=""),
}
CORE = "VLLM::EngineCore"
WORKER = "VLLM::Worker"
RANK = r"ray::WorkerDict.*"
AGENTS = r"ray::AgentLoopWorkerTQ.*"


@contextlib.contextmanager
def trains(run: Trainer) -> Iterator[tuple[int, ...]]:
    yield ()


@contextlib.contextmanager
def stuck_rank(run: Trainer) -> Iterator[tuple[int, ...]]:
    with run.asked("step"):
        run.await_stand()
        yield (run.find(RANK),)


@contextlib.contextmanager
def stuck_reward(run: Trainer) -> Iterator[tuple[int, ...]]:
    with run.asked("reward"):
        run.await_stand()
        yield (run.find(r"ray::RewardLoopWorker.*"),)


@contextlib.contextmanager
def stuck_tool(run: Trainer) -> Iterator[tuple[int, ...]]:
    with run.tool.withheld():
        until(lambda: run.tool.kept, 60, "a question to the tool")
        run.await_stand()
        yield (run.find(AGENTS), run.pid)


def stop(pattern: str, *, in_update: bool = False) -> Trouble:
    @contextlib.contextmanager
    def trouble(run: Trainer) -> Iterator[tuple[int, ...]]:
        pid = run.find(pattern)
        with contextlib.ExitStack() as at_end:
            _come_to(run, in_update, lambda: at_end.enter_context(stopped(pid)))
            run.await_stand()
            yield (pid,)

    return trouble


def dead(pattern: str, *, in_update: bool = False) -> Trouble:
    @contextlib.contextmanager
    def trouble(run: Trainer) -> Iterator[tuple[int, ...]]:
        pid = run.find(pattern)
        _come_to(run, in_update, lambda: kill(pid))
        run.await_stand()
        yield (pid,)

    return trouble


def _come_to(run: Trainer, in_update: bool, then: Callable[[], object]) -> None:
    """Does it before the next generation, or at the beginning of the next weight update."""
    if in_update:
        with run.held("weights"):
            then()
    else:
        run.await_weights()
        then()


@contextlib.contextmanager
def failed_receiver(run: Trainer) -> Iterator[tuple[int, ...]]:
    """The receiver of the weights fails; the sender is never told."""
    until(lambda: "weight_loader" in run.log(), 300, "the receiver's error", every=1.0)
    run.await_stand()
    yield ()


@contextlib.contextmanager
def failing_receiver(run: Trainer) -> Iterator[tuple[int, ...]]:
    """The same after some good updates."""
    (run.folder / "receiver").touch()
    until(lambda: "told to fail in receiver" in run.log(), 120, "the receiver's error", every=0.5)
    run.await_stand()
    yield ()


STOPPED = Truth(("hang",), ("process-stopped",))
DIED = Truth(("hang",), ("engine-died",), "enginecore|engine core")
RECEIVER = Truth(("hang",), ("weight-sync-mismatch",), "vllm|actor")
ANYHOW = ("straggler", "asyncio-stuck", "event-loop-blocked", "blocked-io", "lock-deadlock")

CASES = (
    Case("verl-trains", "verl", trains, HEALTHY, wait_s=0),
    Case("verl-starts", "verl-starting", trains, STARTING, is_fatal=True, wait_s=0),
    Case("verl-rank-stuck", "verl", stuck_rank, Truth(("hang",), ANYHOW)),
    Case("verl-reward-stuck", "verl", stuck_reward, Truth(("hang",), ANYHOW)),
    # a service that was not looked at may need a minute
    Case("verl-tool-stuck", "verl", stuck_tool, Truth(("hang",), ANYHOW, r"agent|127\.0\.0\.1"), wait_s=75.0),
    Case("verl-agents-stopped", "verl", stop(AGENTS), STOPPED),
    Case("verl-core-stopped", "verl", stop(CORE), STOPPED),
    Case("verl-core-stopped-in-update", "verl", stop(CORE, in_update=True), STOPPED),
    Case("verl-worker-stopped", "verl", stop(WORKER), STOPPED),
    Case("verl-worker-stopped-in-update", "verl", stop(WORKER, in_update=True), STOPPED),
    Case("verl-core-killed", "verl-refilling", dead(CORE), DIED, is_fatal=True),
    Case("verl-core-killed-in-update", "verl", dead(CORE, in_update=True), DIED, is_fatal=True),
    Case("verl-receiver-failed", "verl-failing-receiver", failed_receiver, RECEIVER, is_fatal=True),
    Case("verl-receiver-fails-later", "verl", failing_receiver, RECEIVER, is_fatal=True),
)
