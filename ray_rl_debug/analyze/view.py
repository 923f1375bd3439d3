"""The snapshot as the rules see it: every process with its identity, telling place, phase and motion, and the wait-for graph over them.

Building a view is pure and never changes the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ray_rl_debug.analyze.gpu_waits import on_gpu, waits_on_gpu, works_on_gpu
from ray_rl_debug.analyze.identity import Identity, actor_table, core_worker_table, identify
from ray_rl_debug.analyze.phase import phase_of_name, phase_of_stack
from ray_rl_debug.analyze.places import IDLE_KINDS, Kind, Place
from ray_rl_debug.analyze.progress import Motion, motion_of
from ray_rl_debug.analyze.telling import SeenThread, follow, forget_inherited_tasks, see_threads
from ray_rl_debug.report import Who
from ray_rl_debug.snapshot import CoreWorker, Node, Process, RayActor, RayState, Snapshot

JUDGED_KINDS = frozenset({"ray-worker", "driver", "child", "named", "other"})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One process as the rules see it."""

    identity: Identity
    process: Process
    node: Node
    threads: tuple[SeenThread, ...]
    """Threads of the last sample, most telling first; empty without stacks."""
    telling: SeenThread | None
    followed: SeenThread | None
    """The thread the telling one waits for inside the process."""
    places: tuple[Place, ...]
    """The telling thread's place in each sample."""
    phase: str | None
    motion: Motion
    motion_reason: str
    core: CoreWorker | None
    actor: RayActor | None

    @property
    def key(self) -> str:
        return self.identity.key

    @property
    def place(self) -> Place | None:
        return self.telling.place if self.telling else None

    @property
    def kind(self) -> Kind | None:
        return self.telling.place.kind if self.telling else None

    @property
    def is_stopped(self) -> bool:
        return self.process.state in ("T", "t")

    @property
    def age_s(self) -> float | None:
        """Seconds from the start of the process to the end of the window, by the clock of its node."""
        start_s = self.process.start_time_s
        return max(0.0, self.node.started_time_s + self.node.window_s - start_s) if start_s is not None else None

    @property
    def is_idle(self) -> bool:
        """Has nothing to do: no running method, no telling thread that works."""
        if self.telling is not None:
            return self.telling.place.kind in IDLE_KINDS
        return self.process.kind == "ray-worker" and self.identity.method is None

    def who(self, *, task: str | None = None, thread: str | None = None) -> Who:
        i = self.identity
        return Who(
            label=i.label,
            node=i.node,
            pid=i.pid,
            actor=i.actor,
            class_=i.class_name,
            task=task or (f"{i.class_name}.{i.method}" if i.method and i.class_name else i.method),
            world=i.role or i.class_name if i.rank is not None else None,
            rank=i.rank,
            thread=thread or (self.telling.name if self.telling else None),
            role=i.role,
        )

    @property
    def name(self) -> str:
        """The label without the pid that some labels end with."""
        return self.identity.label.removesuffix(f" (pid {self.identity.pid})")

    def where(self) -> str:
        """``actor/3 (node7 pid 4211)``."""
        return f"{self.name} ({self.identity.node} pid {self.identity.pid})"

    def at(self) -> str:
        """``all_reduce at dp_actor.py:30`` for the telling thread; the running method without stacks."""
        if self.telling is None:
            return f"runs {self.identity.method}" if self.identity.method else "idle"
        return describe_place(self.telling.place)

    def they(self) -> str:
        """The same of several: ``wait in all_reduce in step (train.py:40)``."""
        first, _, rest = self.at().partition(" ")
        return f"{_MANY.get(first, f'are {first}')} {rest}".rstrip()

    def inside(self) -> str:
        """The same as the object of "wait in": ``all_reduce in step (train.py:40)``, or where it pauses: ``step (train.py:40)``."""
        text = self.at()
        return text.removeprefix("waits in ") if text.startswith("waits in ") else text.partition(" in ")[2] or text


_MANY = {"waits": "wait", "sleeps": "sleep", "joins": "join", "runs": "run"}


