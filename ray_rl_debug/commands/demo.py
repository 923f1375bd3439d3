"""``rayrl-debug demo``: a small cluster, a real hang, a real report."""

from __future__ import annotations

from pathlib import Path

import click

from ray_rl_debug.commands.options import progress, rendering, show_report
from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_OK
from ray_rl_debug.saving.files import save


@click.command(epilog="\b\nExamples:\n  rayrl-debug demo\n  rayrl-debug demo -o demo  # write the snapshot and the report into demo/")
@rendering
def demo(format_: str, as_json: bool, output: Path | None, verbose: bool, quiet: bool, no_color: bool) -> int:
    """Hang a small job on a Ray of its own, and report on it.

    Exit codes: 0 the report names the true culprit, 1 it does not.
    """
    from ray_rl_debug.demo.run import run_demo

    show = progress(quiet)
    report, snapshot, right = run_demo(progress=show)
    if output is not None:
        save(output, report, snapshot)
    show_report(report, snapshot, format_=format_, as_json=as_json, no_color=no_color, verbose=verbose)
    show("the report names the true culprit" if right else "the report does NOT name the true culprit")
    return EXIT_OK if right else EXIT_FINDINGS
