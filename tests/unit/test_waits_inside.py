"""A process that waits for one of its own threads: what the kernel's clock, or who that thread waits for, says of its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import OpenFile, Process, Snapshot, Thread

PID = 100
RECEIVE = "Connection._recv@multiprocessing/connection.py:395 Connection.recv@multiprocessing/connection.py:250"
EVENT = "Condition.wait@threading.py:324 Event.wait@threading.py:622 train@app/train.py:20"


def hope(taken: Snapshot, pid: int = PID) -> Outlook:
    return find_waits(build_view(taken)).graph.hope(f"node1/{pid}")


POOL = "_WorkItem.run@concurrent/futures/thread.py:58 _worker@concurrent/futures/thread.py:83 Thread.run@threading.py:982"
FUTURE = "Condition.wait@threading.py:327 Future.result@concurrent/futures/_base.py:451 grade@app/grade.py:9"
RUNS = f"Popen._wait@subprocess.py:2007 Popen.wait@subprocess.py:1264 run@subprocess.py:550 test@app/grade.py:4 {POOL}"
REPORTS = "Queue.get@queue.py:171 report@app/grade.py:14 Thread.run@threading.py:982"
PAUSES = "collect@app/train.py:7 Thread.run@threading.py:982"
ASLEEP = {"wchan": "hrtimer_nanosleep", "syscall": 230, "run_slices": 6}
AT_CHILD = {"wchan": "do_wait", "syscall": 61, "syscall_arg0": 200}


def waiting(text: str, threads: Sequence[tuple[str, str]], *kernel: Mapping[str, object], stacks: Stacks) -> Process:
    """Its main thread waits inside of it, beside other threads, each with the kernel's side."""
    one = process(stacks, PID, "python train.py", text, kind="named", wchan="futex_do_wait", syscall=202, extra_threads=threads)
    sides = [replace(t, **more) for t, more in zip(one.threads[1:], kernel, strict=True)]
    return replace(one, threads=(one.threads[0], *sides))


def program(call: str) -> Process:
    """A child that is no Python, and the call in which it is."""
    wchan, number = {"sleep": ("hrtimer_nanosleep", 230), "open": ("wait_for_partner", 257)}[call]
    thread = Thread(tid=200, comm="sh", state="S", wchan=wchan, syscall=number, cpu_s=0.0, run_slices=0)
    return Process(pid=200, ppid=PID, title="sh", comm="sh", kind="child", state="S", cpu_s=0.0, window_s=2.0, threads=(thread,))


@pytest.mark.parametrize(("call", "hoped"), [("sleep", Outlook.WAKES), ("open", Outlook.STANDS)])
def test_only_a_thread_of_the_pool_ends_its_future(call: str, hoped: Outlook) -> None:
    """Not the one beside it that reports; so the program that the pool's thread runs decides."""
    stacks = Stacks()
    one = waiting(FUTURE, [("ThreadPoolExecutor-0_0", RUNS), ("Thread-1", REPORTS)], AT_CHILD, {}, stacks=stacks)
    taken = snapshot(stacks.node([one, program(call)]))
    assert hope(taken) is hoped
    assert build_view(taken).seen["node1/100"].followed is not None


@pytest.mark.parametrize(("call", "hoped"), [("sleep", Outlook.WAKES), ("open", Outlook.STANDS)])
def test_a_pool_may_run_what_is_a_librarys(call: str, hoped: Outlook) -> None:
    """``submit(subprocess.run, command)``: no frame of the program."""
    stacks = Stacks()
    runs = RUNS.replace("test@app/grade.py:4 ", "")
    one = waiting(FUTURE, [("ThreadPoolExecutor-0_0", runs)], AT_CHILD, stacks=stacks)
    assert hope(snapshot(stacks.node([one, program(call)]))) is hoped


@pytest.mark.parametrize(("call", "hoped"), [("sleep", Outlook.WAKES), ("open", Outlook.STANDS)])
def test_any_of_several_threads_may_end_it(call: str, hoped: Outlook) -> None:
    stacks = Stacks()
    one = waiting(EVENT, [("Thread-2", RUNS), ("Thread-1", REPORTS)], AT_CHILD, {}, stacks=stacks)
    assert hope(snapshot(stacks.node([one, program(call)]))) is hoped


@pytest.mark.parametrize(
    ("kernel", "hoped"),
    [
        ({**ASLEEP, "wakes_in_s": 20.0}, Outlook.WAKES),
        ({**ASLEEP, "wakes_in_s": 7200.0}, Outlook.STANDS),
        ({**ASLEEP, "wakes_in_s": 0.4, "run_slices": 9}, Outlook.STANDS),
        ({"wchan": None, "syscall": None, "state": "R", "cpu_s": 1.9}, Outlook.UNSEEN),
    ],
    ids=["in one pause", "for hours", "looks again and again", "works"],
)
def test_a_thread_that_goes_on_may_end_it(kernel: Mapping[str, object], hoped: Outlook) -> None:
    stacks = Stacks()
    one = waiting(EVENT, [("Thread-2", PAUSES), ("Thread-1", REPORTS)], kernel, {}, stacks=stacks)
    assert hope(snapshot(stacks.node([one]))) is hoped


