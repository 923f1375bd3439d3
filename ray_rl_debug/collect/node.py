"""All facts of one node: discover, look at the start of the window, take the samples, look again at its end."""

from __future__ import annotations

import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.bounded.own_time import PATIENCE
from ray_rl_debug.collect.async_tasks import AsyncRead, attach_async_tasks, read_all_async_tasks
from ray_rl_debug.collect.awaited_files import read_awaited_files
from ray_rl_debug.collect.cgroups import CgroupMemory, read_cgroup_memory
from ray_rl_debug.collect.discover import Discovery, discover
from ray_rl_debug.collect.engine_endpoints import EngineLooks
from ray_rl_debug.collect.files import read_locks
from ray_rl_debug.collect.folding import fold_threads
from ray_rl_debug.collect.gpus import collect_gpus
from ray_rl_debug.collect.guard import Guard
from ray_rl_debug.collect.lateness import LatenessMeter
from ray_rl_debug.collect.live_counters import LiveCounters, read_live_counters
from ray_rl_debug.collect.logs import collect_log_lines
from ray_rl_debug.collect.network import NetworkBytes, read_network
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.permissions import find_doors, remedy
from ray_rl_debug.collect.printed import Printed
from ray_rl_debug.collect.process_facts import SAMPLED, Before, Reader, look
from ray_rl_debug.collect.procfs import PROC, machine_of, read_status, read_text
from ray_rl_debug.collect.pyspy import find_pyspy
from ray_rl_debug.collect.rollout_store import read_runners
from ray_rl_debug.collect.semaphores import read_semaphores
from ray_rl_debug.collect.stacks import Stacks, StackSampler, Target
from ray_rl_debug.collect.starting import is_getting_in
from ray_rl_debug.collect.system_v import read_system_v
from ray_rl_debug.collect.torch_groups import GroupsRead, read_all_torch_groups
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Doors, EndedProcess, EngineState, Gap, LogLine, Node, Process, Runner, SharedSemaphore, SystemV
from ray_rl_debug.privacy.redact import made_safe

DUMP_DEADLINE_S = 4.0
"""For one dump of one process: a busy one took 1.6 s at worst on a loaded machine."""
TASKS_S = 4.0
"""For one read of the asyncio tasks of all processes; an actor with torch takes 0.05 s of one core."""
GROUPS_S = 2.0
"""Of our processor, for torch's process groups of all processes; one takes about 0.03 s of one core."""
SEMAPHORES_S = 2.0
"""Of our processor, for the holders of semaphores between processes, only where somebody waits for one."""
SIDE_DEADLINE_S = 6.0
"""For GPUs, logs, asyncio tasks and process groups, which are read beside the samples and have shorter deadlines of their own."""

MAX_ENDED = 64
MAX_NAMED = 4
"""Processes by their numbers in one gap."""

NO_STACKS = Stacks(frames=(), stacks=(), samples={}, object_refs={}, object_refs_before={}, in_c={}, python={}, gaps=())
NO_DOORS = Doors()

T = TypeVar("T")


class Logs(NamedTuple):
    lines: dict[int | None, tuple[LogLine, ...]]
    """Known errors, by process; ``None`` holds those of the node."""
    gaps: tuple[Gap, ...]
    printed: Printed


NO_LOGS = Logs({}, (), Printed(()))
NO_ENGINES: dict[int, EngineState] = {}
NO_TASKS: dict[int, AsyncRead] | None = {}
NO_GROUPS = GroupsRead({})
NO_SEMAPHORES: tuple[SharedSemaphore, ...] = ()
NO_SYSTEM_V: tuple[SystemV, ...] = ()
NO_RUNNERS: tuple[Runner, ...] = ()


