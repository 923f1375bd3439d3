"""Sentences that say of several processes where each is: a place belongs to the subject before it."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.pasted import prose

Told = list[tuple[str | None, list[str]]]


def told(text: str) -> Told:
    """Who (ranks, else a name) and in which functions, of each process that a text tells of."""
    return [
        (" ".join(map(str, d.ranks)) or d.label or d.title, [function for t in d.threads for function, _, _ in t.frames])
        for d in prose.read(text.encode())
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rank 1 got stuck in `recv` because rank 0 was stuck in `json.dumps`.", [("1", ["recv"]), ("0", ["json.dumps"])]),
        ("the trainer is blocked in `save`, the vLLM worker in `collective_rpc`.", [("trainer", ["save"]), ("vllm worker", ["collective_rpc"])]),
        ("Rank 0 hangs in `init`, ranks 1..3 are stuck in `dist.new_group`.", [("0", ["init"]), ("1 2 3", ["dist.new_group"])]),
        (
            "The processes again: 7 of them are in one operation (`all_gather`), and one is in `forward`.",
            [(None, ["all_gather"]), ("one process", ["forward"])],
        ),
        (
            "**pid 3408431 (node-15, TP-rank 2 of DP rank 1) is in `all_gatherv`** while its 3 TP-peers are in `all_reduce`.",
            [(None, ["all_gatherv"]), ("tp-peers", ["all_reduce"])],
        ),
        (
            "All ranks but rank 2 wait in `all_gather` in `sync`. Rank 2 is in `readinto` below `open_shard`.",
            [("all ranks but rank 2", ["all_gather", "sync"]), ("2", ["readinto", "open_shard"])],
        ),
        (
            "Stages 0, 1 and 2 wait in `recv_backward`; stage 3 is in `loss_cpu`.",
            [("stage 0", ["recv_backward"]), ("stage 1", ["recv_backward"]), ("stage 2", ["recv_backward"]), ("stage 3", ["loss_cpu"])],
        ),
        (
            "Rank 0 is in `result` (`futures/_base.py:451`) < `nested` (`server.py:62`), rank 1 is in `barrier`.",
            [("0", ["result", "nested"]), ("1", ["barrier"])],
        ),
        ("critic rank 0 is in `torch.load`, critic ranks 1-2 are in `barrier`.", [("0", ["torch.load"]), ("1 2", ["barrier"])]),
        ("The second config is in `a.yaml`, and one is in `load_all`.", []),
        (
            "all 8 of them: 0 to 6 sit in barrier() after load(), only 7 is different, it's in flock() under FileLock.acquire().",
            [("0 1 2 3 4 5 6", ["barrier"]), ("7", ["flock", "FileLock.acquire"])],
        ),
        ("So 0-2 hang in the `all_gather` of unshard while 3 hangs in `all_reduce`.", [("0 1 2", ["all_gather"]), ("3", ["all_reduce"])]),
        ("We see rank 0 in `barrier` and rank 1 in `all_reduce`.", [("0", ["barrier"]), ("1", ["all_reduce"])]),
        ("stuck: rank 0 at `barrier`, rank 1 at `all_reduce`", [("0", ["barrier"]), ("1", ["all_reduce"])]),
        ("py-spy shows rank 2 in `load`, and ranks 0, 1, 3 in `barrier`.", [("2", ["load"]), ("0 1 3", ["barrier"])]),
        ("Rank 1 waits in `new_group` for rank 0, which is still in `wandb.init()`.", [("1", ["new_group"]), ("0", ["wandb.init"])]),
        ("Rank 5's main thread is in `_send`, all the others' in `all_reduce`.", [("5", ["_send"]), ("the others", ["all_reduce"])]),
        (
            "On rank 7 the main thread is in `torch.save`; on all other ranks it is in `barrier`.",
            [("7", ["torch.save"]), ("all other ranks", ["barrier"])],
        ),
        ("7 of the 8 ranks are at `all_reduce`, the eighth one (rank 4) is at `collate_fn`.", [(None, ["all_reduce"]), ("4", ["collate_fn"])]),
        ("One rank (rank 4) is at `collate_fn`, the other seven at `all_reduce`.", [("4", ["collate_fn"]), ("the other seven", ["all_reduce"])]),
        (
            "TP0 and TP2 have entered `recv_next`, while TP1 and TP3 are still inside `poll_all`.",
            [("TP0", ["recv_next"]), ("TP2", ["recv_next"]), ("TP1", ["poll_all"]), ("TP3", ["poll_all"])],
        ),
        (
            "EngineCore waits in `get_response`, Worker_TP0 in `all_reduce` and Worker_TP1 in `_load_kernel`.",
            [("VLLM::EngineCore", ["get_response"]), ("VLLM::Worker_TP0", ["all_reduce"]), ("VLLM::Worker_TP1", ["_load_kernel"])],
        ),
    ],
    ids=[
        "because",
        "the-worker",
        "range",
        "of-them",
        "bracket",
        "all-but",
        "stages",
        "less-than",
        "roles",
        "no-process",
        "numbers",
        "listed",
        "we-see",
        "stuck",
        "shows",
        "which-is",
        "main-thread",
        "on-rank",
        "eighth",
        "other-seven",
        "lists",
        "engine",
    ],
)
def test_each_subject_has_its_own_place(text: str, expected: Told) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The other 31 ranks wait for it in all_reduce().", [(None, ["all_reduce"])]),
        ("Rank 0 waits for rank 1 in `all_reduce`; rank 1 is still in `save`.", [("0", ["all_reduce"]), ("1", ["save"])]),
        ("Rank 0 moves on to `dist.barrier()` while rank 1 never leaves `save_checkpoint`.", [("0", ["dist.barrier"]), ("1", ["save_checkpoint"])]),
        (
            "ranks 1 and 2 are stuck in `fetch()` while rank 0 has already advanced to a `dist.barrier()`",
            [("1 2", ["fetch"]), ("0", ["dist.barrier"])],
        ),
        ("rank 2 never gets past `load_state_dict()`, the rest wait at `barrier()`.", [("2", ["load_state_dict"]), ("the rest", ["barrier"])]),
        ("TP0 is issuing an `all_gather` and TP1 is issuing a `broadcast`.", [("TP0", ["all_gather"]), ("TP1", ["broadcast"])]),
        ("While ranks 0-2 sit in `barrier`, rank 3 is busy with `torch.save`.", [("0 1 2", ["barrier"]), ("3", ["torch.save"])]),
        ("All ranks except rank 2 are in `all_gather`; rank 2 is in `tokenize`.", [("all ranks except rank 2", ["all_gather"]), ("2", ["tokenize"])]),
    ],
    ids=["wait-for-it", "waits-for-a-rank", "moves-on", "advanced-to", "never-past", "issuing", "busy-with", "all-except"],
)
def test_words_for_where_one_is(text: str, expected: Told) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "If rank 0 goes on to `all_reduce`, rank 1 would hang in `broadcast`.",
        "Rank 0 should never leave `barrier` before rank 1 is in `save`?",
        "The weights of rank 0 in `model.pt` are sent to rank 1 with `broadcast`.",
        "We have rank 0 of 8 with `NCCL_DEBUG=INFO`.",
    ],
    ids=["if", "should", "of-rank", "a-setting"],
)
def test_what_would_be_and_what_lies_there_is_no_place(text: str) -> None:
    assert told(text) == []
