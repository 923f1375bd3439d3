"""Asyncio tasks that a prepared process tells of itself: see `ray_rl_debug.in_job.task_helper`."""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

import msgspec

from ray_rl_debug.collect.async_tasks.runtime import native_threads
from ray_rl_debug.formats.stack_table import short_file
from ray_rl_debug.in_job.task_helper import address_of
from ray_rl_debug.model.snapshot import AsyncTask

MAX_BYTES = 1 << 26
_decoder = msgspec.json.Decoder(tuple[AsyncTask, ...])


def ask_helper(pid: int, *, deadline_s: float = 1.0, proc: Path = Path("/proc")) -> tuple[AsyncTask, ...] | None:
    """The tasks that a process tells; None where it has no such helper, or does not answer in time."""
    try:
        address = _address(pid, proc)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(deadline_s)
            asked.connect(address)
            (server, _, _) = struct.unpack("3i", asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            data = _receive(asked, time.monotonic() + deadline_s) if server == pid else b""
    except (OSError, ValueError, IndexError):
        return None
    tasks, native = decode_tasks(data), native_threads(pid, proc)
    return tuple(as_read(task, native) for task in tasks) if tasks is not None else None


def decode_tasks(data: bytes) -> tuple[AsyncTask, ...] | None:
    """What `ray_rl_debug.in_job.task_helper` wrote; None where that is nothing."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError:
        return None


def _address(pid: int, proc: Path) -> str:
    folder = proc / str(pid)
    rows = dict(line.split(":", 1) for line in (folder / "status").read_text("utf-8", "replace").splitlines() if ":" in line)
    inner = int(rows.get("NSpid", str(pid)).split()[-1])
    ticks = int((folder / "stat").read_text("utf-8", "replace").rpartition(") ")[2].split()[19])
    return address_of(os.stat(folder).st_uid, inner, ticks)


def _receive(asked: socket.socket, end: float) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        asked.settimeout(max(0.001, end - time.monotonic()))
        piece = asked.recv(1 << 16)
        size += len(piece)
        if not piece or size > MAX_BYTES:
            return b"".join(pieces) if not piece else b""
        pieces.append(piece)


def as_read(task: AsyncTask, native: dict[int, int]) -> AsyncTask:
    """Files and threads as the reader of memory names them."""
    chain = tuple(msgspec.structs.replace(f, file=short_file(f.file)[0]) if f.file else f for f in task.chain)
    return msgspec.structs.replace(task, chain=chain, tid=native.get(task.tid) if task.tid is not None else None)
