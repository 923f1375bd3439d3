"""Which processes belong to the job: Ray's workers, drivers, daemons, and all their descendants."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ray_rl_debug.collect.choices import describe_choices
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.ourselves import above_us
from ray_rl_debug.collect.procfs import PROC, Stat, list_pids, read_arguments, read_environment, read_stat, read_text
from ray_rl_debug.collect.sock_diag import unix_ends
from ray_rl_debug.collect.starting import find_starters, newest_session
from ray_rl_debug.model.errors import NoClusterError, SeveralClustersError

AGENT_CLASS = "RayRlDebugAgent"
_SYSTEM = re.compile(
    r"^ray::(DashboardAgent|RuntimeEnvAgent|JobSupervisor)\b|ray/(dashboard|autoscaler/_private/monitor|_private/(log_monitor|runtime_env/agent))"
)
_RAYLET = frozenset({"raylet"})
_TOOLS = frozenset({"py-spy", "pystack"})
_GCS = re.compile(r"--gcs-address=(\S+)")


class FoundProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One process and what kind it is."""

    pid: int
    kind: str
    stat: Stat
    arguments: tuple[str, ...]


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """The processes of one node."""

    found: tuple[FoundProcess, ...]
    raylet_pid: int | None
    session_dir: str | None
    node_id: str | None = None
    """Ray's id of this node in hex, where one raylet runs here."""
    node_ip: str | None = None
    """What the raylet was told to be its address."""
    doubtful: frozenset[int] = frozenset()
    """Of `found`: programs that may wait to get into Ray; only their stacks tell."""
    starters: frozenset[int] = frozenset()
    """Of `found`: programs with Ray loaded that are in no session."""
    hidden: int = 0
    """Python processes that may be drivers and do not let us look, where drivers had to be looked for."""


