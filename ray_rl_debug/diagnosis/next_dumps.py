"""What to dump next: the further looks that would settle an answer that is not sure, each with what its outcomes would mean.

Commands are for the machine of the process. They only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ray_rl_debug.analyze.assumed_worlds import COMMON_WAIT
from ray_rl_debug.analyze.by_hand import FAR_APART_S, apart_s, how_often, looks
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, WAITS_FOR_RANKS, WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.places import INTERPRETER
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_assumed import DISTANCE
from ray_rl_debug.analyze.waits_ranks import is_waiting, split_by_site
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.diagnosis.by_hand_verdict import at_connection, core_and_workers
from ray_rl_debug.diagnosis.dump_targets import (
    ALL_THREADS,
    TRAINER,
    all_threads,
    asks_core,
    awaited,
    between_parts,
    core_of,
    cut_off,
    engine,
    in_the_kernel,
    is_without_python,
    launched,
    look_at,
    named,
    other_end,
    pid_of,
    refused,
    unread,
    why_it_ended,
)
from ray_rl_debug.diagnosis.dumps_of_lists import of_lists
from ray_rl_debug.diagnosis.dumps_of_logs import ALL_PYTHON, of_counts, of_ends, of_logs
from ray_rl_debug.diagnosis.parents import is_worker_of_parent, parent_of
from ray_rl_debug.model.report import Cause, Certainty, Finding, NextDump, Outcome
from ray_rl_debug.rules.scene import Scene

MAX_DUMPS = 4
NOT_STARTED = ("PENDING_CREATION", "DEPENDENCIES_UNREADY")
_LATER = "sleep 30; "
ELSEWHERE = "met elsewhere at its last look"


def next_dumps(scene: Scene, findings: Sequence[Finding]) -> tuple[NextDump, ...]:
    """The most telling looks first; none where the answer is sure, or was measured and not read from files."""
    if not scene.view.by_hand or any(f.certainty is not Certainty.POSSIBLE for f in findings):
        return ()
    if not scene.view.seen:
        runs = of_lists(scene, None) if not findings else None
        return (runs,) if runs is not None else tuple(of_logs(findings))
    found: dict[str, NextDump] = {}
    for one in (
        *_named_in_kernel(scene, findings),
        *refused(scene),
        *unread(scene),
        *of_counts(scene),
        *_ordered(findings, _accused(scene, findings), _ranks(scene)),
        *(cut_off(scene) if not findings else ()),
        *_others(scene),
        *_beside(scene, findings),
    ):
        found.setdefault(one.command, one)
    for one in _anybody(scene) if not found else ():
        found.setdefault(one.command, one)
    return tuple(found.values())[:MAX_DUMPS]


def _ordered(findings: Sequence[Finding], again: Iterable[NextDump], ranks: Iterable[NextDump]) -> Iterator[NextDump]:
    """Where no process is to blame yet, those who were not dumped tell more than one who was."""
    is_open = bool(findings) and not any(w.pid is not None for w in findings[0].who)
    yield from (*ranks, *again) if is_open else (*again, *ranks)


def _named_in_kernel(scene: Scene, findings: Sequence[Finding]) -> Iterator[NextDump]:
    """Where a listing alone shows that the one that is named sits in the kernel, only the kernel can say more."""
    pids = {w.pid for w in findings[0].who if w.pid is not None} if findings else set()
    for one in scene.view:
        if one.process.pid in pids and one.process.state == "D" and not one.threads:
            yield in_the_kernel(scene, one)


def _accused(scene: Scene, findings: Sequence[Finding]) -> Iterator[NextDump]:
    """The first who is named, once more: does it still stand there?"""
    if not findings:
        return
    keys = {(w.node, w.pid, w.label) for w in findings[0].who}
    named_first = [s for s in scene.view if (s.identity.node, s.identity.pid or None, s.identity.label) in keys]
    # of several that are named, the one that waits for none of them
    accused = sorted((s for s in named_first if s.threads), key=lambda s: bool(scene.graph.out(s.key)))
    unshown = [s for s in named_first if not s.threads and not any(r.kind == "unread" for r in s.process.remarks)]
    for one in sorted(unshown, key=lambda s: bool(scene.graph.out(s.key)))[:1]:
        if one.process.state in ("D", "T", "t"):
            yield in_the_kernel(scene, one)
            continue
        if one.has_ended:
            yield why_it_ended(scene, one)
            continue
        yield NextDump(
            what=f"{named(scene, one)}, of which no stack was given",
            who=(one.who(),),
            command=f"py-spy dump --pid {pid_of(one)}",
            why="it is what the others wait for, and only its stack says why",
            outcomes=(
                Outcome(seen="it is in code of its own", means="that line is the cause: give all files to report"),
                Outcome(seen="it is in a collective too", means="it waits in another group: dump the ranks of that group"),
                Outcome(seen="no such process", means="it died: its log holds the first failure"),
            ),
        )
    # where no process is to blame, one of those that wait shows whether they stand
    stalled = [m for w in scene.worlds for m in w.members if is_waiting(m)] if findings[0].cause is Cause.COLLECTIVE_STALLED else []
    for one in (accused or stalled)[:1]:
        if not one.is_assumed and one.motion is not Motion.MOVING:
            if one.kind in THREAD_WAITS and len(one.threads) == 1:
                yield all_threads(scene, one, f"it {one.does()}, and the thread that should end that wait is not shown")
            continue  # several looks have shown that it stands there
        if one.process.state in ("D", "T", "t"):
            yield in_the_kernel(scene, one)
            continue
        if one.place is not None and one.place.op == INTERPRETER:
            yield _who_has_interpreter(scene, one)
            continue
        options = _options(one)
        thing = "it waits there, and is what the others wait for" if one.kind not in WAITS_FOR_RANKS else "it waits there for other ranks"
        yield NextDump(
            what=f"{named(scene, one)} again, in 30 s",
            who=(one.who(),),
            command=f"{_LATER}{look_at(one, options)}",
            why=f"it was {how_often(one.process) if one.motion is not Motion.MOVING else ELSEWHERE}: {one.at()}",
            outcomes=(
                Outcome(seen="the same lines", means=f"{thing}; give both files to report" + _means(options)),
                Outcome(seen="other lines", means="it works or goes round in a loop: slow, or the cause is elsewhere"),
            ),
        )


def _who_has_interpreter(scene: Scene, one: Seen) -> NextDump:
    """Threads want the interpreter's lock for moments; whoever keeps it stands in code of C, which only native frames show."""
    pid = pid_of(one)
    return NextDump(
        what=f"all threads of {named(scene, one)} with their native frames, twice",
        who=(one.who(),),
        command=f'gdb -p {pid} -batch -ex "thread apply all bt"; sleep 30; gdb -p {pid} -batch -ex "thread apply all bt"',
        why=f"it {one.does()}, and only native frames show who has that lock",
        outcomes=(
            Outcome(seen="one thread is not in take_gil, and stands in the same call of C", means="it has the lock: that call is the cause"),
            Outcome(seen="that call is a wait for a mutex", means="the thread that has the mutex wants the interpreter: two locks in two orders"),
            Outcome(seen="other lines", means="it only waited its turn: the cause is elsewhere"),
        ),
    )


