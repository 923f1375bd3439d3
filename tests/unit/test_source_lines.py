"""What a line waits for, from its source: whose work object, found by assignment, list or loop; nothing but names is kept."""

from __future__ import annotations

import ast
import os
import textwrap
import time
from pathlib import Path

import pytest

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.places import place_of
from ray_rl_debug.collect.source_lines import calls_at, read_calls
from ray_rl_debug.model.snapshot import Frame, Thread

SOURCE = textwrap.dedent(
    """
    class Stage:
        def begin(self, x):
            self.pending = dist.all_reduce(x, async_op=True)

        def step(self, x, y, src):
            r = dist.irecv(y, src=src); s = dist.isend(x, dst=1)
            r.wait(); s.wait()  # both
            works = []
            works.append(dist.isend(x, 2))
            for one in works:
                one.wait()  # listed
            [w.wait() for w in dist.batch_isend_irecv(self.ops)]  # unpacked
            self.pending.wait()  # of another method
            dist.barrier(async_op=True).wait()  # at once
            (dist.broadcast(x, 0, async_op=True)
                .wait())  # over two lines
            self.unknown(x).wait()  # whoever made it
            with self.lock:  # no wait at all
                time.sleep(self.pause)  # a pause
    """
)


def line_of(mark: str) -> int:
    return next(number for number, text in enumerate(SOURCE.split("\n"), 1) if text.endswith(f"# {mark}"))


@pytest.mark.parametrize(
    ("mark", "calls"),
    [
        ("both", {"wait", "irecv", "isend"}),
        ("listed", {"wait", "isend"}),
        ("unpacked", {"wait", "batch_isend_irecv"}),
        ("of another method", {"wait", "all_reduce"}),
        ("at once", {"wait", "barrier"}),
        ("over two lines", {"wait", "broadcast"}),
        ("whoever made it", {"wait", "unknown"}),
        ("no wait at all", set()),
        ("a pause", {"sleep"}),
    ],
)
def test_what_a_line_waits_for(mark: str, calls: set[str]) -> None:
    assert set(calls_at(ast.parse(SOURCE), line_of(mark))) == calls


def at(calls: tuple[str, ...] | None, *, in_group: bool = True, call: int = 202) -> tuple[Kind, str]:
    thread = Thread(tid=1, comm="python", state="S", wchan="futex_do_wait" if call == 202 else None, syscall=call)
    place = place_of([Frame(function="Stage.step", file="/job/stage.py", line=9, calls=calls)], None, thread, in_group=in_group)
    return place.kind, place.op


def test_a_sleep_in_c_is_told_by_the_line() -> None:
    assert at(("wait", "irecv", "isend")) == (Kind.P2P, "irecv")
    assert at(("wait", "all_reduce")) == (Kind.COLLECTIVE, "all_reduce")
    assert at(("wait", "all_reduce", "irecv")) == (Kind.COLLECTIVE, "work.wait")
    assert at(("wait",)) == (Kind.COLLECTIVE, "work.wait")
    assert at(("wait", "broadcast"), in_group=False) == (Kind.COLLECTIVE, "broadcast")


def test_and_stays_a_lock_where_the_line_says_no_such_thing() -> None:
    assert at(()) == (Kind.LOCK, "step")
    assert at(None) == (Kind.LOCK, "step")
    assert at(("wait",), in_group=False) == (Kind.LOCK, "step")
    assert at(("acquire",)) == (Kind.LOCK, "step")


def test_the_backward_pass_of_a_member_of_a_group_waits_for_the_others() -> None:
    thread = Thread(tid=1, comm="python", state="S", wchan="futex_do_wait", syscall=202)
    frames = [
        Frame(function="_engine_run_backward", file="torch/autograd/graph.py", line=869),
        Frame(function="Trainer.step", file="/job/train.py", line=30),
    ]
    assert (place_of(frames, None, thread, in_group=True).kind, place_of(frames, None, thread).kind) == (Kind.COLLECTIVE, Kind.LOCK)


def test_lines_are_read_from_the_files_of_the_process(tmp_path: Path) -> None:
    source = tmp_path / "stage.py"
    source.write_text(SOURCE)
    os.utime(source, (1, 1))
    pid, name = os.getpid(), str(source)
    lines = {
        1: (pid, name, line_of("listed")),
        2: (pid, name, line_of("no wait at all")),
        3: (pid, name, 10_000),
        4: (pid, str(tmp_path / "gone.py"), 1),
        5: (2**22 + 1, name, 3),
        6: (pid, "relative.py", 1),
        7: (pid, str(tmp_path), 1),
        8: (pid, name, line_of("a pause")),
    }
    found = read_calls(lines)
    assert {key: set(line.calls) for key, line in found.items()} == {1: {"wait", "isend"}, 2: set(), 8: {"sleep"}}
    assert read_calls(lines, total_s=-1.0) == {}


def test_lines_of_the_program_are_read_before_large_files_of_libraries(tmp_path: Path) -> None:
    large = tmp_path / "lib" / "site-packages" / "library.py"
    large.parent.mkdir(parents=True)
    large.write_text("import time\ntime.sleep(1)\n" + "a = {'b': [c.d(e, f=g) for c in h if c]}\n" * 20_000)
    source = tmp_path / "stage.py"
    source.write_text(SOURCE)
    for file in (large, source):
        os.utime(file, (1, 1))
    found = read_calls({1: (os.getpid(), str(large), 2), 2: (os.getpid(), str(source), line_of("a pause"))}, total_s=0.05)
    assert found[2].calls == ("sleep",), "the time is up behind the large one"


def test_a_heartbeat_is_apart_also_through_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text("import os\ndef folder():\n    return os.environ['F']\nKEPT = []\ndef keep(x):\n    KEPT.append(x)\n")
    source = tmp_path / "beats.py"
    text = "import kit\nimport time\ndef beat():\n    while True:\n        time.sleep(1)\n        kit.{}\n"
    found = []
    for call in ("folder()", "keep(1)"):
        source.write_text(text.format(call))
        for file in tmp_path.iterdir():
            os.utime(file, (1, 1))
        found.append(read_calls({1: (os.getpid(), str(source), 5)})[1].apart)
    assert found == [True, False]


def test_a_source_that_is_newer_broken_or_huge_tells_nothing(tmp_path: Path) -> None:
    line = line_of("listed")
    texts = {"newer": SOURCE, "broken": SOURCE + "\ndef (", "huge": SOURCE + "#" * (1 << 20), "hostile": SOURCE + "\nx = " + "(" * 5000}
    lines = {}
    for number, (name, text) in enumerate(texts.items()):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        stamp = time.time() + 60 if name == "newer" else 1
        os.utime(path, (stamp, stamp))
        lines[number] = (os.getpid(), str(path), line)
    assert read_calls(lines) == {}
