"""What the companion knows and did, on disk: one folder per run, bounded, whole after a crash.

    OUTPUT/JOB/history.jsonl     one line per event: started, look, verdict, progress, ended
    OUTPUT/JOB/learned.json      what the run has taught (how long calls last)
    OUTPUT/JOB/2026-11-21T03-12-45Z/snapshot.json.gz report.json ...

A full disk, or a file system that hangs, costs what is not written and nothing else: `History.trouble` says so, the rest goes on in memory.
"""

from __future__ import annotations

import datetime
import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.errors import OutputError
from ray_rl_debug.model.snapshot import RayJob
from ray_rl_debug.model.whole_files import write_whole
from ray_rl_debug.watch.learn import Learned

T = TypeVar("T")

MAX_HISTORY_BYTES = 1 << 20
"""Of history.jsonl; the older half goes when it is full."""
KEPT_EVENTS = 2000
_FILE = re.compile(r"^\.?(snapshot\.json\.gz|report\.(json|txt|html)|run\.pftrace|tasks\.json\.gz|timeline\.json)(\.\w+)?$")
"""What a look writes, also half written."""
DISK_S = 5.0
"""For one thing we do on disk."""
REST_S = 60.0
"""A file system that did not answer is not asked again for so long: the watch must go on."""
_FOLDER = re.compile(r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(-\d+)?$")


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the history."""

    time_s: float
    """Unix time."""
    kind: str
    """``started``, ``progress``, ``look``, ``verdict``, ``slow``, ``recovered``, ``node``, ``learning``, ``trouble``, ``ended``."""
    text: str = ""
    state: str | None = None
    key: str | None = None
    """Of a verdict: equal keys are the same trouble."""
    folder: str | None = None
    """Of a look: where its files are, below the run's folder."""
    age_s: float | None = None
    """Since the last progress."""
    numbers: dict[str, float] = {}


def folder_of_run(job: RayJob) -> str:
    """One folder per run: Ray counts jobs from 1 again in every session, so the start belongs to the name."""
    start = time.strftime("%Y%m%d-%H%M%S", time.gmtime(job.start_time_s)) if job.start_time_s else "unknown"
    return f"job-{job.job_id}-{start}"


class History:
    """The history of one run."""

    def __init__(self, folder: Path, *, max_bytes: int = MAX_HISTORY_BYTES) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self.trouble: str | None = None
        """Why something could not be written; None when all was."""
        self._max_bytes = max_bytes
        self._unwritten: list[Event] = []
        self._hung_until = 0.0

    def load(self) -> Learned:
        """Read what an earlier companion of the same run left. A damaged line is skipped."""
        try:
            self.events = self._on_disk(lambda: list(_events(self.folder / "history.jsonl"))[-KEPT_EVENTS:])
            return msgspec.json.decode(self._on_disk((self.folder / "learned.json").read_bytes), type=Learned)
        except (OSError, msgspec.DecodeError):
            return Learned()

    def add(self, event: Event) -> None:
        """Keep an event, and write it with those that could not be written before."""
        self.events = [*self.events[-KEPT_EVENTS:], event]
        self._unwritten = [*self._unwritten[-KEPT_EVENTS:], event]
        path, data = self.folder / "history.jsonl", b"".join(encode(e) + b"\n" for e in self._unwritten)
        try:
            self._on_disk(lambda: self._write(path, data))
        except (OSError, OutputError) as e:
            self.trouble = f"cannot write {path}: {getattr(e, 'strerror', None) or e}"
            return
        self._unwritten, self.trouble = [], None

    def save_learned(self, learned: Learned) -> None:
        path, data = self.folder / "learned.json", encode(learned)
        try:
            self._on_disk(lambda: write_whole(path, data))
        except (OSError, OutputError) as e:
            self.trouble = f"cannot write {path}: {e.strerror}" if isinstance(e, OSError) else str(e)

    def new_folder(self, now_s: float) -> Path:
        """A name for the files of a look; the folder is not made yet."""
        name = datetime.datetime.fromtimestamp(now_s, datetime.timezone.utc).strftime("%Y-%m-%dT%H-%M-%SZ")
        taken = {e.folder for e in self.events if e.folder}
        names = [n for n in (f"{name}-{n}" if n else name for n in range(1000)) if n not in taken]
        try:
            return self._on_disk(lambda: self.folder / next(n for n in names if not (self.folder / n).exists()))
        except OSError:
            return self.folder / names[0]

    def is_hung(self) -> bool:
        """Did the file system not answer lately?"""
        return time.monotonic() < self._hung_until

    def remove(self, folder: Path) -> None:
        """Remove the folder of a look; that this fails costs nothing."""
        try:
            self._on_disk(lambda: remove_look(folder))
        except OSError:
            pass

    def prune(self, *, keep: int, max_bytes: int, spare: frozenset[str] = frozenset(), remove: Callable[[Path], None] | None = None) -> list[str]:
        """Remove the oldest looks beyond `keep` or `max_bytes` in all; those named in `spare` (verdicts) go last, the newest never."""
        try:
            return self._on_disk(lambda: self._prune(keep, max_bytes, spare, remove or remove_look))
        except OSError:
            return []

    def _prune(self, keep: int, max_bytes: int, spare: frozenset[str], drop: Callable[[Path], None]) -> list[str]:
        folders = self.folders()
        sizes = {f.name: _size(f) for f in folders}
        order = [f for f in folders[:-1] if f.name not in spare] + [f for f in folders[:-1] if f.name in spare]
        removed = []
        for folder in order:
            if len(sizes) <= keep and sum(sizes.values()) <= max_bytes:
                break
            drop(folder)
            sizes.pop(folder.name)
            removed.append(folder.name)
        return removed

    def folders(self) -> list[Path]:
        """Folders of looks, oldest first."""
        try:
            return sorted(p for p in self.folder.iterdir() if _FOLDER.match(p.name) and p.is_dir() and not p.is_symlink())
        except OSError:
            return []

    def last(self, kind: str) -> Event | None:
        return next((e for e in reversed(self.events) if e.kind == kind), None)

    def _on_disk(self, function: Callable[[], T]) -> T:
        """Do something on disk within a deadline."""
        if self.is_hung():
            raise TimeoutError(errno.ETIMEDOUT, "the file system did not answer a moment ago")
        try:
            return within(DISK_S, function)
        except TimeoutError:
            self._hung_until = time.monotonic() + REST_S
            raise

    def _write(self, path: Path, data: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > self._max_bytes:
            self._shorten(path)
        self._append(path, data)

    def _shorten(self, path: Path) -> None:
        kept = list(_events(path))
        write_whole(path, b"".join(encode(e) + b"\n" for e in kept[len(kept) // 2 :]))

    def _append(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # one write: two companions that share a folder do not mix their lines; what a full disk cuts off is taken back
            size = os.fstat(descriptor).st_size
            if size and not _ends_line(path):
                data = b"\n" + data  # somebody's last line was cut off
            written = os.write(descriptor, data)
            if written < len(data):
                os.ftruncate(descriptor, size)
                raise OSError(28, "No space left on device")
        finally:
            os.close(descriptor)


def remove_look(folder: Path) -> None:
    """Remove the files of a look that we wrote, and the folder when nothing else is in it: notes that somebody put there stay."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)  # what is swapped for it meanwhile is not touched
    except OSError:
        return
    try:
        with os.scandir(held) as entries:
            ours = [e.name for e in entries if _FILE.match(e.name) and not e.is_dir(follow_symlinks=False)]
        for name in ours:
            os.unlink(name, dir_fd=held)
        os.rmdir(folder)
    except OSError:
        pass  # somebody else's file is in it, or the disk is gone
    finally:
        os.close(held)


def _ends_line(path: Path) -> bool:
    with path.open("rb") as f:
        f.seek(-1, os.SEEK_END)
        return f.read(1) == b"\n"


def _events(path: Path) -> Iterator[Event]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=Event)
        except msgspec.DecodeError:
            continue  # cut off by a crash or a full disk


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total
