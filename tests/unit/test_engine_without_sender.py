"""Of files: an engine in the broadcast of an update of weights, beside processes none of which sends them."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty, Finding

ENGINE = """\
Process 1622: ray::RolloutActor.update_weight
Thread 1622 (active): "MainThread"
    broadcast (torch/distributed/distributed_c10d.py:2725)
    update_weight (app/engine_part.py:74)
    collective_rpc (vllm/executor/uniproc_executor.py:57)
    main_loop (ray/_private/worker.py:935)
"""
ASKS = """\
Process 1410: python run.py
Thread 1410 (idle): "MainThread"
    get (ray/_private/worker.py:2882)
    check_health (run.py:71)
    main (run.py:40)
"""
SENDS = """\
Process 1500: ray::Trainer.send_weights
Thread 1500 (active): "MainThread"
    broadcast (torch/distributed/distributed_c10d.py:2725)
    broadcast_weights (app/trainer.py:80)
    update_weights (app/trainer.py:60)
    main_loop (ray/_private/worker.py:935)
"""


def roots(folder: Path, text: str) -> list[Finding]:
    """The root findings on a pasted text."""
    post = folder / "post.md"
    post.write_text(text)
    return [f for f in diagnose(load([post]).snapshot).findings if f.root]


def test_an_engine_that_waits_for_weights_is_named(tmp_path: Path) -> None:
    first = roots(tmp_path, ASKS + ENGINE)[0]
    assert (first.cause, first.certainty) == (Cause.WEIGHT_SYNC_MISMATCH, Certainty.POSSIBLE)
    assert [w.pid for w in first.who] == [1622]


def test_with_a_sender_in_the_same_call_nobody_lacks(tmp_path: Path) -> None:
    assert Cause.WEIGHT_SYNC_MISMATCH not in {f.cause for f in roots(tmp_path, ASKS + SENDS + ENGINE)}
