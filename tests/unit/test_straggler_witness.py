"""Who is accused because others wait for it is accused as surely as they are known to wait."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waiting import build_graph
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rules import straggler
from ray_rl_debug.rules.scene import Scene

CASE = Path(__file__).resolve().parents[1] / "cases" / "RRD101" / "hang.json.gz"


@pytest.mark.parametrize("certainty", [Certainty.LIKELY, Certainty.POSSIBLE])
def test_a_straggler_is_as_sure_as_the_waits_for_it(certainty: Certainty) -> None:
    snapshot = load((CASE,)).snapshot
    assert snapshot is not None
    view = build_view(snapshot)
    waits = find_waits(view)
    edges = [msgspec.structs.replace(e, certainty=certainty) for e in waits.graph.edges]
    graph = build_graph(view, edges, waits.joined)
    found = list(straggler.detect(Scene(view=view, graph=graph, worlds=waits.worlds, joined=waits.joined)))
    assert [f.finding.certainty for f in found] == [certainty]
