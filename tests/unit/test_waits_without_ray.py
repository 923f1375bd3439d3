"""Waits of plain processes: pauses that the clock ends, pools, brokers, ports that several listen at, locks of the interpreter."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import EndedProcess, OpenFile, Process, Socket, Thread
from tests.unit.scenes import Stacks, process, snapshot

READ, WRITE, RECV, SLEEP, ACCEPT, OPEN, FUTEX = 0, 1, 45, 230, 43, 257, 202
PIPE = OpenFile(fd=7, path="pipe:[77]", kind="pipe", inode=77, writable=False)
START = "run@threading.py:982 _bootstrap_inner@threading.py:1045 _bootstrap@threading.py:1002"


def with_kernel(one: Process, place: int = 0, **facts: object) -> Process:
    """A process with more facts of the kernel about one of its threads."""
    threads = list(one.threads)
    threads[place] = msgspec.structs.replace(threads[place], **facts)
    return msgspec.structs.replace(one, threads=tuple(threads))


def with_files(one: Process, *files: OpenFile) -> Process:
    return msgspec.structs.replace(one, files=files)


def named(report: Report) -> list[int | None]:
    return [w.pid for w in report.findings[0].who] if report.findings else []


@pytest.mark.parametrize(("wakes_in_s", "slices", "is_hang"), [(3.0, 6, False), (0.5, 9, False), (None, 6, False), (4000.0, 6, True)])
def test_a_full_pipe_whose_reader_is_in_one_pause(wakes_in_s: float | None, slices: int, is_hang: bool) -> None:
    """It may read when its clock wakes it, whatever it did before."""
    stacks = Stacks()
    main = process(stacks, 10, "python train.py", "start@/job/train.py:3", kind="named", ppid=1, wchan="anon_pipe_write", syscall=WRITE, arg0=7)
    child = process(stacks, 20, "python build.py", "build@/job/build.py:9", kind="child", wchan="hrtimer_nanosleep", syscall=SLEEP)
    child = msgspec.structs.replace(with_kernel(child, wakes_in_s=wakes_in_s, run_slices=slices), read_bytes=0)
    ends = with_files(main, msgspec.structs.replace(PIPE, writable=True)), with_files(child, PIPE)
    assert (diagnose(snapshot(stacks.node(ends))).verdict.state is State.HANG) is is_hang


def test_a_restarted_call_has_a_time_limit() -> None:
    assert kernel_call(Thread(tid=1, comm="c", state="S", wchan="do_syscall_64", call="restart_syscall")) == "sleep"
    assert kernel_call(Thread(tid=1, comm="c", state="S", wchan="futex_do_wait", call="restart_syscall")) == "futex"
    assert kernel_call(Thread(tid=1, comm="c", state="S", call="restart_syscall", waits_on_fds=(3,))) is None


def test_whoever_keeps_the_interpreter_waits_for_no_thread_of_python() -> None:
    stacks = Stacks()
    other = ("Thread-1 (tables)", f"work@/job/kit.py:69 tables@/job/sampler.py:25 {START}")
    main = process(stacks, 10, "python train.py", "main@/job/train.py:3", kind="named", ppid=1, wchan="anon_pipe_read", syscall=READ, arg0=7)
    one = process(
        stacks, 20, "python sampler.py", "sample@/job/sampler.py:35", kind="child",
        wchan="futex_do_wait", syscall=FUTEX, owns_gil=True, extra_threads=[other],
    )  # fmt: skip
    ends = with_files(main, PIPE), with_files(one, msgspec.structs.replace(PIPE, writable=True))
    report = diagnose(snapshot(stacks.node(ends)))
    assert report.verdict.state is State.HANG and named(report) == [20]


@pytest.mark.parametrize("queued", [(1, 0), (0, 1)])
def test_of_two_listeners_the_one_with_a_connection_in_its_queue_is_waited_for(queued: tuple[int, int]) -> None:
    stacks = Stacks()
    end = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:4711", remote="127.0.0.1:80", inode=1, fd=3, quiet_s=9.0)
    main = process(stacks, 10, "python train.py", "main@/job/t.py:3", kind="named", ppid=1, wchan="wait_woken", syscall=RECV, arg0=3, sockets=[end])
    servers = []
    for pid, waiting in zip((20, 30), queued, strict=True):
        port = Socket(family="tcp", state="LISTEN", local="127.0.0.1:80", inode=pid, fd=3, rx_queue_bytes=waiting)
        is_busy = {"wchan": "wait_for_partner", "syscall": OPEN} if waiting else {"wchan": "inet_csk_accept", "syscall": ACCEPT, "arg0": 3}
        servers.append(process(stacks, pid, "python r.py", f"serve@/job/r.py:{pid}", kind="child", sockets=[port], **is_busy))  # type: ignore[arg-type]
    report = diagnose(snapshot(stacks.node([main, *servers])))
    assert report.verdict.state is State.HANG and named(report) == [20 if queued[0] else 30]


def test_both_ends_of_a_unix_connection_read() -> None:
    """Somebody else has read the answer, as a fork does that shares the connection: the server is not the one to blame alone."""
    stacks = Stacks()
    there = Socket(family="unix", state="ESTABLISHED", local="", remote="/run/scores", inode=1, peer_inode=2, fd=3)
    here = Socket(family="unix", state="ESTABLISHED", local="/run/scores", remote="", inode=2, peer_inode=1, fd=4)
    port = Socket(family="unix", state="LISTEN", local="/run/scores", inode=5, fd=3)
    at = {"wchan": "unix_stream_read_generic", "syscall": RECV}
    main = process(stacks, 10, "python train.py", "ask@/job/t.py:3", kind="named", ppid=1, arg0=3, sockets=[there], **at)  # type: ignore[arg-type]
    server = process(stacks, 20, "python s.py", "handle@/job/s.py:3", kind="child", arg0=4, sockets=[here, port], **at)  # type: ignore[arg-type]
    report = diagnose(snapshot(stacks.node([main, server])))
    assert report.verdict.state is State.HANG and 10 in named(report)


POOL = "wait@threading.py:327 wait@threading.py:629 wait@multiprocessing/pool.py:765 get@multiprocessing/pool.py:768 main@/job/train.py:9"
WORKERS = ("Thread-1 (_handle_workers)", f"wait@multiprocessing/connection.py:947 _handle_workers@multiprocessing/pool.py:522 {START}")
TASKS = ("Thread-2 (_handle_tasks)", f"_handle_tasks@multiprocessing/pool.py:531 {START}")
TAKES = "_recv@multiprocessing/connection.py:395 recv@multiprocessing/connection.py:250 _handle_results@multiprocessing/pool.py:579"
RESULTS = ("Thread-3 (_handle_results)", f"{TAKES} {START}")
IDLE = "recv_bytes@multiprocessing/connection.py:216 get@multiprocessing/queues.py:365 worker@multiprocessing/pool.py:114"


@pytest.mark.parametrize("is_dead", [False, True])
def test_a_pool_without_the_thread_that_takes_results(is_dead: bool) -> None:
    stacks = Stacks()
    threads = [WORKERS, TASKS] if is_dead else [WORKERS, TASKS, RESULTS]
    main = process(stacks, 10, "python train.py", POOL, kind="named", ppid=1, wchan="futex_do_wait", syscall=FUTEX, extra_threads=threads)
    worker = process(stacks, 20, "python train.py", IDLE, kind="child", wchan="anon_pipe_read", syscall=READ, arg0=5)
    report = diagnose(snapshot(stacks.node([main, worker])))
    assert named(report) == [10]
    assert report.findings[0].certainty is (Certainty.LIKELY if is_dead else Certainty.POSSIBLE)


@pytest.mark.parametrize(("ended", "slices", "state"), [(4, 6, State.HANG), (4, 20, State.SLOW), (1, 6, State.SLOW)])
def test_workers_of_a_pool_end_in_vain(ended: int, slices: int, state: State) -> None:
    """A pool may replace each worker after its task; then results come, and who takes them wakes up."""
    stacks = Stacks()
    main = process(
        stacks, 10, "python train.py", POOL, kind="named", ppid=1, wchan="futex_do_wait", syscall=FUTEX, extra_threads=[WORKERS, TASKS, RESULTS]
    )
    main = with_kernel(main, 3, wchan="anon_pipe_read", syscall=READ, syscall_arg0=7, run_slices=slices)
    logger = process(stacks, 30, "python log.py", "log@/job/log.py:2", kind="child", wchan="anon_pipe_read", syscall=READ, arg0=0)
    given = OpenFile(fd=0, path="pipe:[88]", kind="pipe", inode=88, writable=False)
    main = with_files(main, PIPE, msgspec.structs.replace(given, fd=9, writable=True))
    gone = tuple(EndedProcess(pid=100 + i, ppid=10, title="python", kind="child") for i in range(ended))
    report = diagnose(snapshot(stacks.node([main, with_files(logger, given)], ended=gone)))
    assert report.verdict.state is state
    assert 30 not in named(report)


@pytest.mark.parametrize("works", [True, False])
def test_a_broker_waits_for_what_its_clients_send(works: bool) -> None:
    """A thread of it waits inside for another client's message: a client that works on may send it."""
    stacks = Stacks()
    port = Socket(family="tcp", state="LISTEN", local="127.0.0.1:80", inode=1, fd=3)
    ends, clients = [port], []
    for pid, fd in ((10, 4), (30, 5)):
        mine = Socket(family="tcp", state="ESTABLISHED", local=f"127.0.0.1:{pid}", remote="127.0.0.1:80", inode=pid, fd=3, quiet_s=9.0)
        ends.append(msgspec.structs.replace(mine, local=mine.remote, remote=mine.local, inode=pid + 1, fd=fd))
        asks = not works or pid == 10
        call = {"wchan": "wait_woken", "syscall": RECV, "arg0": 3} if asks else {"wchan": "hrtimer_nanosleep", "syscall": SLEEP}
        one = process(stacks, pid, "python c.py", f"main@/job/c.py:{pid}", kind="named" if pid == 10 else "child", ppid=1, sockets=[mine], **call)  # type: ignore[arg-type]
        clients.append(one if asks else with_kernel(one, wakes_in_s=4.0, run_slices=6))
    handles = [("Thread-1", f"handle@/job/b.py:25 {START}"), ("Thread-2", f"wait@threading.py:327 handle@/job/b.py:33 {START}")]
    serve = "select@selectors.py:415 serve_forever@socketserver.py:233 serve@/job/b.py:55"
    broker = process(stacks, 20, "python b.py", serve, kind="child", wchan="poll_schedule_timeout", syscall=7, sockets=ends, extra_threads=handles)
    broker = with_kernel(with_kernel(broker, waits_on_fds=(3,)), 1, wchan="wait_woken", syscall=RECV, syscall_arg0=5)
    report = diagnose(snapshot(stacks.node([*clients, broker])))
    assert (report.verdict.state is State.HANG) is not works