SHELLS = frozenset({"sh", "bash", "dash", "stdbuf"})


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the rules may look at."""

    snapshot: Snapshot
    seen: Mapping[str, Seen]
    by_node_pid: Mapping[tuple[str, int], str]
    ray: RayState | None
    has_stacks: bool

    def __iter__(self) -> Iterator[Seen]:
        return iter(self.seen.values())

    def actor_process(self, actor_id: str) -> Seen | None:
        """The process of an actor that is alive and was collected."""
        return next((s for s in self if s.identity.actor_id == actor_id), None)

    def children(self, parent: Seen) -> tuple[Seen, ...]:
        """Direct children, shells between them skipped."""
        direct = [s for s in self if s.node is parent.node and s.process.ppid == parent.process.pid]
        found: list[Seen] = []
        for child in direct:
            shell = not child.threads and child.process.comm in SHELLS
            found.extend(self.children(child) if shell else (child,))
        return tuple(found)


def describe_place(place: Place) -> str:
    """One line: what the thread does and where."""
    at = ""
    if place.path:
        function, file, line = place.path[0]
        at = f"{function} ({file.rsplit('/', 1)[-1]}{f':{line}' if line else ''})"
    words = {
        Kind.COLLECTIVE: f"waits in {place.op}",
        Kind.P2P: f"waits in {place.op}" + (f" for rank {place.peer}" if place.peer is not None else ""),
        Kind.RENDEZVOUS: f"waits in {place.op}",
        Kind.NEW_GROUP: f"waits in {place.op}",
        Kind.DESTROY: "waits in destroy_process_group",
        Kind.RAY_GET: "waits in ray.get",
        Kind.RAY_WAIT: "waits in ray.wait",
        Kind.RAY_INIT: "waits in ray.init",
        Kind.JOIN: "joins a thread",
        Kind.FUTURE: "waits for a future",
        Kind.EVENT: "waits for an event or condition",
        Kind.QUEUE: "waits at a queue",
        Kind.LOCK: "waits for a lock",
        Kind.CHILD: "waits for a child process",
        Kind.DATALOADER: "waits for a DataLoader worker",
        Kind.MP_QUEUE: "waits at a multiprocessing queue",
        Kind.SOCKET: "waits at a socket",
        Kind.FILE: "waits in a file call",
        Kind.FLOCK: "waits for a file lock",
        Kind.SLEEP: "sleeps",
        Kind.CUDA: "waits for the GPU",
        Kind.RAY_IDLE: "idle (waits for a Ray call)",
        Kind.LOOP_IDLE: "event loop without work",
        Kind.IDLE: "idle",
        Kind.CODE: "runs",
    }[place.kind]
    if place.kind is Kind.CODE:
        return f"in {at}" if at else "runs"
    return f"{words} in {at}" if at and place.kind not in IDLE_KINDS else words


def build_view(snapshot: Snapshot) -> View:
    """The view of a snapshot; pure."""
    actors = actor_table(snapshot.ray)
    cores = core_worker_table(snapshot.ray)
    by_actor = {a.actor_id: a for a in snapshot.ray.actors} if snapshot.ray else {}
    seen: dict[str, Seen] = {}
    index: dict[tuple[str, int], str] = {}
    for node in snapshot.nodes:
        pids = {p.pid: p for p in node.processes}
        for process in (forget_inherited_tasks(node, p) for p in node.processes if p.kind in JUDGED_KINDS):
            identity = identify(node, process, pids.get(process.ppid or -1), actors)
            core = cores.get((node.node_id, process.pid)) or (cores.get((None, process.pid)) if node.node_id is None else None)
            one = _see(node, process, identity, core, by_actor.get(identity.actor_id or ""))
            seen[one.key] = one
            index[(node.name, process.pid)] = one.key
    return View(
        snapshot=snapshot,
        seen=seen,
        by_node_pid=index,
        ray=snapshot.ray,
        has_stacks=any(s.threads for s in seen.values()),
    )


def _see(node: Node, process: Process, identity: Identity, core: CoreWorker | None, actor: RayActor | None) -> Seen:
    samples = process.samples
    threads = see_threads(node, process, samples[-1]) if samples else ()
    telling = threads[0] if threads else None
    if telling is not None and telling.score < 0:
        telling = next((t for t in threads if t.is_main), telling)
    places: list[Place] = []
    for sample in samples:
        of_sample = see_threads(node, process, sample)
        same = next((t for t in of_sample if telling is not None and t.tid == telling.tid and t.name == telling.name), None)
        if same is not None:
            places.append(same.place)
    spins = waits_on_gpu(node, process, places)
    if spins is not None and telling is not None:
        telling = msgspec.structs.replace(telling, place=on_gpu(telling.place))
        places = [on_gpu(p) for p in places]
    motion, reason = motion_of(process, places, telling.kernel if telling else None, core)
    if spins is not None and motion is not Motion.MOVING:
        reason = spins
    elif motion is Motion.FROZEN and telling is not None and telling.place.kind in (Kind.CUDA, Kind.CODE):
        works = works_on_gpu(node, process)
        motion, reason = (Motion.BUSY, works) if works is not None else (motion, reason)
    phase = phase_of_name(identity.method) if identity.method else None
    if phase is None and telling is not None:
        phase = phase_of_stack(f for f, _, _ in telling.place.path)
    return Seen(
        identity=identity,
        process=process,
        node=node,
        threads=threads,
        telling=telling,
        followed=follow(telling, threads) if telling else None,
        places=tuple(places),
        phase=phase,
        motion=motion,
        motion_reason=reason,
        core=core,
        actor=actor,
    )
