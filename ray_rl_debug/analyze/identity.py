"""Who a process is: actor, class, running method, role, world and rank, and the label people know it by.

Sources, best first: Ray's actor table (name, class), the environment as it is now, the environment as started, actor names in the
manner of AReaL (``actor/0``) and verl (``…WorkerDict_0:1``), program arguments (``--role actor --worker-index 1``), process titles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec

from ray_rl_debug.analyze.by_hand import source_of, stands_for
from ray_rl_debug.analyze.engine_parts import EnginePart, Parts, owner_name
from ray_rl_debug.analyze.frameworks import ROLE_OF_CLASS
from ray_rl_debug.analyze.stacks import Stack, Stacks
from ray_rl_debug.model.snapshot import CoreWorker, Node, Process, RayActor, RayState, TorchGroup

Row = TypeVar("Row")

_ROLES = ("actor_rollout_ref", "actor_rollout", "actor", "critic", "ref", "rm", "rollout", "reward")
_TITLE = re.compile(r"^ray::(?P<class>[^.\s(]+)?(?:\.(?P<method>[^\s(]+))?")
_IO_WORKER = re.compile(r"^(?P<state>IDLE|RESTORE|SPILL|DELETE)_(?P<class>(?:Spill|Restore)Worker)$")
_NAME_RANK = re.compile(r"^(?P<role>[A-Za-z][\w-]*)/(?P<rank>\d+)$")
_VERL_NAME = re.compile(r"^(?P<prefix>.*?)(?P<class>WorkerDict|FusedWorker\w*|CheckpointEngineWorker)_(?P<group>\d+):(?P<local>\d+)$")
_HEARTBEAT = re.compile(r"^(Worker-\d+)-heartbeat-")
_ARGV = re.compile(r"--(role|worker-index|rank)[= ](\S+)")


class Identity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who one process is; what is not known is None."""

    key: str
    """``node name/pid``."""
    node: str
    pid: int
    label: str
    kind: str
    actor_id: str | None = None
    actor: str | None = None
    class_name: str | None = None
    method: str | None = None
    """The running method; None when idle."""
    role: str | None = None
    world: str | None = None
    """Key of the world: processes with equal keys do collectives together."""
    rank: int | None = None
    world_size: int | None = None
    job_id: str | None = None
    rank_source: str | None = None
    part: EnginePart | None = None
    """What it is in an inference engine."""


@lru_cache(maxsize=4096)
def split_title(title: str) -> tuple[str | None, str | None]:
    """Class and running method of a Ray title.

    ``ray::WorkerDict.update`` → (``WorkerDict``, ``update``); ``ray::IDLE`` → (None, None); Ray's workers for spilled objects
    (``ray::RESTORE_RestoreWorker``, ``ray::IDLE_SpillWorker``) → (``RestoreWorker``, ``restore``), (``SpillWorker``, None).
    """
    if not title.startswith("ray::"):
        return None, None
    found = _TITLE.match(title)
    if found is None or found["class"] in (None, "IDLE"):
        return None, None
    io = _IO_WORKER.match(found["class"])
    if io:
        return io["class"], None if io["state"] == "IDLE" else io["state"].lower()
    return found["class"], found["method"]


