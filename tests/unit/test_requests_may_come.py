"""A program that waits for what others tell it over HTTP, and a reader that pauses between two pieces."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import OpenFile, Process, Socket

WAIT = "Condition.wait@threading.py:327 Condition.wait_for@threading.py:362 main@app/control.py:89 <module>@app/control.py:95"
SERVE = "_PollLikeSelector.select@selectors.py:415 BaseServer.serve_forever@socketserver.py:233 Thread.run@threading.py:982"
GET = "Condition.wait@threading.py:327 Queue.get@queue.py:171 worker@app/control.py:55 <module>@app/control.py:95"
WORK = "worker@app/control.py:58 <module>@app/control.py:95"
FUTEX, SLEEP, WRITE = 202, 230, 1


def asleep(one: Process) -> Process:
    return replace(one, threads=tuple(replace(t, wakes_in_s=20.0, run_slices=6) if t.tid == one.pid else t for t in one.threads))


@pytest.mark.parametrize(("works", "serves", "state"), [(True, True, State.SLOW), (False, True, State.HANG), (True, False, State.HANG)])
def test_whoever_goes_on_may_tell_a_server_what_it_waits_for(works: bool, serves: bool, state: State) -> None:
    stacks = Stacks()
    port = Socket(family="tcp", state="LISTEN", local="127.0.0.1:5000", fd=3)
    beside = [("words", SERVE if serves else "Event.wait@threading.py:629 Thread.run@threading.py:982")]
    main = process(stacks, 100, "python control.py", WAIT, kind="named", syscall=FUTEX, wchan="futex_do_wait", extra_threads=beside, sockets=[port])
    first = process(stacks, 101, "python control.py", WORK if works else GET, kind="child", ppid=100, syscall=SLEEP if works else FUTEX)
    second = process(stacks, 102, "python control.py", GET, kind="child", ppid=100, syscall=FUTEX, wchan="futex_do_wait")
    report = diagnose(snapshot(stacks.node([main, asleep(first) if works else first, second])))
    assert report.verdict.state is state
    if state is not State.HANG:
        assert all(f.certainty == "possible" for f in report.findings)


@pytest.mark.parametrize(("looks", "state"), [(("read",), State.SLOW), (("exists",), State.HANG)])
def test_a_reader_that_pauses_takes_the_next_piece(looks: tuple[str, ...], state: State) -> None:
    stacks = Stacks()
    reads = [OpenFile(fd=0, path="pipe:[77]", kind="pipe", inode=77, writable=False)]
    writes = [OpenFile(fd=4, path="pipe:[77]", kind="pipe", inode=77, writable=True)]
    main = process(stacks, 100, "python run.py", "main@app/run.py:5", kind="named", syscall=WRITE, arg0=4, wchan="anon_pipe_write")
    reader = process(stacks, 101, "python words.py", "words@app/words.py:9", kind="child", ppid=100, syscall=SLEEP, wchan="hrtimer_nanosleep")
    node = stacks.node([replace(main, files=tuple(writes)), replace(asleep(reader), files=tuple(reads), read_bytes=0)])
    frames = tuple(replace(f, looks=looks, calls=("sleep",)) if f.function == "words" else f for f in node.frames)
    report = diagnose(snapshot(replace(node, frames=frames)))
    assert report.verdict.state is state
