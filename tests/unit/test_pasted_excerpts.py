"""Excerpts: a stack that was cut above or below, or whose lines a tool broke, is one stack of one process."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.dump import Dump
from ray_rl_debug.formats.pasted.read import read


def shape(found: list[Dump]) -> list[tuple[int | None, list[int]]]:
    """Process id and the sizes of the stacks of each process."""
    return [(d.pid, [len(t.frames) for t in d.threads]) for d in found]


@pytest.mark.parametrize(
    "broken",
    [
        "#2  0x7f11 in ncclGroupEnd () from \n",
        "#2  0x7f11 in c10d::initComm(std::string const&, int, bool)\n    () from /opt/torch/lib/libtorch_cuda.so\n",
        "#2  <signal handler called>\n",
        "#2  0x7f11 in call (f=\n    0x1, throwflag=0) at ../Python/ceval.c:3750\n",
        "#2  0x7f11 in wait (expected=0,\n    futex_word=0x7f) at ../nptl/futex-internal.h:205\n",
        "--Type <RET> for more, q to quit, c to continue without paging--c\n#2  0x7f11 in f () from /lib/libc.so.6\n",
    ],
)
def test_a_numbered_stack_goes_on_behind_a_line_that_was_broken(broken: str):
    text = (
        f"it hangs here:\n\n#0  0x7f10 in poll () from /lib/libc.so.6\n#1  0x7f11 in g () from /lib/libx.so\n{broken}#3  0x7f12 in main () at a.c:3\n"
    )
    assert shape(read(text)) == [(None, [4])]


def test_a_smaller_number_begins_another_stack():
    stack = "#0  0x1 in {0} () from /lib/a.so\n#1  0x2 in {1} () from /lib/a.so\n"
    text = f"{stack.format('f', 'g')}and the other:\n{stack.format('h', 'k')}"
    assert shape(read(text)) == [(None, [2]), (None, [2])]


def test_frames_above_the_first_head_are_another_thread_of_its_process():
    gdb = (
        "```\n#3  0x7f in f () from /lib/a.so\n#4  0x7f in clone () from /lib/libc.so.6\n\n"
        'Thread 4 (Thread 0x7fd0 (LWP 3167) "cuda-Evt"):\n#0  0x7f in poll () from /lib/libc.so.6\n#1  0x7f in g () from /lib/b.so\n```\n'
    )
    assert shape(read(gdb)) == [(None, [2, 2])]
    py_spy = (
        "    wait (threading.py:359)\n    run (tqdm/_monitor.py:60)\n    _bootstrap (threading.py:1030)\n"
        'Thread 905 (idle): "Thread-2"\n    select (selectors.py:415)\n    run (watch.py:12)\n'
    )
    assert shape(read(py_spy)) == [(None, [3, 2])]
    pystack = (
        '    (Python) File "/usr/lib/python3.12/multiprocessing/pool.py", line 114, in worker\n        task = get()\n\n'
        "Traceback for thread 168 (python) [] (most recent call last):\n"
        '    (Python) File "/usr/lib/python3.12/threading.py", line 1032, in _bootstrap\n        self._bootstrap_inner()\n'
    )
    assert shape(read(pystack)) == [(None, [1, 1])]


def test_one_frame_above_the_first_head_is_a_thread_too():
    text = '```\n    <module> (<string>:1)\nThread 765 (idle): "Monitor-1"\n    select (selectors.py:415)\n    run (threading.py:1012)\n```\n'
    assert shape(read(text)) == [(None, [1, 2])]


def test_frames_below_words_are_not_of_the_process_that_follows():
    text = (
        "the trainer is here:\n\n    step (train.py:12)\n    main (train.py:40)\n\n"
        'and the server:\nThread 905 (idle): "MainThread"\n    select (selectors.py:415)\n    run (serve.py:12)\n'
    )
    assert len(read(text)) == 2


def test_a_thread_of_py_spy_without_a_name_has_no_frames_of_the_next():
    text = 'Thread 11 (idle): "MainThread"\n    step (train.py:12)\nThread 12 (idle)\n'
    text += 'Thread 13 (idle): "pool_0"\n    get (queue.py:1)\n    run (threading.py:2)\n'
    (one,) = read(text)
    assert [(t.tid, len(t.frames)) for t in one.threads] == [(11, 1), (13, 2)]


def test_a_frame_whose_line_was_broken_before_its_function():
    text = (
        'File "/usr/lib/python3.5/runpy.py", line 184, in _run_module_as_main\n    "__main__", mod_spec)\n'
        '  File "/srv/launch.py", line 235,\n in <module>\n    main()\n'
        '  File "/srv/launch.py", line 228,\n in main\n    process.wait()\n'
        '  File "/usr/lib/python3.5/subprocess.py", line 1658, in wait\n    (pid, sts) = self._try_wait(0)\n'
        '  File "/usr/lib/python3.5/subprocess.py", line 1608, in _try_wait\n    (pid, sts) = os.waitpid(self.pid, wait_flags)\n'
    )
    (one,) = read(text)
    assert [f[0] for f in one.threads[0].frames] == ["_try_wait", "wait", "main", "<module>", "_run_module_as_main"]


def test_python_frames_that_a_debugger_shows_among_the_arguments():
    text = (
        "#0  sem_wait () at ../nptl/sem_wait.S:86\n"
        "#1  0x4d in PyThread_acquire_lock (lock=0xf2, waitflag=128) at ../Python/thread_pthread.h:349\n"
        "#2  0x4a in call_function (f=\n"
        "    Frame 0xf3c370, for file /usr/lib/python2.6/threading.py, line 123, in acquire (self=<_RLock() at remote 0x7f>,"
        " blocking=1), throwflag=0) at ../Python/ceval.c:3750\n"
    )
    (one,) = read(text)
    assert ("acquire", "/usr/lib/python2.6/threading.py", 123) in one.threads[0].frames


def test_the_thread_that_gdb_switched_to():
    text = (
        "(gdb) thread 13\n[Switching to thread 13 (Thread 0x7f36b64a2700 (LWP 68162))]\n#0  0x7f in poll () at ../syscall-template.S:81\n"
        "81      ../syscall-template.S: No such file or directory.\n(gdb) py-list\n 126                if not self._rlock.acquire(block):\n"
        "(gdb) py-bt\n#3 Frame 0x7f34, for file /av/multiprocessing/queues.py, line 131, in get (self=<Queue() at remote 0x1>)\n"
    )
    (one,) = read(text)
    assert (one.pid, [(t.tid, [f[0] for f in t.frames]) for t in one.threads]) == (None, [(68162, ["poll", "get"])])


def test_frames_of_an_editor_with_their_library():
    text = (
        "libpthread.so.0!futex_wait(int private, const struct timespec * abstime) (/build/glibc/futex-internal.h:205)\n"
        "libpthread.so.0!do_futex_wait(struct new_sem * sem) (/build/glibc/nptl/sem_waitcommon.c:111)\n"
    )
    (one,) = read(text)
    assert [tuple(f) for f in one.threads[0].frames] == [
        ("futex_wait", "/build/glibc/futex-internal.h", 205),
        ("do_futex_wait", "/build/glibc/nptl/sem_waitcommon.c", 111),
    ]


def test_the_log_of_the_kernel_with_the_time_since_the_last_line():
    text = (
        "[  +0.000049] task:python3.11      state:D stack:    0 pid:15277 ppid: 15257 flags:0x00000002\n[  +0.000006] Call Trace:\n"
        "[  +0.000004]  __schedule+0x23d/0x590\n[  +0.000003]  mutex_lock+0x34/0x40\n[  +0.000037]  uvm_ioctl+0x13e0/0x16f0 [nvidia_uvm]\n"
    )
    (one,) = read(text)
    assert (one.pid, one.state, [f[0] for f in one.threads[0].frames]) == (15277, "D", ["mutex_lock", "uvm_ioctl"])


def test_a_place_that_gdb_broke_off_is_no_frame():
    text = (
        "Thread 4 (Thread 0x7f0b (LWP 822)):\n#0  futex_wait (val=4, addr=0x55)\n    at /build/gcc/libgomp/config/linux/x86/futex.h:44\n"
        "#1  0x7f in run (bar=0x55, \n    state=4)\n    at tree.c:112\n#2  0x7f in start_thread () from /lib/libpthread.so.0\n"
    )
    (one,) = read(text)
    assert [f[0] for f in one.threads[0].frames] == ["futex_wait", "run", "start_thread"]


def test_a_clock_before_the_rank_of_a_line():
    text = "".join(
        f"10:41:43.163 [rank2]: {line}\n"
        for line in (
            '  File "/srv/loader.py", line 55, in load',
            "    dataset = read(path)",
            "              ^^^^^^^^^^",
            '  File "/srv/lock.py", line 68, in acquire',
            "    os.fchmod(fd)",
        )
    )
    (one,) = read(text)
    assert (one.rank, [f[0] for f in one.threads[0].frames]) == (2, ["acquire", "load"])


def test_a_plain_c_function_in_a_stack_of_abseil() -> None:
    text = "        @ 0x14b66fee30db absl::Mutex::ReaderLock()\n        @ 0x555dc11aa72e PyObject_Vectorcall\n"
    assert [f[0] for d in read(text) for t in d.threads for f in t.frames] == ["absl::Mutex::ReaderLock()", "PyObject_Vectorcall"]


def test_the_collector_stands_in_the_place_of_a_frame() -> None:
    thread = "Thread {n} (Thread 0x7f98fb39b700 (LWP 2405{n})):\nTraceback (most recent call first):\n"
    frames = 'Garbage-collecting\nFile "/w/log.py", line 3, in acquire\n  self.lock.acquire()\nFile "/w/a.py", line 7, in __del__\n  warn()\n\n'
    (one,) = read(f"```\n{thread.format(n=1)}{frames}{thread.format(n=5)}{frames}```\n")
    assert [[f[0] for f in t.frames] for t in one.threads] == [["acquire", "__del__"]] * 2
