"""A cluster of any number of nodes, multiplied from two recorded ones: what each node would send, and what Ray's tables would say.

Each node has 8 ranks and 100 processes: ranks that wait in a collective for one that is busy elsewhere (tests/cases/RRD101/hang), and the rollout
side of a run of verl with vLLM (tests/cases/RRD101/quiet-vllm-verl-ok). Copies differ as processes do: pids, threads, ports, inodes, addresses and
counters. `VARIANTS` nodes are made in full; all others are one of them under their own name, ids, address and ranks.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.folding import fold_threads
from ray_rl_debug.model import codec
from ray_rl_debug.model.node_tables import NodeTables
from ray_rl_debug.model.packed_node import to_tables
from ray_rl_debug.model.snapshot import CoreWorker, Node, OwnedTask, Process, RayActor, RayNode, RayState, RayTask, RayWorker, Snapshot

CASES = Path(__file__).resolve().parent.parent / "tests" / "cases" / "RRD101"
RANKS = 8
PROCESSES = 100
VARIANTS = 8
JOB = "01000000"
GCS_PID = 100
CULPRIT = (0, 1)
"""Node and rank on it that is busy in its own code."""
CONTROLLER_PID, DRIVER_PID = 300, 200
RANK_PID, ENGINE_PID, SINGLE_PID, IDLE_PID, CHILD_PID = 1000, 3000, 5500, 6000, 7000
STARTED_S = 1795249168.0
"""When the ranks' calls began: some seconds before they were recorded."""
STEP = 100
"""Pids and thread ids of one process."""
_HOLE = re.compile(r"@([A-Z]\d?)@")
_ADDRESS = re.compile(r"0x[0-9a-f]{8,12}")
_TASK = "EndlessNormaliser.score_batch"


def ip_of(node: int) -> str:
    """An address of this machine of its own: all of 127.0.0.0/8 is."""
    return f"127.{1 + node // 62500}.{node // 250 % 250 + 1}.{node % 250 + 1}"


