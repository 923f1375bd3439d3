import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ray_rl_debug.bounded.programs import run_bounded
from ray_rl_debug.bounded.supervisor import release
from ray_rl_debug.collect.object_refs import is_object_id
from ray_rl_debug.collect.pyspy import find_pyspy
from ray_rl_debug.collect.stacks import StackSampler, Target
from ray_rl_debug.formats import pystack
from ray_rl_debug.formats.stack_table import StackTable, short_file
from ray_rl_debug.model import gaps
from ray_rl_debug.privacy.kept_locals import keep_value


def options(**changes):
    return SimpleNamespace(**{"samples": 2, "interval_s": 0.1, "native": False, "pystack": False, "timeout_s": 0.5, "pyspy": None, **changes})


def program(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", ("torch/distributed/c10d_logger.py", False)),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", ("yaml/__init__.py", False)),
        ("/usr/local/lib/python3.12/threading.py", ("threading.py", True)),
        ("/opt/lib/python3.13t/asyncio/base_events.py", ("asyncio/base_events.py", True)),
        ("/home/u/train/queue.py", ("/home/u/train/queue.py", False)),
        ("<string>", ("<string>", False)),
        ("/job/libraries/ray/experimental/channel/common.py", ("ray/experimental/channel/common.py", False)),
        ("/job/libraries/ray/dag/compiled_dag_node.py", ("ray/dag/compiled_dag_node.py", False)),
        ("/src/ray/python/ray/actor.py", ("ray/actor.py", False)),
        ("/job/libraries/torchdata/stateful_dataloader/worker.py", ("torchdata/stateful_dataloader/worker.py", False)),
        ("/src/verl/single_controller/ray/base.py", ("/src/verl/single_controller/ray/base.py", False)),
    ],
)
def test_short_file(path, expected):
    assert short_file(path) == expected


@pytest.mark.parametrize(
    ("file", "standard", "function", "name", "value", "kept"),
    [
        ("torch/distributed/distributed_c10d.py", False, "recv", "src", "2", "2"),
        ("torch/distributed/distributed_c10d.py", False, "new_group", "group_desc", '"ref_dp"', '"ref_dp"'),
        ("torch/distributed/distributed_c10d.py", False, "recv", "tensor", "<Tensor at 0x1>", None),
        ("threading.py", True, "Thread.join", "self", "<Thread at 0x7f90>", "<Thread at 0x7f90>"),
        ("threading.py", True, "Thread.run", "self", "<Thread at 0x7f90>", None),
        ("queue.py", True, "Queue.put", "item", '"prompt"', None),
        ("queue.py", True, "Queue.put", "timeout", '"prompt"', None),
        ("queue.py", False, "Queue.put", "timeout", "3", None),
        ("socket.py", True, "create_connection", "address", '("10.0.0.7", 6379)', '("10.0.0.7", 6379)'),
        ("ray/_private/worker.py", False, "get", "timeout", "5.5", "5.5"),
        ("ray/_private/worker.py", False, "get", "object_refs", "[<ray.ObjectRef at 0x1>]", None),
        ("areal/infra/executor.py", False, "wait", "count", "4", "4"),
        ("areal/infra/executor.py", False, "wait", "count", '"a prompt"', None),
        ("/home/u/train.py", False, "step", "timeout", "3", None),
        ("verl/trainer/main.py", False, "step", "rank", "3", None),
    ],
)
def test_only_listed_locals_are_kept(file, standard, function, name, value, kept):
    assert keep_value(file, standard, function, name, value) == kept


def test_long_values_are_cut():
    value = keep_value("torch/distributed/device_mesh.py", False, "init", "ranks", "[" + "1, " * 500)
    assert value is not None
    assert len(value) == 200


def test_stacks_and_frames_are_kept_once():
    table = StackTable()
    assert table.add([("leaf", "/a.py", 3), ("root", "/a.py", 9)]) == 0
    assert table.add([("other", "/a.py", 0), ("root", "/a.py", 9)]) == 1
    assert table.add([("leaf", "/a.py", 3), ("root", "/a.py", 9)]) == 0
    assert table.stacks() == ((0, 1), (2, 1))
    assert [frame.line for frame in table.frames()] == [3, 9, None]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\x07" * 24 + b"\x01\x00\x00\x00", True),
        (b"\x07" * 24 + b"\x00\x00\x00\x00", False),
        (b"\x07" * 24 + b"\x00\x00\x00\x7f", False),
        (bytes(24) + b"\x01\x00\x00\x00", False),
        (b"\x07" * 20, False),
    ],
)
def test_object_id_is_checked(raw, expected):
    assert is_object_id(raw) is expected


