"""Runs in which nobody may be accused, one kind at a time: ``programs.py KIND FOLDER``. Announces itself when its steady state is reached.

Each kind starts with calls that finish, as real runs do, and then goes on for ever.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import ray

sys.path.insert(0, str(Path(__file__).parent))
import actors
import ranks

Say = Callable[[], None]
KINDS: dict[str, Callable[[str, Say], NoReturn]] = {}


def kind(run: Callable[[str, Say], NoReturn]) -> Callable[[str, Say], NoReturn]:
    KINDS[run.__name__] = run
    return run


def start(actor_class: type, *arguments: object, **options: Any) -> Any:
    return ray.remote(actor_class).options(num_cpus=0, **options).remote(*arguments)


def group(folder: str, world: int) -> list[Any]:
    """Ranks that have met and have trained two steps."""
    found = [start(ranks.Trainer, folder, r, world, name=f"trainer_{r}") for r in range(world)]
    all_of(found, "init_model")
    for _ in range(2):
        all_of(found, "update_actor")
    return found


def all_of(found: list[Any], method: str, *arguments: object) -> list[Any]:
    return list(ray.get([getattr(one, method).remote(*arguments) for one in found]))


def forever(step: Callable[[], object], say: Say, after: int = 2) -> NoReturn:
    for number in itertools.count():
        if number == after:
            say()
        step()
    raise AssertionError


def saying_when_begun(say: Say, call: Callable[[], object], pause_s: float = 3.0) -> NoReturn:
    """Announces while the call runs, which may take longer than anybody looks."""
    threading.Timer(pause_s, say).start()
    while True:
        call()


@kind
def trains_fast(folder: str, say: Say) -> NoReturn:
    found = group(folder, 3)
    forever(lambda: all_of(found, "update_actor"), say, 5)


@kind
def slow_rank(folder: str, say: Say) -> NoReturn:
    found = group(folder, 3)
    forever(lambda: all_of(found, "update_with_slow_rank"), say)


@kind
def sleepy_reward(folder: str, say: Say) -> NoReturn:
    found = group(folder, 2)

    def step() -> None:
        all_of(found, "sleepy_reward")
        all_of(found, "update_actor")

    forever(step, say)


@kind
def many_micro_batches(folder: str, say: Say) -> NoReturn:
    found = group(folder, 2)
    forever(lambda: all_of(found, "update_actor", 3000), say, 1)


@kind
def long_generation(folder: str, say: Say) -> NoReturn:
    engine = start(actors.BlockingEngine, name="rollout_server_0")
    ray.get(engine.generate_sequences.remote(0.5))
    saying_when_begun(say, lambda: ray.get(engine.generate_sequences.remote(300.0)))


@kind
def long_async_generation(folder: str, say: Say) -> NoReturn:
    """Every answer takes longer than all before it."""
    engines = [start(actors.Engine, name=f"llm_server_{i}") for i in range(2)]
    ray.get([e.generate.remote(10, 0.05) for e in engines])
    saying_when_begun(say, lambda: ray.get([e.generate.remote(6000, 0.05) for e in engines for _ in range(8)]))


@kind
def long_checkpoint(folder: str, say: Say) -> NoReturn:
    found = group(folder, 2)
    all_of(found, "save_checkpoint", 3)
    saying_when_begun(say, lambda: all_of(found, "save_checkpoint", 1_000_000))


@kind
def compiles_first_step(folder: str, say: Say) -> NoReturn:
    found = [start(ranks.Trainer, folder, r, 2, name=f"trainer_{r}") for r in range(2)]
    all_of(found, "init_model")
    saying_when_begun(say, lambda: all_of(found, "compile_first"))


@kind
def weight_sync(folder: str, say: Say) -> NoReturn:
    found = group(folder, 3)
    forever(lambda: all_of(found, "sync_weights"), say)


@kind
def validation(folder: str, say: Say) -> NoReturn:
    found = group(folder, 2)

    def step() -> None:
        all_of(found, "update_actor")
        ray.get(found[0].validate.remote(6.0))

    forever(step, say, 1)


@kind
def loader_training(folder: str, say: Say) -> NoReturn:
    found = group(folder, 2)
    saying_when_begun(say, lambda: all_of(found, "train_on_loader", 100_000))


@kind
def idle_notebook(folder: str, say: Say) -> NoReturn:
    found = group(folder, 2)
    all_of(found, "validate", 0.5)
    say()
    threading.Event().wait()
    raise AssertionError


@kind
def queue_consumer(folder: str, say: Say) -> NoReturn:
    """The consumer waits for the next job, which the user has not sent."""
    from ray.util.queue import Queue

    queue = Queue(actor_options={"num_cpus": 0})
    consumer = start(actors.Consumer, queue, name="consumer")
    running = consumer.run.remote()
    for number in range(5):
        queue.put(number)
    ray.wait([running], timeout=2.0)
    say()
    threading.Event().wait()
    raise AssertionError


@kind
def slow_producer(folder: str, say: Say) -> NoReturn:
    """A queue between a producer of one thing in four seconds and a consumer that waits for it."""
    from ray.util.queue import Queue

    queue = Queue(actor_options={"num_cpus": 0})
    consumer = start(actors.Consumer, queue, name="consumer")
    environment = start(actors.Environment, name="environment")
    running = consumer.run.remote()

    def step() -> None:
        queue.put(ray.get(environment.step.remote(4.0)))
        ray.wait([running], timeout=0)

    forever(step, say, 1)


@kind
def async_rollouts(folder: str, say: Say) -> NoReturn:
    """Fully asynchronous: agents fill a buffer, the trainer polls it and trains."""
    engine = start(actors.Engine, name="llm_server_0")
    agents = [start(actors.AgentLoop, engine, name=f"agent_loop_{i}") for i in range(2)]
    running = [a.run_episodes.remote() for a in agents]
    found = group(folder, 2)
    held: list[int] = []

    def step() -> None:
        while len(held) < 20:
            for taken in ray.get([a.take.remote(20) for a in agents]):
                held.extend(taken)
            time.sleep(0.5)
        held.clear()
        all_of(found, "update_actor")
        ray.wait(running, timeout=0)

    forever(step, say, 1)


@kind
def reward_pool(folder: str, say: Say) -> NoReturn:
    pool = start(actors.RewardPool, name="reward_manager")
    forever(lambda: ray.get(pool.compute_score.remote(8)), say, 1)


@kind
def slow_tool(folder: str, say: Say) -> NoReturn:
    tools, user = start(actors.ToolUser, name="tool_server", max_concurrency=2), start(actors.ToolUser, name="agent_0")
    url = ray.get(tools.address.remote())
    forever(lambda: ray.get(user.compute_reward.remote(url, 2)), say, 1)


@kind
def slow_environments(folder: str, say: Say) -> NoReturn:
    found = [start(actors.Environment, name=f"env_{i}") for i in range(3)]
    forever(lambda: ray.get([one.step.remote(1.0 + i) for i, one in enumerate(found)]), say, 1)


@kind
def short_tasks(folder: str, say: Say) -> NoReturn:
    @ray.remote(num_cpus=1)
    def tokenize(seconds: float) -> float:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        return seconds

    forever(lambda: ray.get([tokenize.remote(0.3) for _ in range(20)]), say, 1)


@kind
def idle_actors_busy_driver(folder: str, say: Say) -> NoReturn:
    found = [start(actors.Monitor, name=f"monitor_{i}") for i in range(2)]
    ray.get([one.count.remote() for one in found])

    def step() -> None:
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            sum(range(1000))

    forever(step, say)


def plain_ranks(folder: str, say: Say) -> NoReturn:
    """No Ray: ranks that this process started, as torchrun does."""
    _launch(folder, say, "update_actor")


def served_ranks(folder: str, say: Say) -> NoReturn:
    """The same with torch's worker server in each: Flight Recorders of a run that moves are never of one moment."""
    _launch(folder, say, "update_actor", "serve")


