"""The watch on one node: which processes there are, their signs and the GPUs', as often as it is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.discover import discover
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.procfs import PROC, machine_of
from ray_rl_debug.model import codec
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.watch.call_changes import CallChanges
from ray_rl_debug.watch.close_signs import Counters, Mover
from ray_rl_debug.watch.end_driver import end_driver
from ray_rl_debug.watch.gpu_watch import GpuWatch
from ray_rl_debug.watch.new_processes import NewProcesses
from ray_rl_debug.watch.signals import Known, NodeReading, SignReader, first_look

RESCAN_S = 300.0
"""The whole process table is read this often, and when the raylet has started a process."""
NEW_PROCESSES_S = 10.0
"""That is looked for this often, and at once where the kernel tells of the raylet's children,"""
NEW_PROCESSES_SOON_S = 4.0
"""and this often as long as the set of processes is young."""
YOUNG_S = 30.0
SCAN_SHARE = 0.0025
"""Of the time: a raylet that starts processes all the time is not followed more closely."""
GPU_EVERY_S = 10.0
GPU_SOON_S = 2.0
"""while something stands still."""
_WATCHED = frozenset({"ray-worker", "driver", "child"})


class WatchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the companion asks a node for."""

    companion: str
    drivers: tuple[int, ...] = ()
    """Pids of the drivers on this node that are watched."""
    skip: tuple[int, ...] = ()
    """Pids of the companion's own processes,"""
    skip_on: tuple[str | None, str | None] | None = None
    """on this machine (`procfs.machine_of`): elsewhere they are other processes."""
    everything: bool = False
    """Tell the whole set of processes again."""
    often: bool = False
    """Something seems to stand still: mind calls that end and begin again between two readings."""
    closely: bool = False
    """It does: tell also what costs more to read."""
    with_ras: bool = False
    """Then ask NCCL RAS as well, which asks all nodes: one watcher does."""


