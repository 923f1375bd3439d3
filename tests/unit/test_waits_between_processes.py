"""Workers between two tasks lead to who feeds them, and waits at semaphores of multiprocessing to who has taken or gives them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.analyze.waits_fed import fed_edges
from ray_rl_debug.analyze.waits_semaphores import semaphore_edges
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import EndedProcess, OpenFile, Process, SemaphoreUse, SharedSemaphore, Thread

PARENT, FIRST, SECOND = 100, 200, 201
READ = 0
SPAWN = "BaseProcess._bootstrap@multiprocessing/process.py:314 _main@multiprocessing/spawn.py:135 spawn_main@multiprocessing/spawn.py:122"
RECEIVE = "Connection._recv@multiprocessing/connection.py:395 Connection.recv@multiprocessing/connection.py:250"
RESTS = f"{RECEIVE} answer_jobs@app/rewards.py:16 BaseProcess.run@multiprocessing/process.py:108 {SPAWN}"
ACQUIRES = "Lock.__enter__@multiprocessing/synchronize.py:95 score@app/rewards.py:5"
WORKS = f"score@app/rewards.py:5 {SPAWN}"
LEADS = "step@app/train.py:20"
PIPE = OpenFile(fd=3, path="pipe:[77]", kind="pipe", inode=77, writable=False)
GIVES = replace(PIPE, fd=4, writable=True)


def child(stacks: Stacks, pid: int, text: str, *, files: tuple[OpenFile, ...] = (), state: str = "S") -> Process:
    one = process(stacks, pid, "python train.py", text, kind="child", ppid=PARENT, wchan="anon_pipe_read", syscall=READ, arg0=3, state=state)
    return replace(one, files=files)


def parent_of(stacks: Stacks, files: tuple[OpenFile, ...] | None) -> Process:
    return replace(process(stacks, PARENT, "python train.py", LEADS, kind="named"), files=files)


def view_of(stacks: Stacks, *processes: Process, semaphores: tuple[SharedSemaphore, ...] = ()) -> View:
    return build_view(snapshot(stacks.node(processes, semaphores=semaphores)))


def told(edges: list[Edge]) -> list[tuple[str, str]]:
    """Who waits for whom, by pid; ``unseen`` for who was not seen."""
    return [(e.source.rpartition("/")[2], "unseen" if kind_of(e.target) is NodeKind.UNSEEN else e.target.rpartition("/")[2]) for e in edges]


def fed(view: View, *waited_for: int) -> list[tuple[str, str]]:
    known = [Edge(source=f"node1/{PARENT}", target=f"node1/{pid}", why=Why.CHILD_QUEUE, evidence="") for pid in waited_for]
    return told(list(fed_edges(view, known)))


def test_an_idle_worker_waits_for_its_parent() -> None:
    stacks = Stacks()
    view = view_of(stacks, parent_of(stacks, (GIVES,)), child(stacks, FIRST, RESTS, files=(PIPE,)))
    assert fed(view, FIRST) == [("200", "100")]
    assert fed(view) == []  # nobody waits for it


def test_a_worker_at_work_waits_for_nobody() -> None:
    stacks = Stacks()
    assert fed(view_of(stacks, parent_of(stacks, (GIVES,)), child(stacks, FIRST, WORKS, files=(PIPE,))), FIRST) == []


def test_siblings_feed_each_other_where_one_writes_what_the_other_reads() -> None:
    stacks = Stacks()
    other = replace(PIPE, path="pipe:[78]", inode=78)
    first = child(stacks, FIRST, RESTS, files=(PIPE, replace(other, fd=4, writable=True)))
    second = child(stacks, SECOND, RESTS, files=(other, GIVES))
    assert fed(view_of(stacks, parent_of(stacks, ()), first, second), FIRST, SECOND) == [("200", "201"), ("201", "200")]


@pytest.mark.parametrize("files", [None, (), (replace(GIVES, writable=None),)], ids=["not read", "one left out", "its direction not read"])
def test_workers_of_one_queue_do_not_feed_each_other(files: tuple[OpenFile, ...] | None) -> None:
    """Each has inherited both ends. What their parent holds was not read: then whoever gives them tasks was not seen."""
    stacks = Stacks()
    workers = [child(stacks, pid, RESTS, files=(PIPE, GIVES)) for pid in (FIRST, SECOND)]
    feeder = "100" if files and files[0].inode else "unseen"
    assert fed(view_of(stacks, parent_of(stacks, files), *workers), FIRST, SECOND) == [("200", feeder), ("201", feeder)]


@pytest.mark.parametrize(("state", "found"), [("S", [("200", "unseen")]), ("T", []), ("Z", [])], ids=["asleep", "stopped", "dead"])
def test_an_idle_worker_without_the_kernels_side_waits_for_somebody(state: str, found: list[tuple[str, str]]) -> None:
    stacks = Stacks()
    worker = replace(child(stacks, FIRST, RESTS, files=(PIPE,), state=state), threads=())
    assert fed(view_of(stacks, parent_of(stacks, (GIVES,)), worker), FIRST) == found


def test_a_worker_that_sleeps_is_not_where_its_stack_was() -> None:
    """The kernel was asked after the stack: it has a task now, from whom was not seen."""
    stacks = Stacks()
    worker = child(stacks, FIRST, RESTS, files=(PIPE,))
    worker = replace(worker, threads=(replace(worker.threads[0], wchan="hrtimer_nanosleep", syscall=230),))
    assert fed(view_of(stacks, parent_of(stacks, (GIVES,)), worker), FIRST) == [("200", "unseen")]


def taken(maximum: int, *uses: tuple[int, int], unread: tuple[int, ...] = (), value: int = 0) -> SharedSemaphore:
    """One for which the first child waits; how often each process took it more than it gave it back."""
    counts = tuple(SemaphoreUse(pid=pid, taken=number) for pid, number in uses)
    return SharedSemaphore(inode=9, waiters=((FIRST, FIRST),), value=value, maximum=maximum, uses=counts, unread=unread)


@pytest.mark.parametrize(
    ("semaphore", "found"),
    [
        (taken(1, (SECOND, 1)), [("200", "201", Why.SEMAPHORE)]),
        (taken(1, (SECOND, 1), value=1), []),
        (taken(8, (SECOND, -2)), [("200", "201", Why.GIVERS)]),
        (taken(8, (SECOND, -2), (PARENT, 1)), [("200", "201", Why.GIVERS)]),
        (taken(8, (FIRST, -2), (SECOND, 1)), [("200", "201", Why.GIVERS)]),
        (taken(1, (999, 1)), [("200", "unseen", Why.SEMAPHORE), ("200", "unseen", Why.SEMAPHORE)]),
        (taken(1, unread=(SECOND,)), [("200", "unseen", Why.SEMAPHORE)]),
        (taken(1), [("200", "unseen", Why.SEMAPHORE)]),
        (taken(2, (SECOND, 3), unread=(PARENT,)), [("200", "100", Why.GIVERS)]),
        (taken(2, (SECOND, 3), unread=(999,)), [("200", "unseen", Why.GIVERS)]),
        (taken(2, (SECOND, 3)), [("200", "unseen", Why.GIVERS)]),
        (taken(2, (SECOND, 2), unread=(PARENT,)), [("200", "201", Why.SEMAPHORE)]),
    ],
    ids=[
        *(
            "taken",
            "free",
            "given by another",
            "given by one, taken by many",
            "given by itself so far",
            "taken by one unseen",
            "not read",
            "nobody has it",
        ),
        *("given by one that was not read", "by one unseen", "by somebody", "as many taken as there are"),
    ],
)
def test_a_semaphore_leads_to_its_holder_or_to_who_gives_it(semaphore: SharedSemaphore, found: list[tuple[str, str, Why]]) -> None:
    stacks = Stacks()
    view = view_of(stacks, parent_of(stacks, ()), child(stacks, FIRST, ACQUIRES), child(stacks, SECOND, WORKS), semaphores=(semaphore,))
    edges = list(semaphore_edges(view))
    assert [(*ends, e.why) for ends, e in zip(told(edges), edges, strict=True)] == found


def test_who_rests_instead_of_coming_to_a_barrier_is_named_with_who_gives_it_no_work() -> None:
    """The main process waits for the first child, which waits at a barrier for the second; that one waits for its next order."""
    stacks = Stacks()
    leads = process(stacks, PARENT, "python train.py", COLLECTS, kind="named", wchan="anon_pipe_read", syscall=READ, arg0=6)
    answers = OpenFile(fd=6, path="pipe:[78]", kind="pipe", inode=78, writable=False)
    meets = f"Condition.wait@multiprocessing/synchronize.py:268 Barrier.wait@threading.py:697 meet@app/env.py:23 {SPAWN}"
    waits = replace(
        child(stacks, FIRST, meets, files=(replace(answers, fd=7, writable=True),)), threads=(Thread(tid=FIRST, comm="python", state="S"),)
    )
    rests = child(stacks, SECOND, RESTS, files=(PIPE,))
    family = [replace(leads, files=(answers, GIVES)), waits, rests]
    report = diagnose(snapshot(stacks.node(family, semaphores=(taken(8, (FIRST, -2), (SECOND, 1)),))))
    assert report.verdict.state is State.HANG
    assert {w.pid for w in report.findings[0].who} == {PARENT, SECOND}


def test_a_lock_of_a_family_with_a_dead_member_died_with_it() -> None:
    stacks = Stacks()
    dead = replace(child(stacks, SECOND, WORKS, state="Z"), samples=())
    view = view_of(stacks, parent_of(stacks, ()), child(stacks, FIRST, ACQUIRES), dead, semaphores=(taken(1),))
    assert told(list(semaphore_edges(view))) == [("200", "201")]


def test_who_stands_at_a_lock_that_was_not_read_waits_for_somebody() -> None:
    """Not a worker between two tasks: it is at the lock of its queue by design."""
    stacks = Stacks()
    view = view_of(stacks, parent_of(stacks, ()), child(stacks, FIRST, ACQUIRES), child(stacks, SECOND, RESTS))
    assert told(list(semaphore_edges(view))) == [("200", "unseen")]


def test_who_waits_for_a_lock_that_it_has_itself_waits_for_nobody_else() -> None:
    """Another thread of it may still give it back."""
    stacks = Stacks()
    processes = (parent_of(stacks, ()), child(stacks, FIRST, ACQUIRES), child(stacks, SECOND, WORKS))
    own = SharedSemaphore(inode=9, waiters=((FIRST, FIRST),), value=0, maximum=1, uses=(SemaphoreUse(pid=FIRST, taken=1, tid=FIRST),))
    assert list(semaphore_edges(view_of(stacks, *processes, semaphores=(own,)))) == []
    other_thread = replace(own, uses=(SemaphoreUse(pid=FIRST, taken=1, tid=FIRST + 1),))
    assert told(list(semaphore_edges(view_of(stacks, *processes, semaphores=(other_thread,))))) == [("200", "unseen")]


@pytest.mark.parametrize(
    ("semaphore", "files", "found"),
    [
        (taken(64), (), [("200", "100")]),
        (taken(64, unread=(SECOND,)), (), [("200", "unseen")]),
        (taken(64), None, [("200", "unseen")]),
    ],
    ids=["all were read", "a count was not read", "files of one were not read"],
)
def test_who_waits_at_a_barrier_waits_for_all_who_may_come(
    semaphore: SharedSemaphore, files: tuple[OpenFile, ...] | None, found: list[tuple[str, str]]
) -> None:
    """Nobody has taken it, and only those can come who have its segment."""
    stacks = Stacks()
    segment = OpenFile(fd=None, path="/dev/shm/sem.mp-x1 (deleted)", kind="file", inode=9)
    waiter = child(stacks, FIRST, "Condition.wait@multiprocessing/synchronize.py:261 load@app/judge.py:4", files=(segment,))
    other = replace(child(stacks, SECOND, WORKS), files=files)
    view = view_of(stacks, parent_of(stacks, (segment,)), waiter, other, semaphores=(semaphore,))
    assert told(list(semaphore_edges(view))) == found


def test_a_barrier_that_the_absent_one_never_used_leads_to_whoever_has_it() -> None:
    stacks = Stacks()
    has_it = OpenFile(fd=-1, path="/dev/shm/sem.mp-x", kind="file", inode=9)
    meets, works = child(stacks, FIRST, ACQUIRES, files=(has_it,)), child(stacks, SECOND, WORKS, files=(has_it,))
    for files, found in (((), [("200", "201")]), (None, [("200", "unseen")])):
        view = view_of(stacks, parent_of(stacks, files), meets, works, semaphores=(taken(8, (FIRST, -2)),))
        assert told(list(semaphore_edges(view))) == found


LEFT = OpenFile(fd=None, path="/dev/shm/sem.Xy1 (deleted)", kind="file", inode=9)


@pytest.mark.parametrize(
    ("later_s", "path", "files", "found"),
    [
        (2.0, LEFT.path, (), []),
        (0.1, LEFT.path, (), [("200", "unseen")]),
        (2.0, "/dev/shm/sem.Xy1", (), [("200", "unseen")]),
        (2.0, LEFT.path, None, [("200", "unseen")]),
    ],
    ids=["it went with one that was replaced", "none was replaced", "others may open it by its name", "not all were read"],
)
def test_a_lock_that_went_with_its_holder(later_s: float, path: str, files: tuple[OpenFile, ...] | None, found: list[tuple[str, str]]) -> None:
    """Of those who have it each was asked, and none has taken it."""
    stacks = Stacks()
    held, answers = replace(LEFT, path=path), OpenFile(fd=6, path="pipe:[78]", kind="pipe", inode=78, writable=False)
    waits = replace(child(stacks, FIRST, ACQUIRES, files=(held, replace(answers, fd=7, writable=True))), start_time_s=100.0)
    waits = replace(waits, threads=(replace(waits.threads[0], wchan="futex_do_wait", syscall=202),))
    newer = replace(child(stacks, SECOND, RESTS, files=(held,)), start_time_s=100.0 + later_s)
    collects = f"{RECEIVE} collect@app/train.py:31"
    leads = process(stacks, PARENT, "python train.py", collects, kind="named", wchan="anon_pipe_read", syscall=READ, arg0=6)
    family = [replace(leads, files=(*files, answers) if files is not None else None), waits, newer]
    assert told(list(semaphore_edges(view_of(stacks, *family, semaphores=(taken(1),))))) == found
    named = [f for f in diagnose(snapshot(stacks.node(family, semaphores=(taken(1),)))).findings if "went with a process" in f.summary]
    assert [w.pid for f in named for w in f.who] == ([] if found else [FIRST])


@pytest.mark.parametrize(("maximum", "found"), [(None, [("200", "201")]), (64, [("200", "unseen")])], ids=["nothing was read", "one count was not"])
def test_a_semaphore_of_which_nothing_was_read_leads_to_who_else_uses_it(maximum: int | None, found: list[tuple[str, str]]) -> None:
    """Only possible: which of them has taken it, or gives it, is not known."""
    stacks = Stacks()
    processes = (parent_of(stacks, ()), child(stacks, FIRST, ACQUIRES), child(stacks, SECOND, WORKS))
    unread = SharedSemaphore(inode=9, waiters=((FIRST, FIRST),), value=0, maximum=maximum, unread=(FIRST, SECOND))
    edges = list(semaphore_edges(view_of(stacks, *processes, semaphores=(unread,))))
    assert told(edges) == found
    assert maximum is not None or [e.certainty for e in edges] == [Certainty.POSSIBLE]


def test_who_waits_in_c_for_a_semaphore_that_was_not_read_is_not_accused() -> None:
    """A program that shares one by its name calls the function of the C library: no lock of Python, and its holder is another process."""
    stacks = Stacks()
    waiter = replace(process(stacks, FIRST, "python sim.py", "work@app/sim.py:33 <module>@app/sim.py:50", kind="child", ppid=PARENT), files=())
    parent = process(stacks, PARENT, "python run.py", "Popen.wait@subprocess.py:1264 main@app/sim.py:44", kind="named", wchan="do_wait")
    at_lock = replace(waiter, threads=(Thread(tid=FIRST, comm="python", state="S", cpu_s=0.0, wchan="futex_do_wait", call="futex"),))
    node = stacks.node([replace(parent, files=()), at_lock])
    for calls, sure in ((("sem_wait",), []), (("acquire",), [Certainty.LIKELY])):
        frames = tuple(replace(f, calls=calls) if f.function == "work" else f for f in node.frames)
        report = diagnose(snapshot(replace(node, frames=frames)))
        assert [f.certainty for f in report.findings if f.certainty is not Certainty.POSSIBLE] == sure, calls


READS_TASKS = f"SemLock.__enter__@multiprocessing/synchronize.py:95 Queue.get@multiprocessing/queues.py:102 grade@app/rewards.py:22 {SPAWN}"
COLLECTS = f"{RECEIVE} collect@app/train.py:31"


@pytest.mark.parametrize(
    ("uses", "unread", "lost_ends", "certainty"),
    [
        ((), (), False, Certainty.LIKELY),
        ((), (), True, Certainty.POSSIBLE),
        ((SemaphoreUse(pid=SECOND, taken=1),), (), False, None),
        ((), (SECOND,), False, None),
    ],
    ids=["none of them has it", "somebody may not have been seen", "one reads", "of one it was not read"],
)
def test_a_queue_whose_reader_was_killed(
    uses: tuple[SemaphoreUse, ...], unread: tuple[int, ...], lost_ends: bool, certainty: Certainty | None
) -> None:
    """Of those who read a queue one always has its lock."""
    stacks = Stacks()
    at_it = (FIRST,) if uses else (FIRST, SECOND)
    workers = [replace(child(stacks, pid, READS_TASKS, files=(LEFT,)), start_time_s=100.0) for pid in (FIRST, SECOND)]
    workers = [replace(w, threads=(replace(w.threads[0], wchan="futex_do_wait", syscall=202),)) for w in workers]
    leads = process(stacks, PARENT, "python train.py", COLLECTS, kind="named", wchan="anon_pipe_read", syscall=READ, arg0=6)
    answers = OpenFile(fd=6, path="pipe:[78]", kind="pipe", inode=78, writable=False)
    workers = [replace(w, files=(*(w.files or ()), replace(answers, fd=7, writable=True))) for w in workers]
    lost = (replace(PIPE, fd=8, inode=91), replace(PIPE, fd=9, inode=92, writable=True)) if lost_ends else ()
    leads = replace(leads, files=(LEFT, answers, *lost))
    semaphore = SharedSemaphore(inode=9, waiters=tuple((pid, pid) for pid in at_it), value=0, maximum=1, uses=uses, unread=unread)
    found = [f for f in diagnose(snapshot(stacks.node([leads, *workers], semaphores=(semaphore,)))).findings if "lock of their queue" in f.summary]
    assert [f.certainty for f in found] == ([certainty] if certainty is not None else [])


@pytest.mark.parametrize("was_dead", [False, True])
def test_who_awaits_a_message_of_a_child_that_ended_meanwhile_goes_on(was_dead: bool) -> None:
    stacks = Stacks()
    leads = process(stacks, PARENT, "python train.py", COLLECTS, kind="named", wchan="anon_pipe_read", syscall=READ, arg0=6)
    leads = replace(leads, files=(OpenFile(fd=6, path="pipe:[78]", kind="pipe", inode=78, writable=False),))
    over = EndedProcess(pid=FIRST, ppid=PARENT, title="python train.py", kind="child", was_dead=was_dead)
    verdict = diagnose(snapshot(stacks.node([leads], ended=(over,)))).verdict
    assert (verdict.state is State.SLOW) is not was_dead
    assert ("a child that it waits for started or ended" in verdict.summary) is not was_dead