def served_slow_rank(folder: str, say: Say) -> NoReturn:
    """Two Flight Recorders wait seconds for the third in every step."""
    _launch(folder, say, "update_with_slow_rank", "serve")


def _launch(folder: str, say: Say, *more: str) -> NoReturn:
    children = [os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, __file__, "rank", folder, str(r), *more]) for r in range(3)]
    until = time.monotonic() + 150
    while not all((Path(folder) / f"trains{r}").exists() for r in range(3)):
        assert time.monotonic() < until, "the ranks did not meet"
        time.sleep(0.1)
    say()
    for child in children:
        os.waitpid(child, 0)
    raise AssertionError


def plain_loader(folder: str, say: Say) -> NoReturn:
    trainer = ranks.Trainer(folder, 0, 1)
    trainer.train_on_loader(5)
    saying_when_begun(say, lambda: trainer.train_on_loader(100_000))


def rank(folder: str, number: int, method: str, serve: bool) -> None:
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    trainer = ranks.Trainer(folder, number, 3)
    trainer.init_model()
    server = ranks.serve_counters() if serve else None
    for step in itertools.count():
        getattr(trainer, method)()
        if step == 3:
            (Path(folder) / f"trains{number}").touch()
    del server


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def _end_with_input() -> None:
    # not sys.stdin.read(): its lock would be inherited by the processes of a DataLoader, which close their input
    while os.read(0, 1024):
        pass
    threading.Timer(10.0, os._exit, (0,)).start()
    if ray.is_initialized():
        ray.shutdown()
    os._exit(0)


def main() -> None:
    name, folder, *more = sys.argv[1:]
    if name == "rank":
        rank(folder, int(more[0]), more[1], "serve" in more)
        return
    address = None
    if name not in WITHOUT_RAY:
        ray.init(address="local", num_cpus=2, include_dashboard=False, _temp_dir=f"{folder}/ray", log_to_driver=False, object_store_memory=200 << 20)
        address = ray.get_runtime_context().gcs_address
    threading.Thread(target=_end_with_input, daemon=True, name="standard input").start()

    def say() -> None:
        print(json.dumps({"address": address, "pid": os.getpid()}), flush=True)

    run = KINDS.get(name) or WITHOUT_RAY[name]
    run(folder, say)


WITHOUT_RAY = {run.__name__: run for run in (plain_ranks, served_ranks, served_slow_rank, plain_loader)}

if __name__ == "__main__":
    main()
