"""A capture of this machine alone, without a driver or agents: for processes without Ray, for nodes that Ray cannot reach, for ``srun``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.capture.jobs import choose_job, keep_job, pids_of_others, with_jobs
from ray_rl_debug.cluster.auth import with_token
from ray_rl_debug.collect.discover import find_raylets_by_node
from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import ClusterUnreachableError, RayRlDebugError
from ray_rl_debug.model.snapshot import CoreWorker, Gap, Node, RayState, Snapshot
from ray_rl_debug.ray_state import finish_core_workers, read_core_workers, read_ray_state

TABLES_S = 5.0
"""For Ray's tables, before and after the window: this is what one runs when Ray may not answer."""


def take_here(collect: CollectOptions, *, progress: Callable[[str], None], stop: threading.Event, clock: Callable[[], float] = time.time) -> Snapshot:
    """This machine's processes; with `collect.gcs_address` also that cluster's tables, when they can be read. Ray is never waited for.

    Raises:
        UsageError: `collect.job_id` is no job of the cluster.
        ClusterUnreachableError: a job was asked for, and the tables that tell what belongs to it cannot be read.
    """
    found: list[Gap] = []
    state = _tables(collect, progress, found) if collect.gcs_address else None
    before: tuple[CoreWorker, ...] = ()
    if collect.job_id is not None:
        if state is None:
            raise ClusterUnreachableError(f"Ray's tables cannot be read, and only they say which processes belong to job {collect.job_id}")
        collect = msgspec.structs.replace(collect, job_id=choose_job(collect.job_id, state.jobs))
    if state is not None:
        collect, before = _known(collect, state)
    taken_time_s = clock()
    node = collect_node(collect, progress=progress, stop=stop)
    if state is not None:
        state = _tables(collect, progress, []) or state
        after, _ = read_core_workers(_of_this_machine(state), deadline_s=TABLES_S / 2)
        state = msgspec.structs.replace(state, core_workers=finish_core_workers(before, after))
    options: dict[str, str | int | float | bool] = {
        "here": True,
        "samples": collect.samples,
        "interval_s": collect.interval_s,
        "native": collect.native,
        **({"interrupted": True} if stop.is_set() else {}),
    }
    taken = Snapshot(
        tool_version=__version__,
        taken_time_s=taken_time_s,
        job_id=collect.job_id,
        nodes=(node,),
        ray=state,
        gaps=(*found, *_not_looked_at(node, state)),
        options=options,
    )
    return keep_job(with_jobs(taken), collect.job_id) if state is not None else taken


def _tables(collect: CollectOptions, progress: Callable[[str], None], found: list[Gap]) -> RayState | None:
    address = collect.gcs_address or ""
    try:
        state, more = with_token(lambda: read_ray_state(address, deadline_s=TABLES_S), progress)
    except RayRlDebugError as e:
        found.append(Gap(id=gaps.RAY_TABLES, where="cluster", what=f"tables of the cluster {address}", reason=str(e)))
        return None
    found += more
    return state


def _known(collect: CollectOptions, state: RayState) -> tuple[CollectOptions, tuple[CoreWorker, ...]]:
    """What the tables add: the drivers of this machine and, where one raylet runs here, which node this is."""
    mine = _of_this_machine(state)
    ips = {n.ip for n in mine.nodes}
    drivers = tuple(j.driver_pid for j in state.jobs if j.alive and j.driver_pid and j.driver_ip in ips and collect.job_id in (None, j.job_id))
    # a driver that does not get into Ray stands in no table yet
    known = msgspec.structs.replace(collect, driver_pids=drivers if any(j.alive for j in state.jobs) else None)
    if len(mine.nodes) == 1:
        known = msgspec.structs.replace(known, node_id=mine.nodes[0].node_id, node_ip=mine.nodes[0].ip)
    before, _ = read_core_workers(mine, deadline_s=TABLES_S / 2)
    others = pids_of_others(collect.job_id, state, before)
    return msgspec.structs.replace(known, skip_pids=(*known.skip_pids, *(pid for pids in others.values() for pid in pids))), before


def _of_this_machine(state: RayState) -> RayState:
    """The tables with the nodes and workers of this machine only: pids mean nothing elsewhere."""
    here = find_raylets_by_node()
    return msgspec.structs.replace(
        state,
        nodes=tuple(n for n in state.nodes if n.node_id in here),
        workers=tuple(w for w in state.workers if w.node_id in here),
    )


def _not_looked_at(node: Node, state: RayState | None) -> tuple[Gap, ...]:
    if state is None:
        return (
            Gap(
                id=gaps.NO_RAY_TABLES_IN_FILE,
                where=node.name,
                what="Ray's actors, tasks and other nodes",
                reason="this capture looked at one node without Ray",
                remedy="rayrl-debug snapshot",
            ),
        )
    here = find_raylets_by_node()
    others = [n.host or n.ip for n in state.nodes if n.alive and n.node_id not in here]
    if not others:
        return ()
    what = f"the processes of {len(others)} other nodes ({', '.join(others[:4])})"
    return (Gap(id=gaps.NO_RAY_TABLES_IN_FILE, where=node.name, what=what, reason="this capture looked at one node", remedy="rayrl-debug snapshot"),)
