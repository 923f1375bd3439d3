"""Times and levels as more programs write them: clocks without a day, log4j, Transformers, pairs, and what counts from 1970."""

from __future__ import annotations

import calendar
from typing import Any

import pytest

from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.logs.stamps import find_stamp

NOON_S = calendar.timegm((2026, 3, 2, 12, 0, 0))


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("11:59:01 - agent:INFO: looks at a file", "I", "looks at a file"),
        ("11:59:01 |   ERROR | group 7 is empty", "E", "group 7 is empty"),
        ("(Boss pid=7) 11:59:01,123 WARNING: slow", "W", "slow"),
        ("26/03/02 11:59:01 WARN hdfs.Writer: a node is excluded", "W", "a node is excluded"),
        ("03/02/2026 11:59:01 - ERROR - trainer - no such file", "E", "no such file"),
        ("[03/02/2026-11:59:01] [TRT-LLM] [RANK 2] [E] no such file", "E", "no such file"),
        ("[INFO|trainer.py:712] 2026-03-02 11:59:01,001 >> begins", "I", "begins"),
        ('time="2026-03-02T11:59:01Z" level=error msg="no image" error="no route" rank=3', "E", "no image: no route"),
        ("ts=1772452741.25 level=warn msg=slow", "W", "slow"),
        ("1772452741123 ERROR slow", "E", "slow"),
        ("Mar 2, 2026 @ 11:59:01.123    ERROR slow", "E", "slow"),
        ("[1772452741.123456] slow", None, "slow"),
    ],
)
def test_the_time_and_the_level(line: Any, level: Any, text: Any) -> None:
    head = read_head(line, near_s=NOON_S)
    assert (head.level, head.text, head.is_stamped) == (level, text, True)
    assert head.time_s is not None and int(head.time_s) == NOON_S - 59


def test_the_rank_of_pairs() -> None:
    assert read_head("level=error msg=slow rank=3").writer.rank == "3"
    assert read_head("got level=error in the answer").level is None


@pytest.mark.parametrize("line", ["11:59:01 elapsed", "seed 1772452741", "loss 26/03/02 11:59:01 x", "step 17724527411"])
def test_no_time(line: Any) -> None:
    assert find_stamp(line, near_s=NOON_S) is None