def id_of(kind: str, *where: int, digits: int = 56) -> str:
    """An id of Ray's form, the same each time."""
    return hashlib.blake2b(repr((kind, where)).encode(), digest_size=digits // 2).hexdigest()


def actor_id(node: int, pid: int) -> str:
    return id_of("actor", node, pid, digits=24) + JOB


def task_id(node: int, pid: int) -> str:
    return id_of("task", node, pid, digits=16) + actor_id(node, pid)


class ManyNodes:
    """The recorded run on so many nodes."""

    def __init__(self, nodes: int, *, seed: int = 1, variants: int = VARIANTS) -> None:
        self.nodes = nodes
        self._rng = random.Random(seed)
        hang = codec.read_snapshot(CASES / "hang.json.gz")
        verl = codec.read_snapshot(CASES / "quiet-vllm-verl-ok.json.gz")
        self._recorded = _Recorded(hang, verl)
        self._plain = [_tables(self._made(is_first=False)) for _ in range(min(variants, nodes))]
        self._first = _tables(self._made(is_first=True))

    def node_tables(self, node: int) -> bytes:
        """The facts of one node as its collector would put them into tables."""
        plain = self._first if node == CULPRIT[0] else self._plain[node % len(self._plain)]
        world = str(self.nodes * RANKS)
        values = {"N": f"node{node}", "I": id_of("node", node), "P": ip_of(node), "W": world, "M": ip_of(0), "B": id_of("boot", node, digits=32)}
        values |= {f"R{j}": str(node * RANKS + j) for j in range(RANKS)}
        texts = [_HOLE.sub(lambda found: values[found[1]], text) if "@" in text else text for text in plain.texts]
        return msgspec.msgpack.encode(msgspec.structs.replace(plain, texts=texts))

    def message(self, node: int) -> bytes:
        """The same as it travels, packed as the product packs it."""
        return gzip.compress(self.node_tables(node), compresslevel=6, mtime=0)

    def tables(self, *, port: int, tasks: int = 10_000) -> RayState:
        """What Ray knows; all raylets and workers answer at `port` of their node's address."""
        nodes, actors, workers, core, running = [], [], [], [], []
        for n in range(self.nodes):
            node_id, address = id_of("node", n), f"{ip_of(n)}:{port}"
            nodes.append(
                RayNode(node_id=node_id, ip=ip_of(n), host=f"node{n}", alive=True, resources={"CPU": 96.0, "GPU": 8.0}, port=port, is_head=n == 0)
            )
            for pid, class_name in self._actors(n):
                worker = id_of("worker", n, pid)
                is_rank = class_name == "EndlessNormaliser"
                actors.append(
                    RayActor(
                        actor_id=actor_id(n, pid),
                        job_id=JOB,
                        class_name=class_name,
                        state="ALIVE",
                        name=f"{class_name}_{n}_{pid}",
                        namespace="run",
                        pid=pid,
                        node_id=node_id,
                        worker_id=worker,
                        address=address,
                        owner_worker_id=id_of("driver", 0),
                        resources={"CPU": 1.0, "GPU": 0.5},
                        start_time_s=1.7e9,
                    )
                )
                workers.append(RayWorker(worker_id=worker, pid=pid, kind="WORKER", alive=True, node_id=node_id, ip=address))
                busy = is_rank or class_name == "TrainingLoop"
                core.append(
                    CoreWorker(
                        pid=pid,
                        worker_id=worker,
                        node_id=node_id,
                        job_id=JOB,
                        actor_id=actor_id(n, pid),
                        kind="WORKER",
                        running_task_ids=(task_id(n, pid),) if busy else (),
                        executed_tasks=11,
                        owned=self._owned() if class_name == "TrainingLoop" else (),
                    )
                )
                if busy:
                    running.append(_task(n, pid, worker, node_id, class_name))
            for pid in range(IDLE_PID, IDLE_PID + RANKS * STEP, STEP):
                worker = id_of("worker", n, pid)
                workers.append(RayWorker(worker_id=worker, pid=pid, kind="WORKER", alive=True, node_id=node_id, ip=address))
                core.append(CoreWorker(pid=pid, worker_id=worker, node_id=node_id, job_id="ffffffff", kind="WORKER"))
        driver = RayWorker(worker_id=id_of("driver", 0), pid=DRIVER_PID, kind="DRIVER", alive=True, node_id=id_of("node", 0), ip=f"{ip_of(0)}:{port}")
        waits = OwnedTask(
            task_id=task_id(0, CONTROLLER_PID), name="TrainingLoop.run_training", status="SUBMITTED_TO_WORKER", actor_id=actor_id(0, CONTROLLER_PID)
        )
        core.append(CoreWorker(pid=DRIVER_PID, worker_id=driver.worker_id, node_id=driver.node_id, job_id=JOB, kind="DRIVER", owned=(waits,)))
        jobs = tuple(msgspec.structs.replace(j, job_id=JOB, driver_pid=DRIVER_PID, driver_ip=ip_of(0)) for j in self._recorded.jobs)
        return RayState(
            address="",
            nodes=tuple(nodes),
            jobs=jobs,
            actors=tuple(actors),
            workers=(*workers, driver),
            core_workers=tuple(core),
            tasks=tuple(running[:tasks]),
            history=self._recorded.history,
        )

    def tables_of(self, actors: int, *, port: int) -> RayState:
        """The same nodes with so many actors: fewer than they have, or more of the last class, each with a worker of its own."""
        state = self.tables(port=port)
        kept = state.actors[:actors]
        workers = {a.worker_id for a in kept}
        own = tuple(w for w in state.workers if w.kind == "DRIVER" or w.worker_id in workers)
        core = tuple(c for c in state.core_workers if c.kind == "DRIVER" or c.worker_id in workers)
        more = []
        for number in range(actors - len(kept)):
            node, pid = number % self.nodes, 10_000 + number // self.nodes
            places = {"pid": pid, "node_id": id_of("node", node), "worker_id": id_of("worker", node, pid), "address": f"{ip_of(node)}:{port}"}
            more.append(msgspec.structs.replace(state.actors[-1], actor_id=actor_id(node, pid), name=f"more_{number}", **places))
        own += tuple(RayWorker(worker_id=a.worker_id or "", pid=a.pid or 0, kind="WORKER", alive=True, node_id=a.node_id, ip=a.address) for a in more)
        core += tuple(
            CoreWorker(pid=a.pid or 0, worker_id=a.worker_id or "", node_id=a.node_id, job_id=JOB, actor_id=a.actor_id, kind="WORKER") for a in more
        )
        return msgspec.structs.replace(state, actors=(*kept, *more), workers=own, core_workers=core, tasks=state.tasks[:actors])

    def _actors(self, node: int) -> Iterable[tuple[int, str]]:
        """Pids and classes of one node's actors."""
        yield from ((RANK_PID + j * STEP, "EndlessNormaliser") for j in range(RANKS))
        yield from ((ENGINE_PID + j * 3 * STEP, "vLLMHttpServer") for j in range(RANKS))
        yield from ((SINGLE_PID + j * STEP, name) for j, name in enumerate(_SINGLES))
        if node == 0:
            yield CONTROLLER_PID, "TrainingLoop"

    def _owned(self) -> tuple[OwnedTask, ...]:
        places = [(n, RANK_PID + j * STEP) for n in range(self.nodes) for j in range(RANKS)]
        return tuple(OwnedTask(task_id=task_id(n, p), name=_TASK, status="SUBMITTED_TO_WORKER", actor_id=actor_id(n, p)) for n, p in places)

    def _made(self, *, is_first: bool) -> bytes:
        """One node with holes for what names it."""
        recorded, rng = self._recorded, self._rng
        found = [recorded.copy(p, pid, rng) for p, pid in zip(recorded.daemons, (101, 102, 103), strict=True)]
        for j in range(RANKS):
            is_culprit = is_first and j == CULPRIT[1]
            rank = recorded.copy(recorded.culprit if is_culprit else recorded.victims[j % len(recorded.victims)], RANK_PID + j * STEP, rng)
            places = {"RANK": f"@R{j}@", "WORLD_SIZE": "@W@", "MASTER_ADDR": "@M@"}
            found.append(msgspec.structs.replace(rank, env_now={**(rank.env_now or {}), **places}))
            found += recorded.family(ENGINE_PID + j * 3 * STEP, rng)
            found.append(recorded.copy(recorded.idle, IDLE_PID + j * STEP, rng))
        found += [recorded.copy(p, SINGLE_PID + j * STEP, rng) for j, p in enumerate(recorded.singles)]
        if is_first:
            awaited = tuple(task_id(0, RANK_PID + j * STEP) + "01000000" for j in range(3))
            controller = recorded.copy(recorded.controller, CONTROLLER_PID, rng)
            refs = tuple(msgspec.structs.replace(r, object_ids=awaited, complete=False) for r in controller.object_refs)
            driver = recorded.copy(recorded.driver, DRIVER_PID, rng)
            waits = tuple(msgspec.structs.replace(r, object_ids=(task_id(0, CONTROLLER_PID) + "01000000",)) for r in driver.object_refs)
            found += [msgspec.structs.replace(controller, object_refs=refs), msgspec.structs.replace(driver, object_refs=waits)]
            found.append(recorded.copy(recorded.gcs, GCS_PID, rng))
        for number in range(PROCESSES - len(found)):
            child = recorded.copy(recorded.child, CHILD_PID + number * 10, rng)
            found.append(msgspec.structs.replace(child, ppid=RANK_PID + number % RANKS * STEP))
        node = msgspec.structs.replace(recorded.node, name="@N@", node_id="@I@", ip="@P@", boot_id="@B@", processes=tuple(map(fold_threads, found)))
        return to_tables(node)


def _tables(plain: bytes) -> NodeTables:
    return msgspec.msgpack.decode(plain, type=NodeTables)


_SINGLES = ("RewardLoopWorker", "SimpleStorageUnit", "AgentLoopWorkerTQ")


class _Recorded:
    """The processes that are copied, their stacks in one table."""

    def __init__(self, hang: Snapshot, verl: Snapshot) -> None:
        first, second = hang.nodes
        frames, stacks = list(first.frames), list(first.stacks)
        shifts = {}
        for node in (second, verl.nodes[0]):
            shifts[node.name, len(node.stacks)] = len(stacks)
            stacks += [tuple(f + len(frames) for f in stack) for stack in node.stacks]
            frames += node.frames
        self.node: Node = msgspec.structs.replace(first, frames=tuple(frames), stacks=tuple(stacks), gaps=())
        processes = [*first.processes]
        for node in (second, verl.nodes[0]):
            processes += [_shifted(p, shifts[node.name, len(node.stacks)]) for p in node.processes]

        def titled(text: str, among: Iterable[Process] = processes) -> list[Process]:
            return [p for p in among if text in p.title]

        ranks = titled("EndlessNormaliser")
        self.culprit = next(p for p in ranks if (p.env_now or {}).get("RANK") == "1")
        self.victims = [p for p in ranks if p is not self.culprit]
        self.controller = titled("TrainingLoop")[0]
        self.driver = next(p for p in processes if p.kind == "driver")
        self.gcs = next(p for p in processes if p.kind == "gcs")
        self.daemons = [next(p for p in processes if p.kind == "raylet"), titled("DashboardAgent")[0], titled("RuntimeEnvAgent")[0]]
        self.idle = titled("ray::IDLE")[0]
        self.engine = [titled("vLLMHttpServer")[0], titled("VLLM::EngineCore")[0], titled("VLLM::Worker")[0]]
        self.singles = [titled(name)[0] for name in _SINGLES]
        self.child = next(p for p in processes if p.kind == "child" and p.thread_count == 1)
        self.jobs = hang.ray.jobs if hang.ray is not None else ()
        self.history = hang.ray.history if hang.ray is not None else ()

    def family(self, pid: int, rng: random.Random) -> list[Process]:
        """An engine's server, its core and its worker: what connects them stays connected."""
        shift = rng.randrange(1, 20_000)
        server, core, worker = (self.copy(p, pid + i * STEP, rng, shift) for i, p in enumerate(self.engine))
        return [server, msgspec.structs.replace(core, ppid=pid), msgspec.structs.replace(worker, ppid=pid + STEP)]

    def copy(self, of: Process, pid: int, rng: random.Random, shift: int | None = None) -> Process:
        """One more process like this one."""
        shift = rng.randrange(1, 20_000) if shift is None else shift
        tids = {of.pid: pid} | {t.tid: pid + i for i, t in enumerate((t for t in of.threads if t.tid != of.pid), start=1)}
        daemon = of.kind in ("raylet", "ray-system", "gcs")
        parent = 1 if of.kind in ("raylet", "gcs", "driver") else 101
        threads = tuple(
            msgspec.structs.replace(
                t,
                tid=tids[t.tid],
                cpu_s=round(t.cpu_s * rng.uniform(0.8, 1.2), 4) if t.cpu_s else t.cpu_s,
                run_slices=max(0, t.run_slices + rng.randrange(-2, 3)) if t.run_slices else t.run_slices,
            )
            for t in of.threads
        )
        moved = _moved(rng)
        samples = tuple(
            msgspec.structs.replace(
                s,
                at_s=s.at_s + rng.uniform(0, 0.05),
                threads=tuple(
                    msgspec.structs.replace(
                        t,
                        tid=tids.get(t.tid, t.tid) if t.tid is not None else None,
                        locals=tuple(msgspec.structs.replace(v, value=_ADDRESS.sub(moved, v.value)) for v in t.locals),
                    )
                    for t in s.threads
                ),
            )
            for s in of.samples
        )
        sockets = tuple(
            msgspec.structs.replace(
                s,
                local=_place(s.local, shift),
                remote=_place(s.remote, shift) if s.remote is not None else None,
                inode=s.inode + shift if s.inode else s.inode,
                peer_inode=s.peer_inode + shift if s.peer_inode else s.peer_inode,
                bytes_sent=s.bytes_sent + rng.randrange(1000) if s.bytes_sent else s.bytes_sent,
            )
            for s in of.sockets or ()
        )
        files = tuple(
            msgspec.structs.replace(
                f,
                inode=f.inode + shift if f.inode and f.kind == "pipe" else f.inode,
                path=f"pipe:[{f.inode + shift}]" if f.inode and f.path.startswith("pipe:") else f.path.replace(str(of.pid), str(pid)),
            )
            for f in of.files or ()
        )
        refs = tuple(msgspec.structs.replace(r, tid=tids.get(r.tid, r.tid) if r.tid is not None else None) for r in of.object_refs)
        env = {k: "101" if k == "RAY_RAYLET_PID" else JOB if k == "RAY_JOB_ID" else v for k, v in of.env.items()}
        tasks = of.async_tasks
        if tasks:
            tasks = tuple(msgspec.structs.replace(t, tid=tids.get(t.tid, t.tid) if t.tid is not None else None) for t in tasks)
        return msgspec.structs.replace(
            of,
            pid=pid,
            ppid=parent,
            raylet_pid=None if daemon else 101,
            job_id=of.job_id and JOB,
            start_time_s=(of.start_time_s or 0) + rng.uniform(0, 5),
            rss_bytes=(of.rss_bytes or 0) + 4096 * rng.randrange(1000),
            threads=threads,
            samples=samples,
            sockets=sockets if of.sockets is not None else None,
            files=files if of.files is not None else None,
            object_refs=refs,
            object_refs_before=(),
            env=env,
            env_now={**of.env_now, **env} if of.env_now else of.env_now,
            async_tasks=tasks,
        )


def _shifted(process: Process, by: int) -> Process:
    samples = (msgspec.structs.replace(s, threads=tuple(msgspec.structs.replace(t, stack=t.stack + by) for t in s.threads)) for s in process.samples)
    return msgspec.structs.replace(process, samples=tuple(samples))


def _place(address: str, shift: int) -> str:
    """The same place in another copy: low ports are services of the node that all share."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return address
    host = "@P@" if host == "192.0.2.2" else host
    return f"{host}:{1024 + (int(port) + shift) % 64_000}"


def _moved(rng: random.Random) -> Callable[[re.Match[str]], str]:
    by = rng.randrange(0, 1 << 30, 16)
    return lambda found: hex(int(found[0], 16) + by)


def _task(node: int, pid: int, worker: str, node_id: str, class_name: str) -> RayTask:
    name = _TASK if class_name == "EndlessNormaliser" else "TrainingLoop.run_training"
    order = ("PENDING_ARGS_AVAIL", "PENDING_NODE_ASSIGNMENT", "SUBMITTED_TO_WORKER", "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY", "RUNNING")
    return RayTask(
        task_id=task_id(node, pid),
        name=name,
        state="RUNNING",
        job_id=JOB,
        kind="ACTOR_TASK",
        parent_task_id=task_id(0, CONTROLLER_PID) if class_name == "EndlessNormaliser" else None,
        actor_id=actor_id(node, pid),
        node_id=node_id,
        pid=pid,
        worker_id=worker,
        attempt=0,
        state_times_s={state: STARTED_S + i / 1000 for i, state in enumerate(order)},
    )
