"""Hangs in Ray's own layer: rings of ray.get, what no node can hold, calls in a queue, dead actors somebody still counts on."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from kit import Seat, Stage, scenario


class RingMember:
    """Answers only after the next one in the ring has answered."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def know(self, successor: Any) -> None:
        self.successor = successor


class RewardScorer(RingMember):
    def score_answers(self) -> float:
        import ray

        self.seat.arrive()
        return float(ray.get(self.successor.fetch_rollouts.remote()))


class RolloutServer(RingMember):
    def fetch_rollouts(self) -> float:
        import ray

        self.seat.arrive()
        return float(ray.get(self.successor.current_policy.remote()))


class PolicyStore(RingMember):
    def current_policy(self) -> float:
        import ray

        self.seat.arrive()
        return float(ray.get(self.successor.score_answers.remote()))


@scenario(
    story="The scorer asks the rollout server, which asks the policy store, which asks the scorer: three ray.get in a ring.",
    cause="ray-get-cycle",
    phase="reward",
    culprits=["scorer", "rollout_server", "policy_store"],
    victims=["driver"],
    nodes=2,
)
def ray_get_ring_of_three(stage: Stage) -> Any:
    import ray

    scorer, server, store = (
        stage.actor(cls, name, scheduling_strategy="SPREAD")
        for cls, name in ((RewardScorer, "scorer"), (RolloutServer, "rollout_server"), (PolicyStore, "policy_store"))
    )
    ray.get([scorer.know.remote(server), server.know.remote(store), store.know.remote(scorer)])
    return scorer.score_answers.remote()


class SelfCritic:
    """Scores its own rollouts, by a call to itself."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def generate(self, itself: Any) -> float:
        import ray

        self.seat.arrive()
        return float(ray.get(itself.score.remote()))

    def score(self) -> float:
        return 0.0


@scenario(
    story="An actor waits in ray.get for a call to itself; the call stands in its queue, behind the one that waits.",
    cause="ray-get-cycle",
    phase="rollout",
    culprits=["self_critic"],
    victims=["driver"],
)
def actor_calls_itself(stage: Stage) -> Any:
    critic = stage.actor(SelfCritic, "self_critic")
    return critic.generate.remote(critic)


class PoolBuilder:
    """Reserves the resources of the job before it starts anything."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def create_policy_pool(self) -> None:
        import ray
        from ray.util import placement_group

        pool = placement_group([{"CPU": 1}] * 3, strategy="STRICT_SPREAD", name="policy_pool")
        self.seat.arrive()
        ray.get(pool.ready())

    def wait_for_policy_pool(self) -> None:
        from ray.util.placement_group import placement_group

        group = placement_group([{"CPU": 64}] * 2, strategy="SPREAD", name="policy_pool")
        self.seat.arrive()
        group.wait(86_400)

    def start_critic(self) -> None:
        import ray

        critic = ray.remote(CriticTrainer).options(name="critic_0", num_gpus=2).remote()
        self.seat.arrive()
        ray.get(critic.init_critic.remote())


class CriticTrainer:
    def init_critic(self) -> bool:
        return True


@scenario(
    story="The job wants three bundles on three different nodes; the cluster has two.",
    cause="ray-pending",
    phase="init",
    culprits=["label:policy_pool"],
    victims=["builder", "driver"],
    ready=["builder"],
    nodes=2,
)
def placement_group_wants_three_nodes(stage: Stage) -> Any:
    return stage.actor(PoolBuilder, "builder").create_policy_pool.remote()


@scenario(
    story="The job waits a day for a placement group larger than the cluster, in wait() instead of ready().",
    cause="ray-pending",
    phase="init",
    culprits=["label:policy_pool"],
    victims=["builder", "driver"],
    ready=["builder"],
)
def placement_group_is_waited_for(stage: Stage) -> Any:
    return stage.actor(PoolBuilder, "builder").wait_for_policy_pool.remote()


@scenario(
    story="The critic asks for two GPUs; no node has any.",
    cause="ray-pending",
    phase="init",
    culprits=["label:critic_0", "label:CriticTrainer"],
    victims=["builder", "driver"],
    ready=["builder"],
)
def actor_wants_missing_gpus(stage: Stage) -> Any:
    return stage.actor(PoolBuilder, "builder").start_critic.remote()


class RewardModel:
    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def load(self) -> bool:
        self.seat.arrive()
        return True


