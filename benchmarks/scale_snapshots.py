"""Snapshots of runs with any number of ranks, made in memory: eight kinds of hang and a healthy run, with Ray's tables and silent nodes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import (
    CoreWorker,
    Frame,
    Gap,
    Local,
    Node,
    ObjectRefWait,
    OwnedTask,
    Process,
    RayActor,
    RayNode,
    RayState,
    RayTask,
    Sample,
    Snapshot,
    Socket,
    TaskHistory,
    Thread,
    ThreadSample,
)

PER_NODE = 8
NOW_S = 1_790_000_000.0
SAMPLES = 3
WINDOW_S = 2.0
JOB = "01000000"
KINDS = ("straggler", "file", "stopped", "died", "mismatch", "skipped", "pipeline", "rendezvous")
"""Kinds of hang; the other kind is `HEALTHY`."""
HEALTHY = "healthy"

_EXECUTOR = "_resume_span@ray/util/tracing/tracing_helper.py:487 actor_method_executor@ray/_private/function_manager.py:740"
_MAIN = "Worker.main_loop@ray/_private/worker.py:1069 <module>@ray/_private/workers/default_worker.py:323"
_IN_CALL = f"{_EXECUTOR} {_MAIN}"
_STEP = f"PolicyWorker.update_policy@trainer/policy.py:212 PolicyWorker.update@trainer/policy.py:96 {_IN_CALL}"
_LOGGER = "wrapper@torch/distributed/c10d_logger.py:81"
_ALL_REDUCE = f"all_reduce@torch/distributed/distributed_c10d.py:3200 {_LOGGER} reduce_gradients@trainer/gradients.py:41 {_STEP}"
_BARRIER = f"barrier@torch/distributed/distributed_c10d.py:5356 {_LOGGER} save_shard@trainer/checkpoint.py:77 {_STEP}"
_RECV = f"recv@torch/distributed/distributed_c10d.py:2500 {_LOGGER} receive_activation@trainer/pipeline.py:58 {_STEP}"
_RENDEZVOUS = (
    "_create_c10d_store@torch/distributed/rendezvous.py:190 init_process_group@torch/distributed/distributed_c10d.py:1700"
    f" PolicyWorker.set_up@trainer/policy.py:31 {_IN_CALL}"
)
_SCORE = f"normalise@rewards/maths.py:30 grade@rewards/maths.py:12 PolicyWorker.compute_score@trainer/policy.py:188 {_STEP}"
_OPEN = f"read_cache@rewards/cache.py:19 grade@rewards/maths.py:14 {_STEP}"
_WORK = tuple(
    f"forward@models/{layer}.py:{line} PolicyWorker.loss@trainer/policy.py:{140 + line} {_STEP}"
    for layer, line in (("attention", 81), ("mlp", 33), ("norm", 12), ("head", 57))
)
_HELPERS = (
    ("Thread-1", "wait@threading.py:655 wait@threading.py:359 GCManager.run@ray/_private/gc_collect_manager.py:38"),
    ("Thread-2 (_read_thread)", "SubprocPool._read_thread@torch/_inductor/compile_worker/subproc_pool.py:228 Thread.run@threading.py:1012"),
    ("ThreadPoolExecutor-0_0", "_worker@concurrent/futures/thread.py:90 Thread.run@threading.py:1012 Thread._bootstrap@threading.py:1032"),
    ("Thread-3", "wait@threading.py:359 TMonitor.run@tqdm/_monitor.py:60 Thread._bootstrap_inner@threading.py:1075"),
    ("OtelBatchSpanRecordProcessor", "wait@threading.py:359 BatchProcessor.worker@opentelemetry/sdk/_shared_internal/__init__.py:170"),
)
"""Python's own helper threads of a Ray worker that trains: three to five of them in each."""
_NATIVE = ("ray::PolicyWork", "grpc_global_tim", "event_engine", "pt_nccl_watchdg", "pt_nccl_heartbt")
_DRIVES = "Worker.get_objects@ray/_private/worker.py:1007 get@ray/_private/worker.py:3009 Trainer.fit@trainer/loop.py:210 main@train.py:40"


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What one run is, and who is to blame."""

    kind: str
    ranks: int
    culprit: int
    """Its rank; of a rendezvous the rank whose node is silent."""
    silent: frozenset[int] = frozenset()
    """Numbers of the nodes that did not answer."""
    seed: int = 0

    @property
    def culprits(self) -> frozenset[str]:
        """Labels, any of which is right: the rank; for a node that did not answer its name."""
        if self.kind == HEALTHY:
            return frozenset()
        if self.kind == "rendezvous":
            return frozenset(_host(n) for n in self.silent)
        return frozenset({f"PolicyWorker/{self.culprit}", f"policy_{self.culprit}"})


def program(kind: str, ranks: int, *, seed: int = 0, missing: float = 0.0) -> Program:
    """A run of a kind, with a culprit and silent nodes (a share of all) by chance; the culprit's own node answers, but for a rendezvous."""
    chance = random.Random(f"{kind} {ranks} {seed}")
    culprit = chance.randrange(1, ranks)
    others = [n for n in range(1, -(-ranks // PER_NODE)) if n != culprit // PER_NODE]
    count = round(missing * (len(others) + 1)) if missing else 0
    silent = set(chance.sample(others, min(len(others), max(count, 1 if missing else 0))))
    if kind == "rendezvous":
        if culprit // PER_NODE == 0:  # the driver lives on the first node
            culprit = ranks - 1
        silent.add(culprit // PER_NODE)
    return Program(kind=kind, ranks=ranks, culprit=culprit, silent=frozenset(silent), seed=seed)


def snapshot_of(of: Program) -> Snapshot:
    """The snapshot of a program, decoded node by node as from a file, so that no two nodes share an object."""
    decoder = msgspec.json.Decoder(Node)
    nodes = tuple(decoder.decode(msgspec.json.encode(node)) for node in _nodes(of))
    ray = msgspec.json.decode(msgspec.json.encode(_tables(of)), type=RayState)
    silent = tuple(
        Gap(id=gaps.NODE_SILENT, where=_host(n), what="everything on this node", reason="no answer within 60 s") for n in sorted(of.silent)
    )
    return Snapshot(tool_version="1.0", taken_time_s=NOW_S, nodes=nodes, ray=ray, gaps=silent)


def _host(number: int) -> str:
    return f"gpu-{number + 1:05}"


def _node_id(number: int) -> str:
    return f"{number:056x}"


def _pid(rank: int) -> int:
    return 20_000 + rank


def _nodes(of: Program) -> Iterator[Node]:
    for number, first in enumerate(range(0, of.ranks, PER_NODE)):
        if number in of.silent:
            continue
        stacks = _Stacks()
        here = [_rank(of, r, stacks) for r in range(first, min(first + PER_NODE, of.ranks)) if not (of.kind == "died" and r == of.culprit)]
        if number == 0:
            here.append(_driver(of, stacks))
        yield Node(
            name=_host(number),
            node_id=_node_id(number),
            ip=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
            started_time_s=NOW_S - WINDOW_S,
            window_s=WINDOW_S,
            frames=tuple(Frame(function=f, file=file, line=line) for f, file, line in stacks.frames),
            stacks=tuple(stacks.stacks),
            processes=tuple(here),
        )


class _Stacks:
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


def _rank(of: Program, rank: int, stacks: _Stacks) -> Process:
    texts, calls, method, cpu_s, state, peer = _doing(of, rank)
    pid = _pid(rank)
    helpers = _HELPERS[: 3 + rank % 3]
    samples = tuple(
        Sample(
            at_s=float(i),
            threads=(
                *(ThreadSample(stack=stacks.add(text), tid=pid + 200_000 + j, name=name) for j, (name, text) in enumerate(helpers)),
                ThreadSample(
                    stack=stacks.add(texts[i]),
                    tid=pid,
                    name="MainThread",
                    active=cpu_s > 1,
                    locals=(Local(frame=0, name="src", value=str(peer)),) if peer is not None else (),
                ),
            ),
        )
        for i in range(SAMPLES)
    )
    call, arg0 = calls
    threads = (
        Thread(tid=pid, comm="ray::PolicyWork", state=state, cpu_s=cpu_s, call=call, syscall_arg0=arg0, run_slices=4, queued_s=0.0),
        *(Thread(tid=pid + 200_000 + j, comm="python", state="S", cpu_s=0.0, call="futex", run_slices=2) for j in range(len(helpers))),
        *(Thread(tid=pid + 400_000 + j, comm=comm, state="S", cpu_s=0.0, call="futex", run_slices=2) for j, comm in enumerate(_NATIVE)),
    )
    env = {"RAY_JOB_ID": JOB}
    now = env | {"RANK": str(rank), "WORLD_SIZE": str(of.ranks), "MASTER_ADDR": "10.0.0.0", "MASTER_PORT": "29500"}
    number = rank // PER_NODE
    return Process(
        pid=pid,
        ppid=100,
        title=f"ray::PolicyWorker.{method}" if method else "ray::PolicyWorker",
        comm="ray::PolicyWork",
        kind="ray-worker",
        state=state,
        job_id=JOB,
        env=env,
        env_now=now,
        cpu_s=cpu_s,
        window_s=WINDOW_S,
        start_time_s=NOW_S - 4000.0,
        threads=threads,
        samples=samples,
        sockets=(
            Socket(family="tcp", state="LISTEN", local=f"10.0.{number % 250}.1:{10_000 + rank % 40_000}", fd=30),
            Socket(family="tcp", state="ESTABLISHED", local=f"10.0.{number % 250}.1:{50_000 + rank % 8}", remote="10.0.0.0:6379", fd=31, quiet_s=1.0),
        ),
        files=(),
        async_tasks=(),
    )


_Doing = tuple[Sequence[str], tuple[str | None, int | None], str | None, float, str, int | None]
"""Stacks, kernel call with its first argument, method, CPU seconds, state, and the peer that a recv names."""


def _doing(of: Program, rank: int) -> _Doing:
    waits: _Doing = ([_ALL_REDUCE] * SAMPLES, ("futex", None), "update", 0.02, "S", None)
    if of.kind == HEALTHY:
        chance = random.Random(of.seed * 1_000_003 + rank)
        return ([chance.choice(_WORK) for _ in range(SAMPLES - 1)] + [_ALL_REDUCE], (None, None), "update", 1.6, "R", None)
    if of.kind == "rendezvous":
        return ([_RENDEZVOUS] * SAMPLES, ("recvfrom", 40), "set_up", 0.02, "S", None)
    if of.kind == "pipeline" and rank != of.culprit:
        return ([_RECV] * SAMPLES, ("futex", None), "update", 0.02, "S", (rank - 1) % of.ranks)
    if rank != of.culprit:
        return waits
    return {
        "straggler": ([_SCORE] * SAMPLES, (None, None), "update", 1.9, "R", None),
        "pipeline": ([_SCORE] * SAMPLES, (None, None), "update", 1.9, "R", None),
        "file": ([_OPEN] * SAMPLES, ("openat", None), "update", 0.0, "D", None),
        "stopped": ([_ALL_REDUCE] * SAMPLES, (None, None), "update", 0.0, "T", None),
        "mismatch": ([_BARRIER] * SAMPLES, ("futex", None), "update", 0.02, "S", None),
        "skipped": ([_MAIN] * SAMPLES, ("futex", None), None, 0.0, "S", None),
        "died": waits,
    }[of.kind]


def _driver(of: Program, stacks: _Stacks) -> Process:
    stack = stacks.add(_DRIVES)
    thread = ThreadSample(stack=stack, tid=900, name="MainThread", active=False)
    awaited = tuple(f"{_task(r)}00000001" for r in range(of.ranks) if _runs(of, r))[:10_000]
    return Process(
        pid=900,
        ppid=1,
        title="python train.py",
        kind="driver",
        state="S",
        job_id=JOB,
        env={"RAY_JOB_ID": JOB},
        env_now={"RAY_JOB_ID": JOB},
        cpu_s=0.01,
        window_s=WINDOW_S,
        threads=(Thread(tid=900, comm="python", state="S", cpu_s=0.01, call="futex", run_slices=3),),
        samples=tuple(Sample(at_s=float(i), threads=(thread,)) for i in range(SAMPLES)),
        object_refs=(ObjectRefWait(call="get", object_ids=awaited, tid=900, complete=len(awaited) < 10_000),),
        sockets=(),
        async_tasks=(),
    )


def _task(rank: int) -> str:
    return f"{rank + 1:048x}"


def _runs(of: Program, rank: int) -> bool:
    return not (rank == of.culprit and of.kind in ("skipped", "died"))


def _tables(of: Program) -> RayState:
    actors, cores, tasks = [], [], []
    method = "set_up" if of.kind == "rendezvous" else "update"
    for rank in range(of.ranks):
        number = rank // PER_NODE
        dead = of.kind == "died" and rank == of.culprit
        actors.append(
            RayActor(
                actor_id=f"{rank + 1:032x}",
                job_id=JOB,
                class_name="PolicyWorker",
                state="DEAD" if dead else "ALIVE",
                name=f"policy_{rank}",
                pid=_pid(rank),
                node_id=_node_id(number),
                death="the worker was killed by SIGKILL (out of memory)" if dead else None,
            )
        )
        times = {"PENDING_ARGS_AVAIL": NOW_S - 95.0, "RUNNING": NOW_S - (1.0 if of.kind == HEALTHY else 92.0)}
        if _runs(of, rank):
            tasks.append(
                RayTask(
                    task_id=_task(rank),
                    name=f"PolicyWorker.{method}",
                    state="RUNNING",
                    pid=_pid(rank),
                    node_id=_node_id(number),
                    actor_id=f"{rank + 1:032x}",
                    state_times_s=times,
                )
            )
        if not dead and number not in of.silent:
            cores.append(
                CoreWorker(
                    pid=_pid(rank),
                    worker_id=f"{_pid(rank):056x}",
                    node_id=_node_id(number),
                    job_id=JOB,
                    actor_id=f"{rank + 1:032x}",
                    kind="WORKER",
                    running_task_ids=(_task(rank),) if _runs(of, rank) else (),
                    executed_tasks=7,
                    executed_tasks_before=7,
                )
            )
    owned = tuple(
        OwnedTask(task_id=_task(r), name=f"PolicyWorker.{method}", actor_id=f"{r + 1:032x}", status="SUBMITTED_TO_WORKER")
        for r in range(of.ranks)
        if _runs(of, r)
    )
    driver = CoreWorker(pid=900, worker_id=f"{900:056x}", node_id=_node_id(0), job_id=JOB, kind="DRIVER", owned=owned)
    machines = range(-(-of.ranks // PER_NODE))
    return RayState(
        address="10.0.0.0:6379",
        actors=tuple(actors),
        tasks=tuple(tasks),
        core_workers=(*cores, driver),
        nodes=tuple(RayNode(node_id=_node_id(n), ip=f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", host=_host(n), alive=True) for n in machines),
        history=(TaskHistory(name="PolicyWorker.update", count=412, longest_s=7.4),),
    )
