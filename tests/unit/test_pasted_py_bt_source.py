"""gdb's ``py-bt``: the line of source below a frame is no frame; a blank may stand behind the hash; a wait in ``__del__``."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty

PY_BT = """\
(gdb) py-bt
#4 Waiting for a lock (e.g. GIL)
#7 Frame 0x259c430, for file /usr/lib64/python2.7/threading.py, line 339, in wait (self=<_Condition() at remote 0x7f1be84ccb50>, timeout=None)
    waiter.acquire()
#11 Frame 0x7f1bea0487f0, for file /usr/lib64/python2.7/threading.py, line 951, in join (self=<Thread() at remote 0x7f1be84cc110>, timeout=None)
    self.__block.wait()
#15 Frame 0x7f1bea049d00, for file /app/client.py, line 79, in __del__ (self=<Client() at remote 0x7f1be84cc9d0>)
    self.pool.join()
#19 Frame 0x259d2e0, for file /app/run.py, line 88, in step ()
"""
QUOTED = """\
> # 0  0x000000392be0b3dc in pthread_cond_wait@@GLIBC_2.3.2 () from /lib64/libpthread.so.0
> # 1  0x00000000005f223f in queue_wait (q=0x844f00) at /src/util/queue.c:143
> # 2  0x00000000004fa15c in flush_locked (file=0x7f94dd1ca960) at /src/mount/main.c:1483
"""


def functions(text: str) -> list[str]:
    """The functions of all frames of a text."""
    return [f[0] for d in read(text) for t in d.threads for f in t.frames]


def test_source_below_a_frame_of_py_bt_is_no_frame() -> None:
    assert functions(PY_BT) == ["PyThread_acquire_lock", "wait", "join", "__del__", "step"]


def test_a_blank_behind_the_hash() -> None:
    assert functions(QUOTED) == ["pthread_cond_wait@@GLIBC_2.3.2", "queue_wait", "flush_locked"]


def test_a_join_in_a_destructor_is_a_hypothesis(tmp_path: Path) -> None:
    (tmp_path / "post.md").write_text(PY_BT)
    first = next(f for f in diagnose(load([tmp_path / "post.md"]).snapshot).findings if f.root)
    assert (first.cause, first.certainty) == (Cause.CLEANUP_DEADLOCK, Certainty.POSSIBLE)


TIMER = """\
Timeout (0:00:10)!
Thread 0x00007f4ed2ffd700 (most recent call first):

Thread 0x00007f50a1f3d740 (most recent call first):
  File "/opt/pipe/worker.py", line 88 in join_workers
  File "/opt/pipe/pipe.py", line 301 in __del__
  File "repro.py", line 27 in <module>
"""


def test_a_timers_dump_is_a_look_and_no_end(tmp_path: Path) -> None:
    (tmp_path / "post.md").write_text(TIMER)
    assert [f.cause for f in diagnose(load([tmp_path / "post.md"]).snapshot).findings if f.root] == [Cause.CLEANUP_DEADLOCK]
