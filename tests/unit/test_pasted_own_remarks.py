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


def test_an_arrow_far_behind_a_frame_begins_a_remark() -> None:
    text = """Thread 0x1F90 (active): "MainThread"         <- the loop, since 13:49
    stop_stream (pyaudio/__init__.py:500)          <- pa.stop_stream(), does not return
    close (audio_interface.py:1445)                <- Playback.close()
    on_message (SERVER:1136)                       <- handler of 's:'
"""
    assert told(text) == [(None, ["stop_stream", "close", "on_message"])]


def test_names_above_and_below_a_frame_in_a_block_of_code_are_frames_too() -> None:
    text = (
        "One rank showed:\n\n```\ncuEventSynchronize\ncudaEventSynchronize\nsynchronize (torch/cuda/streams.py:231)\nprocess_batch\nevent_loop\n```\n"
    )
    assert told(text) == [(None, ["cuEventSynchronize", "cudaEventSynchronize", "synchronize", "process_batch", "event_loop"])]


def test_names_in_a_block_of_code_without_a_frame_are_none() -> None:
    assert told("Needed:\n\n```\ntorch_geometric\nray_tracer\n```\n\n    wait (threading.py:320)\n") == []
