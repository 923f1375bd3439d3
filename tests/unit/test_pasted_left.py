"""Lines that look like frames and are in no stack: they are told, and those of a stack are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.formats.pasted.left import as_ranges, looks_like_frame
from ray_rl_debug.formats.pasted.read import read, read_all
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UnreadableFileError

FRAMES = (
    '  File "/srv/job/a.py", line 3, in f',
    "    wait (threading.py:320)",
    "#4  0x00007f3a1b879a15 in poll () from /lib64/libc.so.6",
    "3   libsystem_kernel.dylib   0x000000018c5a29ec __psynch_cvwait + 8",
    "    +   2439 take_gil  (in Python) + 88  [0x10515f4f9]",
    "[<0>] do_sys_poll+0x164/0x240",
    "a.py:3 in all_reduce",
)
OTHERS = (
    "Exception raised from ncclCommWatchdog at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1901 (most recent call first):",
    "2026-11-21 10:00:01,001 INFO dp_actor.py:41 -- micro batch 3 of 640",
    "tests/test_a.py:12: AssertionError",
    "a.cc:12:5: error: no member named f",
    "The hang is at 0x7f3a1b879a15 in the library, see #12 for more.",
    "loss: 0.3 (step 12)",
    "2026-11-21 10:00:01 INFO loaded 12 shards (loader.py:44)",
    "warning: the option is deprecated (cli.py:12), use --other",
    '  File "<string>", line 1',
    'the last line of the log is File "a.py", line 3, and then nothing',
    "see trainer.py:12 in the repository",
)


@pytest.mark.parametrize("text", FRAMES)
def test_forms_of_frames(text: str) -> None:
    assert looks_like_frame(text)


@pytest.mark.parametrize("text", OTHERS)
def test_what_only_names_a_place_is_none(text: str) -> None:
    assert not looks_like_frame(text)


def test_frames_of_a_stack_are_not_left() -> None:
    text = 'Process 12: python a.py\nThread 12 (idle): "MainThread"\n    wait (threading.py:320)\n    main (a.py:4)\n'
    assert read_all(text)[1] == ()


def test_a_lone_frame_between_sentences_is_left() -> None:
    text = "It stops somewhere.\n    wait (threading.py:320)\nThat is all that I know.\n"
    assert read_all(text) == ([], (2,))


def test_a_log_that_ends_each_line_with_its_place_holds_no_frames() -> None:
    lines = "".join(f"2026-11-21 10:00:{n:02} INFO micro batch {n} of 640 (dp_actor.py:41)\n" for n in range(40))
    assert read_all(f"It hangs after this:\n\n{lines}\nand no more.\n") == ([], ())


def test_frames_that_a_sentence_tells_are_not_left() -> None:
    dumps, left = read_all("Rank 0 is stuck in `wait` (a.py:3).\n")
    assert (len(dumps), left) == (1, ())


def test_ranges() -> None:
    assert as_ranges((3, 4, 5, 9, 11, 12)) == "3-5, 9, 11-12"


def test_the_report_names_them_as_a_gap(tmp_path: Path) -> None:
    file = tmp_path / "post.md"
    file.write_text(
        'Thread 12 (idle): "MainThread"\n    wait (threading.py:320)\n    main (a.py:4)\n\nwords\n\nIt was once here.\nwait (a.py:3)\nno more.\n'
    )
    snapshot = load([file]).snapshot
    assert snapshot is not None
    told = [g for g in snapshot.gaps if g.id == gaps.FRAMES_UNREAD]
    assert [(g.where, g.what, g.reason) for g in told] == [("post.md", "1 line that looks like a frame", "it is in no stack that was read: line 8")]


def test_where_nothing_is_read_the_error_names_them(tmp_path: Path) -> None:
    file = tmp_path / "post.md"
    file.write_text("It stops.\n\n    wait (threading.py:320)\n\nThat is all.\n")
    with pytest.raises(UnreadableFileError, match=r"1 line that looks like a frame \(line 3\)"):
        load([file])


def test_the_first_branch_of_a_tree_is_the_stack() -> None:
    text = (
        "  90 Thread_1: writer\n"
        "  + 90 start  (in dyld) + 4  [0x18c1f0274]\n"
        "  +   80 run  (in Python) + 4  [0x18c1f0278]\n"
        "  +   ! 80 read  (in libsystem) + 8  [0x18c1f0279]\n"
        "  +   10 stop  (in Python) + 4  [0x18c1f0280]\n"
    )
    assert [[f[0] for f in t.frames] for d in read(text) for t in d.threads] == [["read", "run", "start"]]
