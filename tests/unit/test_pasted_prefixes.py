"""Prefixes and names that a text uses for itself: read without knowing the tool that wrote them."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.pasted import diffs, lone_names
from ray_rl_debug.formats.pasted.lines import plain_lines
from ray_rl_debug.formats.pasted.prefixes import learn, writer
from ray_rl_debug.formats.pasted.read import read

FAULT = ("Thread 0x00007f5b22ffd740 (most recent call first):", '  File "/app/a.py", line 3 in wait', '  File "/app/a.py", line 9 in main')


@pytest.mark.parametrize(
    ("prefixes", "node", "rank", "pid"),
    [
        (("trainer-0 pytorch ", "trainer-1 pytorch "), "trainer-1", None, None),
        (("12:00:01.100 | WARN | dump:41 | rank=0 | ", "12:00:02.300 | WARN | dump:41 | rank=1 | "), None, 1, None),
        (("web pid=41 ", "web pid=42 "), None, None, 42),
    ],
)
def test_mixed_lines_of_two_writers_are_two_processes(prefixes: tuple[str, str], node: str | None, rank: int | None, pid: int | None) -> None:
    text = "\n".join(prefix + line for line in FAULT for prefix in prefixes)
    found = read(text)
    assert [[f[0] for f in d.threads[0].frames] for d in found] == [["wait", "main"]] * 2
    assert (found[1].node, found[1].rank, found[1].pid) == (node, rank, pid)


def test_frames_of_torchs_exceptions_have_prefixes_too() -> None:
    mark = "bench.node-d003 [stderr] "
    frames = (
        "frame #0: c10::Error::Error() + 0x57 (0x7f1e in /lib/libc10.so)",
        "frame #1: c10d::watchdog() + 0x1d2 (0x7f1e in /lib/libtorch_cuda.so)",
    )
    found = read("\n".join(mark + line for line in frames))
    assert [len(t.frames) for d in found for t in d.threads] == [2]


def test_a_word_before_a_head_alone_is_no_prefix() -> None:
    """The frames stand without it."""
    text = "\n".join(['I took this: Thread 7 (idle): "MainThread"', "    f (a.py:1)", 'I took this: Thread 8 (idle): "MainThread"', "    g (a.py:2)"])
    assert learn(text.encode(), plain_lines) is None


def test_a_table_is_no_prefix() -> None:
    text = "\n".join(f"| rank {r} | {line} |" for r in (0, 1) for line in FAULT)
    assert learn(text.encode(), plain_lines) is None


def test_who_wrote_a_line() -> None:
    assert writer("gpu-3\t") == {"node": "gpu-3"}
    assert writer("[app.dump] ") == {"node": "app.dump"}
    assert writer("some.logger: dump ") == {"title_of_lines": "some.logger: dump"}


def test_machines_whose_names_differ_in_their_number() -> None:
    assert lone_names.find(b"m10\nx\n**m11**\nqwen3\nrank0\nrank1\n") == {"m10", "m11"}
    assert lone_names.find(b"m10\n") == frozenset()


def test_names_of_machines_alone_in_a_line() -> None:
    stack = "```\n    f (my/a.py:1)\n    main (my/b.py:2)\n```\n"
    assert [d.node for d in read(f"m10\n{stack}m11\n{stack}")] == ["m10", "m11"]


def test_a_diff_is_two_stacks() -> None:
    text = '--- r0.txt\n+++ r1.txt\n@@ -1,3 +1,3 @@\n Thread 7 (idle): "MainThread"\n-    f (a.py:1)\n+    g (a.py:2)\n     main (a.py:9)\n'
    assert diffs.has_diff(text.encode())
    assert [[f[0] for f in d.threads[0].frames] for d in read(text)] == [["f", "main"], ["g", "main"]]


@pytest.mark.parametrize("text", ["--- a\n", "--- a\n+++ b\n", "--- a\n+++ b\n@@ -1 +1 @@\n", "--- a\nx\n"])
def test_what_only_begins_like_a_diff_stays(text: str) -> None:
    assert [line for _, line in diffs.sides(enumerate(text.split("\n"), 1))] == text.split("\n")
