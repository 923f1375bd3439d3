"""torch's Flight Recorder: dump files (JSON, pickle) and the worker server of torch, read into `FlightRecord`.

The recorder is on by default in recent torch, but its content leaves a process only where something was armed before: a dump on timeout, or
torch's worker server, which answers even while the GIL is held.
"""

from __future__ import annotations

import http.client
import os
import socket
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from ray_rl_debug.bounded.opening import open_regular
from ray_rl_debug.formats.flight_recorder import parse, rank_of_name
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import FlightRecord, Gap

MAX_BYTES = 256 << 20
HANDLERS = ("fr_trace_json", "dump_nccl_trace_json")
"""Paths of torch's worker server: from 2.9, and before."""


def read_flight_files(
    paths: Sequence[Path], *, max_bytes: int = MAX_BYTES, follow: bool = True, owners: Collection[int] | None = None
) -> tuple[tuple[FlightRecord, ...], tuple[Gap, ...]]:
    """Dump files, and what could not be used of them; the rank comes from the dump or from the file's name.

    `follow` and `owners` are those of `open_regular`.
    """
    records: list[FlightRecord] = []
    missing: list[Gap] = []
    for path in paths:
        try:
            with open_regular(path, follow=follow, owners=owners) as f:
                data = f.read(max_bytes + 1)
                written_s = os.fstat(f.fileno()).st_mtime
            if len(data) > max_bytes:
                raise UnreadableFileError(f"larger than {max_bytes >> 20} MiB")
            records.append(parse(data, str(path), rank=rank_of_name(path.name), taken_time_s=written_s))
        except UnreadableFileError as e:
            missing.append(Gap(id=gaps.FILE_UNREAD, where="", what="this Flight Recorder dump", reason=f"{path.name}: {e}"))
        except OSError as e:
            missing.append(Gap(id=gaps.FILE_UNREAD, where="", what="this Flight Recorder dump", reason=f"{path.name}: {e.strerror}"))
    return tuple(records), tuple(missing)


def read_worker_server(
    host: str,
    port: int,
    *,
    timeout_s: float = 5.0,
    rank: int | None = None,
    pid: int | None = None,
    max_bytes: int = MAX_BYTES,
    clock: Callable[[], float] = time.time,
) -> tuple[FlightRecord | None, Gap | None]:
    """Ask torch's worker server of one process; ask only where the process is known to run one.

    Answers within ``timeout_s`` seconds; a stopped process does not answer at all.
    """
    deadline = time.monotonic() + timeout_s
    url = f"http://{host}:{port}"
    try:
        for handler in HANDLERS:
            body = _post(host, port, f"/handler/{handler}", deadline, max_bytes)
            if body is not None:
                return parse(body, f"{url}/handler/{handler}", rank=rank, pid=pid, taken_time_s=clock()), None
        reason = "answers, but knows no Flight Recorder handler"
    except UnreadableFileError as e:
        reason = str(e)
    except (OSError, http.client.HTTPException) as e:
        reason = "no answer in time" if isinstance(e, TimeoutError) else str(e) or type(e).__name__
    return None, Gap(id=gaps.FILE_UNREAD, where="", what="the Flight Recorder of one process", reason=f"{url}: {reason}")


def _post(host: str, port: int, path: str, deadline: float, max_bytes: int) -> bytes | None:
    """The body; None when the server does not know the path."""
    connection = http.client.HTTPConnection(host, port, timeout=max(0.05, deadline - time.monotonic()))
    try:
        connection.request("POST", path)
        answer = connection.getresponse()
        if answer.status == http.client.NOT_FOUND:
            return None
        if answer.status != http.client.OK:
            raise UnreadableFileError(f"HTTP status {answer.status}")
        body = bytearray()
        while block := answer.read1(1 << 20):
            body += block
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if len(body) > max_bytes:
                raise UnreadableFileError(f"more than {max_bytes >> 20} MiB")
            if isinstance(connection.sock, socket.socket):
                connection.sock.settimeout(left)
        return bytes(body)
    finally:
        connection.close()
