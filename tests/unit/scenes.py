"""Builders of small snapshots for the rules' tests: stacks written as text, ranks, Ray tables."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.model.snapshot import (
    AsyncTask,
    CoreWorker,
    Frame,
    Local,
    Node,
    ObjectRefWait,
    OwnedTask,
    Process,
    RayActor,
    RayPlacementGroup,
    RayState,
    RayTask,
    Sample,
    Snapshot,
    Socket,
    TaskHistory,
    Thread,
    ThreadSample,
)

NODE_ID = "ab" * 28
EXECUTOR = "_resume_span@ray/util/tracing/tracing_helper.py:487 actor_method_executor@ray/_private/function_manager.py:740"
MAIN = "Worker.main_loop@ray/_private/worker.py:1069 <module>@ray/_private/workers/default_worker.py:323"
ALL_REDUCE = "all_reduce@torch/distributed/distributed_c10d.py:3200 wrapper@torch/distributed/c10d_logger.py:81"
BARRIER = "barrier@torch/distributed/distributed_c10d.py:5356 wrapper@torch/distributed/c10d_logger.py:83"
RECV = "recv@torch/distributed/distributed_c10d.py:2500 wrapper@torch/distributed/c10d_logger.py:81"
RENDEZVOUS = "_create_c10d_store@torch/distributed/rendezvous.py:190 init_process_group@torch/distributed/distributed_c10d.py:1700"
RAY_GET = "Worker.get_objects@ray/_private/worker.py:1007 get@ray/_private/worker.py:3009"
IDLE = MAIN
NO_CALL = -1
"""What the kernel tells of a thread that sleeps in no system call."""


class Stacks:
    """Interned stacks of one node."""

    def __init__(self) -> None:
        self.frames: dict[tuple[str, str, int], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}

    def add(self, text: str) -> int:
        """Index of a stack given as ``function@file:line`` words, innermost first."""
        key = []
        for word in text.split():
            function, _, place = word.partition("@")
            file, _, line = place.rpartition(":")
            key.append(self.frames.setdefault((function, file, int(line)), len(self.frames)))
        return self.stacks.setdefault(tuple(key), len(self.stacks))

    def node(self, processes: Sequence[Process], **more: object) -> Node:
        return Node(
            name="node1",
            node_id=NODE_ID,
            started_time_s=198.0,
            window_s=2.0,
            frames=tuple(Frame(function=f, file=file, line=line) for f, file, line in self.frames),
            stacks=tuple(self.stacks),
            processes=tuple(processes),
            **more,  # type: ignore[arg-type]
        )


def process(
    stacks: Stacks,
    pid: int,
    title: str,
    *texts: str,
    kind: str = "ray-worker",
    state: str = "S",
    rank: int | None = None,
    size: int | None = None,
    cpu_s: float = 0.02,
    wchan: str | None = None,
    syscall: int | None = NO_CALL,
    arg0: int | None = None,
    ppid: int = 10,
    locals_: Sequence[Local] = (),
    owns_gil: bool = False,
    extra_threads: Sequence[tuple[str, str]] = (),
    refs: Sequence[str] = (),
    sockets: Sequence[Socket] = (),
    async_tasks: tuple[AsyncTask, ...] | None = (),
) -> Process:
    """One process; one text means the same place in all three samples, several mean one a sample."""
    per_sample = texts if len(texts) > 1 else texts * 3
    samples = []
    for i, text in enumerate(per_sample):
        threads = [ThreadSample(stack=stacks.add(text), tid=pid, name="MainThread", active=False, owns_gil=owns_gil, locals=tuple(locals_))]
        threads += [ThreadSample(stack=stacks.add(t), tid=pid + 1000 + j, name=name) for j, (name, t) in enumerate(extra_threads)]
        samples.append(Sample(at_s=float(i), threads=tuple(threads)))
    env = {"RAY_JOB_ID": "01000000"}
    if rank is not None:
        env |= {"RANK": str(rank), "WORLD_SIZE": str(size or 4), "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
    return Process(
        pid=pid,
        ppid=ppid,
        title=title,
        kind=kind,
        state=state,
        job_id="01000000",
        env=env,
        env_now=env,
        cpu_s=cpu_s,
        window_s=2.0,
        threads=(
            Thread(tid=pid, comm="python", state="R" if cpu_s > 1 else "S", cpu_s=cpu_s, wchan=wchan, syscall=syscall, syscall_arg0=arg0),
            *(Thread(tid=pid + 1000 + j, comm="python", state="S", cpu_s=0.0, wchan="futex_do_wait") for j in range(len(extra_threads))),
        ),
        samples=tuple(samples),
        sockets=tuple(sockets),
        object_refs=(ObjectRefWait(call="get", object_ids=tuple(r + "00000001" for r in refs), tid=pid),) if refs else (),
        async_tasks=async_tasks,
    )


def task_id(number: int) -> str:
    return f"{number:048x}"


def actor(number: int, class_name: str, pid: int | None, *, state: str = "ALIVE", name: str | None = None, **more: object) -> RayActor:
    return RayActor(
        actor_id=f"{number:032x}",
        job_id="01000000",
        class_name=class_name,
        state=state,
        name=name,
        pid=pid,
        node_id=NODE_ID,
        **more,  # type: ignore[arg-type]
    )


def core(pid: int, *, running: Sequence[int] = (), owned: Sequence[OwnedTask] = (), actor_number: int | None = None, done: int = 0) -> CoreWorker:
    return CoreWorker(
        pid=pid,
        worker_id=f"{pid:056x}",
        node_id=NODE_ID,
        job_id="01000000",
        actor_id=f"{actor_number:032x}" if actor_number is not None else None,
        kind="WORKER",
        running_task_ids=tuple(task_id(n) for n in running),
        executed_tasks=7 + done,
        executed_tasks_before=7,
        owned=tuple(owned),
    )


def ray_state(
    *,
    actors: Sequence[RayActor] = (),
    tasks: Sequence[RayTask] = (),
    cores: Sequence[CoreWorker] = (),
    groups: Sequence[RayPlacementGroup] = (),
    history: Sequence[TaskHistory] = (),
) -> RayState:
    return RayState(
        address="10.0.0.1:6379",
        actors=tuple(actors),
        tasks=tuple(tasks),
        core_workers=tuple(cores),
        placement_groups=tuple(groups),
        history=tuple(history),
    )


def snapshot(node: Node, ray: RayState | None = None) -> Snapshot:
    return Snapshot(taken_time_s=200.0, nodes=(node,), ray=ray)