def collect_node(
    options: CollectOptions,
    *,
    progress: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
    proc: Path = PROC,
) -> Node:
    """The facts of this machine as `options` ask for them.

    Takes the sampling window plus well under a second; every wait inside is bounded. A collector that fails is a gap.
    Setting `stop` ends the window early: what was gathered until then is returned.

    Raises:
        NoClusterError, SeveralClustersError: as `discover`.
    """
    say, ended = progress or (lambda _: None), stop or threading.Event()
    started, clock = time.time(), time.monotonic()
    deadline = clock + options.window_s + options.timeout_s
    guard = Guard()
    discovery = discover(options, proc)
    say(f"{len(discovery.found)} process{'' if len(discovery.found) == 1 else 'es'} found")
    side = ThreadPoolExecutor(6, thread_name_prefix="side")
    gpus_ = side.submit(guard.call, "GPUs", collect_gpus, (None, ()))
    logs_ = side.submit(guard.call, "logs", lambda: _read_logs(discovery, options, proc), NO_LOGS)
    tasks_ = side.submit(guard.call, "asyncio tasks", lambda: _first_tasks(discovery, options, proc), NO_TASKS)
    groups_ = side.submit(guard.call, "process groups", lambda: _torch_groups(discovery, options, proc), NO_GROUPS)
    engines = EngineLooks(discovery.found, proc)
    engines_ = side.submit(guard.call, "engines' endpoints", engines.begin, None) if options.engine_endpoints else None
    network = guard.call("network counters", lambda: read_network(proc), NetworkBytes())
    before = [guard.call("the first look", lambda f=f: look(f, proc), None, pid=f.pid) for f in discovery.found if f.kind != "agent"]  # type: ignore[misc]
    threads = {b.found.pid: {t.comm for t in b.threads.values()} for b in before if b and b.found.kind in SAMPLED}
    counters_ = side.submit(guard.call, "counters of collectives", lambda: read_live_counters(threads, options.window_s, ended, proc), LiveCounters())
    lateness = LatenessMeter(proc)
    stacks, taken = _sample(discovery, options, clock, deadline, guard, say, ended, proc)
    window = time.monotonic() - clock
    late = lateness.stop()
    moved = guard.call("network counters", lambda: read_network(proc), NetworkBytes()).since(network)
    doors = guard.call("what we may read", lambda: find_doors([b.found.pid for b in before if b and b.found.kind in SAMPLED], proc), NO_DOORS)
    logs = _result(logs_, NO_LOGS)
    name = options.node_name or socket.gethostname()
    processes, gone, missing = _read_processes([b for b in before if b], Reader(doors, stacks, logs.lines, guard, proc), name, deadline)
    processes, node_lines = guard.call("last words", partial(_last_words, processes, gone, logs), (processes, logs.lines.get(None, ())))
    processes = tuple(p for p in processes if p.pid not in discovery.doubtful or is_getting_in(p, stacks.frames, stacks.stacks))
    processes, task_gaps = _last_tasks(side, guard, processes, _result(tasks_, None), doors, deadline, proc)
    groups, unread = _result(groups_, GroupsRead({}, tuple(threads)))
    processes = tuple(msgspec.structs.replace(p, torch=groups[p.pid]) if p.pid in groups else p for p in processes)
    left_s = min(SEMAPHORES_S, max(0.0, deadline - time.monotonic()) / PATIENCE)
    semaphores = guard.call("semaphores", partial(read_semaphores, processes, total_s=left_s, proc=proc), NO_SEMAPHORES)
    if engines_ is not None:  # last: what it asks would be a task of the server
        _result(engines_, None)
        states = guard.call("engines' endpoints", lambda: engines.finish(processes), NO_ENGINES)
        processes = tuple(msgspec.structs.replace(p, engine=states[p.pid]) if p.pid in states else p for p in processes)
    runners = (
        guard.call("stores of rollouts", partial(read_runners, processes, stacks.frames, stacks.stacks), NO_RUNNERS)
        if options.engine_endpoints
        else ()
    )
    side.shutdown(wait=False)
    gpus, gpu_gaps = _result(gpus_, (None, (Gap(id=gaps.GPU_UNREAD, where="", what="all GPUs", reason="no answer in time"),)))
    counters = _result(counters_, LiveCounters())
    memory = guard.call("the control group", lambda: _cgroup_memory(discovery, proc), CgroupMemory())
    cure = remedy(doors)
    found_gaps = [_named(g, name, cure) for g in (*stacks.gaps, *gpu_gaps, *logs.gaps, *task_gaps, *counters.gaps)]
    found_gaps += _gap_of_groups(name, unread)
    found_gaps += [*_door_gaps(name, doors, len(processes)), *_driver_gap(name, discovery, cure), *missing]
    if taken < options.samples:
        what, why = f"{options.samples - taken} of {options.samples} samples", "interrupted" if ended.is_set() else "no time was left"
        found_gaps.append(Gap(id=gaps.INTERRUPTED if ended.is_set() else gaps.WINDOW_SHORT, where=name, what=what, reason=why))
    nothing: dict[str, object] = {}
    machine = guard.call("facts of the machine", lambda: _machine(proc, discovery), nothing)
    node = Node(
        name=name,
        node_id=options.node_id or discovery.node_id,
        ip=options.node_ip or discovery.node_ip or guard.call("this machine's address", _own_ip, None),
        started_time_s=started,
        window_s=round(window, 3),
        late_s=late.late_s,
        longest_late_s=late.longest_s,
        timed_waits=late.waits,
        cpu_pressure=late.pressure,
        network_received_bytes=moved.received,
        network_sent_bytes=moved.sent,
        oom_kills=memory.oom_kills,
        cgroup_memory_limit_bytes=memory.limit_bytes,
        cgroup_memory_used_bytes=memory.used_bytes,
        versions={"python": platform.python_version(), "rayrl-debug": __version__, "kernel": platform.release(), **_ray_version()},
        doors=doors,
        frames=stacks.frames,
        stacks=stacks.stacks,
        processes=tuple(map(fold_threads, processes)),
        ended=gone,
        locks=guard.call("file locks", lambda: read_locks(proc), ()),
        awaited_files=guard.call("awaited files", partial(read_awaited_files, processes, stacks.frames, stacks.stacks, proc=proc), ()),
        semaphores=semaphores,
        system_v=guard.call("System V", partial(read_system_v, processes, proc=proc), NO_SYSTEM_V),
        runners=runners,
        gpus=gpus,
        flight_records=counters.records,
        communicators=counters.polls,
        log_lines=node_lines,
        gaps=(*found_gaps, *guard.gaps(name)),
        took_s=round(time.monotonic() - clock, 3),
        **machine,  # type: ignore[arg-type]
    )
    return made_safe(node)


