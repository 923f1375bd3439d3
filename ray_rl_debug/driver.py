"""Our own Ray driver, a child process of the command: places an agent on every node, lets all collect in one window, gathers what comes.

A process of its own, because Ray writes to the driver's standard output, ends the driver when its raylet dies, and cannot be interrupted while
it connects to a stopped raylet. The command keeps its output clean, its deadline and what it has.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.agent import PAGE_BYTES, RayRlDebugAgent
from ray_rl_debug.driver_messages import STOP, Ended, Facts, Lost, Message, Request, Said, Seat, Timed, pack, read_message

GRACE_S = 5.0
"""After the first agent is there the others get this much longer, or thrice its time, before the window begins without them."""
LATE_STOP_S = 8.0
"""After a request to stop, nodes get this long to hand over what they have."""


class Gathering:
    """The agents of all nodes, each at its own stage: ready, ship, wait, collect, page, and then gone from here."""

    def __init__(self, ray: Any, request: Request, send: Callable[[Message], None], stop: threading.Event) -> None:
        self._ray = ray
        self._request = request
        self._send = send
        self._stop = stop
        self._began = time.monotonic()
        self._deadline = self._began + request.gather_s
        self._window_from = self._began + request.start_s
        self._seats = {seat.node_id: seat for seat in request.seats}
        self._agents: dict[str, Any] = {}
        self._started: list[Any] = []
        self._refs: dict[Any, tuple[str, str, int]] = {}
        """What is awaited: node id, stage, number of the page."""
        self._waiting: set[str] = set()
        self._pages: dict[str, dict[int, bytes]] = {}
        self._is_open = False
        self._has_driver: set[tuple[str, int]] = set()
        self._pyspy_parts: list[bytes] | None = None

    def run(self) -> None:
        """Until every node has given its facts or is lost, or the time is up."""
        for seat in self._request.seats:
            self._place(seat)
        stopped = False
        while (self._refs or self._waiting) and time.monotonic() < self._deadline:
            if self._refs:
                done, _ = self._ray.wait(list(self._refs), num_returns=1, timeout=0.2, fetch_local=False)
                for ref in done:
                    self._take(ref)
            if not self._is_open and ((self._waiting and not self._is_starting()) or time.monotonic() > self._window_from):
                self._open_window()
            if self._stop.is_set() and not stopped:
                stopped = True
                self._deadline = min(self._deadline, time.monotonic() + LATE_STOP_S)
                self._hurry()
        for node_id in {n for n, _, _ in self._refs.values()} | self._waiting:
            stage = next((s for n, s, _ in self._refs.values() if n == node_id), "wait")
            self._send(Lost(node_id, f"{_STAGES[stage]} in {time.monotonic() - self._began:.0f} s"))

    def leave(self) -> None:
        """Remove the agents that we started."""
        if not self._request.keep_agents:
            for agent in self._started:
                with contextlib.suppress(Exception):
                    self._ray.kill(agent)

    def _place(self, seat: Seat) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        name = f"rayrl_debug_{__version__}_{seat.node_id[:16]}"
        try:
            # A kept agent needs nothing of the raylet. It answers even when that is stopped.
            agent = self._ray.get_actor(name, namespace=self._request.namespace)
        except ValueError:
            kept = {"name": name, "lifetime": "detached"} if self._request.keep_agents else {}
            strategy = NodeAffinitySchedulingStrategy(seat.node_id, soft=False)
            actor_class = self._ray.remote(RayRlDebugAgent)
            agent = actor_class.options(num_cpus=0, max_concurrency=2, scheduling_strategy=strategy, **kept).remote()
            self._started.append(agent)
        self._agents[seat.node_id] = agent
        self._await(seat.node_id, "ready", agent.ready.remote())

    def _await(self, node_id: str, stage: str, ref: Any, page: int = 0) -> None:
        self._refs[ref] = (node_id, stage, page)

    def _is_starting(self) -> bool:
        return any(stage in ("ready", "ship") for _, stage, _ in self._refs.values())

    def _take(self, ref: Any) -> None:
        node_id, stage, page = self._refs.pop(ref)
        if node_id not in self._agents:
            return
        try:
            value = self._ray.get(ref, timeout=max(0.5, self._deadline - time.monotonic()))
        except Exception as e:  # noqa: BLE001 the agent's own failure is a fact about its node
            self._drop(node_id, f"{_STAGES[stage]}: {describe(e)}")
            return
        if stage == "ready":
            self._window_from = min(self._window_from, time.monotonic() + max(GRACE_S, 2 * (time.monotonic() - self._began)))
            self._ready(node_id, has_pyspy=bool(value))
        elif stage == "ship":
            # The parts of a message may arrive in any order; whichever completes it answers with the path.
            if value:
                self._seats[node_id] = msgspec.structs.replace(self._seats[node_id], pyspy=value)
            if not any(n == node_id for n, _, _ in self._refs.values()):
                self._ready(node_id, has_pyspy=True)
        elif stage == "collect":
            self._pages[node_id] = {}
            for number in range(value):
                self._await(node_id, "page", self._agents[node_id].page.remote(number), number)
        else:
            parts = self._pages[node_id]
            parts[page] = value
            if not any(n == node_id for n, _, _ in self._refs.values()):
                self._send(Facts(node_id, b"".join(parts[i] for i in sorted(parts))))
                self._send(Said(f"{self._seats[node_id].name} answered"))

    def _drop(self, node_id: str, reason: str) -> None:
        self._send(Lost(node_id, reason))
        self._agents.pop(node_id, None)
        self._waiting.discard(node_id)
        self._refs = {ref: what for ref, what in self._refs.items() if what[0] != node_id}

    def _ready(self, node_id: str, *, has_pyspy: bool) -> None:
        if not has_pyspy and self._ship(node_id):
            return
        self._waiting.add(node_id)
        if self._is_open:
            self._collect(node_id)

    def _ship(self, node_id: str) -> bool:
        """Send the py-spy binary in small parts; False when we have none ourselves."""
        if self._pyspy_parts is None:
            self._pyspy_parts = _packed_pyspy(self._request.collect.pyspy)
        agent, parts = self._agents[node_id], self._pyspy_parts
        for i, part in enumerate(parts):
            self._await(node_id, "ship", agent.receive_pyspy.remote(i, part, len(parts)), i)
        return bool(parts)

    def _open_window(self) -> None:
        self._is_open = True
        self._send(Timed("agents_s", time.monotonic() - self._began))
        self._send(Said(f"collecting on {len(self._waiting)} of {len(self._request.seats)} nodes"))
        for node_id in sorted(self._waiting):
            self._collect(node_id)

    def _collect(self, node_id: str) -> None:
        self._waiting.discard(node_id)
        seat, asked = self._seats[node_id], self._request.collect
        # Of several raylets on one host (a test cluster) the first one looks at the drivers.
        drivers = tuple(d for d in self._request.drivers if d[0] == seat.ip and d not in self._has_driver)
        self._has_driver.update(drivers)
        asked = msgspec.structs.replace(
            asked,
            node_id=node_id,
            node_name=seat.name,
            node_ip=seat.ip,
            driver_pids=tuple(pid for _, pid in drivers),
            skip_pids=(*asked.skip_pids, *seat.skip_pids),
            pyspy=seat.pyspy or asked.pyspy,
        )
        self._await(node_id, "collect", self._agents[node_id].collect.remote(msgspec.json.encode(asked)))

    def _hurry(self) -> None:
        if not self._is_open:
            self._open_window()
        for node_id, stage, _ in list(self._refs.values()):
            if stage == "collect":
                self._agents[node_id].finish_early.remote()


_STAGES = {
    "ready": "its agent did not start",
    "ship": "py-spy could not be sent to it",
    "wait": "its agent was not asked",
    "collect": "it did not finish collecting",
    "page": "its facts did not come over",
}


def describe(error: Exception) -> str:
    """Kind and one telling line of a Ray error; never its traces."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:200]}" if lines else type(error).__name__


