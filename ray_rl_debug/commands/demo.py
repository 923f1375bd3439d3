"""``rayrl-debug demo``: a small cluster, a real hang, a real report."""

from __future__ import annotations

import click

from ray_rl_debug.commands.options import exit_code, progress, rendering, save, show_report
from ray_rl_debug.report import Report


@click.command(epilog="\b\nExamples:\n  rayrl-debug demo\n  rayrl-debug demo -o demo        keep the snapshot and the report")
@click.option("--scenario", metavar="NAME", default=None, help="Which hang to stage; the default is a straggler in a collective.")
@rendering
def demo(scenario: str | None, format_: str, as_json: bool, output: object, verbose: bool, quiet: bool, no_color: bool) -> int:
    """Start a small Ray cluster here, hang a real job on purpose, and report on it."""
    from pathlib import Path

    from ray_rl_debug.demo import run_demo

    result = run_demo(scenario=scenario, progress=progress(quiet))
    report, snapshot = result if isinstance(result, tuple) else (result, None)
    assert isinstance(report, Report)
    if isinstance(output, Path):
        save(output, report, snapshot)
    show_report(report, format_=format_, as_json=as_json, no_color=no_color, verbose=verbose)
    return exit_code(report)