def _sample(
    discovery: Discovery,
    options: CollectOptions,
    clock: float,
    deadline: float,
    guard: Guard,
    say: Callable[[str], None],
    ended: threading.Event,
    proc: Path,
) -> tuple[Stacks, int]:
    """The stacks of all samples, and how many samples were taken before the time was up."""
    dump_s = min(DUMP_DEADLINE_S, max(0.5, options.timeout_s / 4))
    sampler = StackSampler(msgspec.structs.replace(options, timeout_s=dump_s), find_pyspy(options.pyspy), proc=proc)
    taken = 0
    nobody: list[Target] = []
    for number in range(max(1, options.samples)):
        if ended.wait(max(0.0, clock + number * options.interval_s - time.monotonic())) or (number and time.monotonic() > deadline - dump_s):
            break
        say(f"sample {number + 1} of {options.samples}")
        targets = guard.call("which processes to sample", partial(_targets, discovery, proc, sampler.rests if number else None), nobody)
        guard.call("stacks", partial(sampler.sample, targets, time.monotonic() - clock), None)
        taken += 1
    if options.native_at_device and not ended.is_set() and time.monotonic() + dump_s < deadline:
        guard.call("frames of C", sampler.look_into_c, None)
    return guard.call("stacks", sampler.finish, NO_STACKS), taken


