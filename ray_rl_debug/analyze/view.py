"""The snapshot as the rules see it: every process with its identity, telling place, phase and motion, and the wait-for graph over them.

Building a view is pure and never changes the snapshot.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ray_rl_debug.analyze.assumed_worlds import Program, find_programs, settle_common_waits
from ray_rl_debug.analyze.by_hand import is_assumed, is_by_hand, why_assumed, with_later_looks
from ray_rl_debug.analyze.coroutines import Coroutines
from ray_rl_debug.analyze.engine_parts import Parts
from ray_rl_debug.analyze.engines import Engine, find_engines, settle
from ray_rl_debug.analyze.gpu_waits import asks_gpu, on_gpu, waits_on_gpu, works_on_gpu
from ray_rl_debug.analyze.groups import GroupId, group_of, may_be_known
from ray_rl_debug.analyze.identity import Identity, actor_table, core_worker_table, identify
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, Kind
from ray_rl_debug.analyze.lanes import find_lanes, motion_behind
from ray_rl_debug.analyze.main_activity import Looks, SeenThread, follow
from ray_rl_debug.analyze.module_runs import ran_module
from ray_rl_debug.analyze.named_calls import settle_named_calls
from ray_rl_debug.analyze.nodes import NodeKind
from ray_rl_debug.analyze.phase import phase_of_name, phase_of_stack
from ray_rl_debug.analyze.poll_loops import settle_polls
from ray_rl_debug.analyze.progress import Motion, motion_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.serving_threads import find_serving
from ray_rl_debug.analyze.shapes import Shape, Shapes
from ray_rl_debug.analyze.stacks import Known, Once, Stack, Stacks
from ray_rl_debug.analyze.told_twice import with_told_twice
from ray_rl_debug.analyze.whole_looks import drop_torn, forget_inherited_tasks, is_steady, with_names, with_tids
from ray_rl_debug.analyze.work_items import is_child_of_pool, took_turn, works_on
from ray_rl_debug.model.report import Who
from ray_rl_debug.model.snapshot import CoreWorker, Node, Process, RayActor, RayPlacementGroup, RayState, RayTask, Sample, Snapshot

JUDGED_KINDS = frozenset({"ray-worker", "driver", "child", "named", "other"})


SHELLS = frozenset({"sh", "bash", "dash", "stdbuf"})


def program_of(process: Process) -> str | None:
    """What the kernel calls its program; its first thread has that name, too."""
    return process.comm or next((t.comm for t in process.threads if t.tid == process.pid), None)


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the rules may look at."""

    snapshot: Snapshot
    seen: Mapping[str, Seen]
    """All activities that bear stacks: processes and lanes, by key. Whoever goes through a view meets the processes alone."""
    processes: tuple[Seen, ...]
    """Without the lanes."""
    by_node_pid: Mapping[tuple[str, int], str]
    ray: RayState | None
    has_stacks: bool
    stacks: tuple[Stack, ...] = ()
    """The distinct stacks that were met."""
    engines: tuple[Engine, ...] = ()
    """Inference engines, each with its processes."""
    actors: Mapping[str, RayActor] = {}
    """Ray's actors by id."""
    tasks: Mapping[str, RayTask] = {}
    """Ray's calls that have not ended, by id."""
    placement_groups: Mapping[str, RayPlacementGroup] = {}
    by_actor: Mapping[str, str] = {}
    """The collected process of each actor that is alive."""
    below: Mapping[tuple[str, int], tuple[str, ...]] = {}
    """The collected children of a process, by machine and pid."""
    programs: tuple[Program, ...] = ()
    """Of stacks that were collected by hand: processes that run one program."""
    by_hand: bool = False
    """Made from files of other tools: who gives them says that the run hangs."""
    known: dict[Callable[..., Any], Any] = msgspec.field(default_factory=dict)
    """What `once` has found."""

    def __iter__(self) -> Iterator[Seen]:
        return iter(self.processes)

    def lanes(self, process: str) -> Sequence[Seen]:
        """The lanes of a process, by its key."""
        return self.once(_lanes).get(process, ())

    def serving(self, process: str) -> Sequence[Seen]:
        """The threads of a process that may serve others while it waits elsewhere, by its key."""
        return self.once(_serving).get(process, ())

    def who(self, one: Seen) -> Who:
        """A process as the report names it."""
        known = self.once(_whos)
        found = known.get(one.key)
        if found is None:
            found = known[one.key] = one.who()
        return found

    def says(self, one: Seen) -> str:
        """Where a process is, in words: one text for all that stand at one place."""
        if one.place is None or one.has_ended:
            return one.at()
        known, at = self.once(_words_of_places), id(one.place)
        if at not in known:
            known[at] = one.at()
        return known[at]

    def all_stand(self, process: Seen) -> bool:
        """Are all running calls of a process in lanes, so that none of them goes on?"""
        running = len(process.core.running_task_ids) if process.core is not None else 0
        standing = sum(len(lane.core.running_task_ids) for lane in self.lanes(process.key) if lane.core is not None)
        return 0 < running == standing

    def once(self, find: Callable[[View], Known]) -> Known:
        """What `find`, a pure function, tells of the view: asked once."""
        if find not in self.known:
            self.known[find] = find(self)
        found: Known = self.known[find]
        return found

    def at(self, kind: Kind) -> Sequence[Seen]:
        """Processes whose telling thread stands in this kind of place."""
        known = self.once(_by_kind_of_place)
        if kind not in known:
            known[kind] = self.like(lambda shape: shape.kind is kind)
        return known[kind]

    def like(self, test: Callable[[Shape], object]) -> list[Seen]:
        """Processes whose shape passes the test, in the view's order."""
        return self.once(_shapes).like(lambda shape: shape.part is None and test(shape))

    def like_parts(self, test: Callable[[Shape], object]) -> list[Seen]:
        """The same of all activities that bear stacks: lanes and threads as well."""
        return self.once(_shapes).like(test)

    def actor_process(self, actor_id: str) -> Seen | None:
        """The process of an actor that is alive and was collected."""
        key = self.by_actor.get(actor_id)
        return self.seen[key] if key is not None else None

    def children(self, parent: Seen) -> tuple[Seen, ...]:
        """Direct children; shells whose programs were seen and the fork servers of multiprocessing between them are skipped."""
        direct = [self.seen[key] for key in self.below.get((parent.node.name, parent.process.pid), ())]
        found: list[Seen] = []
        for child in direct:
            is_shell = not child.threads and program_of(child.process) in SHELLS
            below = self.children(child) if is_shell or _is_fork_server(child) else ()
            found.extend(below or ((child,) if is_shell or not _is_fork_server(child) else ()))
        return tuple(found)