def _few_looks(one: Seen) -> str:
    taken, time_s = len(looks(one.process)), apart_s(one.process)
    if taken < 2:
        return "one look"
    return f"{taken} looks, {f'{time_s:.0f} s apart,' if time_s >= 1 else 'of which the files do not tell how far apart they are,'}"


def _options(one: Seen) -> str:
    """``--native`` where Python does not show the call in which a thread stands; ``--locals`` where they name the other rank."""
    if one.kind is Kind.P2P or one.kind is Kind.NEW_GROUP:
        return " --locals"
    if is_without_python(one):
        return ""
    is_hidden = one.kind in (Kind.CODE, Kind.CUDA, Kind.LOCK, Kind.FILE) and not any(s.native for s in one.process.samples)
    return " --native" if is_hidden else ""


def _means(options: str) -> str:
    if "native" in options:
        return "; its native frames name the call (read, recv, futex, a CUDA or NCCL function)"
    return "; its locals name the rank or group that it waits for" if "locals" in options else ""


def _ranks(scene: Scene) -> Iterator[NextDump]:
    """Ranks that were not dumped, of worlds that wait."""
    for world in scene.worlds:
        waiting = [m for m in world.members if is_waiting(m)]
        if not waiting or (not world.is_assumed and not world.missing):
            continue
        yield from _other_stages(waiting)
        if world.missing:
            ranks = ", ".join(map(str, world.missing[:8]))
            yield NextDump(
                what=f"rank {ranks} of {world.name}",
                command=ALL_PYTHON,
                why=f"{'it is' if len(world.missing) == 1 else 'they are'} in no file, and {_waiters(waiting)}",
                outcomes=_rank_outcomes(waiting),
            )
        elif len(waiting) == len(world.members):
            yield _all_other_ranks(world, waiting)


_STAGE = re.compile(r"\bPP ?(?P<stage>\d{1,4})\b")
"""As engines name the stages of a pipeline."""


