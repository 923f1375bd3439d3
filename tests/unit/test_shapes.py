"""What is asked of each shape once says the same as when everybody is asked, on recorded runs of all kinds."""

from __future__ import annotations

from functools import lru_cache

import pytest
from cases.taken_away import RECORDED

from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, Kind
from ray_rl_debug.analyze.outlook import TABLE, Needs
from ray_rl_debug.analyze.outlook_facts import facts_of
from ray_rl_debug.analyze.shapes import has_coroutines
from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.imports.folder import load

SAMPLE = RECORDED[::25]


@lru_cache(maxsize=1)
def _view(number: int) -> View:
    snapshot = load((SAMPLE[number],)).snapshot
    assert snapshot is not None
    return build_view(snapshot)


each = pytest.mark.parametrize("number", range(len(SAMPLE)), ids=[f.name.removesuffix(".json.gz") for f in SAMPLE])


@each
def test_those_of_a_shape_are_those_that_everybody_asked_would_name(number: int) -> None:
    view = _view(number)
    everybody = list(view.seen.values())
    assert view.like(has_coroutines) == [one for one in view if one.process.async_tasks]
    assert view.like_parts(lambda shape: True) == everybody
    assert view.like(lambda shape: shape.is_stopped or shape.has_ended) == [one for one in view if one.is_stopped or one.has_ended]
    there = view.like_parts(lambda shape: shape.stands_in(THREAD_WAITS))
    assert there == [one for one in everybody if one.kind in THREAD_WAITS or any(t.place.kind in THREAD_WAITS for t in one.threads)]
    for kind in Kind:
        assert view.at(kind) == [one for one in view if one.kind is kind]


@each
def test_rows_that_are_not_asked_have_nothing_to_say(number: int) -> None:
    view = _view(number)
    waits = find_waits(view)
    graph = waits.graph
    for key, one in view.seen.items():
        facts = facts_of(view, one, graph.out(key), waits.joined, graph.by_target.get(key, ()))
        lacks = (Needs.NOTHING if facts.waits else Needs.WAITS) | (Needs.NOTHING if facts.asked else Needs.ASKED)
        row, reason = next((row, reason) for row in TABLE if not row.needs & lacks and (reason := row.reason(facts)) is not None)
        told = graph.solution.activities[key]
        assert (told.outlook, told.reason) == (row.outlook, reason), row.name


def test_there_are_shapes_of_many_kinds() -> None:
    assert len(SAMPLE) > 40