class _Table:
    """One look at the process table."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.stats: dict[int, Stat] = {}
        for pid in list_pids(proc):
            stat = read_stat(proc / str(pid))
            if stat is not None:
                self.stats[pid] = stat
        self._arguments: dict[int, tuple[str, ...]] = {}
        self.children: dict[int, list[int]] = {}
        for pid, stat in self.stats.items():
            self.children.setdefault(stat.ppid, []).append(pid)

    def arguments(self, pid: int) -> tuple[str, ...]:
        if pid not in self._arguments:
            self._arguments[pid] = tuple(read_arguments(pid, self.proc))
        return self._arguments[pid]

    def descendants(self, pid: int, *, but: frozenset[str] = frozenset()) -> list[int]:
        """All descendants; those whose program is in `but` are left out with what they started."""
        todo, found = list(self.children.get(pid, [])), set()
        while todo:
            one = todo.pop()
            if one not in found and self.stats[one].comm not in but:
                found.add(one)
                todo += self.children.get(one, [])
        return sorted(found)


def discover(options: CollectOptions, proc: Path = PROC) -> Discovery:
    """The processes of this node that `options` mean.

    Raises:
        NoClusterError: no raylet runs here, no program waits to get into Ray, and no process was named.
        SeveralClustersError: raylets of several clusters run here and none was chosen.
    """
    table = _Table(proc)
    ours = (_ours(table) if proc == PROC else set()) | set(options.skip_pids)
    if options.pids:
        return _named(table, options.pids, ours)
    try:
        raylets = _raylets(table, options)
    except NoClusterError:
        starting = _starting(table, ours) if options.gcs_address is None and options.raylet_pid is None else None
        if starting is None:
            raise
        return starting
    found: dict[int, str] = {}
    for raylet in raylets:
        found[raylet] = "raylet"
        left_out = _with_descendants(table, set(options.skip_pids) & set(table.children.get(raylet, ())))
        for pid in table.descendants(raylet):
            if pid not in left_out:
                found.setdefault(pid, _kind(table, pid, raylet))
        for pid in _with_descendants(table, {p for p, kind in found.items() if kind == "agent"}):
            found[pid] = "agent"
    chosen = set(raylets)
    single = len(raylets) == 1
    for pid in table.stats:
        if pid in found or pid in ours:
            continue
        title = " ".join(table.arguments(pid)[:3])
        if title.startswith("ray::") and not single and table.stats[pid].ppid != 1:
            continue
        if table.stats[pid].ppid == 1 and _orphan_of(pid, chosen, proc):
            found[pid] = "child"
    drivers, hidden = (options.driver_pids, 0) if options.driver_pids is not None else _drivers(table, raylets, ours)
    for driver in drivers or _parents(table, raylets):
        if driver in table.stats and driver not in ours:
            if found.get(driver) not in ("ray-worker", "ray-system"):  # the dashboard's agent is a driver of Ray's own, which submits jobs
                found[driver] = "driver"
            for pid in table.descendants(driver, but=_RAYLET):
                if pid not in found and pid not in ours and not _is_daemon(table, pid):
                    found[pid] = "child"
    waiting = frozenset(_waiting(table, options, found, ours))
    found.update(dict.fromkeys(waiting, "driver"))
    for pid in list(table.stats):
        if pid not in found and (_comm(table, pid) == "gcs_server") and _same_cluster(table, pid, options, raylets):
            found[pid] = "gcs"
    for pid in ours & set(found):
        found[pid] = "agent"
    first = raylets[0] if raylets else None
    return Discovery(
        found=_rows(table, found),
        raylet_pid=first if single else None,
        session_dir=_session(table, first) if first is not None else None,
        node_id=_argument(table, first, "--node_id=") if first is not None and single else None,
        node_ip=_argument(table, first, "--node_ip_address=") if first is not None else None,
        doubtful=waiting,
        starters=waiting,
        hidden=hidden,
    )


def _waiting(table: _Table, options: CollectOptions, found: Mapping[int, str], ours: set[int]) -> list[int]:
    """Programs with Ray loaded that are in no session: while a GCS does not answer they are in no table, and log nowhere.

    An agent looks for none of them: where it was started, Ray answers.
    """
    if options.raylet_pid is not None or options.job_id is not None:
        return []
    kept = {pid for pid in table.stats if pid in found or pid in ours or _is_daemon(table, pid) or "ray.scripts" in _title(table, pid)}
    kept |= {table.stats[pid].ppid for pid in table.stats if _comm(table, pid) in ("raylet", "gcs_server")}
    starters = find_starters(table.stats, kept, table.proc)
    clusters = {_gcs_of(table, pid) for pid in table.stats if _comm(table, pid) == "raylet"}
    if options.gcs_address is None or len(clusters) < 2:
        return starters
    return [pid for pid in starters if _names(table, pid, options.gcs_address)]


def _names(table: _Table, pid: int, address: str) -> bool:
    """Does a program name a cluster, in its arguments or by RAY_ADDRESS?"""
    environment = dict(read_environment(pid, table.proc) or ())
    return address == environment.get("RAY_ADDRESS") or any(address in a for a in table.arguments(pid))


def _starting(table: _Table, ours: set[int]) -> Discovery | None:
    """Where no raylet runs: programs that start Ray or wait in ray.init, with the log folder of the latest session."""
    daemons = {pid for pid in table.stats if _is_daemon(table, pid)}
    starters = find_starters(table.stats, daemons | ours, table.proc)
    if not starters:
        return None
    found = dict.fromkeys(starters, "driver") | {pid: "gcs" for pid in table.stats if _comm(table, pid) == "gcs_server"}
    session = newest_session(starters, {pid: table.arguments(pid) for pid in starters}, table.proc)
    return Discovery(found=_rows(table, found), raylet_pid=None, session_dir=session, starters=frozenset(starters))


def _with_descendants(table: _Table, pids: set[int]) -> set[int]:
    return pids.union(*(table.descendants(p) for p in pids))


def _argument(table: _Table, pid: int, option: str) -> str | None:
    return next((a[len(option) :] for a in table.arguments(pid) if a.startswith(option)), None)


def _ours(table: _Table) -> set[int]:
    """We, who runs nothing else, and the programs we start. Our other children are not: a driver that calls us may have started Ray, or the job."""
    own = os.getpid()
    return {own, *above_us(table.proc), *(pid for pid in table.descendants(own) if _is_our_tool(table.arguments(pid)))}


def _is_our_tool(arguments: tuple[str, ...]) -> bool:
    program = os.path.basename(arguments[0] if arguments else "")
    return program in _TOOLS or any(a.startswith("ray_rl_debug.") or a.endswith("ray_rl_debug/bounded/supervisor.py") for a in arguments[1:4])


def find_raylets(proc: Path = PROC) -> dict[int, str | None]:
    """All raylets on this machine with the GCS address of their cluster."""
    table = _Table(proc)
    return {pid: _gcs_of(table, pid) for pid in table.stats if _comm(table, pid) == "raylet"}


def find_raylets_by_node(proc: Path = PROC) -> dict[str, int]:
    """Pids of the raylets on this machine by Ray's node id in hex."""
    table = _Table(proc)
    raylets = ((_argument(table, pid, "--node_id="), pid) for pid in table.stats if _comm(table, pid) == "raylet")
    return {node_id: pid for node_id, pid in raylets if node_id}


