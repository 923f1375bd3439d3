"""From order to verdict on a cluster of a thousand nodes, without a thousand machines.

Run: ``python benchmarks/scale_gather.py [--nodes 16 128 1250] [--silent 0.05] [--damaged 0] [--cut 0] [--late 0 --late-s 6] [--latency-ms 2]
[--variants 8]``

The driver under test is the product's own: the server of the watchers, the capture, the decoding, the diagnosis, as ``watch`` calls them. The cluster
is `made_cluster`, a process of its own: each node has a connection of its own on loopback and sends what a real agent sent once, under its own names
(8 ranks and 100 processes, `many_nodes`); Ray's tables come over real gRPC in Ray's own types. Each row is a driver of its own.

Printed: bytes of a node's message, wall clock and processor seconds of the driver from order to verdict, its largest memory, and whom it names.
Aim: 1,250 nodes, 5 % silent, on one core: window + 15 s, 1 GiB, 64 KB a message.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from made_cluster import Behaviour, Served
from many_nodes import VARIANTS

from ray_rl_debug.capture.cluster import Capture, ClusterOptions
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.ray_state.roll_call import call_roll
from ray_rl_debug.watch.closer_look import take_look
from ray_rl_debug.watch.crew import look_options
from ray_rl_debug.watch.history import History
from ray_rl_debug.watch.server import WatcherServer
from ray_rl_debug.watch.watcher_driver import WatcherDriver

HOST = "127.0.0.1"
CONNECT_S = 300.0
"""For all watchers to connect, and before that for their messages to be made."""
DRIVER_S = 20.0
"""What ``watch`` gives a look beyond its window."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one order cost."""

    nodes: int
    window_s: float
    wall_s: float
    cpu_s: float
    """Of the driver, all its threads."""
    gathered_cpu_s: float
    """The part of it before the analysis."""
    peak_bytes: int
    message_bytes: int
    """The largest."""
    answered: int
    state: str
    summary: str
    named: str
    gaps: dict[str, int]


def machine() -> str:
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}, load {os.getloadavg()[0]:.0f}"


@contextlib.contextmanager
def cluster(served: Served) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The made cluster, and where it serves."""
    program = [sys.executable, str(Path(__file__).with_name("made_cluster.py"))]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            print(msgspec.json.encode(served).decode(), file=child.stdin, flush=True)
            yield child, json.loads(child.stdout.readline())
        finally:
            child.kill()


def order_and_judge(nodes: int, how: Behaviour, *, variants: int = VARIANTS, timeout_s: float = DRIVER_S) -> tuple[Row, Snapshot, Report]:
    """One look at a made cluster, as ``watch`` takes it."""
    with cluster(Served(nodes=nodes, behaviour=how, variants=variants)) as (child, told):
        assert child.stdin is not None
        server = WatcherServer(HOST)
        try:
            invited = [server.invite(node_id) for node_id in told["node_ids"]]
            order = {"host": HOST, "port": server.port, "invitations": msgspec.to_builtins(invited)}
            print(json.dumps(order), file=child.stdin, flush=True)
            until = time.monotonic() + CONNECT_S
            while len(server.nodes) < nodes:
                assert time.monotonic() < until, f"only {len(server.nodes)} of {nodes} connected"
                time.sleep(0.05)
            while server.receive(0) is not None:
                pass  # their first words
            call_roll(f"{HOST}:{told['port']}")  # ``watch`` has called it long before, so that Ray's modules are there
            collect = look_options(3, 0.75)
            options = ClusterOptions(address=f"{HOST}:{told['port']}", collect=collect, timeout_s=timeout_s)
            gathered: list[float] = []
            began, cpu = time.monotonic(), time.process_time()

            def gather() -> Snapshot:
                with WatcherDriver(server) as driver:
                    snapshot = Capture(options, lambda _: None, threading.Event(), here=dict).run(driver)
                gathered.append(time.process_time() - cpu)
                return snapshot

            look = take_look(gather, History(Path(os.devnull)), now_s=time.time())
            snapshot, report = look.snapshot, look.report
            best = report.findings[0].who[:1] if report.findings else ()
            row = Row(
                nodes=nodes,
                window_s=collect.window_s,
                wall_s=time.monotonic() - began,
                cpu_s=time.process_time() - cpu,
                gathered_cpu_s=gathered[0],
                peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                message_bytes=max(told["bytes"]),
                answered=len(snapshot.nodes),
                state=f"{report.verdict.state.value} ({report.verdict.certainty.value})",
                summary=report.verdict.summary,
                named=", ".join(w.label for w in best),
                gaps=dict(Counter(g.id for g in snapshot.gaps)),
            )
        finally:
            server.close()
    return row, snapshot, report


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=[16, 128, 1250])
    for share in ("silent", "damaged", "cut", "late"):
        parser.add_argument(f"--{share}", type=float, default=getattr(Behaviour(), share))
    parser.add_argument("--late-s", type=float, default=6.0)
    parser.add_argument("--latency-ms", type=float, default=2.0)
    parser.add_argument("--variants", type=int, default=VARIANTS, help="nodes that differ in more than their names; the others repeat them")
    parser.add_argument("--row", action="store_true", help="one row in this process, as JSON")
    asked = parser.parse_args()
    how = Behaviour(
        silent=asked.silent, damaged=asked.damaged, cut=asked.cut, late=asked.late, late_s=asked.late_s, latency_s=asked.latency_ms / 1000
    )
    if asked.row:
        print(msgspec.json.encode(order_and_judge(asked.nodes[0], how, variants=asked.variants)[0]).decode())
        return
    print(machine())
    print(f"{'nodes':>5} {'answered':>8} {'KB/node':>7} {'window':>6} {'wall s':>6} {'CPU s':>6} {'(gather)':>8} {'MiB':>5}  verdict")
    given = [a for a in sys.argv[1:] if a != "--row"]
    for nodes in asked.nodes:
        command = [sys.executable, __file__, *given, "--nodes", str(nodes), "--row"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{nodes:5} {done.stderr[-600:]}")
            continue
        row = msgspec.json.decode(done.stdout, type=Row)
        print(
            f"{row.nodes:5} {row.answered:8} {row.message_bytes / 1024:7.0f} {row.window_s:6.1f} {row.wall_s:6.1f} {row.cpu_s:6.1f}"
            f" {row.gathered_cpu_s:8.1f} {row.peak_bytes >> 20:5}  {row.state}: {row.named}; gaps {row.gaps}",
            flush=True,
        )


if __name__ == "__main__":
    main()
