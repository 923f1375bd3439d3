"""Which lock a line takes and which it holds, from its source: only names that mean one lock wherever the file uses them."""

from __future__ import annotations

import ast
import os
import textwrap
from pathlib import Path

import pytest

from ray_rl_debug.collect.source_lines import read_calls
from ray_rl_debug.collect.source_locks import under, wants

SOURCE = textwrap.dedent(
    """
    STATE = threading.Lock()

    class Buffer:
        def put(self, sample, lock):
            with self.lock:  # takes its own
                self.write()  # inside of its own
            with lock:  # takes a parameter
                self.write()  # inside of a parameter
            with self.lock, STATE:  # takes two at once
                self.write()  # inside of both
            with (
                self.lock,
                STATE,  # takes the second
            ):
                pass
            STATE.acquire()  # takes it by a call
            STATE.acquire(timeout=1)  # tries it by a call
            with lock_of(sample):  # takes what a call gives
                with torch.no_grad():
                    self.write()  # inside of calls
            with self.other.lock:  # takes that of another object
                pass

    def main():
        mine = threading.Lock()

        def work(mine_too):
            with mine:  # takes that of the function around
                def later():
                    run()  # in an inner function
                later()  # inside of that of the function around
            global STATE
            with STATE:  # takes that of the module
                pass

        STATE = None
        with STATE:  # takes a variable of its own
            work(mine)
    """
)


def line_of(mark: str) -> int:
    return next(number for number, text in enumerate(SOURCE.split("\n"), 1) if text.endswith(f"# {mark}"))


@pytest.mark.parametrize(
    ("mark", "lock"),
    [
        ("takes its own", "Buffer.lock"),
        ("takes a parameter", None),
        ("takes two at once", None),
        ("takes the second", "STATE"),
        ("takes it by a call", "STATE"),
        ("tries it by a call", None),
        ("takes what a call gives", None),
        ("takes that of another object", None),
        ("takes that of the function around", "main.mine"),
        ("takes that of the module", "STATE"),
        ("takes a variable of its own", "main.STATE"),
        ("inside of its own", None),
    ],
)
def test_the_lock_that_a_line_takes(mark: str, lock: str | None) -> None:
    assert wants(ast.parse(SOURCE), line_of(mark)) == lock


@pytest.mark.parametrize(
    ("mark", "locks"),
    [
        ("takes its own", ()),
        ("inside of its own", ("Buffer.lock",)),
        ("inside of a parameter", ()),
        ("inside of both", ("Buffer.lock", "STATE")),
        ("inside of calls", ()),
        ("in an inner function", ()),
        ("inside of that of the function around", ("main.mine",)),
    ],
)
def test_the_locks_that_a_line_holds(mark: str, locks: tuple[str, ...]) -> None:
    assert under(ast.parse(SOURCE), line_of(mark)) == locks


def test_lines_are_read_from_the_files_of_the_process(tmp_path: Path) -> None:
    source = tmp_path / "buffer.py"
    source.write_text(SOURCE)
    os.utime(source, (1, 1))
    pid, name = os.getpid(), str(source)
    lines = {n: (pid, name, line_of(mark)) for n, mark in enumerate(("takes its own", "inside of both", "in an inner function"))}
    told = read_calls(lines)
    assert (told[0].wants, told[0].under, told[0].calls) == ("Buffer.lock", (), ())
    assert (told[1].wants, told[1].under) == (None, None), "a line that neither waits nor takes a lock costs no parsing"
    assert {n: line.under for n, line in read_calls(lines, only_under=True).items()} == {0: (), 1: ("Buffer.lock", "STATE"), 2: ()}