def _with_window(node: Node, process: Process) -> Process:
    """Counts without a time are no rates: where that of one process was not read, they were taken over about that of its node."""
    lacks = process.window_s is None and process.threads and node.window_s
    return msgspec.structs.replace(process, window_s=node.window_s) if lacks else process


def _whos(_: View) -> dict[str, Who]:
    """Filled as they are asked for: victims and the list of all processes name most of them twice."""
    return {}


def _words_of_places(_: View) -> dict[int, str]:
    """Filled as they are asked for, by the identity of the place."""
    return {}


def _lanes(view: View) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = defaultdict(list)
    for one in view.like_parts(lambda shape: shape.part is NodeKind.LANE):
        found[one.lane_of or ""].append(one)
    return found


def _serving(view: View) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = defaultdict(list)
    for one in view.like_parts(lambda shape: shape.part is NodeKind.THREAD):
        found[one.lane_of or ""].append(one)
    return found


def _shapes(view: View) -> Shapes:
    return Shapes(view.seen.values())


def _by_kind_of_place(_: View) -> dict[Kind, list[Seen]]:
    """Filled as they are asked for."""
    return {}


def _is_fork_server(one: Seen) -> bool:
    """Does it only fork the children that another process asks for? Where its stack was not read, the socket tells at which it is asked."""
    if not one.threads:
        return any(s.state == "LISTEN" and _ADDRESS.fullmatch(s.local.rpartition("/")[2]) for s in one.process.sockets or () if s.family == "unix")
    names = {f.function for t in one.threads if t.is_main for f in t.frames if f.file.endswith("multiprocessing/forkserver.py")}
    return "main" in names and "_serve_one" not in names


