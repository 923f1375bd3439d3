"""``rayrl-debug watch``: the companion of a run."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ray_rl_debug.bounded.stop_event import StopEvent
from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from ray_rl_debug.otel.settings import Settings
    from ray_rl_debug.otel.telemetry import Telemetry
    from ray_rl_debug.watch.crew import Crew
    from ray_rl_debug.watch.options import WatchOptions
    from ray_rl_debug.watch.trackers import Tracker

EPILOG = """\b
Examples:
  # beside the run; needs no free CPU
  ray job submit --no-wait -- rayrl-debug watch -o /shared/watch
  # in a terminal, on any node
  rayrl-debug watch
  # one job; ends when it hangs
  rayrl-debug watch --job 02000000 --once-hung exit
  # also tell when it is alive and learns nothing
  rayrl-debug watch --metrics /shared/logs/run.jsonl
  # tell people
  rayrl-debug watch --slack-file ~/.slack-webhook
  rayrl-debug watch --on-hang \\
    'mail -s "$RAYRL_DEBUG_HEADLINE" me < "$RAYRL_DEBUG_REPORT_TEXT"'
  # an alert in W&B, or tags of the MLflow run
  rayrl-debug watch --wandb my-team/rl
  # traces, gauges and verdicts to OpenTelemetry
  OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 rayrl-debug watch

\b
The command of --on-hang finds in its environment: RAYRL_DEBUG_HEADLINE
(a subject), _SHORT (three lines for a telephone), _SUMMARY, _STATE,
_CERTAINTY, _RULE, _CAUSE, _WHO, _JOB, _STALLED_S, _FOLDER, _REPORT (JSON),
_REPORT_TEXT, _REPORT_HTML. OTEL_* variables mean what OpenTelemetry says.
Addresses of --webhook and --slack are secrets, and others can read a command
line: put them into a file, or into RAYRL_DEBUG_WEBHOOK and RAYRL_DEBUG_SLACK.

