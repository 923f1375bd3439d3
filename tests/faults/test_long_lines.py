"""A line of a log, a frame or a document may be long, and made to keep us busy: it is read in the time of its length"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ray_rl_debug.formats.blocks import documents
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.formats.pystack import parse
from ray_rl_debug.logs.book import BookReader
from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.story.tell import tell

LENGTH = 100_000
ERROR = "2026-11-21 10:00:00,123 ERROR "
BEHIND = "\n2026-11-21 10:00:01,000 INFO connected 7 and went on\n2026-11-21 10:00:02,000 INFO step 3\n"
MAX_S = 8.0
"""A tenth of it is needed; one pattern that begins again at each letter takes a minute and more."""


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        ("Failed to connect 7 ", "a:"),
        ("Failed to connect 7 ", "/.."),
        ("", "7"),
        ("", "a."),
        ("", "loss"),
        ("", "process "),
        ("", 'says "'),
        ("could not ", "shutting down "),
        ("", "-"),
        ("", "("),
    ],
)
def test_a_long_line_of_a_log(begin: str, piece: str) -> None:
    """An error of a log is a line of 100 kB that repeats what a pattern looks for.
    It is told within seconds."""
    text = f"2026-11-21 09:59:59,000 INFO step 1\n{ERROR}{begin}{piece * (LENGTH // len(piece))}{BEHIND}"
    began = time.process_time()
    reader = BookReader("any/rank1.log", modified_time_s=1.79e9)
    reader.feed(text.encode())
    book = reader.end()
    assert book.lines == 4
    assert tell([book]) is not None
    assert time.process_time() - began < MAX_S


@pytest.mark.parametrize("frame", ["#0  0x00007fffaaaaaaaa in f", "#0  f", "    f (a.py:1)"])
def test_a_long_line_of_a_paste(frame: str) -> None:
    """Behind a frame stand thousands of blanks, and then a letter.
    Twenty such frames are read within seconds, and so is the stack below them."""
    line = f"{frame}{' ' * 8_900}x"
    text = "\n".join([line] * 20) + '\n\nProcess 12: x\nThread 12 (idle): "MainThread"\n    f (a.py:1)\n'
    began = time.process_time()
    dumps = read(text)
    assert any(d.pid == 12 and d.threads[0].frames for d in dumps)
    assert time.process_time() - began < MAX_S


def test_documents_that_begin_within_each_other_and_never_end() -> None:
    """400 dumps of the Flight Recorder begin within each other, and the text is cut off after half a megabyte.
    It is found within seconds that none is whole, and one that stands before them is read."""
    nested = '"entries": []\n' + '{"pg_config": [\n' * 400 + "1," * 250_000
    whole = '{"pg_config": {}, "entries": []}\n'
    began = time.process_time()
    assert [line for line, _ in documents(f"{whole}{nested}".encode())] == [1]
    assert time.process_time() - began < 2.0


OF_VERL, OF_OTHERS = "step:{} - reward:0.{}", "step {}: {{'reward': 0.{}}}"


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (OF_OTHERS, "x" + " " * LENGTH + "y"),
        (OF_OTHERS, "(W pid=7) x [repeated 7x across cluster]" + " " * LENGTH + "y"),
        (OF_OTHERS, "step 3: {'loss': tensor( " + "7" * LENGTH + "}"),
        (OF_VERL, "step:3 - reward:0.3" + " " * LENGTH + "- actor/x:1"),
    ],
    ids=["blanks", "repeated", "digits", "row"],
)
def test_a_long_line_among_metrics(form: str, line: str, tmp_path: Path) -> None:
    """The console of a trainer holds a line of 100 kB that looks like one with metrics.
    The metrics beside it are read within seconds."""
    rows = [form.format(step, step) for step in range(1, 6)]
    file = tmp_path / "train.log"
    file.write_text("\n".join([*rows[:3], line, *rows[3:]]) + "\n")
    began = time.process_time()
    assert load([file], {}).series["reward"].steps[-1] == 5
    assert time.process_time() - began < MAX_S


def test_a_long_name_in_what_pystack_prints() -> None:
    """A process names a thread and a function in 100 kB of what ends such a name, or of blanks.
    The threads are read within seconds."""
    head = "Traceback for thread {} ({}) [Has the GIL] (most recent call last):"
    frame = '    (Python) File "/w/a.py", line 3, in {}'
    lines = [head.format(7, ") [x" * (LENGTH // 4)), frame.format("f"), head.format(8, "MainThread"), frame.format(f"a{' ' * LENGTH}b")]
    began = time.process_time()
    threads = parse([*lines, frame.format("g  ")])
    assert threads[-1].name == "MainThread"
    assert threads[-1].frames[0] == ("g", "/w/a.py", 3)
    assert time.process_time() - began < 2.0
