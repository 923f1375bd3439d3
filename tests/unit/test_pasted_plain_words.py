"""Places that sentences name in plain words, and parts of which they say that they have not come."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports.folder import load


def told(text: str) -> list[tuple[str, list[str]]]:
    return [(d.label or str(d.rank), [f[0] for t in d.threads for f in t.frames]) for d in read(text)]


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("Rank 0 sits in the dataloader and the other 31 ranks are waiting for it in all_reduce.", [("0", ["dataloader"]), ("None", ["all_reduce"])]),
        ("rank 3 is still in the optimizer step while rank 0 waits in an all-reduce.", [("3", ["optimizer_step"]), ("0", ["all_reduce"])]),
        ("rank 2 hangs in ray.get, rank 1 is in the backward pass, in `tolist`", [("2", ["ray.get"]), ("1", ["tolist"])]),
        ("Rank 1 waits in the barrier group of the tests.", []),
        ("The data loader is new, and the barrier is gone.", []),
    ],
)
def test_a_place_in_plain_words(text: str, stands: list[tuple[str, list[str]]]) -> None:
    assert told(text) == stands


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("- DP0: all ranks are inside `reduce_scatter`\n- DP1 never calls it.\n", "DP1"),
        ("rank 0 waits in `broadcast`.\n\nnode 2 has no such line.\n", "node 2"),
        ("rank 0 waits in `broadcast`.\n\nIf node 2 does not print it, tell me.\n", None),
        ("- DP0: `all_reduce`\n- DP1: `all_reduce`, but DP1 never calls the barrier\n", None),
    ],
)
def test_a_part_that_has_not_come(text: str, name: str | None) -> None:
    names = {said.name for dump in read(text) for _, said in dump.said if said.kind == "missing"}
    assert names == ({name} if name else set())


def test_a_list_of_names_with_their_number() -> None:
    found = read("Task-0..2, 4 (4 tasks): all_reduce (a.py:1) < step (b.py:2)\nTask-3 (1 task): read (c.py:3) < load (d.py:4)\n")
    assert sorted(d.label or "" for d in found) == ["task 0", "task 1", "task 2", "task 3", "task 4"]


def test_tasks_of_asyncio_are_of_one_process() -> None:
    (one,) = read(
        "Task-1..2 (2 tasks): `go` (a.py:1) -> `acquire` (asyncio/locks.py:3)\nTask-9 (1 task): `run` (b.py:2) -> `get` (asyncio/queues.py:4)\n"
    )
    assert [(t.name, [f[0] for f in t.chain]) for t in one.tasks or ()] == [
        ("Task-1", ["go", "acquire"]),
        ("Task-2", ["go", "acquire"]),
        ("Task-9", ["run", "get"]),
    ]


def test_some_of_them_by_a_word_alone() -> None:
    text = "I looked at all eight actors: seven are waiting in an allgather, critic rank 5 is still tokenizing its batch (`encode_batch`)."
    assert [frames for _, frames in told(text)] == [["all_gather"], ["encode_batch"]]


def test_it_is_the_one_of_the_sentence_before() -> None:
    text = "Only rank 0 runs evaluation. It is still in the validation loop while all other ranks wait at the barrier."
    assert told(text) == [("0", ["evaluate"]), ("all other ranks", ["barrier"])]


def test_numbers_of_one_name_are_not_anothers() -> None:
    (one,) = read("- PP0, PP1: in a collective\n- PP3: in `recv_forward` (`p2p_communication.py:448`)\n")
    assert (one.label, one.rank) == ("PP3", None)


def test_a_number_behind_worker_is_no_part_of_an_engine() -> None:
    (one,) = read("Worker 2 is still executing a tool: py-spy shows it in `communicate` (`subprocess.py:1209`) < `run_tests` (`tool.py:66`).")
    assert (one.title, one.label) == (None, "worker 2")


def test_rows_of_top_run() -> None:
    row = " 100.00% 100.00%   61.20s    61.20s   {} (radix_cache.py:560)\n"
    (one,) = read(row.format("_collect_leaves") + row.format("evict") + row.format("event_loop"))
    assert [t.active for t in one.threads] == [True]


def test_places_in_the_words_of_groups() -> None:
    text = "Ranks 0-1 are in the TP all-reduce of layer 12, ranks 2-3 are in the DP reduce-scatter of the grad buffer."
    assert [frames for _, frames in told(text)] == [["all_reduce"]] * 2 + [["reduce_scatter"]] * 2


def test_how_many_stand_at_a_place_and_who_they_are() -> None:
    (first, *_, last) = read("- 3x `all_reduce` < `optimizer_step` (ranks 0-1, 3)\n- 1x `_next_data` < `__next__` (rank 2)\n")
    assert (first.rank, first.threads[0].frames[0][0]) == (0, "all_reduce")
    assert (last.rank, last.threads[0].frames[0][0]) == (2, "_next_data")


def first_of(folder: Path, text: str) -> tuple[str, list[str]]:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    found = diagnose(snapshot).findings[0]
    return found.cause.value, [who.label for who in found.who]


@pytest.mark.parametrize(
    ("text", "cause", "who"),
    [
        ("CP0, CP1 and CP2 are blocked in `batch_isend_irecv` (`ring.py:77`). CP3 never posts its send.\n", "straggler", ["CP3"]),
        ("Stage 1 died. Stage 0 is in `send_forward` (`p2p.py:4`), stage 2 in `recv_forward` (`p2p.py:8`).\n", "straggler", ["Stage 1"]),
        ("Rank 0 sits in `acquire` (`filelock/_api.py:344`). Everyone else waits for rank 0 in a barrier.\n", "blocked-io", ["rank/0"]),
    ],
)
def test_who_is_said_to_lack_is_the_one(tmp_path: Path, text: str, cause: str, who: list[str]) -> None:
    assert first_of(tmp_path, text) == (cause, who)
