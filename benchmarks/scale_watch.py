"""What a reading of all nodes costs the companion while the run is healthy.

Run: ``python benchmarks/scale_watch.py [--nodes 128 1250] [--processes 100] [--readings 5]``

The companion's own crew and census, and a watcher for each node over a real socket (`made_cluster`) that tells of its processes at once. Printed:
processor seconds of the companion for one reading of all nodes, all together and for each node; how many nodes answered in the time that `watch`
gives them; and its memory. ``watch`` reads every two seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import msgspec
from made_cluster import Behaviour, Served
from many_nodes import JOB, id_of, ip_of
from scale_gather import CONNECT_S, HOST, cluster, machine

from ray_rl_debug.capture.cluster import ClusterOptions
from ray_rl_debug.watch.beats import Census
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.watchers import WatcherCrew


class Row(msgspec.Struct, frozen=True, kw_only=True):
    nodes: int
    answered: int
    processes: int
    first_cpu_s: float
    cpu_s: float
    """Of one reading, the mean."""
    peak_bytes: int


def measured(nodes: int, processes: int, readings: int) -> Row:
    """Some readings after the first one, in which each node tells its whole set of processes."""
    alive = {id_of("node", n): (f"node{n}", ip_of(n)) for n in range(nodes)}
    with cluster(Served(nodes=nodes, behaviour=Behaviour(silent=0.0, signs=processes), with_messages=False, actors=1)) as (child, told):
        assert child.stdin is not None
        crew = WatcherCrew(ClusterOptions(), lambda: alive, "k", host=HOST, here=dict)
        server = crew._server
        try:
            invited = [server.invite(node_id) for node_id in told["node_ids"]]
            print(json.dumps({"host": HOST, "port": server.port, "invitations": msgspec.to_builtins(invited)}), file=child.stdin, flush=True)
            until = time.monotonic() + CONNECT_S
            while len(server.nodes) < nodes:
                assert time.monotonic() < until, f"only {len(server.nodes)} of {nodes} connected"
                time.sleep(0.05)
            census, order, used, answered = Census(), WatchOrder(companion="k"), list[float](), nodes
            for number in range(readings + 1):
                cpu = time.process_time()
                found, _ = crew.read(order)
                census.beats(found, float(number), [JOB])
                used.append(time.process_time() - cpu)
                answered = min(answered, len(found)) if number else nodes
                time.sleep(1.0)
        finally:
            crew.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    mean = sum(used[1:]) / readings
    return Row(nodes=nodes, answered=answered, processes=processes, first_cpu_s=used[0], cpu_s=mean, peak_bytes=peak)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=[128, 1250])
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--readings", type=int, default=5)
    parser.add_argument("--row", action="store_true", help="one row in this process, as JSON")
    asked = parser.parse_args()
    if asked.row:
        print(msgspec.json.encode(measured(asked.nodes[0], asked.processes, asked.readings)).decode())
        return
    print(machine())
    print(f"{'nodes':>5} {'answered':>8} {'first CPU s':>11} {'CPU s':>6} {'ms a node':>9} {'MiB':>5}")
    for nodes in asked.nodes:
        given = ["--nodes", str(nodes), "--processes", str(asked.processes), "--readings", str(asked.readings), "--row"]
        done = subprocess.run([sys.executable, __file__, *given], capture_output=True, text=True)
        if done.returncode:
            print(f"{nodes:5} {done.stderr[-600:]}")
            continue
        row = msgspec.json.decode(done.stdout, type=Row)
        each = 1000 * row.cpu_s / row.nodes
        print(f"{row.nodes:5} {row.answered:8} {row.first_cpu_s:11.2f} {row.cpu_s:6.2f} {each:9.2f} {row.peak_bytes >> 20:5}", flush=True)


if __name__ == "__main__":
    main()