PYSTACK = """Traceback for thread 12 (python) [Has the GIL] (most recent call last):
    (Python) File "/usr/local/lib/python3.11/threading.py", line 982, in run
        self._target(*self._args, **self._kwargs)
    (Python) File "/home/u/train.py", line 7, in spin
        while True: pass

Traceback for thread 11 (ray::A.f) [Waiting for the GIL] (most recent call last):
    (Python) File "/home/u/train.py", line 20, in <module>
        main()
    (C) File "./Python/ceval.c", line 300, in take_gil (libpython3.11.so)

The frame stack for thread 10 (python) [] is empty
"""


def test_pystack_text():
    spin, waits, empty = pystack.parse(PYSTACK.splitlines())
    assert (spin.tid, spin.owns_gil, spin.waits_for_gil) == (12, True, False)
    assert spin.frames == (("spin", "/home/u/train.py", 7), ("run", "/usr/local/lib/python3.11/threading.py", 982))
    assert (waits.name, waits.waits_for_gil) == ("ray::A.f", True)
    assert waits.frames[0] == ("take_gil (libpython3.11.so)", "./Python/ceval.c", 300)
    assert empty.frames == ()


def test_pyspy_is_found_beside_the_interpreter_or_where_asked(tmp_path):
    assert Path(find_pyspy() or "").name == "py-spy"
    own = program(tmp_path / "own-py-spy", "")
    assert find_pyspy(own) == own
    assert find_pyspy(str(tmp_path / "absent")) is None


def test_output_is_bounded_in_time_and_size(tmp_path):
    slow = run_bounded([program(tmp_path / "slow", "import time; print('x', flush=True); time.sleep(60)")], 0.5)
    assert (slow.code, slow.timed_out, slow.out) == (None, True, b"x\n")
    large = run_bounded([program(tmp_path / "large", "while True: print('x' * 100)")], 20, max_bytes=10_000)
    assert (large.code, large.timed_out) == (None, False)
    good = run_bounded([program(tmp_path / "good", "import sys; print('o'); print('e', file=sys.stderr); sys.exit(3)")], 20)
    assert (good.code, good.out, good.err) == (3, b"o\n", b"e\n")


def test_missing_pyspy_is_one_gap():
    sampler = StackSampler(options(), None)
    sampler.sample([Target(pid=1, state="S"), Target(pid=2, state="S")], 0.0)
    (gap,) = sampler.finish().gaps
    assert (gap.id, gap.what, gap.remedy) == (gaps.PYSPY_MISSING, "stacks of 2 processes", "pip install py-spy")


def test_a_dump_that_never_ends_is_a_gap_and_not_a_wait(tmp_path):
    sampler = StackSampler(options(timeout_s=0.3), program(tmp_path / "py-spy", "import time; time.sleep(60)"))
    started = time.monotonic()
    sampler.sample([Target(pid=os.getpid(), state="S")], 0.0)
    assert time.monotonic() - started < 10
    stacks = sampler.finish()
    assert stacks.samples == {}
    assert [gap.id for gap in stacks.gaps] == [gaps.STACKS_FAILED]
    assert stacks.gaps[0].where == f"/{os.getpid()}"


def test_an_answer_that_is_no_json_is_a_gap(tmp_path):
    sampler = StackSampler(options(), program(tmp_path / "py-spy", "print('hello')"))
    sampler.sample([Target(pid=os.getpid(), state="S")], 0.0)
    (gap,) = sampler.finish().gaps
    assert gap.id == gaps.STACKS_FAILED
    assert "could not be read" in gap.reason


def test_missing_pystack_is_a_gap(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    sampler = StackSampler(options(pystack=True), None)
    (gap,) = sampler.finish().gaps
    assert (gap.id, gap.remedy) == (gaps.PYSTACK_FAILED, "pip install pystack")


def test_a_stop_left_behind_is_taken_back():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert release(child.pid, None) is False
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        assert release(child.pid, None) is True
        assert os.waitpid(child.pid, os.WCONTINUED) == (child.pid, 0xFFFF)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
