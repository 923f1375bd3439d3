"""Several threads of a command print: one that waits for a slow reader makes nobody else believe that there is none."""

from __future__ import annotations

import os
import threading

import pytest

from ray_rl_debug.commands.streams import _Patient
from ray_rl_debug.model.errors import StalledOutputError

PIPE_BYTES = 64 * 1024


def test_two_threads_take_turns_at_a_full_pipe() -> None:
    reads, writes = os.pipe()
    stream = _Patient(writes, 60.0, drops=False)
    stream.write(b"." * PIPE_BYTES)  # now it is full
    errors: list[StalledOutputError] = []

    def say(text: bytes) -> None:
        try:
            stream.write(text)
        except StalledOutputError as e:
            errors.append(e)

    threads = [threading.Thread(target=say, args=(text,)) for text in (b"one", b"two", b"three")]
    for thread in threads:
        thread.start()
    threads[-1].join(0.3)  # whoever gives up does so at once
    got = b""
    while len(got) < PIPE_BYTES + len(b"onetwothree"):
        if errors:
            break
        got += os.read(reads, PIPE_BYTES)
    for thread in threads:
        thread.join(60)
    os.close(reads)
    os.close(writes)
    assert errors == []
    assert sorted(got[PIPE_BYTES:].replace(b"one", b"1").replace(b"two", b"2").replace(b"three", b"3")) == sorted(b"123")


def test_a_reader_that_takes_nothing_is_told_after_the_time_and_then_at_once() -> None:
    reads, writes = os.pipe()
    stream = _Patient(writes, 0.2, drops=False)
    stream.write(b"." * PIPE_BYTES)
    for _ in range(2):
        with pytest.raises(StalledOutputError):
            stream.write(b"one")
    os.read(reads, PIPE_BYTES)
    os.close(reads)
    os.close(writes)