def identify(
    node: Node, process: Process, pids: Mapping[int, Process], actors: Mapping[tuple[str | None, int], RayActor], parts: Parts | None = None
) -> Identity:
    """Who `process` on `node` is.

    Args:
        node: The node it runs on.
        process: The process.
        pids: The collected processes of that node. A child that has its parent's ``RANK`` inherited it and is no rank of its own.
        actors: Live actors by (Ray node id, pid), from `actor_table`.
        parts: What is known of the parts of engines; of one process alone none.
    """
    parent = pids.get(process.ppid or -1)
    parts = parts or Parts(Stacks())
    part = parts.part_of(node, process)
    title_class, method = split_title(process.title)
    actor = actors.get((node.node_id, process.pid)) if process.kind == "ray-worker" else None
    env = {**process.env, **process.env_now} if process.env_now else process.env
    class_name = actor.class_name.rsplit(".", 1)[-1] if actor else title_class
    role, rank, source = _rank(process, actor, env)
    size = _int(env.get("WORLD_SIZE"))
    if rank is not None and source != "arguments" and parent is not None and (parent.env or parent.env_now) and rank == _own_rank(parent):
        rank, size = None, None
    default = _default_group(process) if rank is None else None
    if default is not None and default.rank is not None and not _is_copy(default, parent):
        rank, size, source = default.rank, default.size, "torch"
    if part is not None:
        role, rank, size, source = "engine", part.rank, None, "title"
    role = role or _role_of(method, class_name)
    world = None
    job_id = (actor.job_id if actor else None) or process.job_id
    if rank is not None:
        meeting = env.get("WG_PREFIX") or _address(env.get("MASTER_ADDR"), env.get("MASTER_PORT"))
        if source == "torch":
            meeting = _met_at(process) or meeting or f"{node.name}/{process.ppid}"
        world = _world(job_id, role or class_name, meeting, size)
        if part is not None:
            world = f"{job_id or '-'}|engine|{node.name}/{process.ppid} {part.group}|-"
    label = _label(parts.stacks, node, process, actor, class_name, role, rank)
    if part is not None and not (actor and actor.name):
        owner = owner_name(process, pids, lambda pid: actors.get((node.node_id, pid)))
        label = f"{part.label} of {owner}" if owner else f"{part.label} (pid {process.pid})" if process.pid else part.label
    return Identity(
        key=f"{node.name}/{process.pid}",
        node=node.name,
        pid=process.pid,
        kind=process.kind,
        label=label,
        actor_id=actor.actor_id if actor else None,
        actor=(actor.name or None) if actor else None,
        class_name=class_name,
        method=method,
        role=role,
        world=world,
        rank=rank,
        world_size=size,
        job_id=job_id,
        rank_source=source if rank is not None else None,
        part=part,
    )


@lru_cache(maxsize=4096)
def _world(job_id: str | None, who: str | None, meeting: str, size: int | None) -> str:
    """The key of a world, one object for all of its ranks."""
    return f"{job_id or '-'}|{who or '-'}|{meeting}|{size or '-'}"


@lru_cache(maxsize=4096)
def _address(host: str | None, port: str | None) -> str:
    return ":".join(filter(None, (host, port)))


def _met_at(process: Process) -> str | None:
    """``10.0.0.1:29500`` of torch's ``tcp://10.0.0.1:29500``."""
    method = process.torch.init_method if process.torch is not None else None
    return method.removeprefix("tcp://") if method is not None and method.startswith("tcp://") else None


def actor_table(ray: RayState | None, nodes: Sequence[Node]) -> dict[tuple[str | None, int], RayActor]:
    """Live actors by (node id, pid)."""
    return _by_place({(a.node_id, a.pid): a for a in ray.actors if a.pid and a.state != "DEAD"} if ray else {}, nodes)


def core_worker_table(ray: RayState | None, nodes: Sequence[Node]) -> dict[tuple[str | None, int], CoreWorker]:
    """Core worker statistics by (node id, pid)."""
    return _by_place({(w.node_id, w.pid): w for w in ray.core_workers} if ray else {}, nodes)


def _by_place(found: dict[tuple[str | None, int], Row], nodes: Sequence[Node]) -> dict[tuple[str | None, int], Row]:
    """By (node id, pid); where a capture does not know Ray's id of some node, also the first of each pid by (None, pid)."""
    for (_, pid), row in tuple(found.items()) if any(node.node_id is None for node in nodes) else ():
        found.setdefault((None, pid), row)
    return found


def _rank(process: Process, actor: RayActor | None, env: Mapping[str, str]) -> tuple[str | None, int | None, str | None]:
    if actor and actor.name:
        named = _NAME_RANK.match(actor.name)
        if named:
            return named["role"], int(named["rank"]), "actor name"
    if actor is None and source_of(process) is not None and (told := _NAME_RANK.match(process.title)) is not None:
        return told["role"], int(told["rank"]), "title"  # as whoever posted its stack calls it
    arguments = dict(_ARGV.findall(process.title)) if "--" in process.title else None
    if arguments and "role" in arguments and _int(arguments.get("worker-index")) is not None:
        return arguments["role"], _int(arguments["worker-index"]), "arguments"
    if process.env_now is not None and (now := _int(process.env_now.get("RANK"))) is not None:
        return None, now, "environment now"
    if (started := _int(env.get("RANK"))) is not None:
        return None, started, "environment as started"
    if actor and actor.name:
        verl = _VERL_NAME.match(actor.name)
        if verl:
            return None, None, None  # its numbers are node and local rank, not the rank
    return None, None, None


def _own_rank(process: Process) -> int | None:
    now = process.env_now.get("RANK") if process.env_now else None
    return _int(now if now is not None else process.env.get("RANK"))


def _role_of(method: str | None, class_name: str | None) -> str | None:
    for role in _ROLES if method and class_name in ("WorkerDict", None) else ():
        if method and method.startswith(role + "_"):
            return role.split("_", 1)[0]
    if class_name in ROLE_OF_CLASS:
        return ROLE_OF_CLASS[class_name]
    return None