def _other_stages(waiting: Sequence[Seen]) -> Iterator[NextDump]:
    """The stage of the pipeline with which one exchanges, where its name tells its own: the one before it sends, the one behind it receives."""
    one = next((w for w in waiting if w.kind is Kind.P2P and _STAGE.search(w.name)), None)
    own = _STAGE.search(one.name) if one is not None else None
    if one is None or own is None or one.place is None:
        return
    sends = "send" in one.place.op and "recv" not in one.place.op
    other = int(own["stage"]) + (1 if sends else -1)
    named_so = f"PP{other}" if other >= 0 else "the last stage (PP)"
    if any((found := _STAGE.search(w.name)) is not None and int(found["stage"]) == other for w in waiting):
        return
    yield NextDump(
        what=f"{named_so}, the stage that should {'receive from' if sends else 'send to'} {one.name}",
        command=f"for pid in $(pgrep -f 'PP{max(other, 0)}'); do py-spy dump --pid $pid; done" if other >= 0 else ALL_PYTHON,
        why=_waiters([one]),
        outcomes=(
            Outcome(seen="it is in another collective, or in code of its own", means="it is the one that keeps the pipeline: its stack says why"),
            Outcome(
                seen=f"it is in {'recv' if sends else 'send'} too", means="their numbers do not pair up, or the network between them: NCCL_DEBUG=INFO"
            ),
            Outcome(seen="it waits for the next stage", means="look at that one: the wait goes along the pipeline"),
        ),
    )


def _waiters(waiting: Sequence[Seen]) -> str:
    first = waiting[0]
    if len(waiting) == 1:
        return f"{first.where()} {first.does()}"
    if len(split_by_site(waiting)) == 1:
        return f"{len(waiting)} ranks {first.they()}"
    ops = sorted({w.place.op for w in waiting if w.place is not None})
    return f"{len(waiting)} ranks wait in {' or '.join(ops[:4])}, at different lines"


def _rank_outcomes(waiting: Sequence[Seen]) -> tuple[Outcome, ...]:
    ops = sorted({"that wait" if w.place.op == COMMON_WAIT else w.place.op for w in waiting if w.place is not None}) or ["the collective"]
    died = Outcome(seen="one has no process any more", means="it died: its log holds the first failure")
    if len(split_by_site(waiting)) > 1:
        told = " or ".join(ops[:4])
        return (
            Outcome(seen=f"one of them is not in {told}", means="the others may wait for it: its stack says why"),
            Outcome(seen=f"all are in {told}", means="some of the ranks took another path, or their groups are different by design"),
            died,
        )
    return (
        Outcome(seen=f"one of them is not in {ops[0]}", means="it is the one that the others wait for: its stack says why"),
        Outcome(
            seen=f"all are in {'that wait' if ops[0] == 'that wait' else f'the same {ops[0]}'}",
            means="no rank is to blame: network or device (NCCL_DEBUG=INFO, Xid in dmesg, Flight Recorder dumps)",
        ),
        died,
    )


def _of_all(seen: Iterable[Seen]) -> str:
    """The command for all processes of a job like these."""
    shown = [s for s in seen if s.threads]
    if not shown or not all(is_without_python(s) for s in shown):
        return ALL_PYTHON
    return f"for pid in $(pgrep -f NAME_OF_THE_PROGRAM); do {ALL_THREADS.format(pid='$pid')}; done > $(hostname).txt"


def _all_other_ranks(world: World, waiting: Sequence[Seen]) -> NextDump:
    others = "all other ranks of the job" if len(waiting) > 1 else "all ranks of the job"
    return NextDump(
        what=f"{others}, on every node",
        command=_of_all(waiting),
        why=f"{_waiters(waiting)}, and no other rank was dumped",
        outcomes=_rank_outcomes(waiting),
    )


