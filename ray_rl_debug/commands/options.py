"""Options that several verbs share, spelled the same everywhere, and the one way a report reaches standard output."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import Snapshot

F = TypeVar("F", bound=Callable[..., object])

FORMATS = ("terminal", "json", "markdown", "html", "speedscope")


def rendering(f: F) -> F:
    """``--format``, ``--json``, ``-o``, ``-v``, ``-q`` and ``--no-color``."""
    for option in (
        click.option("--no-color", is_flag=True, help="No colours. NO_COLOR and a pipe have the same effect."),
        click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr."),
        click.option("-v", "--verbose", is_flag=True, help="Show all stacks, all ranks, all evidence."),
        click.option("-o", "--output", type=PatientPath(file_okay=False, path_type=Path), metavar="DIR", help="Write all files into DIR."),
        click.option("--json", "as_json", is_flag=True, help="Print the report, or the error, as one JSON document."),
        click.option("--format", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="Format of the report."),
    ):
        f = option(f)
    return f


def is_colour_wanted(no_color: bool) -> bool:
    """Colours only for a person: not for a pipe, not with ``NO_COLOR`` or a dumb terminal."""
    return not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def progress(quiet: bool) -> Callable[..., None]:
    """A function that shows one line of progress on stderr; silent with ``-q``."""
    from ray_rl_debug.privacy.masking import mask
    from ray_rl_debug.render.writer import neutralise

    def show(*parts: object) -> None:
        if not quiet:
            click.echo(neutralise(mask(" ".join(str(p) for p in parts))), err=True)

    return show


def show_report(report: Report, snapshot: Snapshot | None, *, format_: str, as_json: bool, no_color: bool, verbose: bool) -> None:
    """Print the report on stdout; html and speedscope say more where the snapshot is at hand."""
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.render import html, markdown, speedscope, terminal

    if as_json or format_ == "json":
        click.echo(encode(report).decode())
        return
    if format_ in ("html", "speedscope"):
        click.echo((html if format_ == "html" else speedscope).render(report, snapshot))
        return
    if format_ == "markdown":
        lines = markdown.render(report)
    else:
        width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 120) if sys.stdout.isatty() else 100
        lines = terminal.render(report, width=width, colour=is_colour_wanted(no_color), verbose=verbose)
    for line in lines:
        click.echo(line)


def exit_code(report: Report) -> int:
    """0 nothing wrong and enough seen, 1 findings, 3 no verdict. A finding that is only *possible* decides nothing by itself."""
    from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_NO_VERDICT, EXIT_OK

    if report.verdict.state in (State.HANG, State.SLOW):
        return EXIT_FINDINGS
    if any(f.root and f.certainty is not Certainty.POSSIBLE for f in report.findings):
        return EXIT_FINDINGS
    return EXIT_NO_VERDICT if report.verdict.state is State.UNKNOWN else EXIT_OK


def tell(error: Exception) -> None:
    """An error after the report was shown: on stderr alone, for standard output holds one document."""
    from ray_rl_debug.render.writer import neutralise

    hint, id_ = (error.hint, error.id) if isinstance(error, RayRlDebugError) else (RayRlDebugError.hint, RayRlDebugError.id)
    click.echo(f"error: {neutralise(str(error))}\nhint:  {hint}\nid:    {id_} (rayrl-debug explain {id_})", err=True)