def _label(stacks: Stacks, node: Node, process: Process, actor: RayActor | None, class_name: str | None, role: str | None, rank: int | None) -> str:
    if rank is not None:
        return f"{role or class_name or 'rank'}/{rank}"
    if actor and actor.name:
        return actor.name
    if class_name:
        return class_name
    if process.kind == "driver":
        return "driver"
    agent_lightning = _in_agent_lightning(stacks, node, process)
    if not process.pid and (source := source_of(process)) is not None and not agent_lightning:
        # nothing but its file is known of it, or what its writer calls it
        is_nameless = process.title == source.split(".", 1)[0]
        placed = f"the process at {source}" if source.rpartition(":")[2].isdecimal() else source
        name, count = placed if is_nameless else _each_of(process.title[:60]), stands_for(process)
        return f"{name} ({count} ranks)" if count > 1 else name
    name = agent_lightning or _program(process.title.strip() or process.comm or "process")
    return f"{name} (pid {process.pid})" if process.pid else name


def _default_group(process: Process) -> TorchGroup | None:
    return next((g for g in process.torch.groups if g.is_default), None) if process.torch is not None else None


def _is_copy(group: TorchGroup, parent: Process | None) -> bool:
    """Does the parent of a process have the same group at the same address? Then it was forked with a copy of it, and is no rank there."""
    own = _default_group(parent) if parent is not None else None
    return own is not None and group.address is not None and group.address == own.address


_SEVERAL = re.compile(
    r"(?:all )?(?:the )?(?P<rest>(?:[\w-]{1,20} ){0,3}"
    r"(?:[a-z]{2,10}-)?(?:others|ones|rest|ranks|processes|workers|gpus|nodes|actors|hosts|boxes|peers|children)"
    r"(?: (?:but|except|apart from|other than)(?: for)? (?:ranks? )?\d[\d, and-]{0,40})?)|every(?:one|body) else",
    re.IGNORECASE,
)


def is_of_several(title: str) -> bool:
    """Does a name, as somebody wrote it, stand for several processes?"""
    return _SEVERAL.fullmatch(title) is not None


def _each_of(title: str) -> str:
    """``the other ranks`` as one of them, because every sentence here speaks of one process."""
    several = _SEVERAL.fullmatch(title)
    return f"each of the {several['rest']}" if several is not None and several["rest"] else title


@lru_cache(maxsize=4096)
def _program(title: str) -> str:
    """The program's name by its title; of a Python the script or module it runs: ``train.py``, ``http.server``."""
    words = title.split()
    first = words[0].rsplit("/", 1)[-1]
    if re.fullmatch(r"python[\d.]*", first):
        rest = [w for w in words[1:] if w != "…"]
        if len(rest) > 1 and rest[0] == "-m":
            first = rest[1]
        elif rest and rest[0].endswith(".py"):
            first = rest[0].rsplit("/", 1)[-1]
    return first[:40] if re.search(r"\w", first) else "process"


def worker_of(process: Process) -> str | None:
    """``Worker-0``: what Agent-Lightning's store calls this runner; the threads of its heartbeat carry the name."""
    threads = process.samples[-1].threads if process.samples else ()
    return next((beat[1] for t in threads if t.name and t.name.startswith("Worker-") and (beat := _HEARTBEAT.match(t.name))), None)


def _in_agent_lightning(stacks: Stacks, node: Node, process: Process) -> str | None:
    """``runner Worker-0`` or ``trainer``: its processes are forks that share one command line, so only their stacks tell them apart."""
    if process.kind not in ("named", "child", "driver", "other") or not process.samples:
        return None
    worker, found = worker_of(process), None
    if worker is not None:
        return f"runner {worker}"
    of_node = stacks.of(node)
    for thread in process.samples[-1].threads:
        runs = _runs_of_agent_lightning(of_node[thread.stack]) if 0 <= thread.stack < len(of_node) else None
        found = runs if runs == "runner" else found or runs
    return found


def _runs_of_agent_lightning(stack: Stack) -> str | None:
    """Which of its programs a stack is of, the frames of a parent included."""
    known, key = stack.known, _runs_of_agent_lightning
    if key not in known:
        classes = {frame.function.split(".", 1)[0] for frame in stack.whole}
        known[key] = "runner" if "LitAgentRunner" in classes else "trainer" if "AgentModeDaemon" in classes else None
    found: str | None = known[key]
    return found


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and len(text) < 9 else None
