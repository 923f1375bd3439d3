"""The snapshot and its report as files of one folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Snapshot

if TYPE_CHECKING:
    from ray_rl_debug.render.html.strips import Strip

SAVE_S = 20.0
"""For one file; the snapshot of 1,000 ranks is some tens of MB."""


def save(folder: Path, report: Report, snapshot: Snapshot | None, *, is_saved: bool = False, history: Sequence[Strip] = ()) -> None:
    """Write ``report.json``, ``report.txt``, ``report.html`` and, where there is one that is not saved yet, ``snapshot.json.gz``.

    `history` is what a companion saw before the capture, for the page.

    Raises:
        OutputError: the folder cannot be written, or its file system does not answer.
    """
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.render import html, terminal

    if snapshot is not None and not is_saved:
        save_snapshot(folder, snapshot)
    _write(folder / "report.json", encode(report) + b"\n")
    text = "".join(line + "\n" for line in terminal.render(report, width=100, colour=False, verbose=True))
    _write(folder / "report.txt", text.encode("utf-8", "replace"))
    _write(folder / "report.html", html.render(report, snapshot, history=history).encode("utf-8", "replace"))


def save_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Write ``snapshot.json.gz`` alone: the facts must not be lost when their analysis fails. Raises as `save`."""
    from ray_rl_debug.model.codec import encode_compressed

    _write(folder / "snapshot.json.gz", encode_compressed(snapshot))


def _write(path: Path, data: bytes) -> None:
    from ray_rl_debug.bounded.calls import within
    from ray_rl_debug.model.errors import OutputError
    from ray_rl_debug.model.whole_files import write_whole

    try:
        within(SAVE_S, lambda: write_whole(path, data))
    except TimeoutError as e:
        raise OutputError(f"cannot write {path}: {e.strerror}; its file system hangs") from e
