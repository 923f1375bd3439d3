"""One capture of a whole Ray cluster, step by step: its tables, the agents, this machine's own look at nodes where no agent can go."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ray_rl_debug import __version__, codec, gaps
from ray_rl_debug.cluster.address import find_address
from ray_rl_debug.cluster.ask_actors import DEADLINE_S, choose_actors, with_answers
from ray_rl_debug.cluster.auth import switch_to_token
from ray_rl_debug.cluster.driver_handle import Driver
from ray_rl_debug.cluster.driver_messages import AskActors, Called, Clock, Ended, Facts, Gather, Lost, Said, Seat, Timed, Told
from ray_rl_debug.cluster.jobs import choose_job, keep_job, pids_of_others, with_jobs
from ray_rl_debug.cluster.local_looks import LocalLooks
from ray_rl_debug.cluster.seats import choose_seats, unique_names, with_own
from ray_rl_debug.collect.discover import find_raylets_by_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.errors import AuthenticationRefusedError, RayRlDebugError
from ray_rl_debug.ray_state import finish_core_workers, probe_raylets, read_core_workers, read_object_stores, read_ray_state
from ray_rl_debug.ray_state.channel import OUR_NAMESPACE
from ray_rl_debug.snapshot import CoreWorker, Gap, Node, NodeClock, RayNode, RayState, Snapshot

STOPPED_PATIENCE_S = 10.0
"""After Ctrl-C: for nodes to hand over what they have."""
PROBE_EVERY_S = 2.0
CLOCKS_S = 0.1
"""After the last facts: for the last comparison of clocks."""


class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `take_snapshot` is asked to do."""

    address: str | None = None
    job_id: str | None = None
    """Hex id or submission id."""
    collect: CollectOptions = CollectOptions()
    timeout_s: float = 60.0
    """For everything beyond the sampling window."""
    keeper: str | None = None
    """Who keeps the agents for the next capture, which then begins at once; None removes those that this capture starts."""


