"""Options that several verbs share, spelled the same everywhere, and the one way a report reaches the reader."""

from __future__ import annotations

import os
import queue
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ray_rl_debug.commands.paths import PatientPath
from ray_rl_debug.report import Certainty, Report, State
from ray_rl_debug.snapshot import Snapshot

if TYPE_CHECKING:
    from ray_rl_debug.render.html.strips import Strip

F = TypeVar("F", bound=Callable[..., object])

SAVE_S = 20.0
"""For one file; the snapshot of 1,000 ranks is some tens of MB."""
FORMATS = ("terminal", "json", "markdown", "html", "speedscope")


def rendering(f: F) -> F:
    """``--format``, ``--json``, ``-o``, ``-v``, ``-q`` and ``--no-color``."""
    for option in (
        click.option("--no-color", is_flag=True, help="No colours; NO_COLOR and a pipe do the same."),
        click.option("-q", "--quiet", is_flag=True, help="No progress on stderr."),
        click.option("-v", "--verbose", is_flag=True, help="Everything: all stacks, all ranks, all evidence."),
        click.option("-o", "--output", type=PatientPath(file_okay=False, path_type=Path), metavar="DIR", help="Keep the files in DIR."),
        click.option("--json", "as_json", is_flag=True, help="The report as one JSON document, also for errors."),
        click.option("--format", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="How the report is shown."),
    ):
        f = option(f)
    return f


def is_colour_wanted(no_color: bool) -> bool:
    """Colours only for a person: not for a pipe, not with ``NO_COLOR`` or a dumb terminal."""
    return not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def progress(quiet: bool) -> Callable[..., None]:
    """A function that shows one line of progress on stderr; silent with ``-q``."""
    from ray_rl_debug.collect.masking import mask
    from ray_rl_debug.render.terminal import neutralise

    def show(*parts: object) -> None:
        if not quiet:
            click.echo(neutralise(mask(" ".join(str(p) for p in parts))), err=True)

    return show


def show_report(report: Report, snapshot: Snapshot | None, *, format_: str, as_json: bool, no_color: bool, verbose: bool) -> None:
    """Print the report on stdout; html and speedscope say more where the snapshot is at hand."""
    from ray_rl_debug.codec import encode
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


def save(folder: Path, report: Report, snapshot: Snapshot | None, *, is_saved: bool = False, history: Sequence[Strip] = ()) -> None:
    """Write ``report.json``, ``report.txt``, ``report.html`` and, where there is one that is not saved yet, ``snapshot.json.gz``.

    `history` is what a companion saw before the capture, for the page.

    Raises:
        OutputError: the folder cannot be written, or its file system does not answer.
    """
    from ray_rl_debug.codec import encode
    from ray_rl_debug.render import html, terminal

    if snapshot is not None and not is_saved:
        save_snapshot(folder, snapshot)
    _write(folder / "report.json", encode(report) + b"\n")
    text = "".join(line + "\n" for line in terminal.render(report, width=100, colour=False, verbose=True))
    _write(folder / "report.txt", text.encode("utf-8", "replace"))
    _write(folder / "report.html", html.render(report, snapshot, history=history).encode("utf-8", "replace"))


def save_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Write ``snapshot.json.gz`` alone: the facts must not be lost when their analysis fails. Raises as `save`."""
    from ray_rl_debug.codec import encode_compressed

    _write(folder / "snapshot.json.gz", encode_compressed(snapshot))


def _write(path: Path, data: bytes) -> None:
    from ray_rl_debug.codec import write_atomically
    from ray_rl_debug.errors import OutputError
    from ray_rl_debug.within import within

    try:
        within(SAVE_S, lambda: write_atomically(path, data))
    except TimeoutError as e:
        raise OutputError(f"cannot write {path}: {e.strerror}; its file system hangs") from e


class Saving:
    """Writes files beside what people are told meanwhile: a disk that hangs must not silence us, nor a terminal cost the files."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name="saving")
        self._thread.start()

    def begin(self, function: Callable[[], None]) -> None:
        """Do this next; nothing more once something has failed."""
        self._todo.put(function)

    def finish(self) -> Exception | None:
        """Wait for all; what went wrong first."""
        from ray_rl_debug.errors import OutputError

        self._todo.put(None)
        self._thread.join(2 * SAVE_S)
        return self._error or (OutputError("the files were not written in time") if self._thread.is_alive() else None)

    def _work(self) -> None:
        while (function := self._todo.get()) is not None:
            try:
                if self._error is None:
                    function()
            except Exception as e:  # noqa: BLE001 told by whoever waits for us
                self._error = e


def exit_code(report: Report) -> int:
    """0 nothing wrong and enough seen, 1 findings, 3 no verdict. A finding that is only *possible* decides nothing by itself."""
    from ray_rl_debug.errors import EXIT_FINDINGS, EXIT_NO_VERDICT, EXIT_OK

    if report.verdict.state in (State.HANG, State.SLOW):
        return EXIT_FINDINGS
    if any(f.root and f.certainty is not Certainty.POSSIBLE for f in report.findings):
        return EXIT_FINDINGS
    return EXIT_NO_VERDICT if report.verdict.state is State.UNKNOWN else EXIT_OK
