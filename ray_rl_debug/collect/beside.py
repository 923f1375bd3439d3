"""What is read beside the samples of stacks: GPUs, logs, asyncio tasks, process groups, counters, engines. Each in a thread, within its own time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from ray_rl_debug.collect.async_tasks import AsyncRead, attach_async_tasks, read_all_async_tasks
from ray_rl_debug.collect.discover import Discovery
from ray_rl_debug.collect.engine_endpoints import EngineLooks
from ray_rl_debug.collect.gpus import collect_gpus
from ray_rl_debug.collect.guard import Guard
from ray_rl_debug.collect.live_counters import LiveCounters, read_live_counters
from ray_rl_debug.collect.logs import collect_log_lines
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.printed import Printed
from ray_rl_debug.collect.process_facts import SAMPLED
from ray_rl_debug.collect.torch_groups import GroupsRead, read_all_torch_groups
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Doors, EngineState, Gap, Gpu, LogLine, Process

TASKS_S = 4.0
"""For one read of the asyncio tasks of all processes; an actor with torch takes 0.05 s of one core."""
GROUPS_S = 2.0
"""Of our processor, for torch's process groups of all processes; one takes about 0.03 s of one core."""
DEADLINE_S = 6.0
"""For each of these readers, which have shorter deadlines of their own."""

T = TypeVar("T")


class Logs(NamedTuple):
    lines: dict[int | None, tuple[LogLine, ...]]
    """Known errors, by process; ``None`` holds those of the node."""
    gaps: tuple[Gap, ...]
    printed: Printed


GpuRead = tuple[tuple[Gpu, ...] | None, tuple[Gap, ...]]
"""What `collect_gpus` gives."""

_NO_GPUS: GpuRead = (None, ())
_NO_LOGS = Logs({}, (), Printed(()))
_NO_ENGINES: dict[int, EngineState] = {}
_NO_TASKS: dict[int, AsyncRead] | None = {}


class Beside:
    """The readers that run while samples are taken. One that does not answer in time is a gap, and holds nobody up."""

    def __init__(self, discovery: Discovery, options: CollectOptions, guard: Guard, proc: Path) -> None:
        self._discovery, self._options, self._guard, self._proc = discovery, options, guard, proc
        self._sampled = [f for f in discovery.found if f.kind in SAMPLED]
        self._pool = ThreadPoolExecutor(6, thread_name_prefix="side")
        self._gpus = self._begin("GPUs", collect_gpus, _NO_GPUS)
        self._logs = self._begin("logs", self._read_logs, _NO_LOGS)
        self._tasks = self._begin("asyncio tasks", self._read_tasks, _NO_TASKS)
        self._groups = self._begin("process groups", self._read_groups, GroupsRead({}))
        self._engines = EngineLooks(discovery.found, proc)
        self._asked = self._begin("engines' endpoints", self._engines.begin, None) if options.engine_endpoints else None
        self._counters: Future[LiveCounters] | None = None

    def begin_counters(self, threads: Mapping[int, Collection[str]], ended: threading.Event) -> None:
        """Start to read the counters of collectives of processes, whose threads' names are given by pid."""
        read = partial(read_live_counters, threads, self._options.window_s, ended, self._proc)
        self._counters = self._begin("counters of collectives", read, LiveCounters())

    def gpus(self) -> GpuRead:
        late: GpuRead = (None, (Gap(id=gaps.GPU_UNREAD, where="", what="all GPUs", reason="no answer in time"),))
        return _result(self._gpus, late)

    def logs(self) -> Logs:
        return _result(self._logs, _NO_LOGS)

    def counters(self) -> LiveCounters:
        return _result(self._counters, LiveCounters()) if self._counters is not None else LiveCounters()

    def with_tasks(self, processes: tuple[Process, ...], doors: Doors, deadline: float) -> tuple[tuple[Process, ...], list[Gap]]:
        """The processes with their asyncio tasks at the end of the window, and what of them was not read."""
        earlier = _result(self._tasks, None)
        late = [Gap(id=gaps.ASYNC_UNREAD, where="", what="asyncio tasks of all processes", reason="no answer in time")]
        if earlier is None:
            return processes, late
        left_s = min(TASKS_S, max(0.5, deadline - time.monotonic()))
        read = partial(attach_async_tasks, processes, earlier, total_s=left_s, proc=self._proc)
        failed: tuple[list[Process], list[Gap]] = (list(processes), [])
        found, missing = _result(self._begin("asyncio tasks", read, failed), (list(processes), late))
        # a closed door is one gap of the node, not one of every process
        return tuple(found), [g for g in missing if g.id != gaps.MEMORY_REFUSED or doors.memory is not False]

    def with_groups(self, processes: tuple[Process, ...]) -> tuple[tuple[Process, ...], tuple[int, ...]]:
        """The processes with torch's process groups, and the pids of those whose groups were not read."""
        found, unread = _result(self._groups, GroupsRead({}, tuple(f.pid for f in self._sampled)))
        return tuple(msgspec.structs.replace(p, torch=found[p.pid]) if p.pid in found else p for p in processes), tuple(unread)

    def with_engines(self, processes: tuple[Process, ...]) -> tuple[Process, ...]:
        """The processes with what inference engines say of themselves. Asked last: the question would be a task of the server."""
        if self._asked is None:
            return processes
        _result(self._asked, None)
        states = self._guard.call("engines' endpoints", lambda: self._engines.finish(processes), _NO_ENGINES)
        return tuple(msgspec.structs.replace(p, engine=states[p.pid]) if p.pid in states else p for p in processes)

    def close(self) -> None:
        """Start nothing more; who still reads ends by its own deadline."""
        self._pool.shutdown(wait=False)

    def _begin(self, what: str, read: Callable[[], T], otherwise: T) -> Future[T]:
        return self._pool.submit(self._guard.call, what, read, otherwise)

    def _read_logs(self) -> Logs:
        if not self._options.logs:
            return _NO_LOGS
        # a program that was named by its pid need not be in Ray: what it and its children print goes to the same place
        printed = Printed([*self._discovery.starters, *(f.pid for f in self._discovery.found if f.kind == "named")], self._proc)
        session_dir = self._discovery.session_dir
        lines, missing = collect_log_lines([Process(pid=f.pid, title="") for f in self._sampled], Path(session_dir) if session_dir else None)
        return Logs({**lines, **{pid: (*lines.get(pid, ()), *more) for pid, more in printed.read().items()}}, missing, printed)

    def _read_tasks(self) -> dict[int, AsyncRead] | None:
        """Asyncio tasks at the start of the window, of the processes that are sampled."""
        if not self._options.async_tasks:
            return {}
        wanted = (f.pid for f in self._sampled if f.arguments[:1] != ("ray::IDLE",))
        return read_all_async_tasks(wanted, total_s=min(TASKS_S, self._options.timeout_s / 4), proc=self._proc)

    def _read_groups(self) -> GroupsRead:
        total_s = min(GROUPS_S, self._options.timeout_s / 4)
        return read_all_torch_groups((f.pid for f in self._sampled), total_s=total_s, proc=self._proc)


def _result(future: Future[T], otherwise: T) -> T:
    try:
        return future.result(DEADLINE_S)
    except FutureTimeoutError:  # the built-in one from Python 3.11 on
        return otherwise
