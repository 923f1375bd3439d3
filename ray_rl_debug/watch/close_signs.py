"""What is read of a process only while the cheap signs are flat: bytes that it moves, and the collectives that its ranks have completed.

A rank that uploads a checkpoint or takes over weights uses hardly any processor time and ends no call for minutes; its bytes tell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from ray_rl_debug.collect.flight_recorder import read_worker_server
from ray_rl_debug.collect.live_counters import SERVER_DEADLINE_S, SERVER_THREAD, find_ras, find_servers
from ray_rl_debug.collect.nccl_ras import query_ras
from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.model.snapshot import FlightRecord, RasCommunicator

COUNT_EVERY_S = 3.0
"""Between two questions to the recorders of the ranks."""
MAX_RECORD_BYTES = 8 << 20
MAX_SPAN_S = 30.0
"""Counters older than this belong to an earlier stall."""
MOVER_SHARE = 0.03
"""Of the time: where there are thousands of connections their bytes are read more rarely."""


class Mover:
    """Bytes per second of processes: through system calls, to and from disks, over TCP."""

    def __init__(
        self, proc: Path = PROC, clock: Callable[[], float] = time.monotonic, sockets: Callable[[Path], SocketReader] = SocketReader
    ) -> None:
        self._proc = proc
        self._clock = clock
        self._sockets = sockets
        self._before: dict[int, tuple[int, int, dict[int, int]]] = {}
        self._read_at = self._next_at = float("-inf")

    def read(self, pids: Collection[int]) -> dict[int, float]:
        """By pid; nothing of a process at its first reading, or where the kernel does not tell, or when it is too soon for another."""
        now, began = self._clock(), time.thread_time()
        if now < self._next_at:
            return {}
        span, self._read_at = now - self._read_at, now
        before = self._before if 0 < span <= MAX_SPAN_S else {}
        sockets = self._sockets(self._proc)
        self._before = {pid: (*_files(pid, self._proc), _connections(sockets, pid)) for pid in pids}
        self._next_at = now + (time.thread_time() - began) / MOVER_SHARE
        return {pid: round(_gained(self._before[pid], before[pid]) / span, 1) for pid in pids if pid in before}


def _files(pid: int, proc: Path) -> tuple[int, int]:
    """Through system calls, which page caches and network file systems answer as well; and between page cache and disks, as of mapped files."""
    rows = dict(line.split(": ", 1) for line in (read_text(proc / str(pid) / "io", 512) or "").splitlines() if ": " in line)
    try:
        return int(rows["rchar"]) + int(rows["wchar"]), int(rows["read_bytes"]) + int(rows["write_bytes"])
    except (KeyError, ValueError):
        return 0, 0


def _connections(sockets: SocketReader, pid: int) -> dict[int, int]:
    """Bytes of each TCP connection so far, by inode."""
    return {s.inode: (s.bytes_sent or 0) + (s.bytes_received or 0) for s in sockets.read(pid) or () if s.inode and s.bytes_sent is not None}


def _gained(now: tuple[int, int, dict[int, int]], before: tuple[int, int, dict[int, int]]) -> int:
    wire = sum(max(0, total - before[2].get(inode, 0)) for inode, total in now[2].items())
    return max(now[0] - before[0], now[1] - before[1], wire, 0)


class Counters:
    """How far the collectives of ranks came, where torch's worker server or NCCL RAS tell. Asked beside the watch: a rank may not answer."""

    def __init__(self, proc: Path = PROC, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._asking: threading.Thread | None = None
        self._asked_at = float("-inf")
        self._found: dict[int, int] = {}
        self._armed: frozenset[int] | None = None
        self._of: frozenset[int] = frozenset()

    def read(self, pids: Collection[int], *, with_ras: bool) -> Mapping[int, int]:
        """Collectives completed so far, by pid, as of the last answer; nothing where the job armed nothing."""
        now = self._clock()
        if (self._asking is None or not self._asking.is_alive()) and now - self._asked_at >= COUNT_EVERY_S:
            self._asked_at = now
            self._asking = threading.Thread(target=self._ask, args=(frozenset(pids), with_ras), daemon=True, name="counters")
            self._asking.start()
        return self._found

    def _ask(self, pids: frozenset[int], with_ras: bool) -> None:
        found: dict[int, int] = {}
        sockets = SocketReader(self._proc)
        if self._armed is None or pids != self._of:
            self._of, self._armed = pids, frozenset(p for p in pids if _has_server(p, self._proc))
        for pid in self._armed:
            for server in find_servers(pid, sockets, self._proc):
                record, _ = read_worker_server(server.host, server.port, pid=pid, timeout_s=SERVER_DEADLINE_S, max_bytes=MAX_RECORD_BYTES)
                if record is not None:
                    found[pid] = found.get(pid, 0) + done_of_record(record)
        ras = find_ras(sorted(pids), sockets, self._proc) if with_ras else None
        if ras is not None:
            for pid, count in done_of_ras(query_ras(ras.host, listeners=ras.pids)[0] or (), pids).items():
                found[pid] = found.get(pid, 0) + count
        self._found = found


def done_of_record(record: FlightRecord) -> int:
    """Grows when a rank completes or enqueues a collective."""
    last: dict[str, int] = dict(record.enqueued)
    done: dict[str, int] = {}
    for one in record.entries:
        last[one.group] = max(last.get(one.group, 0), one.seq)
        if one.state == "completed":
            done[one.group] = max(done.get(one.group, 0), one.seq)
    return sum(last.values()) + sum(done.values())


def done_of_ras(communicators: Collection[RasCommunicator], pids: Collection[int]) -> dict[int, int]:
    """Counts of all communicators that these processes are in."""
    found: dict[int, int] = {}
    for one in communicators:
        total = sum(sum(r.counts.values()) for r in one.ranks)
        for rank in one.ranks:
            if rank.pid in pids and rank.pid is not None:
                found[rank.pid] = found.get(rank.pid, 0) + total
    return found


def _has_server(pid: int, proc: Path) -> bool:
    """Does a thread of the process bear the name of torch's worker server?"""
    try:
        names = ((proc / str(pid) / "task" / tid / "comm").read_text("utf-8", "replace").strip() for tid in sorted(_tasks(pid, proc)))
        return any(name == SERVER_THREAD for name in names)
    except OSError:
        return False


def _tasks(pid: int, proc: Path) -> list[str]:
    return [p.name for p in (proc / str(pid) / "task").iterdir()]
