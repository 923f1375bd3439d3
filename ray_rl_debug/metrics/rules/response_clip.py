"""RRD715 answers reach the longest length

Story
    More than one in twenty responses is as long as it may be, so it was cut off. Its reward judges half an answer.

Evidence
    response_length/clip_ratio over several steps; whether responses grow.

Remedy
    Allow longer answers (data.max_response_length), filter or penalise those that are too long.

Not this when
    All responses have one length by design.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.advice import FILTERED, LONGER
from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Beyond
from ray_rl_debug.metrics.lengths import growing_length
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, at_most, judge_limit

ID = "RRD715"
NAME = "answers reach the longest length"
RULE = modules[__name__]


def judge(bench: Bench) -> Iterator[Judgement]:
    """The ratio, and beside it the length that may be the reason."""

    def say(_: Beyond) -> Said:
        growth = growing_length(bench, bench.threshold("seq_len_rise"))
        return Said(remedy=(LONGER, FILTERED), evidence=(f"responses grow: {growth.words}",) if growth is not None else ())

    yield from judge_limit(RULE, bench, Quantity.RESPONSE_CLIP_RATIO, at_most(bench.threshold("response_clip_ratio")), say)
