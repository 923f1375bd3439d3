"""Waits on the GPU: kernels that spin are a collective, kernels that draw power are work, one number alone is neither."""

from __future__ import annotations

import msgspec
import pytest
from scenes import EXECUTOR, MAIN, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, State
from ray_rl_debug.model.snapshot import Gpu, Snapshot

STEP = f"Trainer.step@app/trainer.py:40 Trainer.update_policy@app/trainer.py:20 {EXECUTOR} {MAIN}"
SYNCHRONIZE = f"synchronize@torch/cuda/__init__.py:985 {STEP}"
REWARD = f"normalize@app/reward.py:9 Trainer.compute_reward@app/trainer.py:60 {EXECUTOR} {MAIN}"


def run(*rows: tuple[str, float | None, float | None], cpu_s: float = 0.02) -> Snapshot:
    """Ranks given as stack, utilisation in percent and power in watts of their own 700 W card."""
    stacks = Stacks()
    found = [process(stacks, 100 + i, "ray::Trainer.update_policy", text, rank=i, size=len(rows), cpu_s=cpu_s) for i, (text, _, _) in enumerate(rows)]
    gpus = [
        Gpu(index=i, uuid=f"GPU-{i}", name="card", utilization_percent=used, power_watts=watts, power_limit_watts=700.0, pids=(100 + i,))
        for i, (_, used, watts) in enumerate(rows)
    ]
    return snapshot(stacks.node(found, gpus=tuple(gpus)))


@pytest.mark.parametrize("waiting", [SYNCHRONIZE, f"Trainer.log@app/trainer.py:55 {STEP}"])
@pytest.mark.parametrize("cpu_s", [0.02, 1.98])
def test_the_rank_whose_card_is_idle_is_waited_for(waiting: str, cpu_s: float) -> None:
    report = diagnose(run((waiting, 100, 128), (waiting, 100, 131), (REWARD, 0, 75), cpu_s=cpu_s))
    assert [(f.cause, [w.rank for w in f.who]) for f in report.findings] == [(Cause.STRAGGLER, [2])]
    assert any("its kernel spins" in p.doing or "a collective on the GPU" in p.doing for p in report.processes if p.who.rank == 0)


def test_lines_that_differ_are_no_mismatch_when_all_cards_spin() -> None:
    """The thread waits wherever a result is needed: that tells nothing about which collective it is."""
    report = diagnose(run((SYNCHRONIZE, 100, 128), (f"Trainer.log@app/trainer.py:55 {STEP}", 100, 131)))
    assert Cause.COLLECTIVE_MISMATCH not in {f.cause for f in report.findings}


def test_cards_that_draw_power_work() -> None:
    report = diagnose(run((SYNCHRONIZE, 100, 640), (SYNCHRONIZE, 99, 655)))
    assert report.verdict.state is not State.HANG
    assert not report.findings


@pytest.mark.parametrize(("used", "watts"), [(None, 128), (100, None), (50, 128)])
def test_one_number_alone_tells_nothing(used: float | None, watts: float | None) -> None:
    report = diagnose(run((SYNCHRONIZE, used, watts), (REWARD, 0, 75)))
    assert not [f for f in report.findings if f.certainty.value != "possible"]


def test_a_neighbour_on_the_same_card_may_be_the_one_that_spins() -> None:
    shared = run((f"normalize@app/reward.py:9 {STEP}", 100, 128), (SYNCHRONIZE, 100, 128))
    (node,) = shared.nodes
    gpus = tuple(msgspec.structs.replace(g, pids=(*g.pids, 999)) for g in node.gpus or ())
    report = diagnose(msgspec.structs.replace(shared, nodes=(msgspec.structs.replace(node, gpus=gpus),)))
    doing = {p.who.rank: p.doing for p in report.processes}
    assert "collective" not in (doing[0] or "")
    assert "collective" in (doing[1] or "")


def test_devices_are_told_by_environment_where_nvml_shows_no_processes() -> None:
    hidden = run((SYNCHRONIZE, 100, 128), (REWARD, 0, 75))
    (node,) = hidden.nodes
    gpus = tuple(msgspec.structs.replace(g, pids=()) for g in node.gpus or ())
    processes = tuple(msgspec.structs.replace(p, env_now={**(p.env_now or {}), "CUDA_VISIBLE_DEVICES": str(i)}) for i, p in enumerate(node.processes))
    report = diagnose(msgspec.structs.replace(hidden, nodes=(msgspec.structs.replace(node, gpus=gpus, processes=processes),)))
    assert [[w.rank for w in f.who] for f in report.findings] == [[1]]
