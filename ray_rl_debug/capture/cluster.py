"""One capture of a whole Ray cluster, step by step: its tables, the agents, this machine's own look at nodes where no agent can go."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.bounded.arenas import share_arenas
from ray_rl_debug.bounded.garbage import no_collections
from ray_rl_debug.capture.cluster_tables import ClusterTables
from ray_rl_debug.capture.jobs import choose_job, keep_job, pids_of_others, with_jobs
from ray_rl_debug.capture.node_messages import NodeMessages
from ray_rl_debug.capture.once_each import once_each
from ray_rl_debug.capture.other_ways import OtherWays, remedy
from ray_rl_debug.capture.patience import Patience
from ray_rl_debug.capture.quiet_actors import choose_actors, with_answers
from ray_rl_debug.capture.slurm_looks import SlurmLooks, own_job
from ray_rl_debug.cluster.address import find_address
from ray_rl_debug.cluster.ask_actors import DEADLINE_S
from ray_rl_debug.cluster.driver_handle import Driver
from ray_rl_debug.cluster.driver_messages import AgentNode, AskActors, Called, Clock, Ended, Facts, Gather, Lost, Message, Said, Timed, Told
from ray_rl_debug.cluster.local_looks import LocalLooks
from ray_rl_debug.cluster.node_choice import choose_agent_nodes, this_machine, unique_names, with_own
from ray_rl_debug.collect.discover import find_raylets, find_raylets_by_node
from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.ourselves import above_us
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import ClusterUnreachableError
from ray_rl_debug.model.snapshot import CoreWorker, Gap, Node, NodeClock, RayNode, RayState, Snapshot
from ray_rl_debug.privacy.redact import made_safe
from ray_rl_debug.ray_state import probe_raylets
from ray_rl_debug.ray_state.channel import OUR_NAMESPACE

STOPPED_PATIENCE_S = 10.0
"""After Ctrl-C: for nodes to hand over what they have."""
PROBE_EVERY_S = 2.0
CONNECT_S = 8.0
"""For our Ray driver to connect, when only now it has something to do."""
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

    All text in them is fit to leave this process (`privacy.redact.made_safe`).

    Setting `stop` ends the capture early with what there is; its `options` then have ``interrupted``.
    Agents that somebody keeps are used and left as they are; others are started for the capture and removed after it.

    Raises:
        NoClusterError, SeveralClustersError, ClusterUnreachableError, AuthenticationRefusedError, UsageError
    """
    return Capture(options, progress, stop or threading.Event()).run()