def main_with(one: Process, **kernel: object) -> Process:
    """With more of the kernel's side of its main thread."""
    return replace(one, threads=(replace(one.threads[0], **kernel), *one.threads[1:]))


@pytest.mark.parametrize(
    ("left_s", "slices", "hoped"),
    [(28.0, 6, Outlook.WAKES), (None, 6, Outlook.STANDS), (3600.0, 6, Outlook.STANDS), (0.7, 9, Outlook.STANDS)],
    ids=["ends soon", "without a limit", "hours", "looks again and again"],
)
def test_a_wait_with_a_limit_ends_by_itself(left_s: float | None, slices: int, hoped: Outlook) -> None:
    stacks = Stacks()
    one = process(stacks, PID, "python train.py", EVENT, kind="named", wchan="futex_do_wait", syscall=202)
    taken = snapshot(stacks.node([main_with(one, wakes_in_s=left_s, run_slices=slices)]))
    assert hope(taken) is hoped
    if hoped is Outlook.WAKES:
        report = diagnose(taken)
        assert report.verdict.state is State.SLOW
        assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


@pytest.mark.parametrize(("why", "state"), [(Why.CHILD_QUEUE, State.UNKNOWN), (Why.CHILD, State.HANG)])
def test_who_listens_delivers_what_its_clients_bring(why: Why, state: State) -> None:
    """So nobody knows whether it stands; but its end does not come from a client."""
    stacks = Stacks()
    wait = {Why.CHILD_QUEUE: RECEIVE, Why.CHILD: "Popen.wait@multiprocessing/popen_fork.py:43 BaseProcess.join@multiprocessing/process.py:149"}[why]
    kernel = {Why.CHILD_QUEUE: ("pipe_read", 0, 5), Why.CHILD: ("do_wait", 61, 200)}[why]
    wchan, call, arg0 = kernel
    main = process(stacks, PID, "python train.py", f"{wait} train@app/train.py:8", kind="named", wchan=wchan, syscall=call, arg0=arg0)
    accepts = "socket.accept@socket.py:294 collect@app/collect.py:5"
    child = process(stacks, 200, "python collect.py", accepts, kind="child", ppid=PID, wchan="inet_csk_accept", syscall=288, arg0=3)
    read = OpenFile(fd=5, path="pipe:[77]", kind="pipe", inode=77, writable=False)
    main, child = replace(main, files=(read,)), replace(child, files=(replace(read, fd=4, writable=True),))
    report = diagnose(snapshot(stacks.node([main, child])))
    assert report.verdict.state is state
    assert report.findings


def test_a_timer_calls_back_soon() -> None:
    """It has no frame of the program; one that waits for an hour calls back too late to count."""
    timer = "Condition.wait@threading.py:331 Event.wait@threading.py:629 Timer.run@threading.py:1379 Thread._bootstrap_inner@threading.py:1045"
    for left_s, hoped in ((20.0, Outlook.WAKES), (3600.0, Outlook.STANDS)):
        stacks = Stacks()
        one = waiting(EVENT, [("Thread-1", timer)], {"wakes_in_s": left_s, "run_slices": 6}, stacks=stacks)
        assert hope(snapshot(stacks.node([one]))) is hoped


@pytest.mark.parametrize(
    ("library", "hoped"),
    [
        ({"wchan": "hrtimer_nanosleep", "syscall": 230, "run_slices": 6}, Outlook.UNSEEN),
        ({"wchan": "rq_qos_wait", "syscall": None, "state": "D"}, Outlook.UNSEEN),
        ({"wchan": "hrtimer_nanosleep", "syscall": 230, "run_slices": 40}, Outlook.STANDS),
        ({"wchan": "futex_do_wait", "syscall": 202, "run_slices": 0}, Outlook.STANDS),
    ],
    ids=["sleeps", "at a disk", "looks again and again", "waits"],
)
def test_a_thread_of_a_library_may_end_a_wait_in_c(library: Mapping[str, object], hoped: Outlook) -> None:
    stacks = Stacks()
    one = process(stacks, PID, "python train.py", "train@app/train.py:20", kind="named", wchan="futex_do_wait", syscall=202)
    other = Thread(**{"tid": PID + 1, "comm": "writer", "state": "S", "cpu_s": 0.0, **library})  # type: ignore[arg-type]
    main = replace(one.threads[0], run_slices=6)
    assert hope(snapshot(stacks.node([replace(one, threads=(main, other))]))) is hoped
