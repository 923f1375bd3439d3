"""Known errors in logs: the ends of Ray's session logs of this node, and log files that a user gives.

Only matching lines are kept, redacted and few per file; the logs themselves are never copied.
"""

from __future__ import annotations

import gzip
import os
import re
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.collect.procfs import PROC
from ray_rl_debug.model import gaps
from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.model.snapshot import Gap, LogLine, Process
from ray_rl_debug.privacy.redact import MAX_CHARS, redact
from ray_rl_debug.signatures.match import Hit, Matcher

TAIL_BYTES = 256 << 10
MAX_FILES = 200
DEADLINE_S = 2.0
FILE_S = 1.0
"""For one file, and for the folder: it may be on a hung file system."""
DEAD_AGE_S = 3600.0
"""What an ended worker wrote longer ago says nothing of this hang."""
MAX_LINES = 20
"""Kept per file: the first and the last few of each signature, then the last ones."""
MAX_GIVEN_FILES = 10_000
MAX_GIVEN_BYTES = 4 << 30
"""Read of one given file, unpacked."""
BLOCK_BYTES = 1 << 20

_OF_PROCESS = re.compile(r"^(?:(?:io-)?worker-[0-9a-f]+-[0-9a-f]+-|python-core-(?:worker|driver)-[0-9a-f]+_)(\d+)\.(?:out|err|log)$")
_OF_NODE = re.compile(r"^(?:raylet|gcs_server)\.(?:out|err)$|^job-driver-[\w.-]+\.log$|^runtime_env_setup-[\w.-]+\.log$")
_RAY_TIME = re.compile(r"^\[?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})")