def take_snapshot(
    options: ClusterOptions,
    *,
    progress: Callable[[str], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> Snapshot:
    """The facts of a whole cluster within `timeout_s` beyond the sampling window; nodes that do not answer in time are gaps, the rest is complete.

    Setting `stop` ends the capture early with what there is; its `options` then have ``interrupted``.
    Agents that somebody keeps are used and left as they are; others are started for the capture and removed after it.

    Raises:
        NoClusterError, SeveralClustersError, ClusterUnreachableError, AuthenticationRefusedError, UsageError
    """
    return Capture(options, progress, stop or threading.Event()).run()


class Capture:
    """One capture. With a `driver` that is already connected, and agents that are already there, it begins at once."""

    def __init__(self, options: ClusterOptions, progress: Callable[[str], None], stop: threading.Event) -> None:
        self._options = options
        self._progress = progress
        self._stop = stop
        self._started = time.monotonic()
        window = options.collect.window_s
        self._deadline = self._started + window + options.timeout_s
        self._gather_until = self._deadline - min(6.0, options.timeout_s / 4)
        self._call_s = min(10.0, options.timeout_s / 4)
        self._used_token = False
        self._timing: dict[str, float] = {}
        self._clocks: list[NodeClock] = []
        self._gaps: list[Gap] = []
        self._nodes: dict[str, Node] = {}
        self._lost: dict[str, str] = {}
        self._looked: dict[str, str] = {}
        """Nodes to be looked at from here, and why no agent was sent."""

    def run(self, driver: Driver | None = None) -> Snapshot:
        """The facts within `timeout_s` beyond the sampling window. Raises as `take_snapshot`."""
        address = find_address(self._options.address, os.environ)
        with contextlib.nullcontext(driver) if driver is not None else Driver() as ours:  # starts while we read the tables
            state = self._read_tables(address)
            job = choose_job(self._options.job_id, state.jobs)
            before, _ = read_core_workers(state, deadline_s=min(2.0, self._call_s))
            self._timing["tables_s"] = time.monotonic() - self._started
            alive = [n for n in state.nodes if n.alive]
            self._names = unique_names(alive)
            self._progress(f"{len(alive)} nodes, {sum(1 for w in state.workers if w.alive)} Ray workers")
            taken = time.time()
            if not self._stop.is_set():
                self._gather(ours, address, state, alive, job, before)
            self._ask_actors(ours, state, before)
            if driver is None:
                ours.leave()
            last, after = self._read_again(address, state, before)
        self._tell_silent(alive)
        self._timing["total_s"] = time.monotonic() - self._started
        self._timing["outside_s"] = self._timing["total_s"] - self._options.collect.window_s
        return self._assemble(taken, job, last, after)

    def _read_tables(self, address: str) -> RayState:
        try:
            state, found = read_ray_state(address, deadline_s=self._call_s)
        except AuthenticationRefusedError:
            said = switch_to_token()
            if said is None:
                raise
            self._used_token = True
            self._progress(said)
            state, found = read_ray_state(address, deadline_s=self._call_s)
        self._gaps += found
        return state

    def _gather(self, driver: Driver, address: str, state: RayState, alive: Sequence[RayNode], job: str | None, before: Sequence[CoreWorker]) -> None:
        here = find_raylets_by_node()
        own = (os.getpid(), *([driver.pid] if driver.pid is not None else []))
        others = with_own(pids_of_others(job, state, before), here, own)
        seats, self._looked = choose_seats(alive, here, self._names, others, probe_s=min(2.0, self._call_s))
        for node in alive:
            if node.node_id in self._looked and node.node_id in driver.seated:  # somebody of ours is there already, whatever its raylet does
                del self._looked[node.node_id]
                seats.append(Seat(node_id=node.node_id, name=self._names[node.node_id], ip=node.ip, skip_pids=others.get(node.node_id, ())))
        drivers = tuple((j.driver_ip, j.driver_pid) for j in state.jobs if j.alive and j.driver_pid and j.driver_ip and job in (None, j.job_id))
        collect = msgspec.structs.replace(
            self._options.collect,
            gcs_address=address,
            job_id=job,
            timeout_s=max(1.0, self._gather_until - self._window_end() - 1.0),
        )
        looks = LocalLooks(here, self._names, collect, drivers, others, self._stop)
        looks.start([n for n in alive if n.node_id in self._looked and n.node_id in here], seated_ips={s.ip for s in seats})
        if seats:
            driver.connect(address, OUR_NAMESPACE, use_token=self._used_token)
            order = Gather(
                seats=tuple(seats),
                collect=collect,
                drivers=drivers,
                start_s=min(20.0, self._options.timeout_s / 3),
                gather_s=max(1.0, self._gather_until - time.monotonic()),
                keeper=self._options.keeper,
            )
            self._listen(driver, order, [n for n in alive if any(s.node_id == n.node_id for s in seats)])
        self._nodes.update(looks.finish(self._gather_until))
        self._look_late([n for n in alive if n.node_id not in self._nodes and n.node_id in here], looks)
        self._timing["gather_s"] = time.monotonic() - self._started - self._timing["tables_s"]

    def _window_end(self) -> float:
        return time.monotonic() + self._options.collect.window_s

    def _listen(self, driver: Driver, order: Gather, seated: Sequence[RayNode]) -> None:
        """Take what the driver says until it has no more to say, the time is up, or the rest is known to be dead."""
        driver.order(order)
        waiting = {n.node_id: n for n in seated}
        until, is_stopping, probe_at = self._gather_until, False, self._window_end() + PROBE_EVERY_S
        while waiting and time.monotonic() < until:
            message = driver.receive(0.1)
            if isinstance(message, Said):
                self._progress(message.text)
            elif isinstance(message, Timed):
                self._timing[message.name] = message.seconds
                probe_at = self._window_end() + PROBE_EVERY_S
            elif isinstance(message, Clock):
                self._clocks.append(_clock(self._names[message.node_id], message))
            elif isinstance(message, Facts):
                waiting.pop(message.node_id, None)
                self._nodes[message.node_id] = codec.decode_node(message.data)
            elif isinstance(message, Lost):
                waiting.pop(message.node_id, None)
                self._lost[message.node_id] = message.reason
            elif isinstance(message, Ended):
                self._lost.update(dict.fromkeys(waiting, message.reason or "the gathering ended without it"))
                return
            elif time.monotonic() > probe_at:
                for node_id, why in probe_raylets(waiting.values(), deadline_s=1.0).items():
                    if why is not None and "gone" in why:
                        waiting.pop(node_id, None)
                        self._lost[node_id] = why
                probe_at = time.monotonic() + PROBE_EVERY_S
            if self._stop.is_set() and not is_stopping:
                is_stopping, until = True, min(until, time.monotonic() + STOPPED_PATIENCE_S)
                driver.halt()
        while not waiting and isinstance(message := driver.receive(CLOCKS_S), Clock | Said):
            if isinstance(message, Clock):
                self._clocks.append(_clock(self._names[message.node_id], message))
        self._lost.update(dict.fromkeys(waiting, f"no answer in {time.monotonic() - self._started:.0f} s"))

    def _ask_actors(self, driver: Driver, state: RayState, cores: Sequence[CoreWorker]) -> None:
        """Coroutines of async actors whose memory may not be read, while there is time."""
        asked = choose_actors(state.actors, cores, self._nodes.values()) if self._options.collect.async_tasks else []
        left = min(DEADLINE_S, self._gather_until - time.monotonic())
        if not asked or not driver.asks_actors or self._stop.is_set() or left < 1.0:
            return
        called = tuple(Called(actor_id=a.actor_id, name=a.name or "", namespace=a.namespace or "") for a, _, _ in asked)
        driver.order(AskActors(actors=called, deadline_s=left))
        told: dict[str, bytes] = {}
        until = time.monotonic() + left + 1.0
        while len(told) < len(called) and time.monotonic() < until:
            message = driver.receive(0.1)
            if isinstance(message, Told):
                told[message.actor_id] = message.data
            elif isinstance(message, Ended) and message.is_gone:
                break
        self._nodes = with_answers(self._nodes, asked, told)

    def _look_late(self, nodes: Sequence[RayNode], looks: LocalLooks) -> None:
        """Nodes of this machine whose agent failed, while there is time."""
        room = self._gather_until - time.monotonic() - 1.0
        if not nodes or self._stop.is_set() or room < 1.0:
            return
        for node in nodes:
            self._looked.setdefault(node.node_id, self._lost.get(node.node_id, "its agent failed"))
        looks.start(nodes, seated_ips=set(), room_s=room)
        self._nodes.update(looks.finish(self._gather_until))

    def _read_again(self, address: str, first: RayState, before: Sequence[CoreWorker]) -> tuple[RayState, tuple[CoreWorker, ...]]:
        """Tables and statistics at the end of the window; the first ones when the second read fails."""
        left = max(1.0, min(self._call_s, (self._deadline - time.monotonic()) / 3))
        try:
            state, again = read_ray_state(address, deadline_s=left)
        except RayRlDebugError as e:
            self._gaps.append(Gap(id=gaps.RAY_TABLES, where="cluster", what="tables at the end of the window", reason=str(e)))
            return first, tuple(before)
        self._gaps += (g for g in again if g not in self._gaps)
        alive = [n for n in state.nodes if n.alive]
        silent = probe_raylets(alive, deadline_s=min(2.0, left))
        names = unique_names(alive)
        for node_id, why in silent.items():
            if why is not None and node_id in self._nodes and node_id not in self._looked:
                self._gaps.append(Gap(id=gaps.RAYLET_SILENT, where=names[node_id], what="an answer of its raylet", reason=why))
        stores = read_object_stores([n for n in alive if silent.get(n.node_id) is None], deadline_s=min(2.0, left))
        after, mute = read_core_workers(state, deadline_s=min(2.0, left))
        known = {f"pid {w.pid}" for w in first.workers}
        self._gaps += (g for g in mute if g.where in known)  # a worker that came and went in between is nobody's business
        return msgspec.structs.replace(state, object_store=stores), finish_core_workers(before, after)

    def _tell_silent(self, alive: Iterable[RayNode]) -> None:
        for node in alive:
            name, node_id = self._names[node.node_id], node.node_id
            reason = self._lost.get(node_id) or self._looked.get(node_id) or ("interrupted" if self._stop.is_set() else "it was not asked")
            if node_id not in self._nodes:
                remedy = f"on {name}: rayrl-debug snapshot --here -o DIR, then: rayrl-debug report all the files together"
                self._gaps.append(Gap(id=gaps.NODE_SILENT, where=name, what="everything of this node", reason=reason, remedy=remedy))
            elif node_id in self._looked:
                self._gaps.append(Gap(id=gaps.AGENT_SILENT, where=name, what="an agent on this node", reason=f"{reason}; it was looked at from here"))

    def _assemble(self, taken: float, job: str | None, state: RayState, core_workers: tuple[CoreWorker, ...]) -> Snapshot:
        collect, interrupted = self._options.collect, self._stop.is_set()
        if interrupted:
            self._gaps.append(Gap(id=gaps.INTERRUPTED, where="cluster", what="the rest of the capture", reason="interrupted by the user"))
        options: dict[str, str | int | float | bool] = {
            "samples": collect.samples,
            "interval_s": collect.interval_s,
            "native": collect.native,
            **({"interrupted": True} if interrupted else {}),
        }
        whole = Snapshot(
            tool_version=__version__,
            taken_time_s=taken + collect.window_s,
            job_id=job,
            nodes=_once_each(sorted(self._nodes.values(), key=lambda n: n.name)),
            ray=msgspec.structs.replace(state, core_workers=core_workers),
            gaps=tuple(dict.fromkeys(self._gaps)),
            clocks=tuple(self._clocks),
            options=options,
            timing={k: round(v, 3) for k, v in self._timing.items()},
        )
        return keep_job(with_jobs(whole), job)


def _clock(name: str, seen: Clock) -> NodeClock:
    return NodeClock(node=name, at_time_s=round(seen.at_time_s, 6), ahead_s=round(seen.ahead_s, 6), bound_s=round(seen.bound_s, 6))


def _once_each(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Raylets that share a machine (a test cluster) share the GCS process and the logs of the session: the first node keeps them."""
    seen: set[object] = set()

    def is_new(*key: object) -> bool:
        if None in key or key not in seen:
            seen.add(key)
            return True
        return False

    result = []
    for node in nodes:
        machine = (node.boot_id, node.pid_namespace)
        processes = tuple(p for p in node.processes if is_new(*machine, p.pid))
        lines = tuple(line for line in node.log_lines if is_new(*machine, line.file, line.line_number))
        result.append(msgspec.structs.replace(node, processes=processes, log_lines=lines))
    return tuple(result)
