"""What blocks of a fifth, unseen lot showed: quoted errors, what stands in front of a traceback, all messages of the heap."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.imports.logs import read_log
from ray_rl_debug.model.snapshot import LogBook


def book_of(folder: Path, text: str) -> LogBook | None:
    (folder / "out.txt").write_text(text)
    found = read_log(folder / "out.txt", "job")
    return found.book if found is not None else None


@pytest.mark.parametrize("words", ['you will see "{}" in the log.', "it prints `{}` then", 'the message "{}" means that'])
def test_an_error_that_a_sentence_quotes_is_nobodys(tmp_path, words):
    assert book_of(tmp_path, f"assistant: {words.format('RuntimeError: CUDA out of memory')}\n") is None


@pytest.mark.parametrize("line", ['ERROR got "CUDA out of memory"', "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"])
def test_an_error_that_a_program_tells_is_its_own(tmp_path, line):
    book = book_of(tmp_path, f"{line}\n")
    assert book is not None and len(book.events) == 1


def test_the_last_line_of_a_traceback_tells_more_than_the_words_in_front_of_it(tmp_path):
    opening = "[2026-01-08 12:10:40 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    frames = '  File "/sgl/srt/managers/scheduler.py", line 3019, in run_scheduler_process\n    scheduler.event_loop_overlap()\n'
    own = book_of(tmp_path, f"{opening}{frames}ValueError: No space left for only one request\n")
    assert own is not None and [e.signature for e in own.events] == [None]
    lost = book_of(tmp_path, f"{opening}{frames}RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:8000\n")
    assert lost is not None and lost.events[0].signature is not None