@pytest.mark.parametrize(("came", "state"), [(True, State.SLOW), (False, State.UNKNOWN)])
def test_a_wait_to_which_it_came_during_the_window_is_young(came: bool, state: State) -> None:
    stacks = Stacks()
    end = Socket(family="unix", state="ESTABLISHED", local="", remote="/run/env", inode=1, peer_inode=2, fd=3)
    wait = "_try_wait@subprocess.py:2004 wait@subprocess.py:1264 main@/job/train.py:70"
    texts = [wait, wait, "main@/job/train.py:67"] if came else ["main@/job/train.py:67"]
    main = process(stacks, 10, "python train.py", *texts, kind="named", ppid=1, wchan="unix_stream_read_generic", syscall=RECV, arg0=3, sockets=[end])
    assert diagnose(snapshot(stacks.node([main]))).verdict.state is state


@pytest.mark.parametrize("thread_count", [1, 2])
def test_a_thread_that_has_ended_since_the_last_look_is_done(thread_count: int) -> None:
    """All threads of its process were read, and it is not among them."""
    stacks = Stacks()
    handler = ("Thread-5 (handle)", f"handle@/job/engine.py:38 {START}")
    serve = "select@selectors.py:415 serve_forever@socketserver.py:233 serve@/job/engine.py:55"
    engine = process(stacks, 20, "python engine.py", serve, kind="child", wchan="poll_schedule_timeout", syscall=7, extra_threads=[handler])
    engine = msgspec.structs.replace(engine, threads=engine.threads[:1], thread_count=thread_count)
    main = process(stacks, 10, "python train.py", "main@/job/train.py:3", kind="named", ppid=1, wchan="anon_pipe_read", syscall=READ, arg0=7)
    ends = with_files(main, PIPE), with_files(engine, msgspec.structs.replace(PIPE, writable=True))
    assert diagnose(snapshot(stacks.node(ends))).verdict.state is (State.SLOW if thread_count == 1 else State.UNKNOWN)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_child_that_alone_could_write_what_it_reads(is_known: bool) -> None:
    """It has inherited both ends of a queue, and its parent has closed its own: nobody feeds it."""
    stacks = Stacks()
    join = "poll@multiprocessing/popen_fork.py:27 wait@multiprocessing/popen_fork.py:43 join@multiprocessing/process.py:149 main@/job/train.py:41"
    main = process(stacks, 10, "python train.py", join, kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=20)
    takes = "_recv@multiprocessing/connection.py:395 recv_bytes@multiprocessing/connection.py:216 get@multiprocessing/queues.py:103"
    start = "run@multiprocessing/process.py:108 _bootstrap@multiprocessing/process.py:314 _launch@multiprocessing/popen_fork.py:71"
    film = process(
        stacks, 20, "python train.py", f"{takes} film@/job/train.py:19 {start}", kind="child", wchan="anon_pipe_read", syscall=READ, arg0=7
    )
    film = with_files(film, PIPE, msgspec.structs.replace(PIPE, fd=8, writable=True))
    report = diagnose(snapshot(stacks.node([with_files(main) if is_known else main, film])))
    assert (report.verdict.state is State.HANG) is is_known
