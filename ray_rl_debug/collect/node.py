"""All facts of one node: discover, look at the start of the window, take the samples, look again at its end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.own_time import PATIENCE
from ray_rl_debug.collect.awaited_files import read_awaited_files
from ray_rl_debug.collect.beside import Beside, Logs
from ray_rl_debug.collect.cgroups import CgroupMemory
from ray_rl_debug.collect.discover import Discovery, discover
from ray_rl_debug.collect.files import read_locks
from ray_rl_debug.collect.folding import fold_threads
from ray_rl_debug.collect.guard import Guard
from ray_rl_debug.collect.lateness import LatenessMeter
from ray_rl_debug.collect.machine import own_ip, read_job_memory, read_machine, read_versions
from ray_rl_debug.collect.network import NetworkBytes, read_network
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.permissions import find_doors, remedy
from ray_rl_debug.collect.process_facts import SAMPLED, Before, Reader, look
from ray_rl_debug.collect.procfs import PROC, read_status
from ray_rl_debug.collect.pyspy import find_pyspy
from ray_rl_debug.collect.rollout_store import read_runners
from ray_rl_debug.collect.semaphores import read_semaphores
from ray_rl_debug.collect.stacks import Stacks, StackSampler, Target
from ray_rl_debug.collect.starting import is_getting_in
from ray_rl_debug.collect.system_v import read_system_v
from ray_rl_debug.collect.unseen import closed_doors, hidden_driver, named, samples_left_out, unread_groups
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Doors, EndedProcess, Gap, LogLine, Node, Process, Runner, SharedSemaphore, SystemV
from ray_rl_debug.privacy.redact import made_safe

DUMP_DEADLINE_S = 4.0
"""For one dump of one process: a busy one took 1.6 s at worst on a loaded machine."""
SEMAPHORES_S = 2.0
"""Of our processor, for the holders of semaphores between processes, only where somebody waits for one."""

MAX_ENDED = 64

NO_STACKS = Stacks(frames=(), stacks=(), samples={}, object_refs={}, object_refs_before={}, in_c={}, python={}, gaps=())
NO_DOORS = Doors()
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
    name = options.node_name or socket.gethostname()

    # the window: a first look, the samples, and beside them what does not depend on them
    beside = Beside(discovery, options, guard, proc)
    network = guard.call("network counters", lambda: read_network(proc), NetworkBytes())
    before = _first_look(discovery, guard, proc)
    beside.begin_counters({b.found.pid: {t.comm for t in b.threads.values()} for b in before if b.found.kind in SAMPLED}, ended)
    lateness = LatenessMeter(proc)
    stacks, taken = _sample(discovery, options, clock, deadline, guard, say, ended, proc)
    window = time.monotonic() - clock
    late = lateness.stop()
    moved = guard.call("network counters", lambda: read_network(proc), NetworkBytes()).since(network)

    # behind it: the second look at the processes, and what only they lead to
    doors = guard.call("what we may read", lambda: find_doors([b.found.pid for b in before if b.found.kind in SAMPLED], proc), NO_DOORS)
    logs = beside.logs()
    processes, gone, missing = _read_processes(before, Reader(doors, stacks, logs.lines, guard, proc), name, deadline)
    processes, node_lines = guard.call("last words", partial(_last_words, processes, gone, logs), (processes, logs.lines.get(None, ())))
    processes = tuple(p for p in processes if p.pid not in discovery.doubtful or is_getting_in(p, stacks.frames, stacks.stacks))
    processes, task_gaps = beside.with_tasks(processes, doors, deadline)
    processes, unread = beside.with_groups(processes)
    left_s = min(SEMAPHORES_S, max(0.0, deadline - time.monotonic()) / PATIENCE)
    semaphores = guard.call("semaphores", partial(read_semaphores, processes, total_s=left_s, proc=proc), NO_SEMAPHORES)
    processes = beside.with_engines(processes)
    read = partial(read_runners, processes, stacks.frames, stacks.stacks)
    runners = guard.call("stores of rollouts", read, NO_RUNNERS) if options.engine_endpoints else ()
    beside.close()
    (gpus, gpu_gaps), counters = beside.gpus(), beside.counters()
    memory = guard.call("the control group", lambda: read_job_memory(discovery, proc), CgroupMemory())

    cure = remedy(doors)
    found_gaps = (
        *(named(g, name, cure) for g in (*stacks.gaps, *gpu_gaps, *logs.gaps, *task_gaps, *counters.gaps)),
        *unread_groups(name, unread),
        *closed_doors(name, doors, len(processes)),
        *hidden_driver(name, discovery, cure),
        *missing,
        *samples_left_out(name, taken, options.samples, interrupted=ended.is_set()),
    )
    nothing: dict[str, object] = {}
    machine = guard.call("facts of the machine", lambda: read_machine(discovery, proc), nothing)
    node = Node(
        name=name,
        node_id=options.node_id or discovery.node_id,
        ip=options.node_ip or discovery.node_ip or guard.call("this machine's address", own_ip, None),
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
        versions=read_versions(),
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


def _first_look(discovery: Discovery, guard: Guard, proc: Path) -> list[Before]:
    """The counters of each process at the start of the window; Ray's own services have none to compare."""
    looks = (guard.call("the first look", partial(look, f, proc), None, pid=f.pid) for f in discovery.found if f.kind != "agent")
    return [one for one in looks if one is not None]


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


def _last_words(processes: tuple[Process, ...], gone: Sequence[EndedProcess], logs: Logs) -> tuple[tuple[Process, ...], tuple[LogLine, ...]]:
    """The processes, and the lines of the node, with what those that ended during the window printed until then."""
    last = logs.printed.read_last({p.pid for p in processes if p.state in ("Z", "X")} | {e.pid for e in gone})
    processes = tuple(msgspec.structs.replace(p, log_lines=last.pop(p.pid)) if p.pid in last else p for p in processes)
    return processes, (*logs.lines.get(None, ()), *(line for lines in last.values() for line in lines))
