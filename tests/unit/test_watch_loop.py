"""The companion's loop beside a crew and a cluster that only exist here."""

from __future__ import annotations

import io
import threading
from collections.abc import Collection
from pathlib import Path

import pytest

from ray_rl_debug.analyze.by_hand import hung_for_s
from ray_rl_debug.model.codec import read_snapshot
from ray_rl_debug.model.snapshot import RayJob, RayNode, Snapshot
from ray_rl_debug.ray_state.roll_call import RollCall
from ray_rl_debug.watch.live import Live
from ray_rl_debug.watch.loop import ROLL_EVERY_S, ROLL_SOON_S, Companion
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.options import WatchOptions
from ray_rl_debug.watch.signals import Known, NodeReading, Sign

NODE = "node1"


class World:
    """Time, a cluster of one node, and a crew that reads one rank; nothing waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.jobs: tuple[RayJob, ...] = ()
        self.rolls: list[float] = []
        self.orders: list[tuple[float, WatchOrder]] = []
        self.gathered: list[float] = []
        self.stuck_from_s = float("inf")
        self.more: tuple[Known, ...] = ()
        self.tables = 0
        """How often a raylet was asked for its workers."""
        self.ended: list[tuple[str, int, int]] = []
        self._number = 0

    def clock(self) -> float:
        return self.now

    def roll(self, workers_of: Collection[str]) -> RollCall:
        self.rolls.append(self.now)
        self.tables += bool(workers_of)
        node = RayNode(node_id="n1", ip="10.0.0.1", host="node1", alive=True)
        return RollCall(nodes=(node,), jobs=self.jobs, worker_jobs={n: {10: "01000000"} for n in workers_of})

    def refresh(self) -> dict[str, str]:
        return {}

    def read(self, order: WatchOrder) -> tuple[dict[str, NodeReading], dict[str, str]]:
        self.orders.append((self.now, order))
        self._number += self.now < self.stuck_from_s
        driver = Known(pid=9, born=1, kind="driver", ppid=1, title="python", job_id=None)
        rank = Known(pid=10, born=1, kind="ray-worker", ppid=1, title="ray::Trainer.update_actor", job_id="01000000")
        titles = ("ray::Trainer.update_actor", "ray::Trainer.compute_reward")
        signs = (Sign(9, "S", 0.0, 0.0), Sign(10, "S", 0.0, 0.0, titles[self._number % 2]))
        return {NODE: NodeReading(span_s=2.0, signs=signs, known=(driver, rank, *self.more) if self.jobs else ())}, {}

    def gather(self, job_id: str | None) -> Snapshot:
        self.gathered.append(self.now)
        return Snapshot(taken_time_s=self.now)

    def end_process(self, node_id: str, pid: int, start_ticks: int) -> str | None:
        self.ended.append((node_id, pid, start_ticks))
        return None

    def stop(self) -> None:
        return None


class Stop(threading.Event):
    """Waits without time, until the world has run long enough."""

    def __init__(self, world: World, until: float) -> None:
        super().__init__()
        self._world, self._until = world, until

    def wait(self, timeout: float | None = None) -> bool:
        self._world.now += max(timeout or 0.0, 0.01)
        if self._world.now >= self._until:
            self.set()
        return self.is_set()


@pytest.fixture
def world(tmp_path: Path) -> tuple[World, Companion]:
    one = World()
    options = WatchOptions(output=tmp_path)
    return one, Companion(options, one, one.roll, Live(io.StringIO(), is_terminal=False), clock=one.clock, wall=one.clock)


JOB = RayJob(job_id="01000000", driver_pid=9, driver_ip="10.0.0.1", alive=True)


def test_job_that_starts_after_the_companion_is_seen_within_seconds(world: tuple[World, Companion]) -> None:
    one, companion = world
    companion.run(Stop(one, one.now + 60.0))
    assert max(b - a for a, b in zip(one.rolls, one.rolls[1:], strict=False)) <= ROLL_SOON_S + 3.0


def test_healthy_run_is_read_rarely_and_ray_asked_rarely(world: tuple[World, Companion]) -> None:
    one, companion = world
    one.jobs = (JOB,)
    companion.run(Stop(one, one.now + 600.0))
    assert not any(order.often or order.closely for _, order in one.orders)
    assert len(one.orders) <= 210
    assert len(one.rolls) <= 5 + 600 / ROLL_EVERY_S
    assert one.gathered == []


@pytest.mark.parametrize("job", ["01000000", None, "ffffffff"])
def test_worker_of_a_task_costs_no_table_of_all_actors(world: tuple[World, Companion], job: str | None) -> None:
    one, companion = world
    one.jobs = (JOB,)
    one.more = (Known(pid=11, born=1, kind="ray-worker", ppid=1, title="ray::fetch_pages", job_id=job),)
    companion.run(Stop(one, one.now + 600.0))
    assert one.tables <= 4
    assert len(one.rolls) <= 10 + 600 / ROLL_EVERY_S


def test_run_that_stops_is_read_closely_and_looked_at_in_time(world: tuple[World, Companion]) -> None:
    one, companion = world
    one.jobs = (JOB,)
    at = one.stuck_from_s = one.now + 100.0
    companion.run(Stop(one, at + 20.0))
    assert 4.0 <= one.gathered[0] - at <= 12.5
    before = [order for when, order in one.orders if when <= one.gathered[0]]
    assert sum(order.often for order in before) >= 3
    assert sum(order.closely for order in before) >= 2


def test_a_look_knows_how_long_the_run_stands(world: tuple[World, Companion], tmp_path: Path) -> None:
    """Once that is out of the ordinary for this run: before, nobody may say that it hangs."""
    one, companion = world
    one.jobs = (JOB,)
    at = one.stuck_from_s = one.now + 100.0
    companion.run(Stop(one, at + 1200.0))
    looks = [read_snapshot(f) for f in sorted(tmp_path.rglob("snapshot.json.gz"))]
    told = [hung_for_s(look) for look in looks]
    assert told[-1] is not None
    assert all(one is None or abs(one - (look.taken_time_s - at)) < 10.0 for look, one in zip(looks, told, strict=True))


def test_driver_that_is_to_end_is_the_process_that_was_seen(world: tuple[World, Companion], tmp_path: Path) -> None:
    one, _ = world
    one.jobs = (JOB,)
    live = Live(io.StringIO(), is_terminal=False)
    companion = Companion(WatchOptions(output=tmp_path), one, one.roll, live, end_driver=one.end_process, clock=one.clock, wall=one.clock)
    companion.run(Stop(one, one.now + 10.0))
    assert companion._stop_driver(JOB) is None
    assert one.ended == [("n1", 9, 1)], "node, pid and start"
    elsewhere = RayJob(job_id="02000000", driver_pid=9, driver_ip="10.0.0.7", alive=True)
    assert companion._stop_driver(elsewhere) == "the driver was not ended: its process was not found"
    assert len(one.ended) == 1
