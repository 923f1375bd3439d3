"""What the ranks themselves count, asked from outside while the samples are taken: torch's Flight Recorder and NCCL RAS.

Only where the job armed something: torch's worker server (``torch.distributed.debug``), a recorder's file on disk, NCCL's own RAS socket.
Everything is read twice, so that a run that moves is told from one that does not.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.collect.environ import read_environment_now
from ray_rl_debug.collect.flight_recorder import read_flight_files, read_worker_server
from ray_rl_debug.collect.nccl_ras import PORT as RAS_PORT
from ray_rl_debug.collect.nccl_ras import query_ras
from ray_rl_debug.collect.procfs import PROC, read_environment, read_stat, read_text
from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.formats.flight_trim import trim
from ray_rl_debug.model.gaps import FILE_UNREAD
from ray_rl_debug.model.snapshot import FlightRecord, Gap, RasCommunicator
from ray_rl_debug.model.system_calls import call_name

SERVER_THREAD = "pt_workerserver"
"""Name that torch gives the threads of its worker server."""
SERVER_DEADLINE_S = 2.0
MAX_BYTES = 32 << 20
FILE_AGE_S = 1800.0
"""A recorder's file older than this tells of another trouble."""
READERS = 8
FOLDER_S, FILE_S = 1.0, 5.0
"""For a folder, and for a file: the cache of a user's home is on the file system that hangs most often."""
MAX_NAMES = 20_000
MIN_PAUSE_S = 1.0
_ACCEPT = frozenset({"accept", "accept4"})
_LISTENS = re.compile(rf"^ *\d+: [0-9A-F]+:{RAS_PORT:04X} [0-9A-F]+:0000 0A ", re.MULTILINE)
_PREFIXES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_DEFAULT_NAMES = ("comm_lib_trace_rank_", "nccl_trace_rank_")


