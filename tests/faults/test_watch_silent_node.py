"""One node of a watched cluster gives no watcher any more: what that costs the others."""

from __future__ import annotations

import os
import resource
import signal
import threading
from pathlib import Path

import psutil
import pytest
from integration.clusters import cluster, environment, processes_titled, program, state_of, wait_for

from ray_rl_debug.capture.cluster import ClusterOptions
from ray_rl_debug.cluster.node_choice import unique_names
from ray_rl_debug.collect.discover import find_raylets_by_node
from ray_rl_debug.ray_state.roll_call import call_roll
from ray_rl_debug.watch.crew import look_options
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.watchers import WatcherCrew

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


class Starts:
    """Counts the workers of ours that each raylet starts; one that was counted before `forget` is never new again."""

    def __init__(self, raylets: list[int]) -> None:
        self.seen: dict[int, set[int]] = {r: set() for r in raylets}
        self._counted: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            for pid in processes_titled("ray::RayRlDebugAgent"):
                try:
                    raylet = psutil.Process(pid).ppid()
                except psutil.Error:
                    continue
                if pid not in self._counted and raylet in self.seen:
                    self._counted.add(pid)
                    self.seen[raylet].add(pid)

    def forget(self) -> None:
        for pids in self.seen.values():
            pids.clear()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


def test_silent_node_and_node_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node's watcher is killed while its raylet is stopped, and again while its raylet has no descriptors left.

    No worker is started on the other node for it, none on it, its raylet lives, and it is tried again later and later.
    """
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    with cluster(2) as c, program("job_program.py", c["address"], "Stage", 2):
        raylets = {pid: node for node, pid in find_raylets_by_node().items()}
        far = c["raylets"][1]
        alive = [n for n in call_roll(c["address"]).nodes if n.alive]
        nodes = {n.node_id: (name, n.ip) for n, name in zip(alive, unique_names(alive).values(), strict=True)}
        options = ClusterOptions(address=c["address"], collect=look_options(2, 0.2), timeout_s=20.0)
        crew = WatcherCrew(options, lambda: nodes, "test", host=alive[0].ip, here=dict)
        starts = Starts(c["raylets"])
        lost: dict[str, str] = {}

        def turn() -> None:
            lost.update(crew.refresh())
            lost.update(crew.read(WatchOrder(companion="test"))[1])

        def are_watched(count: int) -> bool:
            turn()
            return len(crew._server.nodes) == count and not crew._is_placing()

        try:
            wait_for(lambda: are_watched(2), 120)
            wait_for(lambda: {r: len(pids) for r, pids in starts.seen.items()} == dict.fromkeys(c["raylets"], 1), 30)
            starts.forget()

            os.kill(far, signal.SIGSTOP)
            try:
                os.kill(crew._server.nodes[raylets[far]].pid, signal.SIGKILL)
                wait_for(lambda: are_watched(1), 30)
                wait_for(lambda: (turn(), crew._backoff.times(raylets[far]) >= 1 and not crew._is_placing())[1], 40)
                assert "its raylet is silent" in crew._backoff.why(raylets[far])
            finally:
                os.kill(far, signal.SIGCONT)
            assert starts.seen == {r: set() for r in c["raylets"]}

            wait_for(lambda: are_watched(2), 120)
            assert not starts.seen[c["raylets"][0]], "only where one is needed"
            starts.forget()

            used = len(os.listdir(f"/proc/{far}/fd"))
            limits = resource.prlimit(far, resource.RLIMIT_NOFILE)
            resource.prlimit(far, resource.RLIMIT_NOFILE, (used + 20, limits[1]))
            try:
                wait_for(lambda: (turn(), raylets[far] in crew._no_room)[1], 40)
                os.kill(crew._server.nodes[raylets[far]].pid, signal.SIGKILL)
                wait_for(lambda: are_watched(1), 30)
                wait_for(lambda: (turn(), crew._backoff.times(raylets[far]) >= 1 and not crew._is_placing())[1], 40)
                assert "file descriptors left" in crew._backoff.why(raylets[far])
                assert starts.seen == {r: set() for r in c["raylets"]}
                assert state_of(far) in ("S", "R")
            finally:
                resource.prlimit(far, resource.RLIMIT_NOFILE, limits)
        finally:
            starts.close()
            crew.stop()


def test_backoff_grows_and_ends() -> None:
    """The same node fails again and again, for days.

    It is tried after 15 s, 30 s, 60 s and then every ten minutes; once it works it counts as new.
    """
    from ray_rl_debug.cluster.backoff import Backoff

    now = [0.0]
    one = Backoff(15.0, 600.0, lambda: now[0])
    waits = []
    for _ in range(2000):
        assert one.is_due("n")
        one.failed("n", "why")
        began = now[0]
        while not one.is_due("n"):
            now[0] += 5.0
        waits.append(now[0] - began)
    assert waits[:7] == [15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 600.0]
    assert waits[-1] == 600.0
    one.worked("n")
    assert one.is_due("n")
    assert one.times("n") == 0
