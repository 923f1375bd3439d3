"""Posts as people write them: every stack is read, most causes are named, nobody is accused who should not be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from posts.corpus import HERE, look

from ray_rl_debug.formats.pasted.read import read

LOG = [f"2026-11-21 10:00:{i % 60:02},{i % 1000:03} INFO dp_actor.py:41 -- micro batch {i} of 640\n" for i in range(320)]
TRUTHS: dict[str, dict[str, Any]] = {p.parent.name: json.loads(p.read_text(encoding="utf-8")) for p in sorted(HERE.glob("*/truth.json"))}


@pytest.mark.parametrize("name", TRUTHS)
def test_a_post(name: str) -> None:
    """One look for all questions: every stack is read, alone and in the middle of a log; nobody is accused who should not be; the cause
    or the next look is told."""
    one = look(HERE / name)
    assert one.counts == one.truth["read"]
    assert not one.accuses_wrongly
    if one.is_established:
        assert one.is_named == (not one.truth.get("missed", False))
    else:
        assert one.tells_next, one.advice
    for file in (p for p in (HERE / name).rglob("*") if p.is_file() and p.name != "truth.json"):
        text = file.read_bytes().decode("utf-8", "replace")
        if not text.startswith(("{", "[")):
            log = log_around(text)
            assert stacks_of(f"{log}\n\n{text}\n\n{log}") == stacks_of(text)


def test_the_corpus_is_as_broad_as_it_says() -> None:
    assert len(TRUTHS) >= 60
    assert len({truth["form"] for truth in TRUTHS.values()}) >= 25
    assert sum(truth["cause"] == "none" for truth in TRUTHS.values()) >= 20


def test_few_causes_are_missed() -> None:
    established = [truth for truth in TRUTHS.values() if truth["cause"] != "none"]
    assert len(established) >= 30
    assert sum(truth.get("missed", False) for truth in established) <= len(established) // 10


def log_around(text: str) -> str:
    """As much as makes the whole a text that is searched and not read line by line; a short post needs little."""
    return "".join(LOG[: 160 if text.count("\n") <= 16 else 320])


def stacks_of(text: str) -> list[tuple[object, ...]]:
    """Name and size of each stack, and how many tasks stand beside it."""
    return sorted((str(d.pid), str(d.rank), str(d.label), sum(len(t.frames) for t in d.threads), len(d.tasks or ())) for d in read(text))
