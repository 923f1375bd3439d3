"""The end of a log: the last line and the last steps of each writer, with few lines read."""

from __future__ import annotations

import pytest

from ray_rl_debug.logs import ending
from ray_rl_debug.logs.ending import Ending, read_ending
from ray_rl_debug.model.snapshot.log_book import LogWriter


def end_of(text: str) -> Ending:
    return read_ending(text.encode(), lines_before=0, writer=LogWriter(), near_s=None)


def test_a_writer_that_fell_silent_is_told_with_its_last_line_and_time():
    busy = "".join(f"(WorkerDict pid=42{i % 3}, ip=10.0.0.1) 2026-11-21 10:00:{i % 60:02},000 INFO batch {i}\n" for i in range(250))
    silent = "(WorkerDict pid=427, ip=10.0.0.1) 2026-11-21 09:59:00,000 INFO batch 3\n(WorkerDict pid=427, ip=10.0.0.1) still loading\n"
    signs = {s.writer.pid: s for s in end_of(silent + busy).signs}
    assert sorted(signs) == [420, 421, 422, 427]
    assert (signs[427].text, signs[427].file_line) == ("still loading", 2)
    assert signs[427].time_s is not None and signs[427].time_s < signs[420].time_s
    assert (signs[420].text, signs[420].file_line) == ("batch 249", 252)


@pytest.mark.parametrize("marks", ["worker-{r}  | ", "[rank{r}]: ", "{r}: ", "(Trainer pid=7{r}) ", "[2026-11-21 10:00:00 TP{r}] "])
def test_every_writer_has_a_last_line(marks):
    lines = [f"{marks.format(r=i % 4)}epoch {i} of 90\n" for i in range(40)]
    told = end_of("".join(lines))
    assert sorted(s.file_line for s in told.signs) == [37, 38, 39, 40]
    assert {s.step for s in told.steps} >= {36, 37, 38, 39}


def test_marks_that_only_reading_tells():
    lines = [f"[pod/trainer-{i % 3}/main] batch {i}\n" for i in range(30)]
    assert sorted(str(s.writer.node) for s in end_of("".join(lines)).signs) == ["trainer-0", "trainer-1", "trainer-2"]


def test_few_lines_are_read(monkeypatch):
    read = []
    real = ending.read_head
    monkeypatch.setattr(ending, "read_head", lambda line, **more: read.append(line) or real(line, **more))
    end_of("".join(f"(WorkerDict pid=42{i % 8}) 2026-11-21 10:00:00,000 INFO step: {i} done\n" for i in range(5000)))
    assert len(read) <= 8 * (ending.STEPS_OF_WRITER + ending.LINES_BACK)
