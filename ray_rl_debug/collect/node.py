"""All facts of one node: discover, look at the start of the window, take the samples, look again at its end."""

from __future__ import annotations

import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ray_rl_debug import __version__, gaps
from ray_rl_debug.collect.allowlist import allowed_arguments, allowed_environment
from ray_rl_debug.collect.discover import Discovery, Found, discover
from ray_rl_debug.collect.environ import read_environment_now
from ray_rl_debug.collect.files import FileReader, read_locks
from ray_rl_debug.collect.gpus import collect_gpus
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.permissions import find_doors, remedy
from ray_rl_debug.collect.procfs import PROC, ThreadClock, finish_threads, read_environment, read_stat, read_status, read_text, read_threads
from ray_rl_debug.collect.pyspy import find_pyspy
from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.collect.stacks import Stacks, StackSampler, Target
from ray_rl_debug.snapshot import Doors, Gap, Node, Process

SAMPLED = frozenset({"ray-worker", "driver", "child", "named"})
DEEP = SAMPLED | {"other"}
DUMP_DEADLINE_S = 4.0
"""For one dump of one process: a busy one took 1.6 s at worst on a loaded machine."""
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class _Before(msgspec.Struct, frozen=True, kw_only=True):
    """A process at the start of the window."""

    found: Found
    threads: Mapping[int, ThreadClock]
    ticks: int
    io: dict[str, int]
    switches: int | None
    at: float


def collect_node(options: CollectOptions, *, progress: Callable[[str], None] | None = None, proc: Path = PROC) -> Node:
    """The facts of this machine as `options` ask for them.

    Takes the sampling window plus well under a second; every wait inside is bounded.

    Raises:
        NoClusterError, SeveralClustersError: as `discover`.
    """
    say = progress or (lambda _: None)
    started, clock = time.time(), time.monotonic()
    discovery = discover(options, proc)
    say(f"{len(discovery.found)} processes found")
    before = {f.pid: _look(f, proc) for f in discovery.found if f.kind != "agent"}
    sampler = StackSampler(msgspec.structs.replace(options, timeout_s=min(DUMP_DEADLINE_S, options.timeout_s)), find_pyspy(options.pyspy), proc=proc)
    for number in range(max(1, options.samples)):
        _sleep_until(clock + number * options.interval_s)
        say(f"sample {number + 1} of {options.samples}")
        sampler.sample(_targets(discovery, proc, number), time.monotonic() - clock)
    window = time.monotonic() - clock
    stacks = sampler.finish()
    doors = find_doors([p for p, b in before.items() if b.found.kind in SAMPLED], proc)
    name = options.node_name or socket.gethostname()
    sockets, files = SocketReader(proc), FileReader(proc)
    processes, gone = [], 0
    for one in before.values():
        process = _process(one, stacks, sockets, files, doors, proc)
        if process is None:
            gone += 1
        else:
            processes.append(process)
    gpus, gpu_gaps = collect_gpus()
    found_gaps = [_named(g, name, remedy(doors)) for g in (*stacks.gaps, *gpu_gaps)]
    found_gaps += _door_gaps(name, doors, len(processes))
    if gone:
        reason = "they ended during the window"
        found_gaps.append(Gap(id=gaps.PROCESS_GONE, where=name, what=f"{gone} processes", reason=reason))
    return Node(
        name=name,
        node_id=options.node_id,
        started_time_s=started,
        window_s=round(window, 3),
        boot_id=(read_text(proc / "sys/kernel/random/boot_id", 64) or "").strip() or None,
        pid_namespace=_link(proc / "self/ns/pid"),
        cpu_count=os.cpu_count(),
        cpus_allowed=len(os.sched_getaffinity(0)),
        load1=os.getloadavg()[0],
        memory_total_bytes=_meminfo(proc, "MemTotal"),
        memory_available_bytes=_meminfo(proc, "MemAvailable"),
        versions={"python": platform.python_version(), "rayrl-debug": __version__, "kernel": platform.release(), **_ray_version()},
        doors=doors,
        frames=stacks.frames,
        stacks=stacks.stacks,
        processes=tuple(processes),
        locks=read_locks(proc),
        gpus=gpus,
        gaps=tuple(found_gaps),
        took_s=round(time.monotonic() - clock, 3),
    )


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _targets(discovery: Discovery, proc: Path, number: int) -> list[Target]:
    targets = []
    for found in discovery.found:
        if found.kind not in SAMPLED or (number and found.arguments[:1] == ("ray::IDLE",)):
            continue
        status = read_status(found.pid, proc)
        if status and not status.get("State", "Z").startswith(("Z", "X")):
            tracer = status.get("TracerPid", "0")
            targets.append(Target(pid=found.pid, state=status["State"][:1], tracer_pid=int(tracer) if tracer.isdigit() else 0))
    return targets


def _look(found: Found, proc: Path) -> _Before:
    stat = read_stat(proc / str(found.pid)) or found.stat
    return _Before(
        found=found,
        threads=read_threads(found.pid, proc),
        ticks=stat.ticks,
        io=_io(found.pid, proc),
        switches=_switches(read_status(found.pid, proc)),
        at=time.monotonic(),
    )