_ADDRESS = re.compile(r"listener-\w{8}")
"""Under such a name multiprocessing makes a socket."""


def build_view(snapshot: Snapshot) -> View:
    """The view of a snapshot; pure."""
    snapshot = with_told_twice(with_later_looks(snapshot))
    actors = actor_table(snapshot.ray, snapshot.nodes)
    cores = core_worker_table(snapshot.ray, snapshot.nodes)
    by_actor = {a.actor_id: a for a in snapshot.ray.actors} if snapshot.ray else {}
    stacks = Stacks()
    parts = Parts(stacks)
    phases = Once(phase_of_name)
    asked = _looks_asked_for(snapshot)
    seen: dict[str, Seen] = {}
    index: dict[tuple[str, int], str] = {}
    for node in snapshot.nodes:
        pids = {p.pid: p for p in node.processes}
        looks = max((asked, *[len(p.samples) for p in node.processes]))
        is_timed = any(p.window_s is not None for p in node.processes)
        for process in node.processes:
            if process.kind not in JUDGED_KINDS:
                continue
            moves = not is_steady(process)
            if moves:
                named = with_names(with_tids(process))
                moves = named is process or not is_steady(named)
                process = named
            process = _with_window(node, process) if is_timed else process
            process = drop_torn(process) if moves else process
            process = forget_inherited_tasks(stacks, node, process) if process.async_tasks else process
            process = settle_polls(stacks, node, process) if moves else process
            identity = identify(node, process, pids, actors, parts)
            core = cores.get((node.node_id, process.pid))
            one = _see(stacks, phases, node, process, identity, core, by_actor.get(identity.actor_id or ""), looks, moves=moves)
            seen[one.key] = one
            index[(node.name, process.pid)] = one.key
    engines = find_engines(seen)
    seen.update((one.key, one) for one in tuple(settle(seen, engines)))
    by_hand = is_by_hand(snapshot)
    seen.update((one.key, one) for one in tuple(settle_named_calls(seen.values()) if by_hand else ()))
    programs = find_programs(seen.values()) if by_hand else ()
    seen.update((one.key, one) for one in tuple(settle_common_waits(seen, programs) if by_hand else ()))
    below: dict[tuple[str, int], list[str]] = defaultdict(list)
    for one in seen.values():
        if one.process.ppid is not None:
            below[(one.node.name, one.process.ppid)].append(one.key)
    by_actor_id = {actor_id: s.key for s in reversed(seen.values()) if (actor_id := _actor_id(s)) is not None}
    tasks = {t.task_id: t for t in snapshot.ray.tasks} if snapshot.ray else {}
    serving = () if by_hand else tuple(find_serving(stacks, seen.values()))
    seen.update((lane.key, lane) for lane in (*find_lanes(stacks, tuple(seen.values()), tasks), *serving))
    return View(
        snapshot=snapshot,
        seen=seen,
        processes=tuple([one for one in seen.values() if one.lane_of is None]),
        stacks=stacks.all(),
        engines=engines,
        by_node_pid=index,
        ray=snapshot.ray,
        has_stacks=any(s.threads for s in seen.values()),
        actors=by_actor,
        tasks=tasks,
        placement_groups={g.placement_group_id: g for g in snapshot.ray.placement_groups} if snapshot.ray else {},
        by_actor=by_actor_id,
        programs=programs,
        by_hand=by_hand,
        below={parent: tuple(keys) for parent, keys in below.items()},
    )


def _actor_id(one: Seen) -> str | None:
    """By Ray's table of actors, else as its worker tells."""
    return one.identity.actor_id or (one.core.actor_id if one.core is not None and not one.has_ended else None)


def _looks_asked_for(snapshot: Snapshot) -> int:
    told = snapshot.options.get("samples")
    return told if isinstance(told, int) else 0


