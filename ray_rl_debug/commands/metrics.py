"""``rayrl-debug metrics``: is the learning healthy?"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ray_rl_debug.commands.options import is_colour_wanted, progress
from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_NO_VERDICT, EXIT_OK, UnreadableFileError, UsageError

if TYPE_CHECKING:
    from ray_rl_debug.metrics.model import Comparison, MetricsReport, Run

EPILOG = """\b
Examples:
  rayrl-debug metrics logs/exp/run.jsonl       # verl's file logger
  rayrl-debug metrics train.log                # console of verl or AReaL
  rayrl-debug metrics tensorboard/run1         # or wandb/offline-run-...
  rayrl-debug metrics mlruns -o learning       # and write a page
  rayrl-debug metrics a.jsonl b.jsonl          # where two runs part
  rayrl-debug metrics train.log --follow       # while it runs
  rayrl-debug metrics t.csv --map reward=score --threshold policy_kl=0.2

\b
Exit codes: 0 the learning is healthy (two runs do not part), 1 findings,
2 wrong usage, 3 too little to say, 130 interrupted.
"""
FORMATS = ("terminal", "json", "html")


@click.command(epilog=EPILOG)
@click.argument("sources", nargs=-1, required=True, type=PatientPath(exists=True, path_type=Path), metavar="SOURCE...")
@click.option("--map", "names", multiple=True, metavar="NAME=COLUMN", help="Which column holds the step or a quantity. Repeatable.")
@click.option("--threshold", "thresholds", multiple=True, metavar="NAME=VALUE", help="Set where a rule draws its line. Repeatable.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="What the source does not tell: gpu=A100, engine=vllm. Repeatable.")
@click.option("--run", "wanted", metavar="ID", help="Which run, where a source holds several: its id or name.")
@click.option("--follow", "is_followed", is_flag=True, help="Stay until the run ends: a line for each step, findings as they appear.")
@click.option(
    "--interval", "interval_s", type=click.FloatRange(min=0.5), default=10.0, show_default=True, help="With --follow: seconds between two looks."
)
@click.option("--engine", metavar="URL", help="With --follow: show the numbers of this vLLM or SGLang beside the steps.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="Format of the report.")
@click.option("--json", "as_json", is_flag=True, help="Print the report, or the error, as one JSON document.")
@click.option("-o", "--output", type=PatientPath(file_okay=False, path_type=Path), metavar="DIR", help="Write all files into DIR.")
@click.option("-v", "--verbose", is_flag=True, help="Show all judgements and all plots.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr.")
@click.option("--no-color", is_flag=True, help="No colours. NO_COLOR and a pipe have the same effect.")
def metrics(
    sources: tuple[Path, ...],
    names: tuple[str, ...],
    thresholds: tuple[str, ...],
    settings: tuple[str, ...],
    wanted: str | None,
    is_followed: bool,
    interval_s: float,
    engine: str | None,
    format_: str,
    as_json: bool,
    output: Path | None,
    verbose: bool,
    quiet: bool,
    no_color: bool,
) -> int:
    """Judge the metrics of a run; with two, say where they part.

    SOURCE is a log of verl or AReaL (also through Ray), verl's file logger, any JSONL or CSV with a column of steps, a TensorBoard folder, an offline
    run of W&B, or a database or folder of MLflow. Each rule names the first step at which it went wrong. No verdict is given from a few points.
    """
    from ray_rl_debug.metric_sources.load import load
    from ray_rl_debug.metrics.thresholds import read_thresholds

    if len(sources) > 2:
        raise UsageError(f"{len(sources)} sources were given", hint="give one run, or two to compare them")
    columns, known = _pairs("--map", names), _pairs("--set", settings)
    _check_names(columns)
    _check_settings(known)
    limits = read_thresholds(thresholds)
    format_ = "json" if as_json else format_
    if is_followed:
        if len(sources) > 1:
            raise UsageError("--follow takes one run", hint="compare two runs without --follow")
        return _follow(sources[0], columns, known, wanted, limits, engine, interval_s, output, format_, verbose, quiet, no_color)
    if engine is not None:
        raise UsageError("--engine is asked again and again", hint="add --follow")
    runs = [load([path], columns, known, wanted) for path in sources]
    if len(runs) == 2:
        from ray_rl_debug.metrics.compare import compare

        return _show_comparison(compare(runs[0], runs[1], limits, columns), format_, verbose, no_color)
    report = _judge(runs[0], limits, columns)
    if output is not None:
        _save(output, report, runs[0])
        progress(quiet)(f"saved in {output}")
    _show(report, runs[0], format_, verbose, no_color)
    return _exit_code(report)


def _follow(
    source: Path,
    columns: dict[str, str],
    known: dict[str, str],
    wanted: str | None,
    limits: dict[str, float],
    engine: str | None,
    interval_s: float,
    output: Path | None,
    format_: str,
    verbose: bool,
    quiet: bool,
    no_color: bool,
) -> int:
    from ray_rl_debug.bounded.stop_event import StopEvent
    from ray_rl_debug.commands.metrics_follow import Following, follow
    from ray_rl_debug.commands.watch import with_signals
    from ray_rl_debug.metric_sources.engine import EngineReader
    from ray_rl_debug.metric_sources.follow import Follower
    from ray_rl_debug.metric_sources.load import load

    reader = EngineReader(engine) if engine is not None else None
    following = Following(lambda: load([source], columns, known, wanted), lambda run: _judge(run, limits, columns), columns, reader)
    stop = StopEvent()
    with_signals(stop)
    follow(following, Follower([source]), stop, interval_s, quiet=quiet or format_ != "terminal")
    if following.report is None or following.run is None:
        raise UnreadableFileError(f"nothing could be read from {source}")
    if output is not None:
        _save(output, following.report, following.run)
        following.keep_numbers(output)
        progress(quiet)(f"saved in {output}")
    _show(following.report, following.run, format_, verbose, no_color)
    return EXIT_INTERRUPTED if stop.is_set() else _exit_code(following.report)


def _judge(run: Run, limits: dict[str, float], columns: dict[str, str]) -> MetricsReport:
    from ray_rl_debug import __version__
    from ray_rl_debug.metrics.judge import judge

    return judge(run, limits, columns, tool_version=__version__)


def _show(report: MetricsReport, run: Run, format_: str, verbose: bool, no_color: bool) -> None:
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.render.learning import render

    if format_ == "json":
        click.echo(encode(report).decode())
    elif format_ == "html":
        from ray_rl_debug.render.html import learning

        click.echo(learning.render(report, run))
    else:
        for line in render(report, run, width=_width(), colour=is_colour_wanted(no_color), verbose=verbose):
            click.echo(line)


def _show_comparison(found: Comparison, format_: str, verbose: bool, no_color: bool) -> int:
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.render.learning import render_comparison

    if format_ == "html":
        raise UsageError("two runs are compared as a table or as JSON", hint="leave --format html out")
    if format_ == "json":
        click.echo(encode(found).decode())
    else:
        for line in render_comparison(found, width=_width(), colour=is_colour_wanted(no_color), verbose=verbose):
            click.echo(line)
    return EXIT_FINDINGS if found.parted else EXIT_OK if found.alike else EXIT_NO_VERDICT


def _save(folder: Path, report: MetricsReport, run: Run) -> None:
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.model.whole_files import write_whole
    from ray_rl_debug.render.html import learning
    from ray_rl_debug.render.learning import render

    write_whole(folder / "metrics.json", encode(report))
    write_whole(folder / "metrics.html", learning.render(report, run).encode("utf-8", "replace"))
    text = "\n".join(render(report, run, colour=False, verbose=True)) + "\n"
    write_whole(folder / "metrics.txt", text.encode("utf-8", "replace"))


def _exit_code(report: MetricsReport) -> int:
    from ray_rl_debug.metrics.model import State

    return {State.HEALTHY: EXIT_OK, State.TROUBLE: EXIT_FINDINGS, State.UNKNOWN: EXIT_NO_VERDICT}[report.verdict.state]


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equal, value = text.partition("=")
        if not equal or not name.strip() or not value.strip():
            raise UsageError(f"{option} {text!r} has no name and value", hint=f"write it as {option} NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def _check_names(columns: dict[str, str]) -> None:
    from ray_rl_debug.metrics.quantities import Quantity

    known = ("step", *(q.value for q in Quantity))
    for name in columns:
        if name not in known:
            raise UsageError(f"--map knows no quantity {name!r}", hint=f"the quantities are: {', '.join(known)}")


def _check_settings(known: dict[str, str]) -> None:
    from ray_rl_debug.metrics.bench import SETTINGS, last_part

    for key in known:
        if last_part(key) not in SETTINGS and not key.endswith("rollout.name"):
            raise UsageError(f"no rule asks for the setting {key!r}", hint=f"the settings are: {', '.join(SETTINGS)}")


def _width() -> int:
    return min(max(shutil.get_terminal_size((100, 24)).columns, 60), 120) if sys.stdout.isatty() else 100
