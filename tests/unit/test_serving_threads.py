"""Threads that may answer others while the main thread of their process waits elsewhere: who waits for an answer waits for them."""

from __future__ import annotations

from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.main_activity import see_threads
from ray_rl_debug.analyze.whole_looks import drop_torn
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Report, State
from ray_rl_debug.model.snapshot import OpenFile, Socket, Thread

RECV = 45
START = "run@threading.py:982 _bootstrap_inner@threading.py:1045 _bootstrap@threading.py:1002"


def told(at: str | None, kernel: Thread | None = None, *, apart: bool = False, lost: bool = False, missed: bool = False) -> Report:
    """A trainer reads the answer of its game, and the game that of the trainer, over two connections; `at` is a thread of the trainer.

    The kernel may not tell of it (`lost`), or the first look not have met it (`missed`).
    """
    stacks = Stacks()
    asks = [Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:40001", remote="127.0.0.1:9001", fd=5, inode=51)]
    asks += [Socket(family="tcp", state="LISTEN", local="127.0.0.1:9002", fd=6, inode=52)]
    asks += [Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:9002", remote="127.0.0.1:40002", fd=7, inode=53)]
    game = [Socket(family="tcp", state="LISTEN", local="127.0.0.1:9001", fd=6, inode=62)]
    game += [Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:9001", remote="127.0.0.1:40001", fd=7, inode=63)]
    game += [Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:40002", remote="127.0.0.1:9002", fd=5, inode=61)]
    reads = {"wchan": "wait_woken", "syscall": RECV, "arg0": 5, "kind": "child", "ppid": 10}
    main = process(stacks, 10, "python m.py", "main@/job/m.py:71", kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=20)
    extra = [("opponents", f"{at} {START}")] if at else []
    trainer = process(stacks, 20, "python t.py", "recv@/job/t.py:41", sockets=asks, extra_threads=extra, **reads)  # type: ignore[arg-type]
    if kernel is not None:
        trainer = replace(
            trainer, threads=(trainer.threads[0], replace(kernel, tid=1020)), files=(OpenFile(fd=9, kind="fifo", path="/job/f", inode=9),)
        )
    if lost:
        trainer = replace(trainer, threads=trainer.threads[:1])
    if missed:
        first, *later = trainer.samples
        trainer = replace(trainer, samples=(replace(first, threads=first.threads[:1]), *later))
    player = process(stacks, 30, "python g.py", "move@/job/g.py:12", sockets=game, **reads)  # type: ignore[arg-type]
    node = stacks.node([main, trainer, player])
    frames = tuple(replace(f, calls=("sleep",), apart=apart) if f.function == "load" else f for f in node.frames)
    return diagnose(snapshot(replace(node, frames=frames)))


ASLEEP = Thread(tid=0, comm="python", state="S", cpu_s=0.0, wchan="hrtimer_nanosleep", call="clock_nanosleep", run_slices=6, wakes_in_s=20.0)
READS = Thread(tid=0, comm="python", state="S", cpu_s=0.0, wchan="wait_for_partner", call="openat", run_slices=6)


def test_a_ring_of_two_main_threads() -> None:
    report = told(None)
    assert report.verdict.state is State.HANG
    assert {w.pid for f in report.findings for w in f.who} == {20, 30}


def test_a_thread_that_stands_at_a_file_keeps_the_answer() -> None:
    report = told("load@/job/t.py:17 answer@/job/t.py:25", READS)
    first = report.findings[0]
    assert (report.verdict.state, first.cause, [w.pid for w in first.who]) == (State.HANG, Cause.BLOCKED_IO, [20])
    assert first.who[0].thread == "opponents"


def test_a_thread_that_pauses_may_yet_answer() -> None:
    assert told("load@/job/t.py:17 answer@/job/t.py:25", ASLEEP).verdict.state is not State.HANG


def test_a_thread_between_two_beats_answers_nobody() -> None:
    assert told("load@/job/t.py:17", replace(ASLEEP, run_slices=30, wakes_in_s=0.2)).verdict.state is State.HANG
    assert told("load@/job/t.py:17", ASLEEP, apart=True).verdict.state is State.HANG


def test_a_pause_without_its_side_in_the_kernel_accuses_nobody() -> None:
    assert told("sleep@<built-in>:0 load@/job/t.py:17 answer@/job/t.py:25", lost=True).verdict.state is not State.HANG


def test_a_pause_of_which_nobody_tells_the_end_keeps_the_process_one() -> None:
    found = told("load@/job/t.py:17 answer@/job/t.py:25", replace(ASLEEP, call=None, wakes_in_s=None))
    assert not any("opponents" in (w.thread or "") for f in found.findings for w in f.who)


def test_a_thread_that_one_look_missed_has_not_begun() -> None:
    """The kernel counted its time over the whole window, so it was there."""
    kernel = replace(READS, tid=0)
    for counted, state in ((kernel, State.HANG), (replace(kernel, cpu_s=None), State.HEALTHY)):
        assert told("open@/job/t.py:17 answer@/job/t.py:25", counted, missed=True).verdict.state is state


def test_who_waits_for_a_result_of_its_pool_is_within_a_request() -> None:
    waits = "wait@threading.py:629 ApplyResult.wait@multiprocessing/pool.py:765 ApplyResult.get@multiprocessing/pool.py:768 load@/job/t.py:17"
    found = told(waits, Thread(tid=0, comm="python", state="S", cpu_s=0.0, wchan="futex_do_wait", call="futex", run_slices=6))
    assert any("its thread opponents may answer" in link.evidence for link in found.links)


def test_a_manager_that_runs_own_code_does_not_rest() -> None:
    stacks = Stacks()
    serves = "serve_client@multiprocessing/managers.py:257 run@threading.py:982"
    texts = {"rests": f"recv@multiprocessing/connection.py:250 {serves}", "works": f"open@pathlib.py:1044 give@/job/t.py:9 {serves}"}
    one = process(stacks, 20, "python t.py", "main@/job/t.py:41", kind="named", extra_threads=list(texts.items()))
    kinds = {t.name: t.place.kind for t in see_threads(stacks.node([one]), one, one.samples[-1])}
    assert kinds["rests"] is Kind.IDLE
    assert kinds["works"] is not Kind.IDLE


def test_a_thread_of_c_that_left_python_has_ended_its_call() -> None:
    """It has no name of Python's and lives on in its pool: the look without it is not torn."""
    stacks = Stacks()
    runs = "opinion@/job/t.py:17 _run_function@torch/distributed/rpc/internal.py:209"
    one = process(stacks, 20, "python t.py", "main@/job/t.py:41", extra_threads=[("", runs)])
    bare = [replace(s, threads=tuple(replace(t, name=t.name or None) for t in s.threads)) for s in one.samples]
    left = replace(one, samples=(*bare[:2], replace(bare[2], threads=bare[2].threads[:1])))
    assert len(drop_torn(left).samples) == 3
    named = [replace(s, threads=tuple(replace(t, name=t.name or "score") for t in s.threads)) for s in bare]
    assert len(drop_torn(replace(one, samples=(*named[:2], replace(named[2], threads=named[2].threads[:1])))).samples) == 2