class Capture:
    """One capture. With a `driver` that is already connected, and agents that are already there, it begins at once."""

    def __init__(
        self,
        options: ClusterOptions,
        progress: Callable[[str], None],
        stop: threading.Event,
        here: Callable[[], Mapping[str, int]] = find_raylets_by_node,
    ) -> None:
        self._options = options
        self._progress = progress
        self._stop = stop
        self._started = time.monotonic()
        window = options.collect.window_s
        self._deadline = self._started + window + options.timeout_s
        self._gather_until = self._deadline - min(6.0, options.timeout_s / 4)
        self._half = self._started + window + options.timeout_s / 2
        """Who has given nothing through Ray by then is asked in other ways as well."""
        self._here = here
        self._call_s = min(10.0, options.timeout_s / 4)
        self._timing: dict[str, float] = {}
        self._clocks: list[NodeClock] = []
        self._gaps: list[Gap] = []
        self._nodes: dict[str, Node] = {}
        self._lost: dict[str, str] = {}
        self._looked: dict[str, str] = {}
        """Nodes that get no agent, and why not."""
        self._direct: list[RayNode] = []
        """This machine, when it is looked at from here instead of by an agent."""
        self._ways: OtherWays | None = None

    def run(self, driver: Driver | None = None) -> Snapshot:
        """The facts within `timeout_s` beyond the sampling window. Raises as `take_snapshot`."""
        address = find_address(self._options.address, os.environ)
        share_arenas()
        try:
            with no_collections():
                return self._run(address, driver)
        except ClusterUnreachableError as e:
            pids = [pid for pid, gcs in find_raylets().items() if gcs == address]
            if not pids or self._options.job_id is not None:
                raise
            return self._without_tables(address, e)

    def _run(self, address: str, driver: Driver | None) -> Snapshot:
        with contextlib.nullcontext(driver) if driver is not None else Driver() as ours:  # starts while we read the tables
            self._tables = tables = ClusterTables(address, call_s=self._call_s, deadline=self._deadline, progress=self._progress)
            state = tables.read()
            job = choose_job(self._options.job_id, state.jobs)
            counting = tables.count_calls(state)
            if job is not None:
                counting.join()  # they tell which processes need not be looked at
            self._timing["tables_s"] = time.monotonic() - self._started
            alive = [n for n in state.nodes if n.alive]
            self._names = unique_names(alive)
            self._progress(f"{len(alive)} nodes, {sum(1 for w in state.workers if w.alive)} Ray workers")
            taken = time.time()
            if not self._stop.is_set():
                self._gather(ours, address, state, alive, job)
            counting.join()
            self._ask_actors(ours, address, state)
            if driver is None:
                ours.leave()
            last, after = tables.read_again(state, self._nodes.keys(), self._looked.keys())
        self._gaps += tables.gaps
        self._tell_silent(alive)
        self._timing["total_s"] = time.monotonic() - self._started
        self._timing["outside_s"] = self._timing["total_s"] - self._options.collect.window_s
        return self._assemble(taken, job, last, after)

    def _gather(self, driver: Driver, address: str, state: RayState, alive: Sequence[RayNode], job: str | None) -> None:
        here = self._here()
        own = (os.getpid(), *above_us(), *([driver.pid] if driver.pid is not None else []))
        others = with_own(pids_of_others(job, state, self._tables.before), here, own)
        there = driver.with_agent  # somebody of ours is there already, whatever its raylet does
        cold = [n for n in alive if n.node_id not in there]
        agent_nodes, self._looked = choose_agent_nodes(cold, here, self._names, others, probe_s=min(2.0, self._call_s), all_nodes=alive)
        agent_nodes += (
            AgentNode(node_id=n.node_id, name=self._names[n.node_id], ip=n.ip, skip_pids=others.get(n.node_id, ()))
            for n in alive
            if n.node_id in there
        )
        if self._options.keeper is None:
            self._direct = [n for n in this_machine(alive, here) if n.node_id not in there and n.node_id not in self._looked]
        agent_nodes = [s for s in agent_nodes if s.node_id not in {n.node_id for n in self._direct}]
        drivers = tuple((j.driver_ip, j.driver_pid) for j in state.jobs if j.alive and j.driver_pid and j.driver_ip and job in (None, j.job_id))
        collect = msgspec.structs.replace(
            self._options.collect,
            gcs_address=address,
            job_id=job,
            timeout_s=max(1.0, self._gather_until - self._window_end() - 1.0),
        )
        self._looks = looks = LocalLooks(here, self._names, collect, drivers, others, self._stop)
        slurm = own_job()
        self._ways = ways = OtherWays(here, looks, SlurmLooks(slurm, self._names, collect) if slurm is not None else None)
        ips = {s.ip for s in agent_nodes}
        looks.start([n for n in alive if n.node_id in self._looked and n.node_id in here], agent_ips=ips)
        ways.ask([n for n in alive if n.node_id in self._looked and n.node_id not in here], self._gather_until)
        if agent_nodes:
            driver.connect(address, OUR_NAMESPACE, use_token=self._tables.used_token)
            order = Gather(
                agent_nodes=tuple(agent_nodes),
                collect=collect,
                drivers=tuple(d for d in drivers if d[0] not in {n.ip for n in self._direct}),
                start_s=min(20.0, self._options.timeout_s / 3),
                gather_s=max(1.0, self._gather_until - time.monotonic()),
                keeper=self._options.keeper,
            )
            asked = {s.node_id for s in agent_nodes}
            self._listen(driver, order, [n for n in alive if n.node_id in asked], ways)
        else:
            self._open_window()
        missing = [n for n in alive if n.node_id not in self._nodes]
        if not self._stop.is_set():
            ways.ask([n for n in missing if n.node_id not in looks.begun], self._gather_until)
        found = ways.finish(self._gather_until, {n.node_id for n in missing})
        self._nodes = {**found, **self._nodes}
        self._timing["gather_s"] = time.monotonic() - self._started - self._timing["tables_s"]

    def _open_window(self) -> None:
        """Look at this machine, as soon as the others begin: ranks on several nodes are compared at one time."""
        if self._direct and self._direct[0].node_id not in self._looks.begun:
            self._progress(f"collecting on {len(self._direct)} of {len(self._names)} nodes from here")
            self._looks.start(self._direct, agent_ips=set())
            now = time.time()
            self._clocks += (NodeClock(node=self._names[n.node_id], at_time_s=round(now, 6), ahead_s=0.0, bound_s=0.0) for n in self._direct)

    def _window_end(self) -> float:
        return time.monotonic() + self._options.collect.window_s

    def _listen(self, driver: Driver, order: Gather, with_agent: Sequence[RayNode], ways: OtherWays) -> None:
        """Take what the driver says until it has no more to say, the time is up, or the rest is known to be dead."""
        nodes = {n.node_id: n for n in with_agent}
        messages, patience = self._messages(nodes), Patience(len(nodes))
        driver.order(order)
        patience.window_ends(self._window_end())
        waiting, lost = dict(nodes), list[RayNode]()
        window_by = time.monotonic() + order.start_s
        until, is_stopping, probe_at = self._gather_until, False, self._window_end() + PROBE_EVERY_S
        has_begun = bool(driver.with_agent)
        while waiting and time.monotonic() < until:
            message = driver.receive(0.0) or (None if messages.decode_one() else driver.receive(0.1))
            if isinstance(message, Timed):
                self._timing[message.name] = message.seconds
                probe_at = self._window_end() + PROBE_EVERY_S
                patience.window_ends(self._window_end())
            elif isinstance(message, Facts):
                if waiting.pop(message.node_id, None) is not None:
                    patience.answered(time.monotonic())
                    messages.add(message.node_id, message.data)
            elif isinstance(message, Lost):
                waiting.pop(message.node_id, None)
                self._lost[message.node_id] = message.reason
            elif isinstance(message, Ended):
                self._lost.update(dict.fromkeys(waiting, message.reason or "gathering ended before it answered"))
                break
            elif message is not None:
                self._note(message)
            elif time.monotonic() > probe_at:
                for node_id, why in probe_raylets(waiting.values(), deadline_s=1.0).items():
                    if why is not None and "gone" in why:
                        waiting.pop(node_id, None)
                        self._lost[node_id] = why
                probe_at = time.monotonic() + PROBE_EVERY_S
            now = time.monotonic()
            until = min(until, patience.ends_at() or until)
            if patience.is_for_few(now) and messages.is_empty and not is_stopping:
                self._tables.read_ahead(lambda: nodes.keys() - waiting.keys() - self._lost.keys())
            has_begun = has_begun or (isinstance(message, Timed) and message.name == "agents_s") or now > window_by
            if has_begun:
                self._open_window()
            lost = [nodes[n] for n in self._lost if n in nodes and n not in self._nodes]
            if (lost or (now > self._half and waiting)) and not is_stopping:
                late = (*lost, *(waiting.values() if now > self._half else ()))
                ways.ask(late, until, agent_ips={n.ip for i, n in nodes.items() if i in self._nodes})
            for node_id in waiting.keys() & ways.found().keys():
                self._lost[node_id] = f"no answer through Ray in {now - self._started:.0f} s"
                del waiting[node_id]
            if self._stop.is_set() and not is_stopping:
                is_stopping, until = True, min(until, time.monotonic() + STOPPED_PATIENCE_S)
                self._open_window()
                driver.halt()
        self._open_window()
        while isinstance(message := driver.receive(0.0 if waiting else CLOCKS_S), Clock | Said | Facts):
            if not isinstance(message, Facts):
                self._note(message)
            elif waiting.pop(message.node_id, None) is not None:
                messages.add(message.node_id, message.data)
        self._lost.update(dict.fromkeys((n for n in waiting if n not in self._lost), f"no answer in {time.monotonic() - self._started:.0f} s"))
        messages.decode_all()

    def _note(self, message: Message) -> None:
        if isinstance(message, Said):
            self._progress(message.text)
        elif isinstance(message, Clock) and message.node_id in self._names:
            self._clocks.append(_clock(self._names[message.node_id], message))

    def _messages(self, nodes: Mapping[str, RayNode]) -> NodeMessages:
        """Facts of these nodes, under the names that we know them by."""

        def found(node_id: str, node: Node) -> None:
            of = nodes[node_id]
            self._nodes[node_id] = msgspec.structs.replace(node, node_id=node_id, name=self._names[node_id], ip=of.ip)

        return NodeMessages(len(nodes), lost=self._lost.__setitem__, found=found)

    def _ask_actors(self, driver: Driver, address: str, state: RayState) -> None:
        """Coroutines of async actors whose memory may not be read, while there is time."""
        asked = choose_actors(state.actors, self._tables.before, self._nodes.values()) if self._options.collect.async_tasks else []
        room = self._gather_until - time.monotonic()
        left = min(DEADLINE_S, room)
        here = self._here()
        if not asked or not driver.asks_actors or self._stop.is_set() or left < 1.0 or not here or any(n in self._looked for n in here):
            return
        if not driver.is_connected:
            left, room = DEADLINE_S, min(room, DEADLINE_S + CONNECT_S)
            driver.connect(address, OUR_NAMESPACE, use_token=self._tables.used_token)
        called = tuple(Called(actor_id=a.actor_id, name=a.name or "", namespace=a.namespace or "") for a, _, _ in asked)
        driver.order(AskActors(actors=called, deadline_s=left))
        told: dict[str, bytes] = {}
        until = time.monotonic() + max(room if room > left else 0.0, left + 1.0)
        while len(told) < len(called) and time.monotonic() < until:
            message = driver.receive(0.1)
            if isinstance(message, Told):
                told[message.actor_id] = message.data
            elif isinstance(message, Ended) and message.is_gone:
                break
        answered = with_answers(self._nodes, asked, told)
        self._nodes = {n: node if node is self._nodes[n] else made_safe(node) for n, node in answered.items()}

    def _tell_silent(self, alive: Iterable[RayNode]) -> None:
        slurm = own_job()
        for node in alive:
            name, node_id = self._names[node.node_id], node.node_id
            reason = self._lost.get(node_id) or self._looked.get(node_id)
            if node_id not in self._nodes:
                why = (reason or ("interrupted" if self._stop.is_set() else "it was not asked")) + self._ways_failed(node_id)
                self._gaps.append(Gap(id=gaps.NODE_SILENT, where=name, what="everything of this node", reason=why, remedy=remedy(node, name, slurm)))
            elif reason is not None:
                how = self._ways.how(node_id) if self._ways is not None else ""
                self._gaps.append(Gap(id=gaps.AGENT_SILENT, where=name, what="an agent on this node", reason=f"{reason}; {how}"))

    def _ways_failed(self, node_id: str) -> str:
        return self._ways.also_failed(node_id) if self._ways is not None else ""

    def _without_tables(self, address: str, error: ClusterUnreachableError) -> Snapshot:
        """The GCS does not answer, and raylets of its cluster run here: this machine is looked at without it."""
        self._progress(f"{error}; looking at this machine only")
        taken = time.time()
        room = max(1.0, self._gather_until - self._window_end())
        node = collect_node(msgspec.structs.replace(self._options.collect, gcs_address=address, timeout_s=room), stop=self._stop)
        self._nodes = {node.name: node}
        look = "rayrl-debug snapshot --here -o DIR, then: rayrl-debug report all the files together"
        self._gaps.append(Gap(id=gaps.RAY_TABLES, where="cluster", what="Ray's tables", reason=str(error)))
        self._gaps.append(Gap(id=gaps.NODE_SILENT, where="cluster", what="the other nodes", reason=str(error), remedy=f"on each node: {look}"))
        return self._assemble(taken, None, None, ())

    def _assemble(self, taken: float, job: str | None, state: RayState | None, core_workers: tuple[CoreWorker, ...]) -> Snapshot:
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
            ray=msgspec.structs.replace(state, core_workers=core_workers) if state is not None else None,
            gaps=tuple(dict.fromkeys(self._gaps)),
            clocks=tuple(self._clocks),
            options=options,
            timing={k: round(v, 3) for k, v in self._timing.items()},
        )
        # each node's facts were made safe where they came in
        whole = msgspec.structs.replace(made_safe(whole), nodes=once_each(sorted(self._nodes.values(), key=lambda n: n.name)))
        return keep_job(with_jobs(whole), job)


def _clock(name: str, seen: Clock) -> NodeClock:
    return NodeClock(node=name, at_time_s=round(seen.at_time_s, 6), ahead_s=round(seen.ahead_s, 6), bound_s=round(seen.bound_s, 6))
