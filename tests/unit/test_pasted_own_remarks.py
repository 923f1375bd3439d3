"""What people write into and around the stacks that they paste: remarks behind frames, comments, words between names."""

from __future__ import annotations

from ray_rl_debug.formats.pasted.read import read


def told(text: str) -> list[tuple[str | None, list[str]]]:
    """Who is named, and the functions of the first thread, innermost first."""
    return [(d.label or (str(d.rank) if d.rank is not None else None), [f[0] for f in d.threads[0].frames]) for d in read(text) if d.threads]


def test_a_library_of_which_nothing_is_known_is_read_before_a_remark_in_brackets() -> None:
    text = """Thread 12 (idle): "MainThread"
    pthread_cond_wait (libc.so.6)
    0x7caaa50b1a9b (?)                  <- C++ without symbols (NCCL)
    all_gather (torch/distributed/distributed_c10d.py:4193)
"""
    assert told(text) == [(None, ["pthread_cond_wait", "0x7caaa50b1a9b", "all_gather"])]
