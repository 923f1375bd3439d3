"""RRD405 object store stuck

Story
    The object store is full or its spill and restore workers are stuck; gets and puts wait for memory or for a file.

Evidence
    The store's use against its capacity, an I/O worker's stack, waiting gets that no running task explains.

Remedy
    Free references, raise the store's memory, check the spill disk.

Not this when
    Spilling moves bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.model.report import Cause, Certainty, Who
from ray_rl_debug.model.snapshot import Frame
from ray_rl_debug.rules.scene import Found, Scene, make_finding, stack_evidence, waits

ID = "RRD405"
NAME = "object store stuck"
CAUSE = Cause.OBJECT_STORE


_STORAGE = ("ray/_private/external_storage.py", "ray/external_storage.py")
FULL_FRACTION = 0.98
"""A store above this share of its capacity cannot take the next large object."""


def detect(scene: Scene) -> Iterator[Found]:
    """Waits for objects on nodes whose store is full, or whose restore stands still."""
    ray = scene.view.ray
    if ray is None:
        yield from _by_stacks(scene)
        return
    io_workers = [s for s in scene.view if s.identity.class_name in ("RestoreWorker", "SpillWorker") and s.identity.method is not None]
    stuck = [w for w in io_workers if not scene.goes_on(w) and (not w.threads or _storage_thread(w) is not None)]
    full = [
        n for n in ray.nodes if (s := ray.object_store.get(n.node_id)) and s.capacity_bytes and (s.used_bytes or 0) / s.capacity_bytes > FULL_FRACTION
    ]
    if not stuck and not full:
        return
    waiting = (*scene.view.at(Kind.RAY_GET), *scene.view.at(Kind.RAY_WAIT))
    waiters = [s for s in waiting if not scene.goes_on(s) and not scene.graph.out(s.key)]
    putting = [s for s in scene.view if s.telling and s.telling.stack.once(_puts) and not scene.goes_on(s)]
    if not stuck and not waiters and not putting:
        return
    who = [w.who(thread=_thread_id(w)) for w in stuck] or [Who(label=f"object store of {n.host}", node=n.host) for n in full]
    victims = waiters or putting
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY,
        _said(stuck, victims) if stuck else f"the object store of {full[0].host} is full and {waits(len(victims))} for it",
        who=who,
        evidence=[*(stack_evidence(w, thread=_storage_thread(w)) for w in stuck[:2]), *(stack_evidence(w) for w in victims[:2])],
        remedy=[
            *["check the disk or mount that holds the spilled objects: df, stat, dmesg on that node"] * bool(stuck),
            "free references (del, ray.internal.free), raise object_store_memory",
        ],
        phase=victims[0].phase if victims else None,
    )
    yield Found(finding=finding, explains=frozenset([*(w.key for w in stuck), *(v.key for v in victims)]))


def _by_stacks(scene: Scene) -> Iterator[Found]:
    """Of files: workers in the storage of spilled objects."""
    for one in scene.view if scene.view.by_hand else ():
        thread = _storage_thread(one)
        if thread is None or one.is_stopped or scene.goes_on(one):
            continue
        waiting = [s for s in (*scene.view.at(Kind.RAY_GET), *scene.view.at(Kind.RAY_WAIT)) if s is not one]
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.POSSIBLE,
            f"{one.where()} is in the storage of Ray's spilled objects, {describe_place(thread.place)}; {waits(len(waiting))} in ray.get",
            who=[one.who(thread=_thread_id(one))],
            evidence=[stack_evidence(one, thread=thread), *(stack_evidence(w) for w in waiting[:2])],
            remedy=["check the disk, mount or bucket that holds the spilled objects: df, stat, dmesg on that node"],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key, *(w.key for w in waiting)]))


def _puts(frames: tuple[Frame, ...]) -> bool:
    return any(f.function.endswith("put_object") for f in frames)


def _storage_thread(one: Seen) -> SeenThread | None:
    """The nameless thread in which an I/O worker reads or writes spilled objects; the main thread of it always looks idle."""
    return next((t for t in one.threads if any(f.file.endswith(_STORAGE) for f in t.frames)), None)


def _thread_id(one: Seen) -> str | None:
    thread = _storage_thread(one)
    return str(thread.tid) if thread is not None and thread.tid is not None else None


def _said(stuck: Sequence[Seen], victims: Sequence[Seen]) -> str:
    one = stuck[0]
    thread = _storage_thread(one)
    call = kernel_call(thread.kernel) if thread is not None else None
    doing = "reading" if one.identity.class_name == "RestoreWorker" else "writing"
    at = f" in {call}" if call else ""
    more = f" (and {len(stuck) - 1} more)" if len(stuck) > 1 else ""
    return f"{one.where()} is stuck{at} {doing} spilled objects{more}; {waits(len(victims))} for objects"
