"""The benchmark of a thousand nodes, small: a made cluster of recorded nodes over real sockets, in front of the product's own driver."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from made_cluster import Behaviour, Served
from scale_gather import HOST, cluster, order_and_judge
from scale_tables import measured

from ray_rl_debug.capture.cluster_tables import ClusterTables
from ray_rl_debug.model import gaps

pytestmark = pytest.mark.integration
pytest.importorskip("grpc", reason="Ray's tables are served over gRPC")

NODES = 20
MESSAGE_BYTES = 64 << 10
BEYOND_WINDOW_S = 60.0
"""The aim is 15 s on a machine that does nothing else; a gather that waits for the silent to the end takes more than this with the given time."""


def test_silent_damaged_cut_and_late_nodes() -> None:
    how = Behaviour(silent=0.05, damaged=0.05, cut=0.05, late=0.05, late_s=2.0, seed=3)
    kinds = how.kinds(NODES)
    row, snapshot, report = order_and_judge(NODES, how, timeout_s=120.0)
    assert report.verdict.state.value == "hang"
    assert [(w.node, w.pid, w.label) for w in report.findings[0].who] == [("node0", 1100, "EndlessNormaliser/1")]
    reasons = {g.where: g.reason for g in snapshot.gaps if g.id == "RRD901"}
    assert reasons.keys() == {f"node{n}" for n, kind in enumerate(kinds) if kind in ("silent", "damaged", "cut")}
    assert reasons[f"node{kinds.index('damaged')}"].startswith("its facts came damaged")
    assert reasons[f"node{kinds.index('cut')}"].startswith("its watcher ended while it collected")
    assert reasons[f"node{kinds.index('silent')}"].startswith("no answer in")
    assert f"node{kinds.index('late')}" in {n.name for n in snapshot.nodes}
    assert row.message_bytes <= MESSAGE_BYTES
    assert row.wall_s <= row.window_s + BEYOND_WINDOW_S
    assert all(len(n.processes) == 100 for n in snapshot.nodes)


def test_all_answer() -> None:
    _, snapshot, report = order_and_judge(4, Behaviour(silent=0.0))
    assert len(snapshot.nodes) == 4
    assert report.gaps == ()
    assert report.findings[0].id == "RRD101"


def test_what_watch_polls_does_not_grow_with_the_actors() -> None:
    few, many = ({row.what: row for row in measured(10, actors)} for actors in (40, 800))
    assert many["look: all tables"].sent_bytes > 5 * few["look: all tables"].sent_bytes
    assert many["roll"].sent_bytes == few["roll"].sent_bytes
    assert few["roll, new workers on a node"].came == "21 workers"
    assert many["look: all tables"].came == "800 actors"


@pytest.mark.parametrize("answers_late", [False, True])
def test_tables_that_were_read_ahead_count_until_somebody_else_answers(answers_late: bool) -> None:
    """The cluster has ended when they are asked for: what is there was read ahead, or is missing."""
    with cluster(Served(nodes=4, behaviour=Behaviour(silent=0.0))) as (_, told):
        tables = ClusterTables(f"{HOST}:{told['port']}", call_s=5.0, deadline=time.monotonic() + 20.0, progress=print)
        first = tables.read()
        tables.count_calls(first).join()
        *early, last = told["node_ids"]
        tables.read_ahead(lambda: early)
        for thread in threading.enumerate():
            if thread.name == "tables":
                thread.join(20.0)
    state, workers = tables.read_again(first, [*early, last] if answers_late else early, ())
    assert [g.what for g in tables.gaps if g.id == gaps.RAY_TABLES] == (["tables at the end of the window"] if answers_late else [])
    assert bool(state.object_store) is not answers_late
    assert {w.executed_tasks_before for w in workers if w.actor_id} == ({None} if answers_late else {11})
