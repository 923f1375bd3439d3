"""Hangs of asynchronous rollout: nothing runs, the event loop sleeps or stands still, and no thread shows why."""

from __future__ import annotations

import asyncio
import os
import threading
import urllib.request
from pathlib import Path
from typing import Any

from kit import Seat, Stage, scenario
from ranks import FATAL_STEP, PolicyTrainer, others


class EpisodeRunner:
    """Runs episodes under a semaphore that limits how many are open."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    async def run_episodes(self, count: int) -> list[float]:
        self.slots = asyncio.Semaphore(2)
        tasks = [asyncio.create_task(self.run_episode(i), name=f"episode-{i}") for i in range(count)]
        return await asyncio.gather(*tasks)

    async def run_episode(self, number: int) -> float:
        await self.slots.acquire()
        if number < 2:
            return 0.0  # a cancelled episode: its slot is not given back
        self.slots.release()
        return 1.0

    async def watch(self) -> None:
        await asyncio.sleep(0.5)
        self.seat.arrive()


@scenario(
    story="Two cancelled episodes kept their slots; all later episodes await the semaphore.",
    cause="asyncio-stuck",
    phase="rollout",
    culprits=["episode_runner"],
    victims=["driver"],
)
def semaphore_slots_lost(stage: Stage) -> Any:
    runner = stage.actor(EpisodeRunner, "episode_runner", max_concurrency=16)
    waiting = runner.run_episodes.remote(12)
    stage.kept.append(runner.watch.remote())
    return waiting


class SelfBlockingRollout:
    """Waits, inside its event loop, for a coroutine that only this loop could run."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    async def generate_batch(self) -> int:
        await asyncio.sleep(0.1)
        return self.tokenize_now("2 + 2")

    def tokenize_now(self, text: str) -> int:
        loop = asyncio.get_running_loop()
        self.seat.arrive()
        return asyncio.run_coroutine_threadsafe(self.count_tokens(text), loop).result()

    async def count_tokens(self, text: str) -> int:
        return len(text.split())


@scenario(
    story="A coroutine calls Future.result() for a coroutine of its own loop: the loop stands still.",
    cause="event-loop-blocked",
    phase="rollout",
    culprits=["rollout"],
    victims=["driver"],
    nodes=2,
)
def event_loop_waits_for_itself(stage: Stage) -> Any:
    return stage.actor(SelfBlockingRollout, "rollout", name="agent_rollout_0").generate_batch.remote()


class CallsTool(PolicyTrainer):
    def score_batch(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 2:
            self.seat.arrive()
            self.execute_code("print(1)")
        return super().score_batch(step)

    def execute_code(self, code: str) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.seat.tool_port}/run", data=code.encode())
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())


@scenario(
    story="Rank 2 asks a tool server in another process, without a time limit; the server never answers, the others wait in all_reduce.",
    cause="blocked-io",
    phase="reward",
    culprits=["trainer_2", "tool_server"],
    victims=others(4, 2),
    ready=["trainer_2"],
    nodes=2,
)
def tool_server_never_answers(stage: Stage) -> Any:
    return stage.loop(stage.ranks(CallsTool, 4, tool_port=stage.tool_server(), rank_by="late"), "rollout_batch score_batch")


class AsyncToolCaller:
    """An agent loop whose coroutines read the tool server's answer, each from its own connection."""

    def __init__(self, seat: Seat, tool_port: int) -> None:
        self.seat, self.tool_port = seat, tool_port
        seat.sit()

    async def run_agents(self, count: int) -> list[bytes]:
        return await asyncio.gather(*(self.run_agent(i, count) for i in range(count)))

    async def run_agent(self, number: int, count: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.tool_port)
        writer.write(b"POST /run HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        if number == count - 1:
            self.seat.arrive()
        return await self.read_answer(reader)

    async def read_answer(self, reader: asyncio.StreamReader) -> bytes:
        return await reader.read()


@scenario(
    story="Six coroutines await the answers of a tool server that gives none.",
    cause="asyncio-stuck|blocked-io",
    phase="rollout",
    culprits=["agent_loop", "tool_server"],
    victims=["driver"],
    ready=["agent_loop"],
)
def async_tool_calls_unanswered(stage: Stage) -> Any:
    return stage.actor(AsyncToolCaller, "agent_loop", stage.tool_server(), max_concurrency=8).run_agents.remote(6)


class StalenessControl:
    """Admits a rollout only when it would not be too old for the version that will train on it."""

    def __init__(self, max_staleness: int, batch: int) -> None:
        self.version, self.admitted = 0, 0
        self.max_staleness, self.batch = max_staleness, batch
        self.changed = threading.Condition()

    def get_capacity(self) -> int:
        return (self.max_staleness + self.version + 1) * self.batch - self.admitted

    def wait_for_capacity(self) -> None:
        with self.changed:
            while self.get_capacity() <= 0:
                self.changed.wait()
            self.admitted += 1


class AsyncTrainer:
    """Trains on accepted rollouts; rejected ones were admitted all the same, and no version ever comes."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.control = StalenessControl(max_staleness=1, batch=4)
        self.accepted: list[int] = []
        self.arrived = threading.Condition()
        seat.sit()

    def prepare_batch(self) -> list[int]:
        threading.Thread(target=self.submit_rollouts, name="rollout-submitter", daemon=True).start()
        with self.arrived:
            while len(self.accepted) < 4:
                self.arrived.wait()
        return self.accepted

    def submit_rollouts(self) -> None:
        for number in range(1_000_000):
            if self.control.get_capacity() <= 0:
                self.seat.arrive()
            self.control.wait_for_capacity()
            self.run_rollout(number)

    def run_rollout(self, number: int) -> None:
        if number % 4 == 0:  # the others are rejected
            with self.arrived:
                self.accepted.append(number)
                self.arrived.notify_all()


@scenario(
    story="Rejected rollouts used up the capacity of the staleness control: nothing more is admitted, and the trainer waits for its batch.",
    cause="staleness-gate",
    phase="rollout",
    culprits=["async_trainer"],
    victims=["driver"],
)
def staleness_capacity_used_up(stage: Stage) -> Any:
    return stage.actor(AsyncTrainer, "async_trainer").prepare_batch.remote()


class BatchMaker:
    """Makes the batches; the prompts of the fatal one lie in a file that never answers."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def generate_batch(self, step: int) -> list[int]:
        if step == FATAL_STEP:
            os.mkfifo(self.seat.path("prompts.jsonl"))
            self.seat.arrive()
            Path(self.seat.path("prompts.jsonl")).read_bytes()
        return [step]


class BatchTrainer:
    """Is handed each batch as an argument, as a reference that Ray resolves before it starts the call."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def update_policy(self, batch: list[int]) -> int:
        return sum(batch)


@scenario(
    story="The trainer's call needs a batch that the rollout worker never finishes; the trainer has not even been called and is idle.",
    cause="blocked-io",
    phase="rollout",
    culprits=["batch_maker"],
    victims=["driver"],
    ready=["batch_maker"],
)
def batch_that_never_comes(stage: Stage) -> Any:
    import ray

    maker, trainer = stage.actor(BatchMaker, "batch_maker"), stage.actor(BatchTrainer, "batch_trainer")
    for step in range(FATAL_STEP):
        ray.get(trainer.update_policy.remote(maker.generate_batch.remote(step)))
    return trainer.update_policy.remote(maker.generate_batch.remote(FATAL_STEP))
