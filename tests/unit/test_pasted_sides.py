"""Names that two have, ranks that stand as another one does, and words of time that are no doubt."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.formats.pasted.said import as_rank, remark

STACK = "```\n    wait_recv (pipe.py:88)\n    recv (pipe.py:120)\n```\n"


@pytest.mark.parametrize("heads", [("Prefill TP0:", "Decode TP0:"), ("**prefill worker TP0**", "**decode worker TP0**")])
def test_two_engines_have_a_part_of_one_name(heads: tuple[str, str]) -> None:
    found = read("".join(f"{head}\n{STACK}" for head in heads))
    assert [d.label for d in found] == ["prefill TP0", "decode TP0"]


@pytest.mark.parametrize("text", ["rank 3 is as rank 0.", "rank 3 stands exactly as rank 0", "rank 3 looks just like rank 0"])
def test_a_rank_that_is_as_another_one(text: str) -> None:
    told = remark(text)
    assert (as_rank(text), told.ranks if told is not None else None) == (0, (3,))


def test_when_it_hangs_is_no_doubt() -> None:
    text = "When it hangs ranks 0-1 are in `backward` of the loop, ranks 2-3 are in `all_reduce` of the validation."
    assert {(d.rank, d.threads[0].frames[0][0]) for d in read(text)} == {(0, "backward"), (1, "backward"), (2, "all_reduce"), (3, "all_reduce")}


def test_when_something_is_called_is_one() -> None:
    assert read("When the flag is set rank 0 is in `backward` of the loop.") == []
