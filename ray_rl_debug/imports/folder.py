"""Files and folders on a command line → one snapshot (or a saved report), with one sentence for every file that could not be used."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.opening import NOT_REGULAR
from ray_rl_debug.formats.nccl_ras import is_ras
from ray_rl_debug.formats.speedscope import is_speedscope
from ray_rl_debug.imports.build import FileDumps, build, without_errors, without_shared_ends
from ray_rl_debug.imports.counters import CounterFile, add_counters, read_counters
from ray_rl_debug.imports.files import NOWHERE, files
from ray_rl_debug.imports.logs import LogFile, add_logs, read_log
from ray_rl_debug.imports.looks import as_looks
from ray_rl_debug.imports.stacks import read_stacks
from ray_rl_debug.imports.unpacking import GZIP, blocks, is_packed, without_zeros
from ray_rl_debug.logs.book import BLOCK_BYTES
from ray_rl_debug.model import codec, gaps, report, snapshot
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.merge import merge_snapshots
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Gap, RayState, Snapshot
from ray_rl_debug.privacy.redact import made_safe, redact

MAX_TEXT_BYTES = 64 << 20
"""Stacks of 1,000 processes are some MB; a file that is larger is a log with stacks in it, read from its beginning."""
MAX_WHOLE_BYTES = 1 << 30
_CONTROLS = bytes(c for c in (*range(32), 127) if c not in b"\a\b\t\n\v\f\r\x1b")
_NO_STACKS = "no stacks of py-spy, pystack or faulthandler"
_NOTHING_TOLD = (
    "no process shows in it; on each machine of the job: for pid in $(pgrep -f 'python|ray::|VLLM::|sglang::'); do py-spy dump --pid $pid; "
    "done > $(hostname).txt, "
    "and give these files; if it should hold stacks, it may be cut off: copy it again, or take a new snapshot"
)
_CLOSED = os.strerror(errno.EACCES)
_AS_OWNER = "run this as its owner (ls -l says who that is), or ask for the right to read it"
_THROUGH_PIPE = "only files are read, since a pipe may be meant for somebody else; what you have yourself goes to: rayrl-debug report - < PIPE"


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What the files held: facts, or a report that was made before."""

    snapshot: Snapshot | None = None
    report: Report | None = None


def load(paths: Sequence[Path], *, limit: int = MAX_TEXT_BYTES, read: Callable[[int], None] | None = None) -> Loaded:
    """Read files and folders of any kind we know.

    Args:
        read: Is told how many bytes of logs were read since it was last told.

    Raises:
        UnreadableFileError: none of them could be used; the message says why for the first few.
    """
    snapshots: list[Snapshot] = []
    reports: list[Report] = []
    dumps: list[FileDumps] = []
    counters: list[CounterFile] = []
    logs: list[LogFile] = []
    listed: list[RayState] = []
    troubles: list[Gap] = []
    for path, node in files(paths, troubles):
        try:
            found = _read(path, node, limit, troubles, logs, read)
        except UnreadableFileError as e:
            troubles.append(Gap(id=gaps.FILE_UNREAD, where=path.name, what="this file", reason=str(e)))
            continue
        if isinstance(found, Snapshot):
            snapshots.append(found)
        elif isinstance(found, Report):
            reports.append(found)
        elif isinstance(found, CounterFile):
            counters.append(found)
        elif found is not None:
            dumps += [found] if found.dumps else []
            listed += [found.listed] if found.listed is not None else []
            counters += _counters_inside(found, path, troubles)
    dumps = without_shared_ends(without_errors(dumps))
    if dumps:
        snapshots.append(build(as_looks(_one_format(dumps))))
    if snapshots or counters or logs or listed:
        merged = merge_snapshots(snapshots) if snapshots else None
        merged = add_counters(merged, counters) if counters else merged
        merged = add_logs(merged, logs) if logs or merged is None else merged
        rows = RayState(
            address="",
            actors=tuple(a for s in listed for a in s.actors),
            tasks=tuple(t for s in listed for t in s.tasks),
            task_counts=tuple(c for s in listed for c in s.task_counts),
            demands=tuple(d for s in listed for d in s.demands),
            usage={name: amounts for s in listed for name, amounts in s.usage.items()},
        )
        return Loaded(snapshot=made_safe(msgspec.structs.replace(merged, listed=rows if listed else None, gaps=(*merged.gaps, *troubles))))
    if reports:
        return Loaded(report=made_safe(max(reports, key=lambda r: r.taken_time_s or 0.0)))
    left = [f"{g.where} has {g.what} ({g.reason.rpartition(': ')[2]})" for g in troubles if g.id == gaps.FRAMES_UNREAD]
    troubles = [g for g in troubles if g.id == gaps.FILE_UNREAD] or troubles
    why = "; ".join(f"{g.where}: {g.reason}" for g in troubles[:3]) or "the folder is empty"
    unread = [g for g in troubles if _NO_STACKS in g.reason]
    more = f"; and {len(troubles) - 3} more" if len(troubles) > 3 else ""
    is_pipe = bool(troubles) and all(NOT_REGULAR in g.reason for g in troubles)
    is_closed = bool(troubles) and all(_CLOSED in g.reason for g in troubles)
    hint = _THROUGH_PIPE if is_pipe else _AS_OWNER if is_closed else _NOTHING_TOLD if len(unread) == len(troubles) else None
    raise UnreadableFileError("; ".join([f"nothing usable: {why}{more}", *left[:3]]), hint=hint)