def _packed_pyspy(given: str | None) -> list[bytes]:
    import lzma

    from ray_rl_debug.collect.pyspy import find_pyspy

    binary = find_pyspy(given)
    if binary is None:
        return []
    packed = lzma.compress(Path(binary).read_bytes(), preset=1)
    return [packed[i : i + PAGE_BYTES] for i in range(0, len(packed), PAGE_BYTES)]


def _shipped() -> list[str]:
    """Our code and msgspec: nodes need nothing but Ray."""
    return [str(Path(__file__).resolve().parent), str(Path(msgspec.__file__).resolve().parent)]


def main() -> None:
    """Read a request on standard input, write messages on what was standard output; Ray's own prints go to stderr."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    source = os.fdopen(os.dup(0), "rb")
    lock = threading.Lock()

    def send(message: Message) -> None:
        with lock:
            data = memoryview(pack(message))
            while data:
                data = data[out.write(data) or 0 :]

    import ray  # while the command still reads the tables

    request = read_message(source.read, Request)
    if not isinstance(request, Request):
        return
    stop = threading.Event()
    threading.Thread(target=_listen, args=(source.read, stop), daemon=True).start()
    try:
        gathering = _connect(ray, request, send, stop)
        try:
            gathering.run()
        finally:
            gathering.leave()
        send(Ended())
    except Exception as e:  # noqa: BLE001 told to the command, which has other ways
        send(Ended(describe(e)))
    leaving = threading.Thread(target=ray.shutdown, daemon=True)
    leaving.start()
    leaving.join(5)
    sys.stderr.flush()
    os._exit(0)  # Ray's own exit may wait for a raylet that does not answer


def _connect(ray: Any, request: Request, send: Callable[[Message], None], stop: threading.Event) -> Gathering:
    if request.use_token:
        from ray_rl_debug.ray_auth import switch_to_token

        switch_to_token()
    began = time.monotonic()
    ray.init(
        address=request.address,
        namespace=request.namespace,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"py_modules": _shipped(), "excludes": ["__pycache__"]},
    )
    send(Timed("connect_s", time.monotonic() - began))
    return Gathering(ray, request, send, stop)


def _listen(read: Callable[[int], bytes], stop: threading.Event) -> None:
    while True:
        said = read(1)
        if said == STOP:
            stop.set()
        elif not said:
            os._exit(1)  # the command is gone


if __name__ == "__main__":
    main()