class NodeWatch:
    """One companion's watch on this node."""

    def __init__(
        self,
        raylet_pid: int | None,
        *,
        proc: Path = PROC,
        clock: Callable[[], float] = time.monotonic,
        gpus: GpuWatch | None = None,
    ) -> None:
        self._raylet_pid = raylet_pid
        self._proc = proc
        self._machine = machine_of(proc)
        self._clock = clock
        self._reader = SignReader(proc, clock)
        self._gpus = gpus if gpus is not None else GpuWatch()
        self._known: dict[tuple[int, int], Known] = {}
        self._drivers: tuple[int, ...] = ()
        self._children: str | None = None
        self._new_processes = NewProcesses(proc)
        self._call_changes = CallChanges(proc)
        self._mover = Mover(proc, clock)
        self._counters = Counters(proc, clock)
        self._scanned_at = self._listed_at = float("-inf")
        self._scan_s = 0.0
        """Processor time of the last scan."""
        self._settled_at = float("inf")
        """A scan is wanted from then on: for a new worker at once, and again when it has become what it will be."""
        self._changed_at = clock()
        self._gpu_at = float("-inf")

    def read(self, order: WatchOrder) -> NodeReading:
        """The signs since the last call."""
        now = self._clock()
        if order.skip_on != self._machine:
            order = msgspec.structs.replace(order, skip=())
        if self._is_scan_due(now, order):
            self._scan(now, order)
        if order.everything:
            self._reader.resend()
        reading = self._reader.read()
        if reading.known is not None:
            self._changed_at = now
        if order.often:
            turned = self._call_changes.watch(self._reader.calls())
            signs = (msgspec.structs.replace(s, turned=True) if s.pid in turned else s for s in reading.signs)
            reading = msgspec.structs.replace(reading, signs=tuple(signs))
        if order.closely:
            reading = self._closely(reading, order)
        if now - self._gpu_at >= (GPU_SOON_S if order.closely else GPU_EVERY_S):
            self._gpu_at = now
            reading = msgspec.structs.replace(reading, gpus=self._gpus.read())
        return reading

    def close(self) -> None:
        self._reader.close()
        self._gpus.close()

    def _closely(self, reading: NodeReading, order: WatchOrder) -> NodeReading:
        pids = [s.pid for s in reading.signs if s.state not in "Tt"]
        moved, counts = self._mover.read(pids), self._counters.read(pids, with_ras=order.with_ras)
        signs = (msgspec.structs.replace(s, moved_bytes_per_s=moved.get(s.pid), collectives=counts.get(s.pid)) for s in reading.signs)
        return msgspec.structs.replace(reading, signs=tuple(signs))

    def _is_scan_due(self, now: float, order: WatchOrder) -> bool:
        since = now - self._scanned_at
        if order.drivers != self._drivers or since >= RESCAN_S:
            return True
        children = self._direct_children()
        every = NEW_PROCESSES_SOON_S if now - self._changed_at < YOUNG_S else NEW_PROCESSES_S
        if children != self._children or now - self._listed_at >= every:
            self._listed_at, self._children = now, children
            if self._has_new_workers(order):
                self._settled_at = now
        return now >= self._settled_at and since >= self._scan_s / SCAN_SHARE

    def _has_new_workers(self, order: WatchOrder) -> bool:
        """Did the raylet start somebody? What the run's own processes have started joins them at once."""
        family = {pid for pid, _ in self._known}
        started = self._new_processes.started_by(family | ({self._raylet_pid} if self._raylet_pid is not None else set()))
        joined = {pid: stat for pid, stat in started.items() if stat.ppid in family and pid not in order.skip}
        for pid, stat in joined.items():
            self._known[pid, stat.start_ticks] = first_look(pid, stat.start_ticks, "child", stat.ppid, (stat.comm,), self._proc)
        if joined:
            self._reader.watch(self._known.values())
        return len(joined) < len(started)

    def _direct_children(self) -> str | None:
        """Pids that the raylet's first thread has started; None from a kernel without this file."""
        try:
            with open(f"{self._proc}/{self._raylet_pid}/task/{self._raylet_pid}/children", "rb", buffering=0) as f:
                return f.read(1 << 14).decode()
        except OSError:
            return None

    def _scan(self, now: float, order: WatchOrder) -> None:
        self._scanned_at, self._drivers = now, order.drivers
        began = time.thread_time()
        self._new_processes.note()
        options = CollectOptions(raylet_pid=self._raylet_pid, driver_pids=order.drivers, skip_pids=order.skip)
        try:
            found = discover(options, self._proc).found
        except RayRlDebugError:
            found = ()  # the raylet is gone, and with it its workers
        skip = {os.getpid(), *order.skip}
        known = {}
        for one in found:
            if one.kind not in _WATCHED or one.pid in skip:
                continue
            key = (one.pid, one.stat.start_ticks)
            old = self._known.get(key)
            if old is None or old.kind != one.kind:
                old = first_look(one.pid, one.stat.start_ticks, one.kind, one.stat.ppid, one.arguments, self._proc)
            known[key] = old
        self._settled_at = now + NEW_PROCESSES_SOON_S if known.keys() - self._known.keys() else float("inf")
        self._known = known
        self._reader.watch(known.values())
        self._scan_s = time.thread_time() - began


_watches: dict[str, tuple[NodeWatch, float]] = {}
FORGET_S = 300.0
"""A companion that has not asked for so long is gone."""


def look(payload: bytes) -> bytes:
    """What an agent answers to a companion: `WatchOrder` in, `NodeReading` out. Every companion has a watch of its own."""
    order = msgspec.msgpack.decode(payload, type=WatchOrder)
    now = time.monotonic()
    for name, (old, asked) in list(_watches.items()):
        if now - asked > FORGET_S:
            del _watches[name]
            old.close()
    watch = _watches[order.companion][0] if order.companion in _watches else NodeWatch(int(os.environ.get("RAY_RAYLET_PID") or os.getppid()))
    _watches[order.companion] = (watch, now)
    return codec.pack(watch.read(order))


class EndOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a driver to end."""

    node_id: str
    pid: int
    start_ticks: int


def end_process(payload: bytes) -> bytes:
    """SIGTERM to a driver of this node, if it is still the process that was meant: ``1``, else ``0``."""
    order = msgspec.msgpack.decode(payload, type=EndOrder)
    import ray

    here = ray.get_runtime_context().get_node_id() == order.node_id
    return b"1" if here and end_driver(order.pid, order.start_ticks) else b"0"
