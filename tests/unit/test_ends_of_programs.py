"""A program at its end that joins its threads, and a wait for a child that has just ended."""

from __future__ import annotations

from msgspec.structs import replace

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import EndedProcess, Local, Snapshot
from tests.unit.scenes import Stacks, process, snapshot

PARENT, CHILD = 100, 200
WAITS = "Popen._try_wait@subprocess.py:2004 Popen.wait@subprocess.py:1264 main@train.py:9"
JOIN = "Thread._wait_for_tstate_lock@threading.py:1119 Thread.join@threading.py:1099"
EXIT = f"{JOIN} _python_exit@concurrent/futures/thread.py:31 _shutdown@threading.py:1570"
WRITES = "Condition.wait@threading.py:331 Queue.get@queue.py:171 write@export.py:20 _WorkItem.run@concurrent/futures/thread.py:58"
UPLOADS = "Popen.communicate@subprocess.py:1209 upload@train.py:22 Thread.run@threading.py:982"


def at_exit(thread: str) -> Snapshot:
    stacks = Stacks()
    parent = process(stacks, PARENT, "python train.py", WAITS, kind="named", syscall=61, arg0=CHILD)
    child = process(stacks, CHILD, "python export.py", EXIT, kind="child", ppid=PARENT, wchan="futex_do_wait", extra_threads=[("pool-0", thread)])
    return snapshot(stacks.node([parent, child]))


def test_the_exit_joins_a_thread_that_waits_for_ever() -> None:
    report = diagnose(at_exit(f"{WRITES} Thread.run@threading.py:982"))
    assert report.verdict.state is State.HANG
    (finding,) = (f for f in report.findings if f.root)
    assert (finding.cause, finding.certainty, [w.pid for w in finding.who]) == (Cause.LOCK_DEADLOCK, Certainty.LIKELY, [CHILD])
    assert "pool-0 waits at a queue in write" in finding.summary


def uploading(*, ended: bool) -> Report:
    stacks = Stacks()
    joined = (Local(frame=0, name="self", value="<Thread at 1>"),)
    one = process(stacks, PARENT, "python train.py", f"{JOIN} main@train.py:48", kind="named", locals_=joined, extra_threads=[("Thread-1", UPLOADS)])
    node = stacks.node([replace(one, threads=one.threads[:1])])  # the kernel was asked when the other thread had ended
    gone = (EndedProcess(pid=CHILD, ppid=PARENT, title="python pack.py", kind="child", start_time_s=190.0),)
    return diagnose(snapshot(replace(node, ended=gone if ended else ())))


def test_the_child_and_the_thread_that_waited_for_it_have_ended() -> None:
    assert uploading(ended=True).verdict.state is State.SLOW


def test_a_thread_whose_side_of_the_kernel_is_missing_may_do_anything() -> None:
    assert uploading(ended=False).verdict.state is State.UNKNOWN
