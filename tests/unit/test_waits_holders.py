"""Who waits at a counter or message queue of the kernel's waits for any of those that have it open too."""

from __future__ import annotations

from msgspec.structs import replace

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import OpenFile, Process, Snapshot, Thread
from tests.unit.scenes import Stacks, process, snapshot

TAKES, MAKES = "take@/job/learn.py:9 <module>@/job/learn.py:30", "make@/job/sample.py:5 <module>@/job/sample.py:20"
COUNTER = OpenFile(fd=7, path="eventfd:[3]", kind="eventfd")
QUEUE = OpenFile(fd=4, path="/episodes", kind="file", inode=77, device="00:14", writable=True)


def at(stacks: Stacks, pid: int, stack: str, call: str, wchan: str, file: OpenFile | None, **more: object) -> Process:
    made = process(stacks, pid, "python job.py", stack, kind="child", ppid=100)
    thread = Thread(tid=pid, comm="python", state="S", cpu_s=0.0, wchan=wchan, call=call, syscall_arg0=file.fd if file else None, **more)  # type: ignore[arg-type]
    return replace(made, threads=(thread,), files=(file,) if file is not None else ())


def seen(stacks: Stacks, *children: Process) -> Snapshot:
    parent = process(stacks, 100, "python run.py", "wait@/usr/lib/python3.11/subprocess.py:9 main@/job/run.py:3", kind="named", wchan="do_wait")
    return snapshot(stacks.node([replace(parent, files=()), *children]))


def counted(of: Snapshot) -> list[tuple[str, str]]:
    return [(e.source, e.target) for e in find_waits(build_view(of)).graph.of(Why.MESSAGE)]


def test_a_counter_is_waited_at_for_who_has_it_open() -> None:
    stacks = Stacks()
    learner = at(stacks, 200, TAKES, "read", "do_wait_intr_irq", COUNTER)
    sampler = at(stacks, 201, MAKES, "clock_nanosleep", "hrtimer_nanosleep", COUNTER, wakes_in_s=20.0)
    whole = seen(stacks, learner, sampler)
    assert ("node1/200", "node1/201") in counted(whole)
    report = diagnose(whole)
    assert report.verdict.state is not State.HANG
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_a_counter_of_another_number_is_another() -> None:
    stacks = Stacks()
    learner = at(stacks, 200, TAKES, "read", "do_wait_intr_irq", COUNTER)
    other = at(stacks, 201, MAKES, "clock_nanosleep", "hrtimer_nanosleep", replace(COUNTER, path="eventfd:[4]"))
    assert ("node1/200", "node1/201") not in counted(seen(stacks, learner, other))


def test_a_counter_that_was_not_read_accuses_nobody() -> None:
    stacks = Stacks()
    learner = at(stacks, 200, TAKES, "read", "do_wait_intr_irq", None)
    report = diagnose(seen(stacks, learner))
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_two_that_wait_at_queues_for_each_other_are_a_ring() -> None:
    stacks = Stacks()
    second = replace(QUEUE, fd=3, path="/scored", inode=78)
    rollout = at(stacks, 200, MAKES, "mq_timedsend", "wq_sleep", QUEUE)
    judge = at(stacks, 201, TAKES, "mq_timedreceive", "wq_sleep", second)
    both = seen(stacks, replace(rollout, files=(QUEUE, second)), replace(judge, files=(QUEUE, second)))
    report = diagnose(both)
    assert report.verdict.state is State.HANG
    assert {w.pid for w in report.findings[0].who} == {200, 201}
    assert report.findings[0].certainty is Certainty.LIKELY
