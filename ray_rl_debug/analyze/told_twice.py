"""Facts that another part of the same snapshot tells too: where one of them was not read, the other one counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, CoreWorker, Node, Process, RayState, RayTask, Snapshot, Socket

_KERNEL_STATES = frozenset("RSDTtZXI")
_SLEEP = ("sleep", "asyncio/tasks.py")
_NO_ACTOR = "f" * 24
_UNIQUE = 16
"""Digits of a task's id that are its own; its actor's id follows them."""
_ACTOR_ID = 32


def with_told_twice(snapshot: Snapshot) -> Snapshot:
    """The snapshot with what was not read at one place and was read at another; itself where nothing is added."""
    nodes = tuple([_with_processes(node) for node in snapshot.nodes])
    ray = _with_calls(snapshot.ray) if snapshot.ray is not None else None
    same = ray is snapshot.ray and all(new is old for new, old in zip(nodes, snapshot.nodes, strict=True))
    return snapshot if same else msgspec.structs.replace(snapshot, nodes=nodes, ray=ray)


def _with_processes(node: Node) -> Node:
    ends = {s.inode: s.peer_inode for p in node.processes for s in p.sockets or () if s.family == "unix" and s.inode and s.peer_inode}
    processes = tuple([_with_ends(_with_coroutines(_with_state(p)), ends) for p in node.processes])
    same = all(new is old for new, old in zip(processes, node.processes, strict=True))
    return node if same else msgspec.structs.replace(node, processes=processes)


def _with_ends(process: Process, ends: Mapping[int, int]) -> Process:
    """Each end of a Unix connection tells the number of the other one; `ends` are those that were read."""
    if all((s.inode and s.peer_inode) or s.family != "unix" or s.state == "LISTEN" for s in process.sockets or ()):
        return process
    others = {peer: inode for inode, peer in ends.items()}

    def told(socket: Socket) -> Socket:
        inode = socket.inode or (ends.get(socket.peer_inode) if socket.peer_inode and socket.family == "unix" else None)
        peer = socket.peer_inode or (others.get(socket.inode) if socket.inode and socket.family == "unix" else None)
        return msgspec.structs.replace(socket, inode=inode, peer_inode=peer) if (inode, peer) != (socket.inode, socket.peer_inode) else socket

    sockets = tuple(map(told, process.sockets or ()))
    return msgspec.structs.replace(process, sockets=sockets) if sockets != process.sockets else process


def _with_state(process: Process) -> Process:
    """The state of a process is that of its first thread."""
    first = next((t for t in process.threads if t.tid == process.pid), None) if process.state is None else None
    return msgspec.structs.replace(process, state=first.state) if first is not None and first.state in _KERNEL_STATES else process


def _with_coroutines(process: Process) -> Process:
    return _with_sleeps(_with_lines(_with_files(process))) if process.async_tasks else process


def _with_files(process: Process) -> Process:
    """A coroutine of which the file was not read stands in the same code as others of its function at its line."""
    tasks = process.async_tasks or ()
    if all(frame.file is not None for task in tasks for frame in task.chain):
        return process
    files: dict[tuple[str, int | None], set[str]] = defaultdict(set)
    for frame in (frame for task in tasks for frame in task.chain):
        if frame.file is not None:
            files[frame.function, frame.line].add(frame.file)

    def told(frame: AwaitFrame) -> AwaitFrame:
        known = files.get((frame.function, frame.line), ()) if frame.file is None else ()
        return msgspec.structs.replace(frame, file=next(iter(known))) if len(known) == 1 else frame

    return msgspec.structs.replace(process, async_tasks=tuple([msgspec.structs.replace(t, chain=tuple(map(told, t.chain))) for t in tasks]))


def _with_lines(process: Process) -> Process:
    """One of which the line was not read stands where all others do that run its function and call the same there."""
    tasks = process.async_tasks or ()
    if all(frame.line is not None or frame.file is None for task in tasks for frame in task.chain):
        return process
    lines: dict[tuple[str, str | None, str | None], set[int]] = defaultdict(set)
    for task in tasks:
        for frame, called in zip(task.chain, _called(task), strict=True):
            if frame.line is not None:
                lines[frame.function, frame.file, called].add(frame.line)

    def told(frame: AwaitFrame, called: str | None) -> AwaitFrame:
        known = lines.get((frame.function, frame.file, called), ()) if frame.line is None and frame.file is not None else ()
        return msgspec.structs.replace(frame, line=next(iter(known))) if len(known) == 1 else frame

    found = [msgspec.structs.replace(t, chain=tuple(map(told, t.chain, _called(t)))) for t in tasks]
    return msgspec.structs.replace(process, async_tasks=tuple(found))


def _called(task: AsyncTask) -> tuple[str | None, ...]:
    """What each coroutine of a chain awaits: the next one, or what ends the chain."""
    return (*(f.function for f in task.chain[1:]), task.awaited.kind if task.awaited is not None else None) if task.chain else ()


def _with_sleeps(process: Process) -> Process:
    """A coroutine that stands in asyncio's sleep sleeps, until the only timer of its loop is due."""
    tasks = process.async_tasks
    if not tasks or all(t.awaited is not None or not t.chain for t in tasks):
        return process
    return msgspec.structs.replace(process, async_tasks=tuple([_with_sleep(t) for t in tasks]))


def _with_sleep(task: AsyncTask) -> AsyncTask:
    if task.awaited is not None or not task.chain or (task.chain[-1].function, task.chain[-1].file) != _SLEEP:
        return task
    return msgspec.structs.replace(task, awaited=Awaited(kind="sleep", due_s=task.timer_s if task.timers == 1 else None))


def _with_calls(ray: RayState) -> RayState:
    """A call's id holds its actor's; and a call that its owner still awaits and that Ray has told to run is under way in that worker."""
    tasks, failed = ray.tasks, ray.failed
    if any(t.actor_id is None and t.kind == "ACTOR_TASK" for t in (*tasks, *failed)):
        tasks, failed = (tuple([_with_actor(t) for t in some]) for some in (tasks, failed))
        ray = msgspec.structs.replace(ray, tasks=tasks, failed=failed)
    runs = _awaited_and_running(ray) if any(not w.running_task_ids for w in ray.core_workers) else {}
    if any(not w.running_task_ids and w.worker_id in runs for w in ray.core_workers):
        ray = msgspec.structs.replace(ray, core_workers=tuple([_with_running(w, runs) for w in ray.core_workers]))
    return ray


def _with_actor(task: RayTask) -> RayTask:
    actor_id = task.task_id[_UNIQUE:]
    if task.actor_id is not None or task.kind != "ACTOR_TASK" or len(actor_id) != _ACTOR_ID or actor_id.startswith(_NO_ACTOR):
        return task
    return msgspec.structs.replace(task, actor_id=actor_id)


def _awaited_and_running(ray: RayState) -> Mapping[str, list[str]]:
    awaited = {o.task_id for w in ray.core_workers for o in w.owned}
    found: dict[str, list[str]] = defaultdict(list)
    for task in ray.tasks:
        if task.is_running and task.worker_id is not None and task.task_id in awaited:
            found[task.worker_id].append(task.task_id)
    return found


def _with_running(worker: CoreWorker, runs: Mapping[str, list[str]]) -> CoreWorker:
    told = runs.get(worker.worker_id)
    return msgspec.structs.replace(worker, running_task_ids=tuple(told)) if told and not worker.running_task_ids else worker
