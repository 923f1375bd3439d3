"""``rayrl-debug snapshot``: capture the cluster or this node, save it, print the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from ray_rl_debug import __version__
from ray_rl_debug.commands.options import exit_code, progress, rendering, save, save_snapshot, show_report
from ray_rl_debug.errors import EXIT_INTERRUPTED, UsageError
from ray_rl_debug.gaps import NO_RAY_TABLES_IN_FILE
from ray_rl_debug.snapshot import Gap, Snapshot

EPILOG = """\b
Examples:
  rayrl-debug snapshot                         the whole cluster, from any of its nodes
  rayrl-debug snapshot -o hang --samples 5     keep the files, look longer
  rayrl-debug snapshot --here                  this node only, without Ray
  rayrl-debug snapshot --pid 8123              one process and its descendants
  srun --overlap rayrl-debug snapshot --here -q -o hang/$(hostname)
"""


@click.command(epilog=EPILOG)
@click.option("--address", metavar="HOST:PORT", help="The cluster; found by itself when one runs here.")
@click.option("--here", is_flag=True, help="This node only, without Ray: works when Ray does not.")
@click.option("--pid", "pids", type=click.IntRange(min=1), multiple=True, help="Only this process and its descendants (implies --here); repeatable.")
@click.option("--job", "job_id", metavar="ID", help="Only this Ray job.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=1), default=60.0, show_default=True, help="Seconds for the whole capture.")
@click.option("--samples", type=click.IntRange(1, 100), default=3, show_default=True, help="How often each stack is read.")
@click.option("--interval", "interval_s", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Seconds between samples.")
@click.option("--native", is_flag=True, help="Also C++ frames: slower, stops each process a little longer.")
@rendering
def snapshot(
    address: str | None,
    here: bool,
    pids: tuple[int, ...],
    job_id: str | None,
    timeout_s: float,
    samples: int,
    interval_s: float,
    native: bool,
    format_: str,
    as_json: bool,
    output: Path | None,
    verbose: bool,
    quiet: bool,
    no_color: bool,
) -> int:
    """Capture the cluster in the moment of trouble and say who hangs it, and why.

    Needs nothing prepared in the job; no process is left stopped.
    """
    if address and (here or pids):
        raise UsageError("--address asks for a cluster, --here and --pid for this node only", hint="give one of them")
    from ray_rl_debug.collect.options import CollectOptions

    collect = CollectOptions(samples=samples, interval_s=interval_s, native=native, pids=pids, job_id=job_id, timeout_s=timeout_s)
    show = progress(quiet)
    interrupted = False
    try:
        taken = _capture_here(collect, show) if here or pids else _capture_cluster(address, job_id, collect, timeout_s, show)
    except KeyboardInterrupt as e:
        # The gatherer attaches what had arrived when Ctrl-C came.
        partial = getattr(e, "snapshot", None)
        if not isinstance(partial, Snapshot):
            raise
        taken, interrupted = partial, True
    if output is not None:
        save_snapshot(output, taken)
    from ray_rl_debug.diagnose import diagnose

    report = diagnose(taken)
    if output is not None:
        save(output, report, None)
        show(f"saved {output}/snapshot.json.gz, report.json, report.txt")
    show_report(report, format_=format_, as_json=as_json, no_color=no_color, verbose=verbose)
    return EXIT_INTERRUPTED if interrupted else exit_code(report)


def _capture_cluster(address: str | None, job_id: str | None, collect: object, timeout_s: float, show: Callable[..., None]) -> Snapshot:
    from ray_rl_debug.cluster import ClusterOptions, take_snapshot
    from ray_rl_debug.collect.options import CollectOptions

    assert isinstance(collect, CollectOptions)
    return take_snapshot(ClusterOptions(address=address, job_id=job_id, collect=collect, timeout_s=timeout_s), progress=show)


def _capture_here(collect: object, show: Callable[..., None], *, clock: Callable[[], float] = time.time) -> Snapshot:
    from ray_rl_debug.collect.node import collect_node
    from ray_rl_debug.collect.options import CollectOptions

    assert isinstance(collect, CollectOptions)
    taken_time_s = clock()
    node = collect_node(collect, progress=show)
    return Snapshot(
        tool_version=__version__,
        taken_time_s=taken_time_s,
        job_id=collect.job_id,
        nodes=(node,),
        gaps=(
            Gap(
                id=NO_RAY_TABLES_IN_FILE,
                where=node.name,
                what="Ray's actors, tasks and other nodes",
                reason="this capture looked at one node without Ray",
                remedy="rayrl-debug snapshot",
            ),
        ),
        options={"here": True, "samples": collect.samples, "interval_s": collect.interval_s, "native": collect.native},
    )
