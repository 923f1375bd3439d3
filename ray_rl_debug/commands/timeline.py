"""``rayrl-debug timeline``: the run in Perfetto, and the phase tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ray_rl_debug.commands.options import progress
from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.commands.snapshot import stop_on_interrupt
from ray_rl_debug.model.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from ray_rl_debug.timeline.compose import Inputs

EPILOG = """\b
Examples:
  rayrl-debug timeline -o run.pftrace           # the cluster that runs now
  rayrl-debug timeline -o run.pftrace --open    # and open it in Perfetto
  rayrl-debug timeline hang/ -o run.pftrace     # what snapshot -o hang saved
  rayrl-debug timeline hang/ logs/me/exp/trial  # with AReaL's traces
  rayrl-debug timeline rank*.json.gz            # traces of torch's profiler
"""
_TRACES = (".pftrace", ".pftrace.gz", ".perfetto-trace")


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, type=PatientPath(exists=True, path_type=Path), metavar="[FILE]...")
@click.option(
    "-o",
    "--output",
    type=PatientPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the trace here; compressed if the name ends in .gz.",
)
@click.option("--format", "format_", type=click.Choice(("perfetto", "chrome")), default="perfetto", show_default=True, help="Format of the trace.")
@click.option("--open", "open_", is_flag=True, help="Serve the trace on 127.0.0.1 until the Perfetto UI has fetched it.")
@click.option("--address", metavar="HOST:PORT", help="Address of the cluster; not needed where one runs here.")
@click.option("--job", "job_id", metavar="ID", help="Show only this Ray job: its id or its submission id.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=1), default=60.0, show_default=True, help="Seconds for the whole capture.")
@click.option("--samples", type=click.IntRange(1, 100), default=3, show_default=True, help="How often each stack is read.")
@click.option("--interval", "interval_s", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Seconds between samples.")
@click.option(
    "--max-slices",
    type=click.IntRange(min=1),
    default=3_000_000,
    show_default=True,
    help="Slices in the trace; beyond that the shortest are left out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the tables, or the error, as one JSON document.")
@click.option("-v", "--verbose", is_flag=True, help="Show all steps and rows.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr.")
def timeline(
    files: tuple[Path, ...],
    output: Path | None,
    format_: str,
    open_: bool,
    address: str | None,
    job_id: str | None,
    timeout_s: float,
    samples: int,
    interval_s: float,
    max_slices: int,
    as_json: bool,
    verbose: bool,
    quiet: bool,
) -> int:
    """Write a run as a trace for Perfetto; show its phases.

    The trace shows tasks, phases, stacks, GPUs, and a hang as an open slice. Without FILE it is made from the cluster that runs now. FILE is a
    folder or file of: our snapshots, ray.timeline(), AReaL's perf_tracer and session_tracer, verl's console or file log, torch profiler traces,
    Flight Recorder dumps. Without -o only the tables are shown.
    """
    show = progress(quiet)
    if open_ and not output and len(files) == 1 and files[0].name.endswith(_TRACES):
        return _serve(files[0], show)
    if open_ and not output:
        raise UsageError("--open needs a trace", hint="add -o run.pftrace, or name an existing trace")
    if open_ and as_json:
        raise UsageError("--json prints one document, --open prints an address", hint="give only one of them")
    if files and address:
        raise UsageError("--address asks for a cluster, FILE for what was saved", hint="give only one of them")
    from ray_rl_debug.timeline.compose import make_timeline
    from ray_rl_debug.timeline.serve import how_to_open
    from ray_rl_debug.timeline.show import document, lines

    interrupted = False
    if files:
        inputs = _read(files, job_id, show)
    else:
        inputs, interrupted = _capture(address, job_id, timeout_s, samples, interval_s, show)
    made = make_timeline(inputs, output, format_=format_, max_slices=max_slices, progress=show)
    if as_json:
        click.echo(json.dumps(document(made), ensure_ascii=False))
    else:
        for line in lines(made, verbose=verbose):
            click.echo(line)
        for line in how_to_open(output) if output and not open_ else ():
            show(line)
        if output is None:
            show("next: rayrl-debug timeline -o run.pftrace writes the trace")
    if open_ and output and not interrupted:
        return _serve(output, show)
    return EXIT_INTERRUPTED if interrupted else EXIT_OK


def _read(files: tuple[Path, ...], job_id: str | None, show: Callable[..., None]) -> Inputs:
    from ray_rl_debug.timeline.load import load

    return load(files, job_id=job_id, progress=show)


def _capture(
    address: str | None, job_id: str | None, timeout_s: float, samples: int, interval_s: float, show: Callable[..., None]
) -> tuple[Inputs, bool]:
    """What a timeline of the cluster is made of, and whether Ctrl-C cut it short."""
    from ray_rl_debug.capture.cluster import ClusterOptions, take_snapshot
    from ray_rl_debug.collect.options import CollectOptions
    from ray_rl_debug.timeline.live import live_inputs

    collect = CollectOptions(samples=samples, interval_s=interval_s, job_id=job_id, timeout_s=timeout_s, engine_endpoints=False)
    options = ClusterOptions(address=address, job_id=job_id, collect=collect, timeout_s=timeout_s)
    with stop_on_interrupt(show) as stop:
        snapshot = take_snapshot(options, progress=show, stop=stop)
    show("reading Ray's task events")
    return live_inputs(snapshot, None, job_id=job_id), stop.is_set()


def _serve(path: Path, show: Callable[..., None]) -> int:
    from ray_rl_debug.timeline.serve import served

    with served(path) as (url, fetched):
        show("open this in a browser on this machine (through ssh: -L 9001:127.0.0.1:9001); Ctrl-C ends the server")
        click.echo(url)
        try:
            fetched.wait()
            show("the browser has fetched the trace")
        except KeyboardInterrupt:
            show("ended")
    return EXIT_OK