def _targets(discovery: Discovery, proc: Path, rests: Callable[[int], bool] | None) -> list[Target]:
    """Whom to look at; not again at an idle worker of Ray that `rests`. One that is being made ready has the same title."""
    targets = []
    for found in discovery.found:
        if found.kind not in SAMPLED or (rests is not None and found.arguments[:1] == ("ray::IDLE",) and rests(found.pid)):
            continue
        status = read_status(found.pid, proc)
        if status and not status.get("State", "Z").startswith(("Z", "X")):
            tracer = status.get("TracerPid", "0")
            targets.append(Target(pid=found.pid, state=status["State"][:1], tracer_pid=int(tracer) if tracer.isdigit() else 0))
    return targets


def _read_processes(
    before: Sequence[Before], reader: Reader, name: str, deadline: float
) -> tuple[tuple[Process, ...], tuple[EndedProcess, ...], list[Gap]]:
    processes, ended, quick = [], [], 0
    for one in before:
        late = time.monotonic() > deadline
        quick += late
        process = reader.read(one, quick=late)
        if process is None:
            ended.append(reader.ended(one))
        else:
            processes.append(process)
    missing = []
    if ended:
        missing.append(Gap(id=gaps.PROCESS_GONE, where=name, what=f"{len(ended)} processes", reason="they ended during the window"))
    if quick:
        missing.append(Gap(id=gaps.TRUNCATED, where=name, what=f"sockets and files of {quick} processes", reason="no time was left"))
    return tuple(processes), tuple(ended[:MAX_ENDED]), missing


def _first_tasks(discovery: Discovery, options: CollectOptions, proc: Path) -> dict[int, AsyncRead] | None:
    """Asyncio tasks at the start of the window, of the processes that are sampled."""
    if not options.async_tasks:
        return {}
    wanted = (f.pid for f in discovery.found if f.kind in SAMPLED and f.arguments[:1] != ("ray::IDLE",))
    return read_all_async_tasks(wanted, total_s=min(TASKS_S, options.timeout_s / 4), proc=proc)


def _torch_groups(discovery: Discovery, options: CollectOptions, proc: Path) -> GroupsRead:
    return read_all_torch_groups((f.pid for f in discovery.found if f.kind in SAMPLED), total_s=min(GROUPS_S, options.timeout_s / 4), proc=proc)


def _gap_of_groups(name: str, unread: Sequence[int]) -> list[Gap]:
    """Of processes whose ranks may be known by nothing else."""
    more = f" and {len(unread) - MAX_NAMED} more" if len(unread) > MAX_NAMED else ""
    what = f"torch's process groups of pid {', '.join(map(str, unread[:MAX_NAMED]))}{more}"
    why = "no time was left: the machine is busy, or has many processes"
    return [Gap(id=gaps.RANK_UNKNOWN, where=name, what=what, reason=why)] if unread else []


def _last_tasks(
    side: ThreadPoolExecutor,
    guard: Guard,
    processes: tuple[Process, ...],
    earlier: dict[int, AsyncRead] | None,
    doors: Doors,
    deadline: float,
    proc: Path,
) -> tuple[tuple[Process, ...], list[Gap]]:
    """The processes with their asyncio tasks at the end of the window, and what of them was not read."""
    late = [Gap(id=gaps.ASYNC_UNREAD, where="", what="asyncio tasks of all processes", reason="no answer in time")]
    if earlier is None:
        return processes, late
    left_s = min(TASKS_S, max(0.5, deadline - time.monotonic()))
    read = partial(attach_async_tasks, processes, earlier, total_s=left_s, proc=proc)
    failed: tuple[list[Process], list[Gap]] = (list(processes), [])
    found, missing = _result(side.submit(guard.call, "asyncio tasks", read, failed), (list(processes), late))
    # a closed door is one gap of the node, not one of every process
    return tuple(found), [g for g in missing if g.id != gaps.MEMORY_REFUSED or doors.memory is not False]