@scenario(
    story="Two reward models of three CPUs each on a node of four: the second one waits for CPUs that the idle first one keeps.",
    cause="ray-pending",
    phase="init",
    culprits=["label:reward_model_1", "label:RewardModel"],
    victims=["driver"],
    ready=["reward_model_0"],
)
def actor_waits_for_taken_cpus(stage: Stage) -> Any:
    import ray

    first = stage.actor(RewardModel, "reward_model_0", num_cpus=3)
    ray.get(first.load.remote())
    second = stage.actor(RewardModel, "reward_model_1", num_cpus=3)
    return second.load.remote()


class RolloutLoop:
    """Serves for ever in the only thread it has, so that nothing else is ever called."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def serve_requests(self) -> None:
        served = 0
        while True:
            served = self.wait_for_request(served)

    def wait_for_request(self, served: int) -> int:
        time.sleep(0.2)
        return served

    def export_weights(self) -> bytes:
        return b""


@scenario(
    story="The driver waits for export_weights of an actor whose only thread is in serve_requests for ever.",
    cause="ray-queued-call",
    phase="weight_sync",
    culprits=["rollout_loop"],
    victims=["driver"],
    ready=["driver"],
)
def call_behind_endless_call(stage: Stage) -> Any:
    server = stage.actor(RolloutLoop, "rollout_loop")
    stage.kept.append(server.serve_requests.remote())
    exported = server.export_weights.remote()
    stage.seat("driver").arrive()
    return exported


class SampleBuffer:
    """Holds what the rollout workers produced."""

    def __init__(self, seat: Seat) -> None:
        self.samples: list[int] = []
        seat.sit()

    def put(self, sample: int) -> None:
        self.samples.append(sample)

    def take(self, count: int) -> list[int]:
        if len(self.samples) < count:
            return []
        taken, self.samples = self.samples[:count], self.samples[count:]
        return taken


class RolloutWorker:
    """Produces samples until it dies as if by a segmentation fault."""

    def __init__(self, seat: Seat, buffer: Any) -> None:
        self.seat, self.buffer = seat, buffer
        seat.sit()

    def generate_samples(self) -> None:
        import ray

        for sample in range(5):
            ray.get(self.buffer.put.remote(sample))
        self.seat.arrive()
        os.abort()


class BufferTrainer:
    """Polls the buffer for a batch that is never complete."""

    def __init__(self, seat: Seat, buffer: Any) -> None:
        self.seat, self.buffer = seat, buffer
        seat.sit()

    def train_from_buffer(self) -> None:
        while True:
            self.wait_for_batch(4)

    def wait_for_batch(self, size: int) -> list[int]:
        import ray

        while True:
            batch: list[int] = ray.get(self.buffer.take.remote(size))
            if batch:
                return batch
            time.sleep(0.3)


@scenario(
    story="The only rollout worker is dead; the trainer polls the buffer for samples that nobody makes any more.",
    cause="producer-died",
    phase="rollout",
    culprits=["rollout_worker", "label:rollout_worker", "label:RolloutWorker"],
    victims=["trainer", "buffer", "driver"],
    ready=["rollout_worker"],
    settle_s=3.0,
)
def producer_dead_trainer_polls(stage: Stage) -> Any:
    buffer = stage.actor(SampleBuffer, "buffer")
    worker = stage.actor(RolloutWorker, "rollout_worker", buffer)
    stage.kept.append(worker.generate_samples.remote())
    return stage.actor(BufferTrainer, "trainer", buffer).train_from_buffer.remote()


class EngineServer:
    """An inference engine: answers go back into the router's queue."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    async def generate(self, router: Any, prompt: int) -> None:
        if prompt == 2:
            self.seat.arrive()
            os._exit(9)
        await router.deliver.remote(prompt)


class EngineRouter:
    """Sends prompts to the engine without waiting for the call, and waits for the answers in a queue."""

    def __init__(self, seat: Seat, engine: Any) -> None:
        self.engine = engine
        self.answers: asyncio.Queue[int] = asyncio.Queue()
        seat.sit()

    async def deliver(self, answer: int) -> None:
        await self.answers.put(answer)

    async def generate_sequences(self, me: Any) -> list[int]:
        for prompt in range(4):
            self.engine.generate.remote(me, prompt)
        return [await self.answers.get() for _ in range(4)]


@scenario(
    story="The engine died in the third prompt; the router awaits its answers in a queue that nobody fills.",
    cause="engine-died|producer-died",
    phase="rollout",
    culprits=["engine_server_0", "label:engine_server_0", "label:EngineServer"],
    victims=["router", "driver"],
    ready=["engine_server_0"],
    settle_s=3.0,
    nodes=2,
)
def engine_dead_router_awaits(stage: Stage) -> Any:
    engine = stage.actor(EngineServer, "engine_server_0", scheduling_strategy="SPREAD")
    router = stage.actor(EngineRouter, "router", engine)
    return router.generate_sequences.remote(router)