\b
Exit codes: 0 the run went on or ended, 1 it hangs, 2 wrong usage,
130 interrupted.
"""


_URL_FILE = click.Path(dir_okay=False, path_type=Path)


FILES = 128
"""That the companion may open at least: connections to Ray, to its watchers, and what a snapshot reads."""


@click.command(epilog=EPILOG)
@click.option("--address", metavar="HOST:PORT", help="Address of the cluster; not needed where one runs here.")
@click.option("--job", "job_id", metavar="ID", help="Watch only this Ray job: its id or its submission id.  [default: all jobs]")
@click.option(
    "-o",
    "--output",
    type=PatientPath(file_okay=False, path_type=Path),
    default=Path("rayrl-debug-watch"),
    show_default=True,
    metavar="DIR",
    help="Write history, snapshots and reports here; a shared folder outlives the node.",
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(0.5, 60),
    default=2.0,
    show_default=True,
    help="Seconds between two readings. It reads twice as often while something stands still, and less often once the run is known.",
)
@click.option("--stall-floor", type=click.FloatRange(min=1), default=10.0, show_default=True, help="No shorter stall (in seconds) is called a hang.")
@click.option("--stall-ceiling", type=click.FloatRange(min=1), default=1800.0, show_default=True, help="Seconds after which every stall is reported.")
@click.option(
    "--stall-first", type=click.FloatRange(min=1), default=180.0, show_default=True, help="Seconds allowed to a call that never ended before."
)
@click.option(
    "--once-hung", type=click.Choice(("exit", "stay")), default="stay", show_default=True, help="End, or go on watching, after a hang was reported."
)
@click.option("--on-hang", metavar="COMMAND", help="Run this shell command when a run hangs.")
@click.option(
    "--webhook", "webhooks", multiple=True, metavar="URL", envvar="RAYRL_DEBUG_WEBHOOK", help="Send each verdict there as JSON. Repeatable."
)
@click.option("--webhook-file", type=_URL_FILE, metavar="FILE", help="Addresses for --webhook, one in each line.")
@click.option("--slack", multiple=True, metavar="URL", envvar="RAYRL_DEBUG_SLACK", help="Send each verdict to this Slack webhook. Repeatable.")
@click.option("--slack-file", type=_URL_FILE, metavar="FILE", help="Addresses for --slack, one in each line.")
@click.option("--wandb", metavar="[ENTITY/]PROJECT", help="Send each verdict as a W&B alert, from a run of its own in this project.")
@click.option("--mlflow", metavar="RUN_ID", help="Set each verdict as tags of this MLflow run.")
@click.option("--stop-job", is_flag=True, help="End the driver of a hung job once the verdict has held for 30 s.")
@click.option(
    "--otel-file", type=PatientPath(dir_okay=False, path_type=Path), metavar="FILE", help="Write traces, gauges and verdicts as OTLP-JSON lines."
)
@click.option("--prometheus-port", type=click.IntRange(1, 65535), metavar="PORT", help="Offer the gauges to Prometheus.")
@click.option(
    "--metrics",
    "metrics_source",
    type=PatientPath(path_type=Path),
    metavar="SOURCE",
    help="Judge these metrics of the run too, as rayrl-debug metrics does; the file may appear later.",
)
@click.option(
    "--ray-agents", is_flag=True, help="Watch through Ray actors, for nodes that may not connect to each other; each costs 0.5 % of a core."
)
@click.option("-q", "--quiet", is_flag=True, help="Print events only, no table of roles.")
def watch(
    address: str | None,
    job_id: str | None,
    output: Path,
    interval_s: float,
    stall_floor: float,
    stall_ceiling: float,
    stall_first: float,
    once_hung: str,
    on_hang: str | None,
    webhooks: tuple[str, ...],
    webhook_file: Path | None,
    slack: tuple[str, ...],
    slack_file: Path | None,
    wandb: str | None,
    mlflow: str | None,
    stop_job: bool,
    otel_file: Path | None,
    prometheus_port: int | None,
    metrics_source: Path | None,
    ray_agents: bool,
    quiet: bool,
) -> int:
    """Stay beside a run and report a hang while it lasts.

    Reads a few numbers of each process every two seconds, and takes a snapshot when progress stops, before anything is killed. Learns from the
    run itself how long calls usually take. Ends when the job ends. If it is killed or fails, it starts again and goes on with the same history.
    """
    if stall_floor > stall_ceiling:
        raise UsageError("--stall-floor is above --stall-ceiling", hint="a floor of 10 and a ceiling of 1800 seconds are the defaults")
    _warn_of_visible(click.get_current_context())
    webhooks, slack = (*webhooks, *_read_urls(webhook_file)), (*slack, *_read_urls(slack_file))
    _check_urls((*webhooks, *slack))
    trackers = _trackers(wandb, mlflow)
    from ray_rl_debug.commands.shortages import require_descriptors
    from ray_rl_debug.watch.keeper import keep_alive

    require_descriptors(FILES)

    code = keep_alive()
    if code is not None:
        return code
    from ray_rl_debug.commands.streams import drop_stalled_output

    drop_stalled_output()
    from ray_rl_debug.otel.settings import read_settings
    from ray_rl_debug.watch.learn import Limits
    from ray_rl_debug.watch.options import WatchOptions

    settings = read_settings(os.environ, file=otel_file, prometheus_port=prometheus_port)
    telemetry = _open_telemetry(settings) if settings.is_on else None
    options = WatchOptions(
        job_id=job_id,
        output=output,
        interval_s=interval_s,
        limits=Limits(floor_s=stall_floor, ceiling_s=stall_ceiling, first_s=max(stall_first, stall_floor)),
        exit_once_hung=once_hung == "exit",
        stop_job=stop_job,
        on_hang=on_hang,
        webhooks=webhooks,
        slack=slack,
        trackers=trackers,
    )
    return _run(address, options, telemetry, metrics_source, ray_agents=ray_agents, quiet=quiet)


def _run(
    address: str | None, options: WatchOptions, telemetry: Telemetry | None, metrics_source: Path | None, *, ray_agents: bool, quiet: bool
) -> int:
    from ray_rl_debug.capture.cluster import ClusterOptions
    from ray_rl_debug.cluster.address import find_address
    from ray_rl_debug.cluster.auth import with_token
    from ray_rl_debug.cluster.node_choice import unique_names
    from ray_rl_debug.ray_state.roll_call import RollCall, call_roll
    from ray_rl_debug.watch.crew import AgentCrew, look_options
    from ray_rl_debug.watch.last_check import finished_calls
    from ray_rl_debug.watch.learning import Learning
    from ray_rl_debug.watch.live import Live
    from ray_rl_debug.watch.loop import Companion
    from ray_rl_debug.watch.watchers import WatcherCrew, own_address

    found = find_address(address, os.environ)
    live = Live(sys.stdout, is_terminal=sys.stdout.isatty() and not quiet, is_quiet=quiet)
    last = RollCall()

    def roll(workers_of: Collection[str]) -> RollCall:
        nonlocal last
        last = with_token(lambda: call_roll(found, workers_of=workers_of), lambda said: click.echo(said, err=True))
        return last

    def nodes() -> dict[str, tuple[str, str]]:
        alive = [n for n in last.nodes if n.alive]
        return {n.node_id: (name, n.ip) for n, name in zip(alive, unique_names(alive).values(), strict=True)}

    cluster = ClusterOptions(address=found, collect=look_options(3, 0.75), timeout_s=20.0)
    keeper = uuid.uuid4().hex[:12]
    host = None if ray_agents else own_address(roll(()).nodes)
    crew: Crew = AgentCrew(cluster, keeper) if host is None else WatcherCrew(cluster, nodes, keeper, host=host)
    companion = Companion(
        options,
        crew,
        roll,
        live,
        listener=telemetry,
        end_driver=crew.end_process,
        address=found,
        finished=lambda job: finished_calls(found, job),
        learning=Learning(metrics_source, clock=time.monotonic) if metrics_source is not None else None,
    )
    stop = StopEvent()
    with_signals(stop)
    companion.run(stop)
    return EXIT_FINDINGS if companion.hung else EXIT_OK


def with_signals(stop: threading.Event) -> None:
    """SIGTERM (``ray job stop``), SIGHUP and the first Ctrl-C end the watch tidily, the second Ctrl-C at once."""

    def leave(number: int, frame: object) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, leave)


def _open_telemetry(settings: Settings) -> Telemetry:
    from ray_rl_debug.otel.telemetry import Telemetry

    return Telemetry(settings)


def _trackers(wandb: str | None, mlflow: str | None) -> tuple[Tracker, ...]:
    """Raises MissingExtraError before the watch begins."""
    from ray_rl_debug.watch.trackers import Tracker, check_installed

    if wandb is not None and (wandb.count("/") > 1 or not all(part.strip() for part in wandb.split("/"))):
        raise UsageError("--wandb wants PROJECT or ENTITY/PROJECT", hint="rayrl-debug watch --wandb my-team/rl")
    if mlflow is not None and not mlflow.strip():
        raise UsageError("--mlflow wants the id of a run", hint="its page in MLflow shows it: rayrl-debug watch --mlflow RUN_ID")
    found = (*((Tracker(kind="wandb", target=wandb),) if wandb else ()), *((Tracker(kind="mlflow", target=mlflow),) if mlflow else ()))
    check_installed(found)
    return found


def _read_urls(file: Path | None) -> tuple[str, ...]:
    """The lines of a file; empty ones and those that begin with ``#`` are left out."""
    if file is None:
        return ()
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError as e:
        raise UsageError(f"cannot read {file}: {e.strerror}", hint="write one address in each line, and let nobody else read the file") from e
    return tuple(line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))


def _warn_of_visible(context: click.Context) -> None:
    """Whoever holds such an address may post there: say where else it can be read."""
    given = [f"--{option}" for name, option in (("webhooks", "webhook"), ("slack", "slack")) if _is_on_command_line(context, name)]
    if given:
        option = given[0]
        click.echo(f"others can read the address of {option} in ps and in Ray's table of jobs: give it in a file, {option}-file FILE", err=True)


def _is_on_command_line(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _check_urls(urls: tuple[str, ...]) -> None:
    for url in urls:
        if not url.startswith(("http://", "https://")):
            raise UsageError("a webhook begins with http:// or https://", hint="for anything else use --on-hang COMMAND")
