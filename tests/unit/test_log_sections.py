"""Several files in one text, records that name their writer in other ways, and lines that name whom another line speaks of."""

from __future__ import annotations

import pytest

from ray_rl_debug.logs.book import BookReader
from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.model.log_story import LogStory
from ray_rl_debug.model.snapshot.log_book import LogWriter
from ray_rl_debug.story.tell import tell

CUDA = "RuntimeError: CUDA error: device-side assert triggered"


def story_of(*lines: str) -> LogStory:
    reader = BookReader("out.txt", modified_time_s=None)
    reader.feed(("\n".join(lines) + "\n").encode())
    told = tell([reader.end()])
    assert told is not None
    return told


@pytest.mark.parametrize(
    ("header", "writer"),
    [
        (("==> logs/rank_2.log <==",), LogWriter(rank="2")),
        (("==> /var/log/judge.log <==",), LogWriter(program="judge.log")),
        (("-" * 15, "hgx-12", "-" * 15), LogWriter(node="hgx-12")),
        (("-" * 16, "node3", "-" * 16), LogWriter(node="node3")),
        (("-" * 16, "Summary", "-" * 16), LogWriter()),
        (("==> rank_2.log",), LogWriter()),
    ],
)
def test_a_header_names_the_writer_of_the_lines_below(header: tuple[str, ...], writer: LogWriter) -> None:
    reader = BookReader("out.txt", modified_time_s=None)
    reader.feed("\n".join(("step 1", *header, CUDA, "")).encode())
    assert [e.writer for e in reader.end().events] == [writer]


def test_a_header_counts_in_later_blocks_and_until_the_next() -> None:
    reader = BookReader("out.txt", modified_time_s=None)
    calm = "".join(f"calm {i}\n" for i in range(4000))
    for part in ("==> rank_2.log <==\n", calm, f"{CUDA}\n", calm, "==> rank_5.log <==\n", calm, "ValueError: no such token\n", calm):
        reader.feed(part.encode())
    assert [(e.text, e.writer.rank) for e in reader.end().events] == [(CUDA, "2"), ("ValueError: no such token", "5")]


def test_what_another_file_goes_on_to_say_does_not_excuse_a_failure() -> None:
    told = story_of("==> rank_2.log <==", "ValueError: no such token", "==> rank_0.log <==", "retrying")
    assert told.first is not None and told.first.who[0].rank == 2


@pytest.mark.parametrize(
    ("line", "program", "rank"),
    [
        ("20251210-11:22:33.500 [rollout/3] ERROR: gone", "rollout", "3"),
        ("[reward_worker_2] gone", "reward_worker", "2"),
        ("2026-09-14 03:14:22.018 | ERROR    | reward_worker_2 | rm.client:score:101 - gone", "reward_worker", "2"),
        ("2026-09-14 03:14:22.018 [rollout 12] gone", None, None),
        ("2026-09-14 03:14:22.018 [step/12] gone", None, None),
        ("2026-09-14 03:14:22.018 | ERROR | batch_2 | gone", None, None),
    ],
)
def test_a_role_and_its_number(line: str, program: str | None, rank: str | None) -> None:
    writer = read_head(line).writer
    assert (writer.program, writer.rank) == (program, rank)


@pytest.mark.parametrize(
    ("record", "at"),
    [
        ('{"severity":"ERROR","timestamp":1750669108,"labels":{"rank":"5","host":"tr-1"},"message":"gone"}', 1750669108.0),
        ('{"level":"error","ts":1750669108.5,"kubernetes":{"rank":5,"pod_name":"tr-1"},"msg":"gone"}', 1750669108.5),
        ('{"level":"error","ts":1750669108250,"extra":{"rank":5,"node":"tr-1"},"msg":"gone"}', 1750669108.25),
        ('{"level":"error","ts":17,"extra":{"rank":5,"node":"tr-1"},"msg":"gone"}', None),
    ],
)
def test_a_record_that_names_its_writer_in_an_object_and_counts_seconds(record: str, at: float | None) -> None:
    head = read_head(record)
    assert (head.writer.rank, head.writer.node, head.text, head.time_s) == ("5", "tr-1", "gone", at)


OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed."


def test_the_next_line_names_whom_the_kernel_ended() -> None:
    told = story_of(OOM, "srun: error: n7: task 5: Out Of Memory")
    assert told.first is not None and [(w.node, w.rank) for w in told.first.who] == [("n7", 5)]


def test_of_two_that_were_ended_none_is_named_for_the_other() -> None:
    told = story_of(OOM, "srun: error: n7: task 5: Out Of Memory", "srun: error: n8: task 9: Out Of Memory")
    assert told.first is not None and [w.label for w in told.first.who] == ["slurmstepd"]


@pytest.mark.parametrize(
    "line",
    [
        "│ What does exit code 137 mean? │ Killed by signal 9 │ 1.00 │",
        '{"step": 10, "input": "fix Traceback (most recent call last):\\\\n ValueError: x", "score": 1.0}',
        "(Agent pid=8) [tool:bash] exit code: 127 stderr: command not found",
    ],
)
def test_samples_in_tables_and_objects_accuse_nobody(line: str) -> None:
    assert story_of(line, "{'loss': 0.2, 'reward': 0.5}").first is None


def test_a_person_says_whose_log_is_quoted() -> None:
    reader = BookReader("post.md", modified_time_s=None)
    reader.feed(b"Nothing for rank 3, its log ends with\n\n```\ntorch.OutOfMemoryError: CUDA out of memory.\n```\nKeyError: 'of another'\n")
    assert [(e.text[:8], e.writer.rank) for e in reader.end().events] == [("torch.Ou", "3"), ("KeyError", None)]