def _read(
    path: Path, node: str, limit: int, troubles: list[Gap], logs: list[LogFile], read: Callable[[int], None] | None
) -> Snapshot | Report | FileDumps | CounterFile | None:
    """What the file holds; None when it is a log, whose known errors are in ``logs`` then."""
    try:
        if not path.is_file():
            raise UnreadableFileError(NOWHERE if path.is_symlink() and not path.exists() else NOT_REGULAR)
        with path.open("rb") as f:
            data = f.read(limit + 1)
        time_s = path.stat().st_mtime
    except OSError as e:
        raise UnreadableFileError(f"cannot be read: {e.strerror}") from e
    if is_packed(data):
        data = _unpacked(path, data, limit)
    head = data[:4096].lstrip()
    if head[:1] in (b"{", b"\x80") or (is_ras(data) and b"```" not in data[:65536]):
        data = codec.inflate(_whole(path, data, limit))
        counted = None if _is_ours(data) else read_counters(data, path, node, time_s)
        if counted is not None:
            return counted
    if head.startswith(b"{") and not is_speedscope(data) and not _are_json_lines(data):
        return _ours(path, data)
    if not head:
        raise UnreadableFileError("empty")
    is_cut = len(data) > limit
    if b"\x00" in data:
        data = without_zeros(data)
        if b"\x00" in head and (_is_binary(data) or not (data or is_cut)):
            raise UnreadableFileError("binary data, no stacks")
    log = read_log(path, node, read=read, plain=data if not is_cut and len(data) <= BLOCK_BYTES else None)
    tells = log is not None and log.tells
    if is_cut:
        data = data[: data.rfind(b"\n", 0, limit) + 1 or limit]
    found = read_stacks(data, path, node, time_s, troubles)
    if found is None and log is None:
        raise UnreadableFileError(_nothing(data))
    if is_cut and found is not None and not tells:
        what = f"what comes after {limit >> 20} MiB"
        troubles.append(Gap(id=gaps.TRUNCATED, where=path.name, what=what, reason="files are read up to this size"))
    if log is not None and (tells or found is None):  # beside stacks nobody asks for lines that tell nothing
        logs.append(log)
    return found


def _is_binary(data: bytes) -> bool:
    """Is it no text? Zeros alone do not tell: a log that was cut begins with them."""
    sample = data[:4096]
    return len(sample.translate(None, _CONTROLS)) < 0.95 * len(sample)