def _named(table: _Table, pids: tuple[int, ...], ours: set[int]) -> Discovery:
    found: dict[int, str] = {}
    for pid in pids:
        if pid not in table.stats:
            raise NoClusterError(f"there is no process {pid} on this node", hint="check the number with ps; the process may have ended")
        found[pid] = "named"
    for pid in pids:
        for child in table.descendants(pid):
            if child not in ours:
                found.setdefault(child, "child")
    for pid in _left_behind(table, found):
        if pid not in ours:
            found.setdefault(pid, "child")
    starters = find_starters({p: table.stats[p] for p in pids}, (), table.proc)
    session = newest_session(starters, {p: table.arguments(p) for p in starters}, table.proc) if starters else None
    return Discovery(found=_rows(table, found), raylet_pid=None, session_dir=session, starters=frozenset(starters))


def _left_behind(table: _Table, found: Mapping[int, str]) -> list[int]:
    """Programs whose parents have ended and that hold a pipe of these processes, or the other end of a Unix socket: whoever reads there waits for
    them. Not one that was given to them: standard input and output, and what those above them hold too."""
    since = min(table.stats[pid].start_ticks for pid in found)
    above = {1}  # adopts them, or whoever has asked the kernel for it
    for pid in found:
        while (pid := table.stats[pid].ppid) in table.stats:
            above.add(pid)
    above -= found.keys()
    below = [pid for parent in sorted(above) for pid in table.children.get(parent, ())]
    adopted = [pid for pid in below if pid not in found and table.stats[pid].start_ticks >= since]
    if not adopted:
        return []
    peers = unix_ends().peers if table.proc == PROC else {}
    given = {end for pid, kind in found.items() if kind == "named" for fd, end in _ends(table, pid, peers) if fd <= _STANDARD_ERROR}
    given |= {end for pid in above for _, end in _ends(table, pid, peers)}
    own = {end for pid in found for _, end in _ends(table, pid, peers)} - given
    left = [pid for pid in adopted if any(end in own for _, end in _ends(table, pid, peers))]
    return sorted({one for pid in left for one in (pid, *table.descendants(pid))})


_STANDARD_ERROR = 2


def _ends(table: _Table, pid: int, peers: Mapping[int, int]) -> list[tuple[int, str]]:
    """Descriptors that are pipes or connected Unix sockets, and which: both ends of a connection have one name."""
    found = []
    try:
        links = list((table.proc / str(pid) / "fd").iterdir())
    except OSError:
        return []
    for link in links:
        try:
            target = os.readlink(link)
        except OSError:
            continue  # it has been closed
        if target.startswith("pipe:"):
            found.append((int(link.name), target))
        elif target.startswith("socket:") and (inode := int(target[8:-1])) in peers:
            found.append((int(link.name), f"pair:{min(inode, peers[inode])}"))
    return found


def _raylets(table: _Table, options: CollectOptions) -> list[int]:
    if options.raylet_pid is not None:
        return [options.raylet_pid] if options.raylet_pid in table.stats else []
    raylets = {pid: _gcs_of(table, pid) for pid in table.stats if _comm(table, pid) == "raylet"}
    if options.gcs_address is not None:
        raylets = {pid: gcs for pid, gcs in raylets.items() if gcs == options.gcs_address}
    if not raylets:
        raise NoClusterError("no raylet runs on this node" + (f" for the cluster at {options.gcs_address}" if options.gcs_address else ""))
    addresses = sorted({gcs or "?" for gcs in raylets.values()})
    if len(addresses) > 1:
        raise SeveralClustersError(
            f"{len(addresses)} Ray clusters run on this node",
            hint=f"choose one: {describe_choices(raylets, table.proc)}",
        )
    return sorted(raylets)


