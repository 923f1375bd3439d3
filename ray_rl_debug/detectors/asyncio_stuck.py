"""RRD201 coroutines stuck

Story
    Coroutines of an agent loop, rollout server or workflow executor await a semaphore, event, HTTP answer or future
    that never comes. Thread stacks show an idle loop.

Evidence
    The await chains of the process, grouped; without them, a running Ray call in a process whose threads are all idle.

Remedy
    Release permits in finally, give awaits a time limit.

Not this when
    The coroutine waits for another process of the job: then that one is the root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import Seen
from ray_rl_debug.detectors.scene import Found, Scene, make_finding, proc_evidence
from ray_rl_debug.report import Cause, Certainty, Evidence, Finding
from ray_rl_debug.snapshot import AsyncTask

ID = "RRD201"
NAME = "coroutines stuck"
CAUSE = Cause.ASYNCIO_STUCK


_INNER = frozenset({"semaphore", "lock", "event", "condition", "queue", "future"})


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that idle in Python while their coroutines wait for something inside the process."""
    for root, one in scene.process_roots():
        if one.is_stopped or not one.is_idle or one.motion is Motion.MOVING:
            continue
        tasks = [t for t in one.process.async_tasks or () if t.awaited is not None and t.awaited.kind in (*_INNER, "socket", "executor")]
        running = bool(one.core and one.core.running_task_ids) or (one.identity.method is not None and one.process.kind == "ray-worker")
        if not tasks and not running:
            continue
        yield Found(finding=_finding(one, tasks), explains=frozenset(root.nodes))


def _finding(one: Seen, tasks: list[AsyncTask]) -> Finding:
    classes = Counter((_line(t), t.awaited.detail or t.awaited.kind if t.awaited else "") for t in tasks)
    evidence = [
        Evidence(kind="await", where=one.where(), text=f"{n} coroutine{'s' if n > 1 else ''} at {at}: awaits {what}")
        for (at, what), n in classes.most_common(4)
    ]
    unread = one.process.async_tasks is None
    if tasks:
        (at, what), count = classes.most_common(1)[0]
        summary = f"{count} of {len(one.process.async_tasks or ())} coroutines of {one.where()} wait at {at} for {what}"
        certainty = Certainty.LIKELY
    else:
        summary = (
            f"{one.where()} runs {one.identity.method or 'a call'}, but no thread of it works: a coroutine waits for something that does not come"
        )
        certainty = Certainty.LIKELY if one.threads else Certainty.POSSIBLE
        evidence = [
            proc_evidence(one, "event loop without work while Ray says a call runs" + ("; its coroutines could not be read" if unread else ""))
        ]
    return make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        summary,
        who=[one.who()],
        evidence=evidence,
        remedy=_remedy(tasks),
        phase=one.phase,
    )


def _remedy(tasks: list[AsyncTask]) -> list[str]:
    kinds = {t.awaited.kind for t in tasks if t.awaited}
    if kinds & {"semaphore", "lock"}:
        return ["release the semaphore or lock in a finally block (async with): a failed episode kept its permit", "restart this actor to go on"]
    if "socket" in kinds:
        return ["give the HTTP or socket call a time limit, and look at the server at the other end"]
    return ["find who should complete what the coroutines await; give the await a time limit (asyncio.wait_for)", "restart this actor to go on"]


def _line(task: AsyncTask) -> str:
    own = [f for f in task.chain if f.file and not f.file.startswith(("asyncio/", "ray/", "<"))]
    frame = own[-1] if own else task.chain[-1] if task.chain else None
    if frame is None:
        return task.name
    return f"{frame.function} ({(frame.file or '').rsplit('/', 1)[-1]}{f':{frame.line}' if frame.line else ''})"