def _counters_inside(file: FileDumps, path: Path, troubles: list[Gap]) -> list[CounterFile]:
    """Counters of collectives that stand in a text beside other things."""
    found = []
    for number, (line, document) in enumerate(file.documents):
        # A number at the end of a name would be taken for a rank.
        name = re.sub(r"\d", "", file.stem) + "_document_" + "abcdefghijklmnopqrstuvwxyz"[number % 26] * (number // 26 + 1)
        try:
            counted = read_counters(document, path.with_name(name), file.node, file.time_s)
        except UnreadableFileError as e:
            troubles.append(Gap(id=gaps.FILE_UNREAD, where=path.name, what=f"the document in line {line}", reason=str(e)))
            continue
        found += [counted] if counted is not None else []
    return found


def _nothing(data: bytes) -> str:
    """Why a text is of no use; tools that got no stacks write one line instead, which says why."""
    lines = data.decode("utf-8", "replace").strip().splitlines()
    said = f"; it says: {redact(lines[0][:150])}" if len(lines) == 1 else ""
    return f"{_NO_STACKS} in it, and no known error{said}"


def _unpacked(path: Path, data: bytes, limit: int) -> bytes:
    """The beginning of a packed file, up to one byte more than `limit`; all of it where it may be one document.

    Raises:
        UnreadableFileError: damaged, or packed in a way that no library here can read.
    """
    begun: list[bytes] = []
    taken = 0
    for block in blocks(path, BLOCK_BYTES):
        begun.append(block)
        taken += len(block)
        if taken > limit:
            break
    plain = b"".join(begun)
    if len(plain) > limit and plain[:4096].lstrip()[:1] in (b"{", b"\x80") and data.startswith(GZIP):
        return codec.inflate(_whole(path, data, limit))
    return plain[: limit + 1]


def _whole(path: Path, data: bytes, limit: int) -> bytes:
    """All of a file of which one block is read; dumps and snapshots make no sense in parts.

    Raises:
        UnreadableFileError: it is larger than a snapshot may be.
    """
    if len(data) <= limit:
        return data
    if path.stat().st_size > MAX_WHOLE_BYTES:
        raise UnreadableFileError(f"larger than {MAX_WHOLE_BYTES >> 20} MiB")
    return path.read_bytes()


def _is_ours(data: bytes) -> bool:
    # The schema is the first field of both documents.
    # Of any version: a newer one shall be told as such.
    return any(schema.rpartition("/")[0].encode() + b"/" in data[:200] for schema in (report.SCHEMA, snapshot.SCHEMA))


def _are_json_lines(data: bytes) -> bool:
    """Is it a log of one JSON object per line? A document of ours or of another tool is one object."""
    lines = [line for line in data[: 64 << 10].split(b"\n")[:3] if line.strip()]
    return not _is_ours(data) and len(lines) > 1 and all(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in lines[:2])


def _ours(path: Path, data: bytes) -> Snapshot | Report:
    if report.SCHEMA.rpartition("/")[0].encode() + b"/" in data[:200]:
        return codec.decode_report(data)
    if not _is_ours(data) and path.suffix == ".json":
        raise UnreadableFileError("JSON, but neither a snapshot nor a report nor py-spy's, Flight Recorder's or NCCL's")
    return codec.decode_snapshot(data)


def _one_format(files: Iterable[FileDumps]) -> list[FileDumps]:
    """``x.json`` and ``x.txt`` are one moment written twice: frames of the JSON (full paths), title and version of the text."""
    result: dict[tuple[str, ...], FileDumps] = {}
    for file in files:
        key = (file.node, file.above, file.stem)
        other = result.get(key)
        if other is None or len(other.dumps) != 1 or len(file.dumps) != 1 or other.dumps[0].pid != file.dumps[0].pid:
            result[key if other is None else (file.node, file.above, f"{file.stem}#{len(result)}")] = file
            continue
        text, structured = sorted((other, file), key=lambda f: f.dumps[0].title is None)
        kept = structured.dumps[0]
        kept.title, kept.python = text.dumps[0].title, text.dumps[0].python
        result[key] = structured
    return list(result.values())