def _read_logs(discovery: Discovery, options: CollectOptions, proc: Path) -> Logs:
    if not options.logs:
        return NO_LOGS
    # a program that was named by its pid need not be in Ray: what it and its children print goes to the same place
    printed = Printed([*discovery.starters, *(f.pid for f in discovery.found if f.kind == "named")], proc)
    wanted = [Process(pid=f.pid, title="") for f in discovery.found if f.kind in SAMPLED]
    lines, missing = collect_log_lines(wanted, Path(discovery.session_dir) if discovery.session_dir else None)
    return Logs({**lines, **{pid: (*lines.get(pid, ()), *more) for pid, more in printed.read().items()}}, missing, printed)


def _last_words(processes: tuple[Process, ...], gone: Sequence[EndedProcess], logs: Logs) -> tuple[tuple[Process, ...], tuple[LogLine, ...]]:
    """The processes, and the lines of the node, with what those that ended during the window printed until then."""
    last = logs.printed.read_last({p.pid for p in processes if p.state in ("Z", "X")} | {e.pid for e in gone})
    processes = tuple(msgspec.structs.replace(p, log_lines=last.pop(p.pid)) if p.pid in last else p for p in processes)
    return processes, (*logs.lines.get(None, ()), *(line for lines in last.values() for line in lines))


def _result(future: Future[T], otherwise: T) -> T:
    try:
        return future.result(SIDE_DEADLINE_S)
    except FutureTimeoutError:  # the built-in one from Python 3.11 on
        return otherwise


def _cgroup_memory(discovery: Discovery, proc: Path) -> CgroupMemory:
    pid = discovery.raylet_pid or next((f.pid for f in discovery.found), None)
    return read_cgroup_memory(pid, proc) if pid is not None else CgroupMemory()


def _allowed_cpus(discovery: Discovery) -> int:
    """CPUs of the raylet, or of the first process found: we may sit in a smaller step of our own."""
    pid = discovery.raylet_pid or next((f.pid for f in discovery.found), 0)
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return len(os.sched_getaffinity(0))


def _machine(proc: Path, discovery: Discovery) -> dict[str, object]:
    boot_id, pid_namespace = machine_of(proc)
    return {
        "boot_id": boot_id,
        "pid_namespace": pid_namespace,
        "cpu_count": os.cpu_count(),
        "cpus_allowed": _allowed_cpus(discovery),
        "load1": os.getloadavg()[0],
        "memory_total_bytes": _meminfo(proc, "MemTotal"),
        "memory_available_bytes": _meminfo(proc, "MemAvailable"),
    }


def _meminfo(proc: Path, key: str) -> int | None:
    row = next((line for line in (read_text(proc / "meminfo", 1 << 16) or "").splitlines() if line.startswith(key + ":")), None)
    return int(row.split()[1]) * 1024 if row else None


def _own_ip() -> str | None:
    """The address this machine sends from. Nothing is sent: connecting a datagram socket only looks up the route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return str(s.getsockname()[0])
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
        if is_open is False and count:
            found.append(Gap(id=gap_id, where=name, what=f"{what} of {count} processes", reason=doors.setting or "refused", remedy=cure))
    return found


def _driver_gap(name: str, discovery: Discovery, cure: str | None) -> list[Gap]:
    if not discovery.hidden or any(f.kind == "driver" for f in discovery.found):
        return []
    reason = f"{discovery.hidden} Python processes here may be it; we may not read them, and no --pid names it"
    remedy_ = cure or "name it: rayrl-debug snapshot --pid PID"
    return [Gap(id=gaps.DRIVER_UNKNOWN, where=name, what="the driver of the job", reason=reason, remedy=remedy_)]
