"""Stands for a whole cluster on this machine: a GCS, raylets and workers that answer over real gRPC, and watchers over real sockets.

Run by `scale_gather.py` and `scale_tables.py` as a process of its own. One JSON line on standard input says what to serve, one on standard output
says where. Ray's messages are Ray's own types, made from `many_nodes`. A watcher speaks the product's own wire (`watch.seal`, `watch.wire`); what
it sends was made before the clock starts, so that the time of the driver alone is measured.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import sys
import threading
import time
from concurrent import futures
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

from many_nodes import JOB, VARIANTS, ManyNodes, id_of
from ports import free_port

from ray_rl_debug.model.snapshot import CoreWorker, RayState
from ray_rl_debug.watch.seal import ANSWER_BYTES, NONCE_BYTES, Invitation, Keys, Opener, Sealer, check_answer, derive, knock
from ray_rl_debug.watch.signals import Known, NodeReading, Sign
from ray_rl_debug.watch.watcher import AGAIN_S
from ray_rl_debug.watch.wire import MAX_ORDER_BYTES, Collect, Collected, Hello, Ping, Pong, Read, Reading, decode_order, encode

_TITLE = "ray::PolicyWorker.update_policy"


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """How the nodes answer. Shares are of all nodes, drawn with `seed`; the culprit's node always answers."""

    silent: float = 0.05
    """Takes the order and never answers."""
    damaged: float = 0.0
    """Sends facts of which a part was overwritten."""
    cut: float = 0.0
    """The connection ends in the middle of its message: what a lost packet becomes when nobody sends it again."""
    late: float = 0.0
    """Answers `late_s` after the others."""
    late_s: float = 6.0
    latency_s: float = 0.002
    """Of each message."""
    jitter_s: float = 0.3
    """A collection takes up to so much longer than its window."""
    signs: int = 0
    """Processes that a watcher tells of at each reading."""
    seed: int = 1

    def kinds(self, nodes: int) -> list[str]:
        rng = random.Random(self.seed)
        order = list(range(1, nodes))
        rng.shuffle(order)
        kinds = ["well"] * nodes
        for name in ("silent", "damaged", "cut", "late"):
            share = getattr(self, name)
            for _ in range(min(len(order), max(1, round(share * nodes)) if share else 0)):
                kinds[order.pop()] = name
        return kinds


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is asked to be."""

    nodes: int
    behaviour: Behaviour = Behaviour()
    with_messages: bool = True
    variants: int = VARIANTS
    """So many nodes are made in full; the others are one of them under their own name."""
    actors: int | None = None
    """So many instead of those of the nodes, for the tables alone."""


# --- Ray's side ------------------------------------------------------------------------------------------------------


class Tables:
    """Ray's answers in its own types, made once."""

    def __init__(self, state: RayState) -> None:
        from ray.core.generated import common_pb2, core_worker_pb2, gcs_pb2, node_manager_pb2
        from ray.core.generated import gcs_service_pb2 as pb

        raw = bytes.fromhex
        self.nodes = pb.GetAllNodeInfoReply()
        for n in state.nodes:
            node = self.nodes.node_info_list.add(node_id=raw(n.node_id), node_manager_address=n.ip, node_manager_hostname=n.host or "")
            node.node_manager_port, node.is_head_node, node.state = n.port or 0, bool(n.is_head), gcs_pb2.GcsNodeInfo.ALIVE
            node.resources_total.update(n.resources)
        self.jobs = pb.GetAllJobInfoReply()
        for j in state.jobs:
            job = self.jobs.job_info_list.add(job_id=raw(j.job_id), is_dead=not j.alive, driver_ip_address=j.driver_ip or "")
            job.driver_pid, job.entrypoint, job.start_time = j.driver_pid or 0, j.entrypoint or "", int(1000 * (j.start_time_s or 0))
            job.config.ray_namespace = j.namespace or ""
        self.actors = pb.GetAllActorInfoReply()
        for a in state.actors:
            actor = self.actors.actor_table_data.add(actor_id=raw(a.actor_id), job_id=raw(a.job_id), class_name=a.class_name, pid=a.pid or 0)
            actor.state, actor.name, actor.ray_namespace = gcs_pb2.ActorTableData.ALIVE, a.name or "", a.namespace or ""
            actor.start_time, actor.node_id = int(1000 * (a.start_time_s or 0)), raw(a.node_id or "")
            _address(actor.address, a.node_id, a.worker_id, a.address)
            actor.required_resources.update(a.resources)
            actor.function_descriptor.python_function_descriptor.class_name = a.class_name
            actor.serialized_runtime_env = '{"env_vars": {"TOKENIZERS_PARALLELISM": "true", "NCCL_DEBUG": "WARN"}}'
        self.workers = pb.GetAllWorkerInfoReply()
        for w in state.workers:
            worker = self.workers.worker_table_data.add(pid=w.pid, is_alive=True, worker_type=common_pb2.WorkerType.Value(w.kind))
            _address(worker.worker_address, w.node_id, w.worker_id, w.ip)
        self.tasks = pb.GetTaskEventsReply()
        for t in state.tasks:
            event = self.tasks.events_by_task.add(task_id=raw(t.task_id), attempt_number=0, job_id=raw(t.job_id or ""))
            info, updates = event.task_info, event.state_updates
            info.type, info.name, info.actor_id = common_pb2.TaskType.ACTOR_TASK, t.name, raw(t.actor_id or "")
            info.parent_task_id = raw(t.parent_task_id or "")
            updates.node_id, updates.worker_pid, updates.worker_id = raw(t.node_id or ""), t.pid or 0, raw(t.worker_id or "")
            for name, seconds in t.state_times_s.items():
                updates.state_ts_ns[common_pb2.TaskStatus.Value(name)] = int(seconds * 1e9)
        self.finished = pb.GetTaskEventsReply()
        for h in state.history:
            for number in range(h.count):
                event = self.finished.events_by_task.add(task_id=secrets.token_bytes(24), job_id=raw("01000000"))
                event.task_info.name = h.name
                end = int((h.last_end_time_s or 0) * 1e9) - number
                event.state_updates.state_ts_ns[common_pb2.TaskStatus.Value("RUNNING")] = end - int((h.usual_s or h.longest_s) * 1e9)
                event.state_updates.state_ts_ns[common_pb2.TaskStatus.Value("FINISHED")] = end
        self.core: dict[bytes, Any] = {}
        self.of_node: dict[str, Any] = {}
        ips = {n.node_id: n.ip for n in state.nodes}
        for c in state.core_workers:
            reply = core_worker_pb2.GetCoreWorkerStatsReply()
            _fill_core(reply, c)
            self.core[raw(c.worker_id)] = reply
            node = self.of_node.setdefault(ips[c.node_id or ""], node_manager_pb2.GetNodeStatsReply())
            node.core_workers_stats.add().CopyFrom(reply.core_worker_stats)
        self.empty_node = node_manager_pb2.GetNodeStatsReply()


