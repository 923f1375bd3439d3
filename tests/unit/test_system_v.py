"""Message queues and semaphores of System V have numbers and no descriptors; the kernel tells who used one last."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

from msgspec.structs import replace

from ray_rl_debug.collect.system_v import read_system_v
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import Process, SystemV, Thread
from tests.unit.scenes import Stacks, process, snapshot

LIBC = ctypes.CDLL(None)
PRIVATE, CREATE, REMOVE, SET_VALUE = 0, 0o1600, 0, 16
ASKS, ANSWERS = "receive@/job/train.py:9 <module>@/job/train.py:30", "receive@/job/judge.py:9 <module>@/job/judge.py:20"


def waiting(pid: int, call: str, number: int) -> Process:
    stacks = Stacks()
    return replace(process(stacks, pid, "python job.py", ASKS), threads=(Thread(tid=pid, comm="python", state="S", call=call, syscall_arg0=number),))


def test_who_changed_a_semaphore_last_is_read() -> None:
    semaphore = LIBC.semget(PRIVATE, 1, CREATE)
    try:
        LIBC.semctl(semaphore, 0, SET_VALUE, 0)
        LIBC.semop(semaphore, struct.pack("HhH", 0, 1, 0), ctypes.c_size_t(1))
        found = read_system_v([waiting(os.getpid(), "semtimedop", semaphore)])
    finally:
        LIBC.semctl(semaphore, 0, REMOVE)
    assert found == (SystemV(kind="semaphore", number=semaphore, is_private=True, users=(os.getpid(),)),)


def test_who_sent_last_is_read() -> None:
    queue = LIBC.msgget(PRIVATE, CREATE)
    try:
        LIBC.msgsnd(queue, struct.pack("<qq", 1, 7), ctypes.c_size_t(8), 0)
        found = read_system_v([waiting(os.getpid(), "msgrcv", queue)])
    finally:
        LIBC.msgctl(queue, REMOVE, None)
    assert found == (SystemV(kind="message", number=queue, is_private=True, users=(os.getpid(),)),)


def test_a_number_of_another_namespace_is_another(tmp_path: Path) -> None:
    (tmp_path / "sysvipc").mkdir()
    for pid, namespace in (("self", "ipc:[1]"), ("41", "ipc:[1]"), ("42", "ipc:[2]")):
        (tmp_path / pid / "ns").mkdir(parents=True)
        (tmp_path / pid / "ns" / "ipc").symlink_to(namespace)
    (tmp_path / "sysvipc" / "msg").write_text("key msqid perms cbytes qnum lspid lrpid\n 0 3 600 0 0 41 43\n")
    assert [(v.users, v.ended) for v in read_system_v([waiting(41, "msgrcv", 3)], proc=tmp_path)] == [((41, 43), (43,))]
    assert read_system_v([waiting(42, "msgrcv", 3)], proc=tmp_path) == ()
    assert read_system_v([waiting(41, "msgrcv", 4)], proc=tmp_path) == ()


def judged(told: tuple[SystemV, ...], judge: Thread, stack: str = ANSWERS) -> Report:
    """A trainer waits for a message; a rollout waits for the trainer to end."""
    stacks = Stacks()
    trainer = Thread(tid=100, comm="python", state="S", cpu_s=0.0, wchan="do_msgrcv", call="msgrcv", syscall_arg0=3)
    one = replace(process(stacks, 100, "python train.py", ASKS, kind="named"), threads=(trainer,), files=())
    other = replace(process(stacks, 200, "python judge.py", stack, kind="child", ppid=100), threads=(judge,), files=())
    return diagnose(snapshot(stacks.node([one, other], system_v=told)))


AT_QUEUE = Thread(tid=200, comm="python", state="S", cpu_s=0.0, wchan="do_msgrcv", call="msgrcv", syscall_arg0=3)
ASLEEP = Thread(tid=200, comm="python", state="S", cpu_s=0.0, wchan="hrtimer_nanosleep", call="clock_nanosleep", wakes_in_s=20.0)
OWN = SystemV(kind="message", number=3, is_private=True, users=(100,))


def test_two_that_wait_at_one_queue_are_a_ring() -> None:
    report = judged((OWN,), AT_QUEUE)
    assert report.verdict.state is State.HANG
    assert {w.pid for w in report.findings[0].who} == {100, 200}
    assert report.findings[0].certainty is Certainty.LIKELY
    assert judged((replace(OWN, users=(7,), ended=(7,)),), AT_QUEUE).verdict.state is State.HANG


def test_nobody_is_accused_where_anybody_may_know_the_key_or_nothing_was_told() -> None:
    """Nor where somebody who lives and was not seen has used it."""
    for told in ((replace(OWN, is_private=False),), (replace(OWN, users=(100, 7)),), ()):
        assert all(f.certainty is Certainty.POSSIBLE for f in judged(told, AT_QUEUE).findings)


def test_one_that_may_answer_when_it_wakes_is_slow() -> None:
    report = judged((OWN,), ASLEEP, "think@/job/judge.py:5 <module>@/job/judge.py:20")
    assert report.verdict.state is not State.HANG
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
