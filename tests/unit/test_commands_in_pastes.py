"""What the commands around a paste tell: which process, how long after the last look, and whom a remark behind them means."""

from __future__ import annotations

import pytest

from ray_rl_debug.analyze.native_frames import native_ray_call
from ray_rl_debug.formats.pasted import commands, labels
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.model.snapshot import Frame

STACK = "    f (a.py:3)\n    main (a.py:9)\n"


@pytest.mark.parametrize(
    ("command", "pid"),
    [
        ("py-spy record -d 60 -r 20 -f raw -o r0.txt -p 4141", 4141),
        ("py-spy record --duration 60 4141", 4141),
        ("$ pystack remote 18822 --locals", 18822),
        ("timeout 20 strace -f -p 612", 612),
        ("gdb -p 61530 -batch -ex 'bt 6'", 61530),
        ("gdb python 1234", 1234),
        ("sudo python3.14 -m asyncio pstree 88120", 88120),
    ],
)
def test_the_process_of_a_command(command: str, pid: int) -> None:
    found = labels.read(command)
    assert found is not None
    assert found.pid == pid


def test_a_number_of_an_option_is_no_process() -> None:
    found = labels.read("py-spy record -d 60 -f raw train.py")
    assert found is None or found.pid is None


@pytest.mark.parametrize(
    ("line", "pause_s"),
    [
        ("$ sleep 300; py-spy dump --pid 12", 300.0),
        ("sleep 5m && pystack remote 12", 300.0),
        ("for i in 1 2; do py-spy dump --pid 12; sleep 10; done", 10.0),
        ("$ sleep 300; nvidia-smi", None),
        ("py-spy dump --pid 12; sleep 5", None),
    ],
)
def test_a_pause_before_a_look(line: str, pause_s: float | None) -> None:
    assert commands.pause_s(line) == pause_s


def test_a_look_after_a_pause_is_a_look_at_a_distance() -> None:
    first, second = read(f"$ py-spy dump --pid 812\n{STACK}\n$ sleep 300; py-spy dump --pid 812\n{STACK}")
    assert (first.after_s, second.after_s) == (None, 300.0)


def test_a_comment_behind_a_command_speaks_of_the_stack_to_come() -> None:
    first, second = read(f"$ py-spy dump -p 1460\n{STACK}\n$ py-spy dump -p 1461   # Worker_TP1 looks the same, 1462\n{STACK}")
    assert first.said == []
    assert [(s.kind, s.count) for _, s in second.said] == [("same", 2)]


def test_a_row_of_a_table_that_a_tool_could_not_read() -> None:
    rows = "| rank | node | pid | stack |\n|---|---|---|---|\n| 0 | gb-1 | 70 | `f (a.py:1)` ← `g (b.py:2)` |\n"
    first, second = read(rows + "| 1 | gb-2 | 71 | py-spy: `Error: No such process (os error 3)` |\n")
    assert (first.pid, first.node, first.said) == (70, "gb-1", [])
    assert (second.rank, second.pid, second.node, [s.kind for _, s in second.said]) == (1, 71, "gb-2", ["unread"])


def test_profiles_of_two_processes_stay_two() -> None:
    profile = "<module> (t.py:9);main (t.py:5);f (a.py:1) 40\n"
    assert [d.pid for d in read(f"r0.txt (pid 4141)\n```\n{profile}```\nr1.txt (pid 4142)\n```\n{profile}```\n")] == [4141, 4142]


def test_c_frames_below_those_of_python_are_inside_of_them() -> None:
    text = '$ gdb -p 612 -batch\nTraceback (most recent call first):\n  File "a.py", line 3, in f\n    x()\n'
    (dump,) = read(text + "#0  futex_wait () at futex.h:146\n#1  0x00007ff1 in lock () from /lib/libpthread.so.0\n")
    assert [name for name, _, _ in dump.threads[0].frames] == ["futex_wait", "lock", "f"]


def test_words_that_a_browser_has_translated() -> None:
    (dump,) = read("进程 30877: ray::Actor.step\nPython v3.10.14 (/usr/bin/python3)\n\n线程 30877（idle）：“MainThread”\n" + STACK)
    assert (dump.pid, dump.title, dump.threads[0].name, len(dump.threads[0].frames)) == (30877, "ray::Actor.step", "MainThread", 2)
    (ranked,) = read("进程 3:\n" + STACK)
    assert (ranked.pid, ranked.rank) == (None, 3)


def _aborted(local: int, rank: int | None) -> str:
    told = f"[default{local}]:[Rank {rank}] it waited in vain\n" if rank is not None else ""
    return f"{told}[default{local}]:Current thread 0x00007f41c8cf7740 (most recent call first):\n" + f'[default{local}]:  File "a.py", line 3 in f\n'


def test_a_number_on_the_machine_is_a_rank_where_the_others_tell_both() -> None:
    assert [d.rank for d in read(_aborted(0, 8) + _aborted(1, 9) + _aborted(3, None))] == [8, 9, 11]
    assert [d.rank for d in read(_aborted(0, 8) + _aborted(1, 12) + _aborted(3, None))] == [8, 12, None]
    assert [d.rank for d in read(_aborted(0, 8) + _aborted(3, None))] == [8, None]


def test_names_of_c_functions_with_their_arguments() -> None:
    text = "PID 12 - process\nTID 12:\n#0  0x00007f5aa3d1879f __poll\n"
    (dump,) = read(text + "#1  0x00007f59d0b3e0e1 launch(Job*, Result (*)(Job*), void (*)(void*), Comm*)\n#2  0x000055d6ae1f20b4 main\n")
    assert [name for name, _, _ in dump.threads[0].frames] == ["__poll", "launch(Job*, Result (*)(Job*), void (*)(void*), Comm*)", "main"]


@pytest.mark.parametrize(
    ("functions", "call"),
    [
        (["poll", "ray::core::GetRequest::Wait(long long)", "ray::core::CoreWorker::Get(std::vector<ray::ObjectID> const&, long long)"], "Get"),
        (["poll", "ray::core::CoreWorker::Wait(int)"], "Wait"),
        (["epoll_wait", "ray::core::CoreWorker::RunTaskExecutionLoop()"], "idle"),
        (["f", "ray::core::CoreWorker::ExecuteTask(int)", "ray::core::CoreWorker::RunTaskExecutionLoop()"], None),
    ],
)
def test_what_c_frames_tell_of_ray(functions: list[str], call: str | None) -> None:
    assert native_ray_call([Frame(function=f, file="_raylet.so") for f in functions]) == call


def test_a_process_that_strace_finds_stopped():
    found = read("% strace -p 1103757\nstrace: Process 1103757 attached\n--- stopped by SIGSTOP ---\n^Cstrace: Process 1103757 detached\n")
    assert [(d.pid, d.state) for d in found] == [(1103757, "T")]


def test_threads_of_the_kernel_are_no_processes_of_a_job():
    rows = "2830 D cv_wait_common  [txg_sync]\n22107 D cv_wait_common  python train.py\n22109 Z -  [python] <defunct>\n"
    found = read(f"# ps -eopid,state,wchan:32,cmd | awk '$2 ~ /D/'\n{rows}")
    assert [(d.pid, d.state) for d in found] == [(22107, "D"), (22109, "Z")]