def _comm(table: _Table, pid: int) -> str:
    return table.stats[pid].comm


def _gcs_of(table: _Table, pid: int) -> str | None:
    found = _GCS.search(" ".join(table.arguments(pid)))
    return found[1] if found else None


def _same_cluster(table: _Table, pid: int, options: CollectOptions, raylets: list[int]) -> bool:
    if options.raylet_pid is None and options.gcs_address is None:
        return True
    # ray.init starts it with --gcs_server_port=0: the port it chose is not in its arguments, the session's folder is
    if any(s and any(s in a for a in table.arguments(pid)) for s in (_session(table, r) for r in raylets)):
        return True
    raylet = options.raylet_pid
    address = options.gcs_address or (_gcs_of(table, raylet) if raylet in table.stats else None)
    port = (address or "").rpartition(":")[2]
    return bool(port) and any(a == f"--gcs_server_port={port}" for a in table.arguments(pid))


def _session(table: _Table, raylet: int) -> str | None:
    for argument in table.arguments(raylet):
        if argument.startswith(("--session_dir=", "--session-dir=")):
            return argument.partition("=")[2]
        if argument.startswith("--raylet_socket_name="):
            return argument.partition("=")[2].partition("/sockets/")[0]
    return None


def _kind(table: _Table, pid: int, raylet: int) -> str:
    title = " ".join(table.arguments(pid))
    if AGENT_CLASS in title:
        return "agent"
    if _SYSTEM.search(title):
        return "ray-system"
    direct = table.stats[pid].ppid == raylet
    if direct and (title.startswith("ray::") or "default_worker.py" in title):
        return "ray-worker"
    if direct and "setup_worker" in title:
        return "ray-worker"
    return "child"


def _is_daemon(table: _Table, pid: int) -> bool:
    title = " ".join(table.arguments(pid))
    return _comm(table, pid) in ("raylet", "gcs_server") or bool(_SYSTEM.search(title)) or title.startswith("ray::")


def _orphan_of(pid: int, raylets: set[int], proc: Path) -> bool:
    environment = dict(read_environment(pid, proc) or ())
    return environment.get("RAY_RAYLET_PID", "") in {str(r) for r in raylets}


def _drivers(table: _Table, raylets: list[int], ours: set[int]) -> tuple[list[int], int]:
    """Processes that have Ray loaded and are neither workers nor daemons: drivers, when no job table named them.

    Also how many other Python processes of the raylets' users could not be looked at.
    """
    sessions = {_session(table, r) for r in raylets}
    found, hidden = [], 0
    for pid, stat in table.stats.items():
        if pid in ours or stat.ppid in raylets or not stat.comm.startswith(("python", "pt_main", "ray")) or _is_daemon(table, pid):
            continue
        maps = read_text(table.proc / str(pid) / "maps", 8 << 20)
        if maps is None:
            hidden += 1
        elif "/_raylet" in maps and _holds_session(pid, sessions, table.proc, maps):
            found.append(pid)
    return found, hidden


def _parents(table: _Table, raylets: list[int]) -> list[int]:
    """Drivers that started these raylets themselves: from then until they are in, no table and no log of theirs names them."""
    parents = dict.fromkeys(table.stats[r].ppid for r in raylets)
    return [p for p in parents if p in table.stats and _comm(table, p).startswith(("python", "pt_main")) and "ray.scripts" not in _title(table, p)]


def _title(table: _Table, pid: int) -> str:
    return " ".join(table.arguments(pid)[:6])


def _holds_session(pid: int, sessions: set[str | None], proc: Path, maps: str) -> bool:
    """Does a process log into one of the sessions? Its core worker keeps a log file of the session open."""
    if any(s and s in maps for s in sessions):
        return True
    try:
        links = [os.readlink(p) for p in (proc / str(pid) / "fd").iterdir()]
    except OSError:
        return False
    return any(s and link.startswith(s) for s in sessions for link in links)


def _rows(table: _Table, found: dict[int, str]) -> tuple[FoundProcess, ...]:
    return tuple(
        FoundProcess(pid=pid, kind=kind, stat=table.stats[pid], arguments=table.arguments(pid))
        for pid, kind in sorted(found.items())
        if pid in table.stats
    )