def _io(pid: int, proc: Path) -> dict[str, int]:
    rows = (line.partition(": ") for line in (read_text(proc / str(pid) / "io", 4096) or "").splitlines())
    return {k: int(v) for k, _, v in rows if v.isdigit()}


def _switches(status: Mapping[str, str]) -> int | None:
    values = [status.get(k, "") for k in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")]
    return sum(map(int, values)) if all(v.isdigit() for v in values) else None


def _process(
    one: _Before,
    stacks: Stacks,
    sockets: SocketReader,
    files: FileReader,
    doors: Doors,
    proc: Path,
) -> Process | None:
    pid = one.found.pid
    stat = read_stat(proc / str(pid))
    if stat is None or stat.start_ticks != one.found.stat.start_ticks:
        return None
    status = read_status(pid, proc)
    after = read_threads(pid, proc)
    window = time.monotonic() - one.at
    io = _io(pid, proc)
    started_with = read_environment(pid, proc) if doors.environ is not False else None
    environment = dict(started_with or ())
    now = read_environment_now(pid, proc) if doors.memory is not False and one.found.kind in DEEP else None
    switches = _switches(status)
    uid = status.get("Uid", "").split()
    return Process(
        pid=pid,
        ppid=stat.ppid,
        title=allowed_arguments(_arguments(one.found, pid, proc)) or stat.comm,
        comm=stat.comm,
        kind=one.found.kind,
        uid=int(uid[0]) if uid else None,
        start_time_s=_start_time(stat.start_ticks, proc),
        state=stat.state,
        tracer_pid=int(status["TracerPid"]) if status.get("TracerPid", "0").isdigit() and status.get("TracerPid", "0") != "0" else None,
        nice=stat.nice,
        thread_count=stat.threads,
        rss_bytes=stat.rss_pages * os.sysconf("SC_PAGE_SIZE"),
        cpu_s=round((stat.ticks - one.ticks) * TICK_S, 3),
        window_s=round(window, 3),
        read_bytes=io["rchar"] - one.io["rchar"] if "rchar" in io and "rchar" in one.io else None,
        written_bytes=io["wchar"] - one.io["wchar"] if "wchar" in io and "wchar" in one.io else None,
        context_switches=switches - one.switches if switches is not None and one.switches is not None else None,
        cwd=_link(proc / str(pid) / "cwd"),
        job_id=_job(environment.get("RAY_JOB_ID")),
        raylet_pid=int(environment["RAY_RAYLET_PID"]) if environment.get("RAY_RAYLET_PID", "").isdigit() else None,
        env=allowed_environment(environment.items()),
        env_now=allowed_environment(now) if now is not None else None,
        python=stacks.python.get(pid),
        threads=finish_threads(pid, dict(one.threads), after, TICK_S, proc),
        samples=stacks.samples.get(pid, ()),
        sockets=sockets.read(pid),
        files=files.read(pid) if one.found.kind in DEEP else None,
        object_refs=stacks.object_refs.get(pid, ()),
    )


def _arguments(found: Found, pid: int, proc: Path) -> tuple[str, ...]:
    from ray_rl_debug.collect.procfs import read_arguments

    return tuple(read_arguments(pid, proc)) or found.arguments


def _job(text: str | None) -> str | None:
    """Ray starts spare workers before any job; their variable is all ones."""
    return text if text and text.strip("fF") else None


def _start_time(ticks: int, proc: Path) -> float | None:
    boot = next((line.split()[1] for line in (read_text(proc / "stat", 1 << 20) or "").splitlines() if line.startswith("btime")), None)
    return round(float(boot) + ticks * TICK_S, 2) if boot else None


def _meminfo(proc: Path, key: str) -> int | None:
    row = next((line for line in (read_text(proc / "meminfo", 1 << 16) or "").splitlines() if line.startswith(key + ":")), None)
    return int(row.split()[1]) * 1024 if row else None


def _link(path: Path) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _ray_version() -> dict[str, str]:
    ray = sys.modules.get("ray")
    return {"ray": str(ray.__version__)} if ray is not None and hasattr(ray, "__version__") else {}


def _named(gap: Gap, name: str, cure: str | None) -> Gap:
    closed = gap.id in (gaps.STACKS_REFUSED, gaps.MEMORY_REFUSED)
    return msgspec.structs.replace(gap, where=f"{name}{gap.where}", remedy=gap.remedy or (cure if closed else None))


def _door_gaps(name: str, doors: Doors, count: int) -> list[Gap]:
    cure = remedy(doors)
    found = []
    for is_open, gap_id, what in (
        (doors.memory, gaps.MEMORY_REFUSED, "memory (environment now, ObjectRefs, asyncio tasks)"),
        (doors.environ, gaps.DESCRIPTORS_REFUSED, "environment, sockets and open files"),
    ):
        if is_open is False:
            found.append(Gap(id=gap_id, where=name, what=f"{what} of {count} processes", reason=doors.setting or "refused", remedy=cure))
    return found