def _address(address: Any, node_id: str | None, worker_id: str | None, place: str | None) -> None:
    ip, _, port = (place or ":0").rpartition(":")
    address.node_id, address.worker_id = bytes.fromhex(node_id or ""), bytes.fromhex(worker_id or "")
    address.ip_address, address.port = ip, int(port)


def _fill_core(reply: Any, c: CoreWorker) -> None:
    raw, stats = bytes.fromhex, reply.core_worker_stats
    stats.pid, stats.worker_id, stats.job_id, stats.num_executed_tasks = c.pid, raw(c.worker_id), raw(c.job_id or ""), c.executed_tasks or 0
    stats.actor_id = raw(c.actor_id) if c.actor_id else b"\xff" * 16
    stats.num_pending_tasks, stats.num_running_tasks = len(c.owned), len(c.running_task_ids)
    reply.running_task_ids.extend(raw(t) for t in c.running_task_ids)
    for owned in c.owned:
        entry = reply.owned_task_info_entries.add(task_id=raw(owned.task_id), name=owned.name)
        entry.actor_id = raw(owned.actor_id or "")


class Answers:
    """All of Ray's services at one port: the GCS for everybody, the raylet and the workers of whichever address was called."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.sent_bytes = 0
        self._lock = threading.Lock()

    def serve(self, port: int) -> Any:
        import grpc
        from ray.core.generated import core_worker_pb2_grpc, gcs_service_pb2_grpc, node_manager_pb2, node_manager_pb2_grpc
        from ray.core.generated import gcs_service_pb2 as pb

        t = self._tables
        server = grpc.server(futures.ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)])

        def add(module: Any, name: str, **answers: Any) -> None:
            servicer = type(name, (getattr(module, f"{name}Servicer"),), {k: staticmethod(self._counted(v)) for k, v in answers.items()})()
            getattr(module, f"add_{name}Servicer_to_server")(servicer, server)

        add(gcs_service_pb2_grpc, "NodeInfoGcsService", GetAllNodeInfo=lambda r, _: t.nodes)
        add(gcs_service_pb2_grpc, "JobInfoGcsService", GetAllJobInfo=lambda r, _: t.jobs)
        add(gcs_service_pb2_grpc, "ActorInfoGcsService", GetAllActorInfo=lambda r, _: _limited(t.actors, "actor_table_data", r.limit))
        add(gcs_service_pb2_grpc, "WorkerInfoGcsService", GetAllWorkerInfo=lambda r, _: _limited(t.workers, "worker_table_data", r.limit))
        add(gcs_service_pb2_grpc, "PlacementGroupInfoGcsService", GetAllPlacementGroup=lambda r, _: pb.GetAllPlacementGroupReply())
        add(gcs_service_pb2_grpc, "NodeResourceInfoGcsService", GetAllAvailableResources=lambda r, _: pb.GetAllAvailableResourcesReply())
        add(gcs_service_pb2_grpc, "TaskInfoGcsService", GetTaskEvents=self._tasks)
        add(
            node_manager_pb2_grpc,
            "NodeManagerService",
            GetResourceLoad=lambda r, _: node_manager_pb2.GetResourceLoadReply(),
            GetNodeStats=lambda r, c: t.of_node.get(_called(c), t.empty_node),
        )
        add(core_worker_pb2_grpc, "CoreWorkerService", GetCoreWorkerStats=lambda r, _: t.core[r.intended_worker_id])
        server.add_insecure_port(f"0.0.0.0:{port}")
        server.start()
        return server

    def _tasks(self, request: Any, context: Any) -> Any:
        wants_finished = any(f.state == "FINISHED" and not f.predicate for f in request.filters.state_filters)
        return _limited(self._tables.finished if wants_finished else self._tables.tasks, "events_by_task", request.limit)

    def _counted(self, answer: Any) -> Any:
        def count(request: Any, context: Any) -> Any:
            reply = answer(request, context)
            with self._lock:
                self.sent_bytes += reply.ByteSize()
            return reply

        return count


def _called(context: Any) -> str:
    """The address that the caller used: the authority of its call."""
    authority = context._rpc_event.call_details.host
    return str(authority.decode() if isinstance(authority, bytes) else authority).rpartition(":")[0]


def _limited(reply: Any, field: str, limit: int) -> Any:
    """What Ray gives of a table when it is asked for so many rows."""
    rows = getattr(reply, field)
    if not limit or limit < 0 or len(rows) <= limit:
        return reply
    part = type(reply)()
    getattr(part, field).extend(rows[:limit])
    return part


# --- the watchers' side ----------------------------------------------------------------------------------------------


class MadeWatcher:
    """One node's watcher: the product's own words, and facts that were made before."""

    def __init__(self, host: str, port: int, invitation: Invitation, facts: bytes, kind: str, how: Behaviour, delay_s: float) -> None:
        self._host, self._port, self._invitation = host, port, invitation
        self._facts, self._kind, self._how, self._delay_s = facts, kind, how, delay_s

    async def serve(self) -> None:
        while True:
            try:
                reader, writer, keys = await self._connect()
                break
            except (OSError, EOFError):
                await asyncio.sleep(AGAIN_S)  # a port with too many strangers drops some, and they come again
        self._sealer, opener = Sealer(keys.answers), Opener(keys.orders, MAX_ORDER_BYTES)
        writer.write(self._sealer.seal(encode(Hello(pid=1, has_pyspy=True))))
        tasks = set()
        while data := await reader.read(1 << 16):
            for body in opener.add(data):
                task = asyncio.create_task(self._obey(decode_order(body), writer))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Keys]:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        nonce = secrets.token_bytes(NONCE_BYTES)
        writer.write(knock(self._invitation, nonce))
        answer = await reader.readexactly(ANSWER_BYTES)
        return reader, writer, derive(self._invitation, nonce, check_answer(self._invitation, nonce, answer))

    async def _obey(self, order: Any, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self._how.latency_s)
        if isinstance(order, Ping):
            self._send(writer, Pong(number=order.number, time_s=time.time()))
        elif isinstance(order, Read):
            known = tuple(Known(pid=p, born=1, kind="ray-worker", ppid=1, title=_TITLE, job_id=JOB) for p in range(self._how.signs))
            signs = tuple(Sign(p, "S", 0.01, 0.0) for p in range(self._how.signs))
            told = known if order.order.everything else None
            self._send(writer, Reading(reading=NodeReading(span_s=2.0, signs=signs, known=told)))
        elif isinstance(order, Collect) and self._kind != "silent":
            await asyncio.sleep(order.options.window_s + self._delay_s + (self._how.late_s if self._kind == "late" else 0.0))
            facts = self._facts
            if self._kind == "damaged":
                middle = len(facts) // 2
                facts = facts[:middle] + bytes(64) + facts[middle + 64 :]
            sealed = self._sealer.seal(encode(Collected(ticket=order.ticket, data=facts)))
            if self._kind == "cut":
                writer.write(sealed[: len(sealed) // 2])
                await writer.drain()
                writer.close()
                return
            writer.write(sealed)

    def _send(self, writer: asyncio.StreamWriter, answer: Any) -> None:
        writer.write(self._sealer.seal(encode(answer)))


async def _watch(host: str, port: int, invitations: list[Invitation], messages: list[bytes], how: Behaviour) -> None:
    kinds = how.kinds(len(invitations))
    rng = random.Random(how.seed)
    made = (MadeWatcher(host, port, i, m, k, how, rng.uniform(0, how.jitter_s)) for i, m, k in zip(invitations, messages, kinds, strict=True))
    await asyncio.gather(*(one.serve() for one in made), return_exceptions=True)


def main() -> None:
    asked = msgspec.json.decode(sys.stdin.readline(), type=Served)
    made = ManyNodes(asked.nodes, variants=asked.variants)
    began = time.process_time()
    messages = [made.message(n) for n in range(asked.nodes)] if asked.with_messages else [b""] * asked.nodes
    made_s = time.process_time() - began
    port = free_port()
    answers = Answers(Tables(made.tables(port=port) if asked.actors is None else made.tables_of(asked.actors, port=port)))
    server = answers.serve(port)
    told = {"port": port, "node_ids": [id_of("node", n) for n in range(asked.nodes)], "bytes": [len(m) for m in messages], "made_s": made_s}
    print(json.dumps(told), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "invitations" in order:
            invited = msgspec.convert(order["invitations"], list[Invitation])
            asyncio.run(_watch(order["host"], order["port"], invited, messages, asked.behaviour))
            break
        print(json.dumps({"sent_bytes": answers.sent_bytes}), flush=True)
    server.stop(0)


if __name__ == "__main__":
    main()