class LiveCounters(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of one node."""

    records: tuple[FlightRecord, ...] = ()
    polls: tuple[tuple[RasCommunicator, ...], ...] | None = None
    gaps: tuple[Gap, ...] = ()
    """`Gap.where` is empty: prefix the node's name."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Where one process serves its recorder."""

    pid: int
    host: str
    port: int


def read_live_counters(threads: Mapping[int, Collection[str]], window_s: float, stop: threading.Event, proc: Path = PROC) -> LiveCounters:
    """Two looks at the counters of these processes (with the names of their threads), the second near the end of the sampling window.

    Takes the window, and some seconds more only where a rank does not answer; next to nothing where the job armed nothing.
    """
    started = time.monotonic()
    pids = tuple(threads)
    sockets = SocketReader(proc)
    servers = [s for pid in pids if SERVER_THREAD in threads[pid] for s in find_servers(pid, sockets, proc)]
    ras = find_ras(pids, sockets, proc)
    missing: dict[tuple[str, str], Gap] = {}
    records, polls = _look(servers, ras, missing)
    files = read_files(pids, missing, proc)
    if (servers or polls) and window_s > 0:
        stop.wait(max(MIN_PAUSE_S, window_s - 0.2 - (time.monotonic() - started)))
        again, more = _look(servers, ras, missing)
        records, polls = [*records, *again], [*polls, *more]
    return LiveCounters(records=tuple(trim(r) for r in (*records, *files)), polls=tuple(polls) or None, gaps=tuple(missing.values()))


def find_servers(pid: int, sockets: SocketReader, proc: Path = PROC) -> Iterator[Server]:
    """Torch's worker server of a process: the listening socket that a thread of its name accepts from.

    A stopped process has none: it would not answer.
    """
    task = proc / str(pid) / "task"
    try:
        tids = sorted(os.listdir(task), key=int)
    except (OSError, ValueError):
        return
    descriptors = set()
    for tid in tids:
        if (read_text(task / tid / "comm", 64) or "").strip() != SERVER_THREAD:
            continue
        words = (read_text(task / tid / "syscall", 256) or "").split()
        if len(words) > 1 and words[0].isdigit() and call_name(int(words[0]), platform.machine()) in _ACCEPT:
            descriptors.add(int(words[1], 16))
    stat = read_stat(proc / str(pid)) if descriptors else None
    if stat is None or stat.state in "TtZX" or not _is_same_network(pid, proc):
        return
    for one in sockets.read(pid) or ():
        if one.fd in descriptors and one.state == "LISTEN" and one.family in ("tcp", "tcp6"):
            host, _, port = one.local.rpartition(":")
            yield Server(pid=pid, host=_local(host), port=int(port))


class Ras(msgspec.Struct, frozen=True, kw_only=True):
    """NCCL's RAS socket of this node."""

    host: str
    pids: frozenset[int]
    """The processes that listen there."""


def find_ras(pids: Sequence[int], sockets: SocketReader, proc: Path = PROC) -> Ras | None:
    """NCCL's RAS socket in our network, if some of the processes listen there."""
    if not any(_LISTENS.search(read_text(proc / "self/net" / family, 64 << 20) or "") for family in ("tcp", "tcp6")):
        return None
    found: dict[str, set[int]] = defaultdict(set)
    for pid in pids:
        for one in sockets.read(pid) or ():
            host, _, port = one.local.rpartition(":")
            if one.state == "LISTEN" and port == str(RAS_PORT) and _is_same_network(pid, proc):
                found[_local(host)].add(pid)
    return next((Ras(host=host, pids=frozenset(listeners)) for host, listeners in found.items()), None)


def _local(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "[::]": "::1"}.get(host, host.strip("[]"))


def _is_same_network(pid: int, proc: Path) -> bool:
    try:
        return os.readlink(proc / str(pid) / "ns" / "net") == os.readlink(proc / "self" / "ns" / "net")
    except OSError:
        return False


def _look(
    servers: Sequence[Server], ras: Ras | None, missing: dict[tuple[str, str], Gap]
) -> tuple[list[FlightRecord], list[tuple[RasCommunicator, ...]]]:
    records, polls = [], []
    with ThreadPoolExecutor(READERS, thread_name_prefix="counters") as pool:
        asked = pool.submit(query_ras, ras.host, listeners=ras.pids) if ras is not None else None
        answers = pool.map(lambda s: read_worker_server(s.host, s.port, pid=s.pid, timeout_s=SERVER_DEADLINE_S, max_bytes=MAX_BYTES), servers)
        for server, (record, gap) in zip(servers, answers, strict=True):
            if record is not None:
                records.append(record)
            if gap is not None:
                missing[(gap.id, str(server.pid))] = msgspec.structs.replace(gap, where=f"/{server.pid}")
        if asked is not None:
            poll, gap = asked.result()
            if poll is not None:
                polls.append(poll)
            if gap is not None:
                missing[(gap.id, "")] = gap
    return records, polls


def read_files(pids: Sequence[int], missing: dict[tuple[str, str], Gap], proc: Path = PROC) -> list[FlightRecord]:
    """Recorder files that these processes wrote since they began, lately; a file that several may have written is nobody's."""
    writers: dict[tuple[int, int], list[tuple[int, int, Path]]] = defaultdict(list)
    fresh: dict[str, bool] = {}
    for pid in pids:
        prefixes = _prefixes(dict(read_environment(pid, proc) or ()))
        if not any(_has_fresh(pid, prefix, fresh, proc) for prefix in prefixes):
            continue
        env = dict(read_environment_now(pid, proc) or read_environment(pid, proc) or ())
        rank = env.get("RANK", "")
        for prefix in prefixes if rank.isdigit() else ():
            path = _inside(pid, f"{prefix}{rank}", proc)
            file = _recent(path, pid, proc)
            if file is not None:
                writers[file].append((pid, int(rank), path))
    found = []
    for held in writers.values():
        if len(held) == 1:
            pid, number, path = held[0]
            records, gaps = _read_file(pid, path, proc)
            found += [msgspec.structs.replace(r, pid=pid, rank=number, source=path.name) for r in records]
            missing.update({(g.id, f"file {pid}"): msgspec.structs.replace(g, where=f"/{pid}") for g in gaps})
    return found


def _read_file(pid: int, path: Path, proc: Path) -> tuple[tuple[FlightRecord, ...], tuple[Gap, ...]]:
    """The dump of one process, if it is its user's own file: the name may be given to another meanwhile, and we may be root."""
    try:
        owners = (os.stat(proc / str(pid)).st_uid,) if os.geteuid() == 0 else None
        return within(FILE_S, lambda: read_flight_files([path], max_bytes=MAX_BYTES, follow=False, owners=owners))
    except OSError as e:
        return (), (Gap(id=FILE_UNREAD, where="", what="this Flight Recorder dump", reason=f"{path.name}: {e.strerror}"),)


def _prefixes(env: Mapping[str, str]) -> list[str]:
    """What torch writes before the rank in a file's name."""
    named = [env[name] for name in _PREFIXES if env.get(name, "").startswith("/")]
    cache = env.get("XDG_CACHE_HOME") or (f"{env['HOME']}/.cache" if env.get("HOME") else "")
    return named[:1] or ([f"{cache}/torch/{name}" for name in _DEFAULT_NAMES] if cache.startswith("/") else [])


def _inside(pid: int, path: str, proc: Path) -> Path:
    """The file as the process sees it, which may live in a container."""
    return proc / str(pid) / "root" / path.lstrip("/")


def _has_fresh(pid: int, prefix: str, known: dict[str, bool], proc: Path) -> bool:
    """Is there a young file of that prefix at all? Asked once for all processes that share a file system and a prefix."""
    try:
        key = f"{os.readlink(proc / str(pid) / 'ns' / 'mnt')} {prefix}"
    except OSError:
        return False
    if key not in known:
        path = _inside(pid, prefix, proc)
        now = time.time()
        try:
            known[key] = within(FOLDER_S, lambda: _scan(path, now))
        except OSError:
            known[key] = False
    return known[key]


def _scan(path: Path, now: float) -> bool:
    with os.scandir(path.parent) as entries:
        return any(e.name.startswith(path.name) and now - e.stat().st_mtime < FILE_AGE_S for e in itertools.islice(entries, MAX_NAMES))


def _recent(path: Path, pid: int, proc: Path) -> tuple[int, int] | None:
    """Device and inode of a file that the process may have written and not long ago."""
    stat = read_stat(proc / str(pid))
    uptime = (read_text(proc / "uptime", 256) or "").split()
    try:
        file = within(FOLDER_S, path.lstat)
    except OSError:
        return None
    if stat is None or not uptime:
        return None
    lives_s = float(uptime[0]) - stat.start_ticks / os.sysconf("SC_CLK_TCK")
    return (file.st_dev, file.st_ino) if time.time() - file.st_mtime < min(lives_s, FILE_AGE_S) else None
