"""What Ray's tables cost at 1,000 nodes and 20,000 actors, and what ``watch`` asks for while nothing happens.

Run: ``python benchmarks/scale_tables.py [--nodes 1000] [--actors 100 1000 20000]``

The GCS, the raylets and the workers are `made_cluster`: Ray's own messages over real gRPC on loopback, one process for all. Each row is a reader of
its own. Printed: bytes that were sent to it, processor seconds and the memory that it added, for the tables of a look (all of them, once) and for
what the companion asks for again and again: its roll of nodes and jobs, and a roll with one node that has new workers.
Aim: what is asked for again and again does not grow with the actors.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
from made_cluster import Served
from scale_gather import HOST, cluster, machine

from ray_rl_debug.ray_state import probe_raylets, read_core_workers, read_nodes, read_ray_state
from ray_rl_debug.ray_state.roll_call import call_roll

LOOK_S = 60.0
"""Far more than a look gives them: here it is their whole cost that counts."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    sent_bytes: int
    cpu_s: float
    added_bytes: int
    came: str


def measured(nodes: int, actors: int) -> list[Cost]:
    """Each kind of reading once, after one that has loaded Ray's modules."""
    with cluster(Served(nodes=nodes, actors=actors, with_messages=False)) as (child, told):
        address = f"{HOST}:{told['port']}"
        read_nodes(address, deadline_s=LOOK_S)

        def sent() -> int:
            assert child.stdin is not None
            assert child.stdout is not None
            print("{}", file=child.stdin, flush=True)
            return int(json.loads(child.stdout.readline())["sent_bytes"])

        def cost(what: str, read: Callable[[], Any], told_of: Callable[[Any], str]) -> Any:
            before, peak, cpu = sent(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
            value = read()
            used = time.process_time() - cpu
            added = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
            rows.append(Cost(what=what, sent_bytes=sent() - before, cpu_s=used, added_bytes=added * 1024, came=told_of(value)))
            return value

        rows: list[Cost] = []
        some = told["node_ids"][:1]
        cost("roll", lambda: call_roll(address), lambda r: f"{len(r.nodes)} nodes")
        cost("roll, new workers on a node", lambda: call_roll(address, workers_of=some), lambda r: f"{sum(map(len, r.worker_jobs.values()))} workers")
        state, _ = cost("look: all tables", lambda: read_ray_state(address, deadline_s=LOOK_S), lambda s: f"{len(s[0].actors)} actors")
        cost(
            "look: all raylets, 2 s", lambda: probe_raylets(state.nodes, deadline_s=2.0), lambda p: f"{sum(w is not None for w in p.values())} silent"
        )
        cost("look: workers, 2 s", lambda: read_core_workers(state, deadline_s=2.0), lambda w: f"{len(w[0])} of {len(state.workers)}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--actors", type=int, nargs="+", default=[100, 1000, 20_000])
    parser.add_argument("--row", action="store_true", help="one row in this process, as JSON")
    asked = parser.parse_args()
    if asked.row:
        print(msgspec.json.encode(measured(asked.nodes, asked.actors[0])).decode())
        return
    print(machine())
    print(f"{'nodes':>5} {'actors':>6}  {'what':28} {'KB':>8} {'CPU s':>6} {'MiB':>5}  came")
    for actors in asked.actors:
        command = [sys.executable, __file__, "--nodes", str(asked.nodes), "--actors", str(actors), "--row"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{asked.nodes:5} {actors:6} {done.stderr[-600:]}")
            continue
        for row in msgspec.json.decode(done.stdout, type=list[Cost]):
            size = f"{row.sent_bytes / 1024:8.1f} {row.cpu_s:6.2f} {row.added_bytes / (1 << 20):5.1f}"
            print(f"{asked.nodes:5} {actors:6}  {row.what:28} {size}  {row.came}", flush=True)


if __name__ == "__main__":
    main()