def _others(scene: Scene) -> Iterator[NextDump]:
    """Whoever is at the other end of a wait that stacks do not name."""
    for one in scene.view:
        asks_ray = any(t.place.kind in WAITS_FOR_RAY for t in one.threads)
        if scene.graph.out(one.key) or (one.kind not in DISTANCE and not asks_ray):
            continue
        if asks_ray and (running := of_lists(scene, one)) is not None:
            yield running
        elif asks_ray and any(a.state in NOT_STARTED for a in (scene.view.snapshot.listed.actors if scene.view.snapshot.listed else ())):
            yield NextDump(
                what="what Ray has free, and what is asked of it",
                command="ray status; ray list placement-groups; ray list nodes",
                why=f"{one.where()} {one.does()}, and the list that was given has an actor that Ray has not started",
                outcomes=(
                    Outcome(seen="the demand fits on no node", means="ask for less, add nodes, or end what holds the cards"),
                    Outcome(seen="there is room for it", means="its process starts, or fails to start: read the raylet's log of that node"),
                ),
            )
        elif asks_ray:
            yield NextDump(
                what=f"the process that runs the call for which {one.where()} waits",
                who=(one.who(),),
                command="ray list tasks --filter state=RUNNING --detail; ray list actors --filter state=ALIVE",
                why=f"it {one.does()}, and no stack of an actor at work was given",
                outcomes=(
                    Outcome(seen="a running task", means="dump the pid that the list names: it is what the driver waits for"),
                    Outcome(seen="only pending tasks", means="Ray cannot start them: too few free resources, or a dead node (ray status)"),
                ),
            )
        elif one.kind is Kind.CHANNEL and one.identity.part is not None:
            between = core_and_workers(list(scene.view))
            yield engine(scene, one) if between is None else between_parts(scene, *between)
        elif one.kind is Kind.CHANNEL and asks_core(one):
            yield core_of(scene, one)
        elif one.kind in (Kind.SOCKET, Kind.CHANNEL):
            yield other_end(scene, one, f"it {one.does()}")
        else:
            yield NextDump(
                what=f"the children of {named(scene, one)}",
                who=(one.who(),),
                command=f"for pid in $(pgrep -P {pid_of(one)}); do py-spy dump --pid $pid; done",
                why=f"it {one.does()}",
                outcomes=(
                    Outcome(seen="a child stands in own code", means="it is what this process waits for"),
                    Outcome(seen="a child is a zombie, or there is none", means="it died, and nobody told its parent"),
                ),
            )


def _beside(scene: Scene, findings: Sequence[Finding]) -> Iterator[NextDump]:
    """Where one process alone was dumped, and nobody is known to wait for it: all that are beside it."""
    if findings and findings[0].cause is Cause.STRAGGLER and not findings[0].victims:
        yield _all_processes(scene)


def _anybody(scene: Scene) -> Iterator[NextDump]:
    """Where nothing tells: the driver of idle processes, or the same process again and all beside it."""
    seen = list(scene.view)
    yield from (*launched(scene), *cut_off(scene))
    if all(s.is_idle for s in seen):
        yield from awaited(scene)
        part = next((s for s in seen if s.identity.part is not None), None)
        if part is not None:
            yield engine(scene, part)
        yield from (parent_of(scene, s) for s in seen if is_worker_of_parent(s))
        yield NextDump(
            what="the driver or trainer: the process that started the job, and waits in ray.get or sends the requests",
            command=TRAINER,
            why="all that were dumped wait for work",
            outcomes=(
                Outcome(
                    seen="it waits in ray.get",
                    means="the call that it waits for runs in a process that was not dumped, or was never started: ray list tasks",
                ),
                Outcome(seen="it is in own code", means="it is the cause: it gives nobody work"),
            ),
        )
        return
    if seen and all(ended(s) is not None for s in seen):
        yield from of_ends(seen)
        return
    awake = [s for s in seen if s.threads and not s.is_idle and ended(s) is None]
    # who was seen to stand over a time was looked at enough
    few = [s for s in awake if s.is_assumed or s.motion is Motion.MOVING or apart_s(s.process) < FAR_APART_S]
    one = next((s for s in few if s.is_assumed or s.motion is Motion.MOVING), few[0] if few else None)
    for other in seen[:2] if not awake else ():
        if (end := at_connection(other)) is not None:
            yield other_end(scene, other, f"its coroutines wait for an answer in {end.at}")
        yield all_threads(scene, other, "no stack of a thread at work was given")
    if one is not None and one.process.state in ("D", "T", "t"):
        yield in_the_kernel(scene, one)
    elif one is not None:
        options = _options(one)
        yield NextDump(
            what=f"{named(scene, one)} again, in 30 s",
            who=(one.who(),),
            command=f"{_LATER}{look_at(one, options)}",
            why=f"it was {ELSEWHERE}: {one.at()}" if one.motion is Motion.MOVING else f"{_few_looks(one)} cannot tell work from a wait: {one.at()}",
            outcomes=(
                Outcome(seen="the same lines", means="it stands there" + _means(options)),
                Outcome(seen="other lines", means="it works: look at those who wait for it"),
            ),
        )
    yield _all_processes(scene)


def _all_processes(scene: Scene) -> NextDump:
    return NextDump(
        what="all processes of the job, on every node",
        command=_of_all(scene.view),
        why="one stack does not tell who waits for whom",
        outcomes=(Outcome(seen="who waits, and who does not", means="report on all files together follows the waits to their end"),),
    )