def collect_log_lines(
    processes: Sequence[Process],
    session_dir: Path | None,
    *,
    max_bytes: int = TAIL_BYTES,
    max_files: int = MAX_FILES,
    deadline_s: float = DEADLINE_S,
    proc: Path = PROC,
    file_s: float = FILE_S,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[dict[int | None, tuple[LogLine, ...]], tuple[Gap, ...]]:
    """Matching lines at the end of each process's Ray logs, by pid; ``None`` holds those of the raylet, the GCS, submitted drivers and
    workers that ended lately.

    Reads at most ``max_bytes`` of each of ``max_files`` files within ``deadline_s`` seconds of ``clock``, and waits ``file_s`` seconds
    for one. `Gap.where` is empty: prefix the node's name.
    """
    if session_dir is None:
        return {}, ()
    started = clock()
    folder = session_dir / "logs"
    try:
        files = within(file_s, lambda: _session_files(folder, {p.pid for p in processes}, proc))
    except OSError as e:
        return {}, (_gap("Ray's session logs", f"{folder}: {e.strerror}"),)
    matcher = Matcher()
    found: dict[int | None, list[LogLine]] = {}
    unread: list[str] = []
    for i, (pid, path) in enumerate(files[:max_files]):
        if clock() - started > deadline_s:
            unread.append(f"{len(files[:max_files]) - i} files not reached in {deadline_s:g} s")
            break
        try:
            lines = within(file_s, partial(_tail, path, matcher, max_bytes))
        except OSError as e:
            unread.append(f"{path.name}: {e.strerror}")
            continue
        if lines:
            found.setdefault(pid, []).extend(lines)
    if len(files) > max_files:
        unread.append(f"{len(files) - max_files} files beyond the first {max_files}")
    missing = (_gap(f"some of {len(files)} log files", "; ".join(unread[:3])),) if unread else ()
    return {pid: tuple(lines) for pid, lines in found.items()}, missing


def read_log_paths(
    paths: Sequence[Path], *, matcher: Matcher | None = None, max_bytes: int = MAX_GIVEN_BYTES
) -> tuple[tuple[LogLine, ...], tuple[Gap, ...]]:
    """Matching lines of log files and folders (plain or gzip), and what could not be read; files are streamed."""
    matcher = matcher or Matcher()
    lines: list[LogLine] = []
    missing: list[Gap] = []
    for path, is_named in _given(paths, missing):
        try:
            with open_regular(path, follow=True) as raw:
                packed = raw.peek(2)[:2] == b"\x1f\x8b"
                with gzip.open(raw) if packed else raw as plain:
                    lines += _whole(plain, path, matcher, max_bytes, missing, is_named)
        except (OSError, EOFError, zlib.error) as e:
            missing.append(_gap("this log", f"{path.name}: {getattr(e, 'strerror', None) or e}", gaps.FILE_UNREAD))
    return tuple(lines), tuple(missing)


def _session_files(folder: Path, pids: set[int], proc: Path) -> list[tuple[int | None, Path]]:
    """Files of the raylet and GCS first, then what the processes printed, their core-worker logs, and the last words of workers that are gone."""
    now = time.time()
    found: list[tuple[int, str, int | None, Path]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            of_process = _OF_PROCESS.match(entry.name)
            if of_process and int(of_process[1]) in pids:
                found.append((1 if entry.name.startswith("worker-") else 2, entry.name, int(of_process[1]), folder / entry.name))
            elif (
                of_process
                and entry.name.endswith(".err")
                and now - entry.stat(follow_symlinks=False).st_mtime < DEAD_AGE_S
                and not (proc / of_process[1]).exists()
            ):
                found.append((3, entry.name, None, folder / entry.name))
            elif _OF_NODE.match(entry.name):
                found.append((0, entry.name, None, folder / entry.name))
    return [(pid, path) for _, _, pid, path in sorted(found, key=lambda f: f[:2])]


def _age_s(entry: os.DirEntry[str], now: float) -> float:
    return now - entry.stat(follow_symlinks=False).st_mtime


def read_tail(path: Path, *, max_bytes: int = TAIL_BYTES, follow: bool = False) -> tuple[LogLine, ...]:
    """Matching lines at the end of one regular file; `follow` a link that its name is. Raises OSError, in time also for a hung file system."""
    return within(FILE_S, lambda: _tail(path, Matcher(), max_bytes, follow=follow))


def _tail(path: Path, matcher: Matcher, max_bytes: int, *, follow: bool = False) -> tuple[LogLine, ...]:
    with open_regular(path, follow=follow) as f:
        size = os.fstat(f.fileno()).st_size
        if size == 0:
            return ()
        before = _count_lines(f, size - max_bytes) if size > max_bytes else 0
        block = f.read(max_bytes)
    keeper = _Keeper(str(path))
    for hit in matcher.match_block(block):
        keeper.add(hit, before)
    return keeper.lines()


def _count_lines(f: BinaryIO, until: int, *, limit: int = 16 << 20) -> int:
    """Lines before offset ``until``, leaving the file there; of a very long file the numbers start at its tail."""
    if until > limit:
        f.seek(until)
        return 0
    return f.read(until).count(b"\n")


def _given(paths: Iterable[Path], missing: list[Gap]) -> Iterator[tuple[Path, bool]]:
    """Files to read, and whether the user named the file itself."""
    count = 0
    for path in paths:
        if not path.is_dir():
            if path.is_file():
                yield path, True
            else:
                why = "not a regular file" if path.exists() else "no such file"
                missing.append(_gap("this log", f"{path.name}: {why}", gaps.FILE_UNREAD))
            continue
        for inside in sorted(path.rglob("*")):
            if inside.is_symlink() or not inside.is_file() or inside.name.startswith("."):
                continue
            count += 1
            if count > MAX_GIVEN_FILES:
                missing.append(_gap("more log files", f"only the first {MAX_GIVEN_FILES} are read", gaps.TRUNCATED))
                return
            yield inside, False


def _whole(f: BinaryIO | gzip.GzipFile, path: Path, matcher: Matcher, max_bytes: int, missing: list[Gap], is_named: bool) -> tuple[LogLine, ...]:
    keeper = _Keeper(str(path))
    rest, line, seen = b"", 0, 0
    while seen < max_bytes:
        block = f.read(BLOCK_BYTES)
        if not block:
            break
        if seen == 0 and b"\x00" in block[:4096]:
            if is_named:
                missing.append(_gap("this log", f"{path.name}: binary data", gaps.FILE_UNREAD))
            return ()
        seen += len(block)
        block = rest + block
        cut = block.rfind(b"\n") + 1
        if cut == 0 and len(block) < 4 * BLOCK_BYTES:
            rest = block
            continue
        whole, rest = (block[:cut], block[cut:]) if cut else (block, b"")
        for hit in matcher.match_block(whole):
            keeper.add(hit, line)
        line += whole.count(b"\n")
    else:
        if f.read(1):
            missing.append(_gap("the end of this log", f"{path.name}: read up to {max_bytes >> 20} MiB", gaps.TRUNCATED))
    for hit in matcher.match_block(rest):
        keeper.add(hit, line)
    return keeper.lines()


class _Keeper:
    """The few lines of one file worth keeping: of each signature the first two and the last three."""

    def __init__(self, file: str) -> None:
        self._file = as_text(file)
        self._first: dict[str, list[LogLine]] = {}
        self._last: dict[str, deque[LogLine]] = {}

    def add(self, hit: Hit, lines_before: int) -> None:
        line = LogLine(
            file=self._file,
            line_number=lines_before + hit.line + 1,
            text=redact(_around_match(hit)),
            signature=hit.signature.id,
            time_s=_time_of(hit.text),
        )
        first = self._first.setdefault(hit.signature.id, [])
        if len(first) < 2:
            first.append(line)
        else:
            self._last.setdefault(hit.signature.id, deque(maxlen=3)).append(line)

    def lines(self) -> tuple[LogLine, ...]:
        kept = [line for lines in (*self._first.values(), *self._last.values()) for line in lines]
        return tuple(sorted(kept, key=lambda one: one.line_number)[-MAX_LINES:])


def _around_match(hit: Hit) -> str:
    """The start of the line, and the place that matched when it lies far behind."""
    return hit.text if hit.at < MAX_CHARS // 2 else f"{hit.text[: MAX_CHARS // 4]} … {hit.text[hit.at - MAX_CHARS // 8 :]}"


def _time_of(text: str) -> float | None:
    """Time of a line of Ray's own format; Ray writes the local time of the node."""
    found = _RAY_TIME.match(text)
    if found is None:
        return None
    try:
        return time.mktime(time.strptime(found[1], "%Y-%m-%d %H:%M:%S")) + int(found[2]) / 1000
    except (ValueError, OverflowError):
        return None


def _gap(what: str, reason: str, gap_id: str = gaps.LOGS_UNREAD) -> Gap:
    return Gap(id=gap_id, where="", what=what, reason=as_text(reason))
