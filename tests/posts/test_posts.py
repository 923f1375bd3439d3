"""Posts as people write them: every stack is read, most causes are named, nobody is accused who should not be."""

from __future__ import annotations

from functools import cache

import pytest
from posts.corpus import HERE, Outcome, outcomes

from ray_rl_debug.formats.pasted.read import read

LOG = "".join(f"2026-11-21 10:00:{i % 60:02},{i % 1000:03} INFO dp_actor.py:41 -- micro batch {i} of 640\n" for i in range(320))
NAMES = sorted(p.parent.name for p in HERE.glob("*/truth.json"))


@cache
def found() -> dict[str, Outcome]:
    return {o.name: o for o in outcomes()}


@pytest.mark.parametrize("name", NAMES)
def test_every_stack_is_read(name: str) -> None:
    one = found()[name]
    assert one.counts == one.truth["read"]


def test_the_corpus_is_as_broad_as_it_says() -> None:
    assert len(NAMES) >= 60
    assert len({o.form for o in found().values()}) >= 25
    assert sum(not o.is_established for o in found().values()) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_accused_who_should_not_be(name: str) -> None:
    assert not found()[name].accuses_wrongly


def test_most_causes_are_named_first() -> None:
    established = [o for o in found().values() if o.is_established]
    assert len(established) >= 30
    assert [o.name for o in established if not o.is_named][: len(established) // 5 + 1] == [o.name for o in established if not o.is_named]


@pytest.mark.parametrize("name", NAMES)
def test_what_stacks_cannot_tell_has_a_next_look(name: str) -> None:
    one = found()[name]
    if not one.is_established:
        assert one.tells_next, one.advice


@pytest.mark.parametrize("name", NAMES)
def test_stacks_in_the_middle_of_a_log_are_read_as_alone(name: str) -> None:
    for file in (p for p in (HERE / name).rglob("*") if p.is_file()):
        text = file.read_bytes().decode("utf-8", "replace")
        if file.name != "truth.json" and not text.startswith(("{", "[")):
            assert stacks_of(f"{LOG}\n\n{text}\n\n{LOG}") == stacks_of(text)


def stacks_of(text: str) -> list[tuple[object, ...]]:
    """Name and size of each stack, and how many tasks stand beside it."""
    return sorted((str(d.pid), str(d.rank), str(d.label), sum(len(t.frames) for t in d.threads), len(d.tasks or ())) for d in read(text))
