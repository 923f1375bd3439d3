"""Who pauses and looks again: at variables that nobody is left to change, at files, at processes, at answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import OpenFile, Process
from tests.unit.scenes import Stacks, process, snapshot

SLEEP, OPEN, FUTEX, ACCEPT = 230, 257, 202, 43
START = "run@threading.py:982 _bootstrap_inner@threading.py:1045 _bootstrap@threading.py:1002"
TAKE = "take@/job/train.py:46 main@/job/train.py:59"
SEGMENT = OpenFile(path="/dev/shm/psm_1a2b", kind="file", device="00:1a", inode=7)


def report_of(stacks: Stacks, looks: Mapping[str, tuple[str, ...]], *processes: Process) -> Report:
    """`looks`: by function, what the loop around its pause looks at."""
    node = stacks.node(processes)
    frames = tuple(msgspec.structs.replace(f, looks=looks.get(f.function), calls=("sleep",) if f.function in looks else None) for f in node.frames)
    return diagnose(snapshot(msgspec.structs.replace(node, frames=frames)))


def trainer(stacks: Stacks, *threads: tuple[str, str], wchan: str = "hrtimer_nanosleep", stack: str = TAKE) -> Process:
    one = process(stacks, 10, "python train.py", stack, kind="named", ppid=1, wchan="hrtimer_nanosleep", syscall=SLEEP, extra_threads=threads)
    kernel = [msgspec.structs.replace(t, wchan=wchan if n else t.wchan, run_slices=30) for n, t in enumerate(one.threads)]
    return msgspec.structs.replace(one, threads=tuple(kernel))


def named(report: Report) -> list[int | None]:
    return [w.pid for w in report.findings[0].who] if report.findings else []


def test_who_is_left_alone_with_its_variables_waits_for_ever() -> None:
    stacks = Stacks()
    report = report_of(stacks, {"take": ()}, trainer(stacks))
    assert report.verdict.state is State.HANG and report.findings[0].certainty is Certainty.LIKELY and report.findings[0].id == "RRD503"


@pytest.mark.parametrize(("collects", "is_hang"), [((), True), (("exists",), False), (None, False)])
def test_all_threads_look_at_variables(collects: tuple[str, ...] | None, is_hang: bool) -> None:
    stacks = Stacks()
    looks = {"take": (), **({"collect": collects} if collects is not None else {})}
    report = report_of(stacks, looks, trainer(stacks, ("rollout-0", f"collect@/job/train.py:40 {START}")))
    assert (report.verdict.state is State.HANG) is is_hang


def test_a_thread_at_a_connection_may_be_told_something() -> None:
    stacks = Stacks()
    report = report_of(stacks, {"take": ()}, trainer(stacks, ("client", f"poll@zmq/sugar/poll.py:106 {START}"), wchan="do_epoll_wait"))
    assert report.verdict.state is not State.HANG


def test_one_that_was_elsewhere_at_a_look_does_something() -> None:
    stacks = Stacks()
    one = trainer(stacks)
    before = process(stacks, 10, "", "work@/job/kit.py:9 main@/job/train.py:60", TAKE).samples[0]
    report = report_of(stacks, {"take": ()}, msgspec.structs.replace(one, samples=(before, *one.samples[1:])))
    assert report.verdict.state is not State.HANG


@pytest.mark.parametrize(("wchan", "call", "is_hang"), [("wait_for_partner", OPEN, True), ("hrtimer_nanosleep", SLEEP, False)])
def test_variables_in_shared_memory_wait_for_those_who_share_it(wchan: str, call: int, is_hang: bool) -> None:
    stacks = Stacks()
    one = msgspec.structs.replace(trainer(stacks), files=(SEGMENT,))
    other = process(stacks, 20, "python rank.py", "next_batch@/job/rank.py:32", kind="child", wchan=wchan, syscall=call)
    report = report_of(stacks, {"take": ()}, one, msgspec.structs.replace(other, files=(SEGMENT,)))
    assert (report.verdict.state is State.HANG) is is_hang
    assert not is_hang or named(report) == [20]


@pytest.mark.parametrize(
    ("stack", "wchan", "call", "state"),
    [
        ("sample@/job/sample.py:9", "wait_for_partner", OPEN, State.HANG),
        ("sample@/job/sample.py:9", "hrtimer_nanosleep", SLEEP, State.SLOW),
        ("wait@threading.py:327 sample@/job/sample.py:9", "futex_do_wait", FUTEX, State.UNKNOWN),
    ],
)
def test_a_file_is_made_by_somebody_of_the_family(stack: str, wchan: str, call: int, state: State) -> None:
    """One that waits inside of itself may rest there by design."""
    stacks = Stacks()
    child = process(stacks, 20, "python sample.py", stack, kind="child", wchan=wchan, syscall=call)
    report = report_of(stacks, {"take": ("glob",)}, trainer(stacks), child)
    assert report.verdict.state is state
    assert state is not State.HANG or named(report) == [20]


def test_who_serves_makes_no_file() -> None:
    stacks = Stacks()
    child = process(
        stacks, 20, "python s.py", "accept@socket.py:294 serve@/job/s.py:9", kind="child", wchan="inet_csk_accept", syscall=ACCEPT, arg0=3
    )
    assert report_of(stacks, {"take": ("glob",)}, trainer(stacks), child).verdict.state is not State.HANG


@pytest.mark.parametrize("takes_note", [False, True])
def test_a_process_that_has_ended_is_there_until_its_parent_takes_note(takes_note: bool) -> None:
    stacks = Stacks()
    keeper = process(stacks, 20, "python keep.py", "keep@/job/keep.py:21", kind="child", wchan="wait_for_partner", syscall=OPEN)
    ended = Process(pid=30, ppid=20, title="sleep", comm="sleep", kind="child", state="Z")
    report = report_of(stacks, {"take": ("is_alive", "kill")}, trainer(stacks), keeper, *([] if takes_note else [ended]))
    assert (report.verdict.state is State.HANG) is not takes_note
    assert takes_note or named(report) == [20]


@pytest.mark.parametrize(("function", "wakes_in_s", "state"), [("collect", 1.3, State.SLOW), ("wait_for", None, State.UNKNOWN)])
def test_one_long_pause_is_no_look_whatever_the_function_is_called(function: str, wakes_in_s: float | None, state: State) -> None:
    stacks = Stacks()
    main = process(stacks, 10, "python train.py", "main@/job/train.py:3", kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=20)
    child = process(stacks, 20, "python c.py", f"{function}@/job/c.py:51", kind="child", wchan="hrtimer_nanosleep", syscall=SLEEP)
    kernel = msgspec.structs.replace(child.threads[0], wakes_in_s=wakes_in_s, run_slices=6 if wakes_in_s is not None else 30)
    assert report_of(stacks, {}, main, msgspec.structs.replace(child, threads=(kernel,))).verdict.state is state


@pytest.mark.parametrize(("exit_code", "is_hang"), [(-9, True), (1, True), (0, False), (None, False)])
def test_who_was_killed_had_something_in_its_hands(exit_code: int | None, is_hang: bool) -> None:
    """All others only look: for tasks, and whether all are done."""
    stacks = Stacks()
    main = trainer(stacks, stack="collected@/job/store.py:84 main@/job/store.py:93")
    runner = process(stacks, 20, "python store.py", "runner@/job/store.py:70", kind="child", wchan="hrtimer_nanosleep", syscall=SLEEP)
    runner = msgspec.structs.replace(runner, threads=(msgspec.structs.replace(runner.threads[0], run_slices=30),))
    dead = Process(pid=30, ppid=10, title="python", comm="python", kind="child", state="Z", exit_code=exit_code)
    report = report_of(stacks, {}, main, runner, dead)
    assert (report.verdict.state is State.HANG) is is_hang
    assert named(report) == [30]


@pytest.mark.parametrize("looks", ["exists", "urlopen"])
@pytest.mark.parametrize(
    ("exit_code", "ppid", "helper", "beside", "is_hang"),
    [
        (1, 5, None, None, True),
        (-9, 5, None, None, True),
        (0, 5, None, None, False),  # it ended by design
        (None, 5, None, None, False),
        (1, 77, None, None, False),  # of another family
        (1, 5, f"look_after@/job/train.py:40 {START}", None, False),  # the launcher looks after its children
        (1, 5, None, "fetch@/job/fetch.py:9", False),  # another one may bring it
    ],
)
def test_nobody_is_left_for_what_one_that_crashed_should_have_brought(
    looks: str, exit_code: int | None, ppid: int, helper: str | None, beside: str | None, is_hang: bool
) -> None:
    stacks = Stacks()
    more = [("helper", helper)] if helper else []
    main = process(
        stacks, 5, "python train.py", "main@/job/train.py:3", kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=10, extra_threads=more
    )
    looker = msgspec.structs.replace(trainer(stacks), ppid=5, kind="child")
    dead = Process(pid=30, ppid=ppid, title="python", comm="python", kind="child", state="Z", exit_code=exit_code)
    others = [process(stacks, 40, "python f.py", beside, kind="child", ppid=5, wchan="hrtimer_nanosleep", syscall=SLEEP)] if beside else []
    report = report_of(stacks, {"take": (looks,)}, main, looker, dead, *others)
    assert (report.verdict.state is State.HANG) is is_hang
    assert (named(report) == [30]) is is_hang
