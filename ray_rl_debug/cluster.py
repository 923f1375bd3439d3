"""The door to a live Ray cluster: place an agent on every node, let all collect in the same window, gather what comes in time."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug import __version__, codec, gaps
from ray_rl_debug.agent import PAGE_BYTES, RayRlDebugAgent
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.errors import AuthenticationRefusedError, RayRlDebugError
from ray_rl_debug.ray_address import find_address
from ray_rl_debug.ray_auth import switch_to_token
from ray_rl_debug.ray_state import finish_core_workers, read_core_workers, read_ray_state
from ray_rl_debug.ray_state.tables import OUR_NAMESPACE
from ray_rl_debug.snapshot import CoreWorker, Gap, Node, RayNode, RayState, Snapshot

START_DEADLINE_S = 20.0
"""For agents to start and say their raylet's pid; slow machines need 5 s, a stopped raylet never answers."""


class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `take_snapshot` is asked to do."""

    address: str | None = None
    job_id: str | None = None
    collect: CollectOptions = CollectOptions()
    timeout_s: float = 60.0
    """For each node, beyond the sampling window."""
    keep_agents: bool = False


def take_snapshot(options: ClusterOptions, *, progress: Callable[[str], None] = lambda _: None) -> Snapshot:
    """The facts of a whole cluster; nodes that do not answer in time are gaps, the rest is complete.

    Raises:
        NoClusterError, SeveralClustersError, ClusterUnreachableError, AuthenticationRefusedError, UsageError
    """
    started = time.monotonic()
    address = find_address(options.address, os.environ)
    state, found = _read_tables(address, options, progress)
    before, _ = read_core_workers(state)
    timing = {"tables_s": round(time.monotonic() - started, 3)}
    alive = [n for n in state.nodes if n.alive]
    progress(f"{len(alive)} nodes, {sum(1 for w in state.workers if w.alive)} Ray workers")
    gathered = _Gathered(state, options)
    taken = time.time()
    try:
        with _connected(address, progress):
            gathered.run(alive, progress, timing)
    except RayRlDebugError:
        raise
    except Exception as e:  # noqa: BLE001 without agents this node can still be looked at
        found = (*found, Gap(id=gaps.NODE_SILENT, where="cluster", what="agents on the nodes", reason=f"{type(e).__name__}: {str(e)[:200]}"))
    if not gathered.nodes:
        gathered.look_here(alive)
    after_state, silent, after = _read_again(address, options, state, before)
    timing["total_s"] = round(time.monotonic() - started, 3)
    return Snapshot(
        tool_version=__version__,
        taken_time_s=taken + options.collect.window_s,
        job_id=options.job_id,
        nodes=tuple(_with_window_job(n, options.job_id) for n in gathered.nodes),
        ray=msgspec.structs.replace(after_state, core_workers=after),
        gaps=(*found, *gathered.gaps, *silent),
        options={"samples": options.collect.samples, "interval_s": options.collect.interval_s, "native": options.collect.native},
        timing=timing,
    )


def _read_tables(address: str, options: ClusterOptions, progress: Callable[[str], None]) -> tuple[RayState, tuple[Gap, ...]]:
    try:
        return read_ray_state(address, job_id=options.job_id)
    except AuthenticationRefusedError:
        said = switch_to_token()
        if said is None:
            raise
        progress(said)
        return read_ray_state(address, job_id=options.job_id)


def _read_again(
    address: str, options: ClusterOptions, first: RayState, before: Sequence[CoreWorker]
) -> tuple[RayState, tuple[Gap, ...], tuple[CoreWorker, ...]]:
    """Tables and statistics at the end of the window; the first ones when the second read fails."""
    try:
        state, again = read_ray_state(address, job_id=options.job_id)
    except RayRlDebugError as e:
        return first, (Gap(id=gaps.RAY_TABLES, where="cluster", what="tables at the end of the window", reason=str(e)),), tuple(before)
    after, silent = read_core_workers(state)
    return state, (*again, *silent), finish_core_workers(before, after)


class _Gathered:
    """What came back from the nodes."""

    def __init__(self, state: RayState, options: ClusterOptions) -> None:
        self._state = state
        self._options = options
        self.nodes: list[Node] = []
        self.gaps: list[Gap] = []

    def run(self, alive: Sequence[RayNode], progress: Callable[[str], None], timing: dict[str, float]) -> None:
        """Start agents on all nodes, collect together, fetch pages."""
        import ray

        began = time.monotonic()
        agents = {n.node_id: self._start(n) for n in alive}
        ready, late = _wait({k: a.ready.remote() for k, a in agents.items()}, START_DEADLINE_S)
        timing["agents_s"] = round(time.monotonic() - began, 3)
        names = _unique_names(alive)
        for node in alive:
            if node.node_id in late:
                self._silent(names[node.node_id], f"its agent did not start ({late[node.node_id]})")
        paths = self._ship_pyspy({k: agents[k] for k in ready})
        progress(f"collecting on {len(ready)} of {len(alive)} nodes")
        refs = {}
        for node in alive:
            if node.node_id in ready:
                asked = self._options_for(node, names[node.node_id], paths.get(node.node_id))
                refs[node.node_id] = agents[node.node_id].collect.remote(msgspec.json.encode(asked))
        deadline = time.monotonic() + self._options.collect.window_s + self._options.timeout_s
        pages, failed = _wait(refs, deadline - time.monotonic(), each=lambda k: progress(f"{names[k]} answered"))
        for node_id, why in failed.items():
            self._silent(names[node_id], f"it did not finish in time ({why})")
        for node_id, count in pages.items():
            parts, lost = _wait({i: agents[node_id].page.remote(i) for i in range(count)}, max(5.0, deadline - time.monotonic()))
            if lost:
                self._silent(names[node_id], f"{len(lost)} of {count} pages did not come")
                continue
            self.nodes.append(codec.decode_node(b"".join(parts[i] for i in range(count))))
        self.nodes.sort(key=lambda n: n.name)
        if not self._options.keep_agents:
            for agent in agents.values():
                with contextlib.suppress(Exception):
                    ray.kill(agent)

    def look_here(self, alive: Sequence[RayNode]) -> None:
        """This machine without an agent, when no agent came."""
        from ray_rl_debug.collect.node import collect_node

        asked = msgspec.structs.replace(self._options.collect, gcs_address=self._state.address)
        with contextlib.suppress(RayRlDebugError):
            self.nodes.append(collect_node(asked))

    def _silent(self, name: str, reason: str) -> None:
        self.gaps.append(
            Gap(
                id=gaps.NODE_SILENT,
                where=name,
                what="everything of this node",
                reason=reason,
                remedy=f"on {name}: rayrl-debug snapshot --here -o DIR, then: rayrl-debug report all the files together",
            )
        )

    def _start(self, node: RayNode) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor_class: Any = ray.remote(RayRlDebugAgent)
        return actor_class.options(
            name=f"rayrl_debug_{node.node_id[:12]}",
            namespace=OUR_NAMESPACE,
            get_if_exists=True,
            num_cpus=0,
            max_concurrency=2,
            lifetime="detached" if self._options.keep_agents else None,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.node_id, soft=False),
        ).remote()

    def _options_for(self, node: RayNode, name: str, pyspy: str | None) -> CollectOptions:
        drivers = tuple(j.driver_pid for j in self._state.jobs if j.alive and j.driver_pid and self._is_on(j.driver_ip, node))
        return msgspec.structs.replace(
            self._options.collect,
            node_id=node.node_id,
            node_name=name,
            driver_pids=drivers,
            gcs_address=self._state.address,
            job_id=self._options.job_id,
            pyspy=pyspy or self._options.collect.pyspy,
        )

    def _is_on(self, ip: str | None, node: RayNode) -> bool:
        """Is a driver on this node? Of several raylets on one host (a test cluster) the first one has it."""
        same_host = [n for n in self._state.nodes if n.alive and n.ip == ip]
        return bool(same_host) and same_host[0].node_id == node.node_id

    def _ship_pyspy(self, agents: dict[str, Any]) -> dict[str, str]:
        """Give the py-spy binary to nodes that have none; the path on each such node."""
        has, _ = _wait({k: a.has_pyspy.remote() for k, a in agents.items()}, 10.0)
        lacking = [k for k, there in has.items() if not there]
        if not lacking:
            return {}
        import lzma

        from ray_rl_debug.collect.pyspy import find_pyspy

        binary = find_pyspy(self._options.collect.pyspy)
        if binary is None:
            return {}
        packed = lzma.compress(Path(binary).read_bytes(), preset=1)
        parts = [packed[i : i + PAGE_BYTES] for i in range(0, len(packed), PAGE_BYTES)]
        refs = {}
        for key in lacking:
            for i, part in enumerate(parts):
                refs[key] = agents[key].receive_pyspy.remote(part, i == len(parts) - 1)
        paths, _ = _wait(refs, 30.0)
        return {k: p for k, p in paths.items() if p}


def _unique_names(nodes: Sequence[RayNode]) -> dict[str, str]:
    hosts = [n.host or n.ip for n in nodes]
    return {n.node_id: host if hosts.count(host) == 1 else f"{host}-{n.node_id[:6]}" for n, host in zip(nodes, hosts, strict=True)}


def _with_window_job(node: Node, job_id: str | None) -> Node:
    """Only the processes of one job, when one was asked for; Ray's daemons stay."""
    if job_id is None:
        return node
    kept = tuple(p for p in node.processes if p.job_id in (job_id, None))
    return msgspec.structs.replace(node, processes=kept)


