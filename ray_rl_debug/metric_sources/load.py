"""Which form a source has, and the run that it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ray_rl_debug.metric_sources import console, document, jsonl, mlflow, mlflow_database, table, tensorboard, wandb
from ray_rl_debug.metric_sources.gathered import Gathered
from ray_rl_debug.metric_sources.lines import open_lines
from ray_rl_debug.metrics.model import Run
from ray_rl_debug.model.errors import UnreadableFileError, UsageError

_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_HEAD_CHARS = 4096


def load(paths: Sequence[Path], names: Mapping[str, str], settings: Mapping[str, str] | None = None, wanted: str | None = None) -> Run:
    """One run from all its sources.

    Args:
        names: ``step`` or a quantity, and the column that holds it.
        settings: what the user says of the run; it counts more than what the sources say.
        wanted: id or name of the run, where a source holds several.

    Raises:
        UnreadableFileError: a source is of no form that is known, or cannot be opened.
        UsageError: a source holds several runs, or none that is called so.
        MissingExtraError: the reader of a form is not installed.
    """
    gathered = Gathered(paths[0].name or str(paths[0]))
    for path in paths:
        if wanted is not None and path.is_file() and not mlflow_database.is_database(path):
            raise UsageError(
                f"{path.name} holds one run, not several", hint="leave --run out: it names a run of a folder, or of a database of MLflow"
            )
        one = Gathered(gathered.label)
        try:
            if path.is_dir():
                _read_folder(path, one, names, wanted)
            else:
                _read_file(path, one, names, wanted)
        except OSError as e:
            raise UnreadableFileError(f"cannot read {path}: {e.strerror or e}") from e
        gathered.take(one)
    gathered.settings.update(settings or {})
    run = gathered.run()
    columns = [c for q, c in names.items() if q != "step"]
    missing = [c for c in columns if c not in run.series]
    if missing:
        raise UsageError(f"no metric {missing[0]!r} is in the source", hint=f"it holds: {', '.join(list(run.series)[:12]) or 'none'}")
    return run


def _read_file(path: Path, into: Gathered, names: Mapping[str, str], wanted: str | None) -> None:
    if not path.stat().st_size:
        into.trouble(str(path), "the file is empty")
    elif mlflow_database.is_database(path):
        mlflow_database.read(path, into, wanted)
    elif path.suffix == ".wandb":
        wandb.read(path, into)
    elif tensorboard.MARK in path.name:
        tensorboard.read(path, into)
    elif path.name.endswith(_TABLES):
        table.read(path, into, names)
    else:
        with open_lines(path) as f:
            try:
                head = f.read(_HEAD_CHARS)
            except (EOFError, OSError, ValueError) as e:
                raise UnreadableFileError(f"{path}: damaged ({e})") from e
        if "\0" in head:
            raise UnreadableFileError(f"{path}: binary data, of no form that is known")
        _read_text(head, path, into, names)


def _read_text(head: str, path: Path, into: Gathered, names: Mapping[str, str]) -> None:
    first = head.lstrip().partition("\n")[0].strip()
    if first in ("{", "[") or first.startswith("[{"):
        document.read(path, into, names)
    elif first.startswith("{") and not first.startswith("{'"):
        jsonl.read(path, into, names)
    else:
        console.read(path, into, names)


def _read_folder(path: Path, into: Gathered, names: Mapping[str, str], wanted: str | None) -> None:
    """The one run in a folder."""
    runs: list[Path]
    if runs := mlflow.runs_in(path):
        mlflow.read(_only(path, runs, wanted), into)
    elif runs := wandb.files_in(path):
        wandb.read(_only(path, runs, wanted), into)
    elif runs := tensorboard.files_in(path):
        folders = sorted({r.parent for r in runs})
        are_parts = wanted is None and len(folders) > 1 and tensorboard.are_parts(folders)
        chosen = folders if are_parts else [_only(path, folders, wanted)]
        for folder in chosen:
            for file in (r for r in runs if r.parent == folder):
                tensorboard.read(file, into, f"{folder.name}/" if are_parts else "")
    elif runs := mlflow_database.files_in(path):
        mlflow_database.read(_only(path, runs, None), into, wanted)
    elif runs := sorted(p for p in path.rglob("*.jsonl") if p.is_file()):
        jsonl.read(_only(path, runs, wanted), into, names)
    else:
        raise UnreadableFileError(f"{path}: no metrics of a form that is known", hint="name the file: a log, JSONL, CSV, event file or run-*.wandb")


def _only(folder: Path, runs: Sequence[Path], wanted: str | None) -> Path:
    """The one run, or the one that is wanted by the name of its file or folder."""
    found = [r for r in runs if wanted is None or wanted in (r.name, r.stem, r.parent.name) or wanted == _shown(folder, r)]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(_shown(folder, r) for r in (found or runs)[:4]) + (", ..." if len(found or runs) > 4 else "")
    held = f"{len(runs)} runs" if wanted is None else f"{len(found) or 'no'} run{'s' if len(found) > 1 else ''} called {wanted}"
    raise UsageError(f"{folder} holds {held}", hint=f"name one of them, by its path or with --run: {shown}")


def _shown(folder: Path, run: Path) -> str:
    return str(run.relative_to(folder)) if run.is_relative_to(folder) else str(run)
