"""gdb's stacks of a process: who may have the GIL while another thread wants it; a lock of filelock's old module; an absent rank in a clause."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty, Finding

WANTS = """\
Thread 7 (Thread 0x7f8b992d6700 (LWP 868) ""):
#0  0x00007f8ce83adde2 in pthread_cond_timedwait@@GLIBC_2.3.2 () from /lib64/libpthread.so.0
#1  0x00000000004eae32 in PyCOND_TIMEDWAIT (us=<optimized out>) at Python/condvar.h:73
#2  take_gil (tstate=0x7f8b992d54e0) at Python/ceval_gil.h:250
#3  0x00000000005134bc in PyEval_RestoreThread (tstate=<optimized out>) at Python/ceval.c:467
#4  0x00000000005134cc in ring_feed (r=<optimized out>) at src/ring.cc:41
"""
HAS = """\
Thread 1 (Thread 0x7f8ce8a36740 (LWP 540) "python"):
#0  0x00007f8ce83b07ca in do_futex_wait.constprop.0 () from /lib64/libpthread.so.0
#1  0x00000000005134dc in ring_take (r=<optimized out>) at src/ring.cc:88
#2  0x00000000005f2dd1 in {call} () at Objects/call.c:290
#3  0x00000000005f3001 in _PyEval_EvalFrameDefault () at Python/ceval.c:1094
"""
FILE_LOCK = """\
^CTraceback (most recent call last):
  File "load.py", line 4, in <module>
    builder.prepare()
  File "/opt/env/lib/python3.7/site-packages/data/builder.py", line 401, in prepare
    with FileLock(lock_path):
  File "/opt/env/lib/python3.7/site-packages/filelock.py", line 323, in __enter__
    self.acquire()
  File "/opt/env/lib/python3.7/site-packages/filelock.py", line 278, in acquire
    time.sleep(poll_intervall)
KeyboardInterrupt
"""
ABSENT = "Rank 3 is the one that is not submitting the tensor for `allreduce`, while the others are waiting in `allreduce`.\n"


def first(folder: Path, text: str) -> Finding | None:
    """The first root finding on a pasted text."""
    (folder / "post.md").write_text(text)
    return next((f for f in diagnose(load([folder / "post.md"]).snapshot).findings if f.root), None)


def test_who_waits_in_c_without_giving_the_gil_back(tmp_path: Path) -> None:
    found = first(tmp_path, WANTS + "\n" + HAS.format(call="_PyObject_Call"))
    assert found is not None
    assert (found.cause, found.certainty) == (Cause.GIL_HELD, Certainty.POSSIBLE)


def test_who_waits_for_a_lock_of_python_has_given_it_back(tmp_path: Path) -> None:
    found = first(tmp_path, WANTS + "\n" + HAS.format(call="lock_PyThread_acquire_lock"))
    assert found is None or found.cause is not Cause.GIL_HELD


def test_the_old_module_of_filelock_waits_for_a_file(tmp_path: Path) -> None:
    found = first(tmp_path, FILE_LOCK)
    assert found is not None
    assert found.cause is Cause.BLOCKED_IO


def test_the_one_that_is_not_calling_is_absent(tmp_path: Path) -> None:
    found = first(tmp_path, ABSENT)
    assert found is not None
    assert (found.cause, [w.rank for w in found.who]) == (Cause.STRAGGLER, [3])
