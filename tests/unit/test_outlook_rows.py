"""A row of the table of outlooks that needs waits, or waiters, says nothing without them: so it need not be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.analyze.outlook import TABLE, Needs
from ray_rl_debug.analyze.outlook_facts import facts_of
from ray_rl_debug.analyze.rank_counters import find_joined
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.imports.folder import load

TESTS = Path(__file__).resolve().parents[1]
HANGS = sorted([*(TESTS / "kinds" / "recorded").glob("*-hang.json.gz"), *(TESTS / "cases").glob("RRD*/hang*.json.gz")])


@pytest.mark.parametrize("needs", [Needs.WAITS, Needs.ASKED])
def test_a_row_says_nothing_without_what_it_needs(needs: Needs) -> None:
    rows = [row for row in TABLE if row.needs is needs]
    said = set()
    for path in HANGS[::4]:
        taken = load((path,)).snapshot
        assert taken is not None
        view = build_view(taken)
        graph, joined = find_waits(view).graph, find_joined(view)
        for one in view.seen.values():
            waits, asked = graph.out(one.key), graph.by_target.get(one.key, ())
            said |= {row.name for row in rows if row.reason(facts_of(view, one, waits, joined, asked)) is not None}
            less = facts_of(view, one, () if needs is Needs.WAITS else waits, joined, () if needs is Needs.ASKED else asked)
            assert [row.name for row in rows if row.reason(less) is not None] == []
    assert said, "none of these rows applied anywhere: nothing was shown"