def _phase_of(thread: SeenThread) -> str | None:
    """The phase that the own code of a thread's stack tells; one for all that stand at it."""
    known, key = thread.stack.known, "phase"
    if key not in known:
        known[key] = phase_of_stack(f for f, _, _ in thread.place.path)
    phase: str | None = known[key]
    return phase


def _see(
    stacks: Stacks,
    phases: Once[str, str | None],
    node: Node,
    process: Process,
    identity: Identity,
    core: CoreWorker | None,
    actor: RayActor | None,
    most_looks: int,
    *,
    moves: bool,
) -> Seen:
    """`moves`: the samples found it in more than one way."""
    samples = process.samples
    looks = Looks(stacks, node, process, are_equal=not moves)
    threads = looks.see(samples[-1]) if samples else ()
    telling = threads[0] if threads else None
    if telling is not None and telling.score < 0:
        telling = next((t for t in threads if t.is_main), telling)
    places = looks.places_of(telling) if telling is not None else []
    spins = waits_on_gpu(node, process, places)
    if spins is not None and telling is not None:
        telling = msgspec.structs.replace(telling, place=on_gpu(telling.place))
        places = [on_gpu(p) for p in places]
    motion, reason = motion_of(process, places, telling.kernel if telling else None, core)
    if telling is not None and telling.place.kind in IDLE_KINDS and motion is not Motion.MOVING and looks.worked():
        motion, reason = Motion.MOVING, "came to rest during the window"
    if motion is Motion.FROZEN and telling is not None and telling.place.kind in THREAD_WAITS:
        motion, reason = motion_behind(looks, telling, threads) or (motion, reason)
    if moves and motion is not Motion.MOVING and works_on(node, process):
        motion, reason = Motion.MOVING, "went on to the next item of its pool"
    elif moves and motion is Motion.FROZEN and took_turn(node, process):
        motion, reason = Motion.MOVING, "took its turn at the queue of its pool during the window"
    elif moves and motion is not Motion.MOVING and telling is not None and ran_module(looks, telling):
        motion, reason = Motion.MOVING, "ran a module that it imports to its end during the window"
    elif motion is Motion.BUSY and identity.part is None and process.read_bytes and process.written_bytes and is_child_of_pool(node, process):
        motion, reason = Motion.MOVING, "took tasks and gave results during the window"
    elif motion is not Motion.MOVING and (asks := spins or asks_gpu(node, process, places, telling.tid if telling else None)) is not None:
        motion, reason = (Motion.UNKNOWN if motion is Motion.BUSY else motion), asks
    elif motion is Motion.FROZEN and telling is not None and telling.place.kind in (Kind.CUDA, Kind.CODE):
        works = works_on_gpu(node, process)
        motion, reason = (Motion.BUSY, works) if works is not None else (motion, reason)
    if not samples and process.remarks:
        reason = "its stack could not be read"
    if motion is Motion.FROZEN and is_assumed(process):
        reason = why_assumed(process)
    phase = phases[identity.method] if identity.method else None
    if phase is None and telling is not None and (identity.part is None or identity.part.part == "worker"):
        phase = _phase_of(telling)
    return Seen(
        key=identity.key,
        identity=identity,
        process=process,
        node=node,
        threads=threads,
        telling=telling,
        followed=follow(telling, threads) if telling else None,
        places=tuple(places),
        looks=most_looks,
        group=_group(process, telling, samples) if telling is not None else None,
        phase=phase,
        motion=motion,
        motion_reason=reason,
        core=core,
        actor=actor,
        coroutines=Coroutines(process) if process.async_tasks else None,
        left=looks.left() if moves else (),
    )


def _group(process: Process, telling: SeenThread, samples: Sequence[Sample]) -> GroupId | None:
    """The group in which the thread waits, by the last look at this very stack whose locals were read."""
    if not may_be_known(process, telling.place):
        return None
    same = (t for sample in reversed(samples) for t in sample.threads if t.tid == telling.tid and t.stack == telling.sample.stack)
    found = (group_of(process, telling.place, thread) for thread in (telling.sample, *same))
    return next((group for group in found if group is not None), None)