def _wait(refs: dict[Any, Any], timeout_s: float, *, each: Callable[[Any], None] = lambda _: None) -> tuple[dict[Any, Any], dict[Any, str]]:
    """Results by key as they come, and why the others did not."""
    import ray

    deadline = time.monotonic() + timeout_s
    waiting = {ref: key for key, ref in refs.items()}
    results: dict[Any, Any] = {}
    failed: dict[Any, str] = {}
    while waiting:
        done, _ = ray.wait(list(waiting), num_returns=1, timeout=max(0.0, deadline - time.monotonic()), fetch_local=False)
        if not done:
            break
        for ref in done:
            key = waiting.pop(ref)
            try:
                results[key] = ray.get(ref, timeout=max(1.0, deadline - time.monotonic()))
                each(key)
            except Exception as e:  # noqa: BLE001 the agent's own failure is a fact about its node
                failed[key] = f"{type(e).__name__}: {str(e).strip().splitlines()[-1][:160] if str(e).strip() else ''}"
    failed.update(dict.fromkeys(waiting.values(), f"no answer in {timeout_s:.0f} s"))
    return results, failed


@contextlib.contextmanager
def _connected(address: str, progress: Callable[[str], None]) -> Any:
    """A driver of our own on the cluster, quiet, with our code for the nodes; always left again, within a bound."""
    import ray

    progress(f"connecting to {address} from {socket.gethostname()}")
    package = Path(__file__).resolve().parent
    ray.init(
        address=address,
        namespace=OUR_NAMESPACE,
        log_to_driver=False,
        logging_level="ERROR",
        ignore_reinit_error=True,
        runtime_env={"py_modules": [str(package)], "excludes": ["__pycache__"]},
    )
    try:
        yield
    finally:
        leaving = threading.Thread(target=ray.shutdown, daemon=True)
        leaving.start()
        leaving.join(10)
