"""``rayrl-debug snapshot``: capture the cluster or this node, save it, print the report."""

from __future__ import annotations

import contextlib
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ray_rl_debug.bounded.stop_event import StopEvent
from ray_rl_debug.commands.options import exit_code, progress, rendering, show_report, tell
from ray_rl_debug.commands.second_look import look
from ray_rl_debug.model.errors import EXIT_INTERRUPTED, EXIT_NO_VERDICT, UsageError
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.saving.background import Saving
from ray_rl_debug.saving.files import save, save_snapshot

if TYPE_CHECKING:
    from ray_rl_debug.collect.options import CollectOptions

SAME_S = 0.5
"""A signal that comes again so soon is the same one."""
TRACE_S = 60.0
"""For the timeline of a large run."""
EPILOG = """\b
Examples:
  rayrl-debug snapshot                      # the cluster, from any node of it
  rayrl-debug snapshot -o hang --samples 5  # write all files, look longer
  rayrl-debug snapshot --here               # this node only, without Ray
  rayrl-debug snapshot --pid 8123           # one process and its descendants
  srun --overlap rayrl-debug snapshot --here -q -o hang/$(hostname)
"""


@click.command(epilog=EPILOG)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Address of the cluster; not needed where one runs here. With --here: only its processes, and its tables where they can be read.",
)
@click.option("--here", is_flag=True, help="Look at this node only, without Ray; works when Ray does not answer.")
@click.option(
    "--pid", "pids", type=click.IntRange(min=1), multiple=True, help="Look only at this process and its descendants (implies --here). Repeatable."
)
@click.option("--job", "job_id", metavar="ID", help="Look only at this Ray job: its id or its submission id.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=1), default=60.0, show_default=True, help="Seconds for all but the sampling.")
@click.option("--samples", type=click.IntRange(1, 100), default=3, show_default=True, help="How often each stack is read.")
@click.option("--interval", "interval_s", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Seconds between samples.")
@click.option("--once", is_flag=True, help="Look once only, even where the first look is not sure and a longer one may be.")
@click.option("--native", is_flag=True, help="Also read C++ frames. Slower, and each process stops a little longer.")
@click.option("--pystack", is_flag=True, help="Take one more sample with pystack, where it is installed: it reads some processes that py-spy cannot.")
@click.option("--no-engine-endpoints", is_flag=True, help="Do not ask vLLM and SGLang servers for their /metrics and whether they are paused.")
@rendering
def snapshot(
    address: str | None,
    here: bool,
    pids: tuple[int, ...],
    job_id: str | None,
    timeout_s: float,
    samples: int,
    interval_s: float,
    once: bool,
    native: bool,
    pystack: bool,
    no_engine_endpoints: bool,
    format_: str,
    as_json: bool,
    output: Path | None,
    verbose: bool,
    quiet: bool,
    no_color: bool,
) -> int:
    """Look at the cluster now and say who hangs it, and why.

    The job needs no preparation, and no process is left stopped. Where the
    first look is not sure and a longer one may be, it looks again for 20 s.
    """
    if address and pids:
        raise UsageError("--address asks for a cluster, --pid for processes of this node", hint="give only one of them")
    if job_id and (pids or (here and not address)):
        raise UsageError("--job needs Ray's tables, and this capture does not use Ray", hint="add --address HOST:PORT to --here, or leave --job out")
    from ray_rl_debug.collect.options import CollectOptions
    from ray_rl_debug.privacy.redact import made_safe

    given = address if here else None
    if given is not None:
        from ray_rl_debug.cluster.address import find_address

        given = find_address(given, {})
    collect = CollectOptions(
        samples=samples,
        interval_s=interval_s,
        native=native,
        pystack=pystack,
        pids=pids,
        job_id=job_id if here else None,
        timeout_s=timeout_s,
        gcs_address=given,
        engine_endpoints=not no_engine_endpoints,
    )
    show = progress(quiet)
    saving = Saving()
    trouble: Exception | None = None

    def keep(seen: Snapshot) -> None:
        if output is not None:
            folder = output
            saving.begin(lambda: save_snapshot(folder, seen))

    def capture(options: CollectOptions) -> Snapshot:
        if here or pids:
            return made_safe(_capture_here(options, show, stop))
        return _capture_cluster(address, job_id, options, timeout_s, show, stop)

    try:
        with stop_on_interrupt(show) as stop:
            taken, report = look(capture, collect, once=once, keep=keep, show=show, stop=stop)
        if output is not None:
            folder = output
            saving.begin(lambda: save(folder, report, taken, is_saved=True))
        show_report(report, taken, format_=format_, as_json=as_json, no_color=no_color, verbose=verbose)
    finally:
        trouble = saving.finish()
    if trouble is not None:
        tell(trouble)
        return EXIT_NO_VERDICT
    if output is not None:
        show(f"saved {output}/snapshot.json.gz, report.json, report.txt, report.html")
    if output is not None and taken.ray is not None and not stop.is_set():
        from ray_rl_debug.bounded.calls import within
        from ray_rl_debug.timeline.live import save_beside

        try:
            if within(TRACE_S, lambda: save_beside(folder, taken, report, progress=show)) is not None:
                show(f"saved {output}/run.pftrace; rayrl-debug timeline --open {shlex.quote(str(output))}/run.pftrace shows it")
        except TimeoutError as e:
            show(f"no timeline: {e.strerror}")
    return EXIT_INTERRUPTED if stop.is_set() else exit_code(report)


@contextlib.contextmanager
def stop_on_interrupt(show: Callable[..., None]) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C, SIGTERM or SIGHUP sets; the second one ends the command at once."""
    stop = StopEvent()
    first = 0.0

    def interrupt(number: int, frame: object) -> None:
        nonlocal first
        if stop.is_set() and time.monotonic() < first + SAME_S:
            return  # Slurm and timeout send it to each of our processes, and each passes it on
        if stop.is_set():
            raise KeyboardInterrupt
        first = time.monotonic()
        stop.set()
        show("interrupted: reporting what was gathered so far (a second Ctrl-C drops it)")

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    asked = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in asked}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _capture_cluster(
    address: str | None, job_id: str | None, collect: CollectOptions, timeout_s: float, show: Callable[..., None], stop: threading.Event
) -> Snapshot:
    from ray_rl_debug.capture.cluster import ClusterOptions, take_snapshot

    options = ClusterOptions(address=address, job_id=job_id, collect=collect, timeout_s=timeout_s)
    return take_snapshot(options, progress=show, stop=stop)


def _capture_here(collect: CollectOptions, show: Callable[..., None], stop: threading.Event) -> Snapshot:
    from ray_rl_debug.capture.here import take_here

    return take_here(collect, progress=show, stop=stop)
