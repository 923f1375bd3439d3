"""What logs of runs showed that were never seen before: a reward that saturates, several agents, a trainer made at home."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.model import Judgement, Run, Series, Status
from ray_rl_debug.metrics.quantities import Quantity, find
from ray_rl_debug.metrics.thresholds import read_thresholds
from ray_rl_debug.model.errors import UsageError

LIMITS = read_thresholds(())


def judged(values: np.ndarray, rule: str) -> Judgement:
    series = Series(name="critic/score/mean", steps=tuple(range(len(values))), values=tuple(values.tolist()))
    report = judge(Run(label="made", series={series.name: series}), LIMITS)
    return next(j for j in (*report.findings, *report.judged) if j.id == rule)


def test_a_reward_that_rises_fast_and_then_slowly_has_left_where_it_began() -> None:
    g, t = np.random.default_rng(8), np.arange(400)
    slow = np.cumsum(g.normal(0, 0.004, 400))
    values = 0.1 + 0.6 * (1 - np.exp(-t / 15)) + slow - np.linspace(0, slow[-1], 400) + g.normal(0, 0.02, 400)
    found = judged(values, "RRD706")
    assert found.status is Status.GOOD
    assert "has left where it began: 0.3" in found.summary


def test_a_reward_that_was_as_high_at_first_has_not() -> None:
    g = np.random.default_rng(9)
    values = 0.4 + np.cumsum(g.normal(0, 0.02, 300))
    values[-60:] = values[:60][::-1]
    assert judged(values, "RRD706").status is not Status.GOOD


@pytest.mark.parametrize(("lost", "certainty"), [((50, 150, 250), "possible"), ((50, 51), "proven"), (range(40, 400, 40), "proven")])
def test_single_steps_that_an_export_leaves_out_are_no_trouble(lost: Iterable[int], certainty: str) -> None:
    steps = tuple(s for s in range(400) if s not in lost)
    series = Series(name="critic/score/mean", steps=steps, values=tuple(0.3 + s / 1000 for s in steps))
    found = next(f for f in judge(Run(label="made", series={series.name: series}), LIMITS).findings if f.id == "RRD717")
    assert found.certainty is not None
    assert found.certainty.value == certainty


def test_what_stands_above_the_agents_sums_them_up() -> None:
    names = [f"collection/{who}reward/episode_reward_mean" for who in ("guard/", "", "scout/")]
    assert find(Quantity.REWARD, names) == ("collection/reward/episode_reward_mean",)


def test_pairs_behind_a_step_in_brackets(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"[step {n}] avg_loss=0.0{n} acc=0.{n}000\nsome answer of the model = 4\n" for n in range(10, 60, 10)))
    run = load([log], {})
    assert {name: series.steps for name, series in run.series.items()} == dict.fromkeys(("avg_loss", "acc"), (10, 20, 30, 40, 50))
    assert find(Quantity.REWARD, run.series) == ("acc",)


def test_a_block_whose_names_are_set_to_the_right(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    block = "{0:#>80}\n{1:^80}\n\n{2:>35} 41234 steps/s (collection: 1.2s, learning 0.3s)\n{3:>35} 0.0123\n{4:>35} {5:.1f}\n{0:->80}\n{6:>35} 1.58s\n"
    told = ("", "Learning iteration {n}/1500", "Computation:", "Value function loss:", "Mean reward:")
    log.write_text("".join(block.format(told[0], told[1].format(n=n), *told[2:], 10.0 + n, "Iteration time:") for n in range(30)))
    run = load([log], {})
    assert run.series["mean_reward"].values == tuple(10.0 + n for n in range(30))
    assert run.series["value_function_loss"].steps == tuple(range(30))


def test_an_array_of_one_number_behind_a_step(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "".join(f"global_step={n * 512}, episodic_return=[{20.5 + n}]\nSPS: 2000\nstep {n} of the plan: reward 4 people\n" for n in range(9))
    )
    run = load([log], {})
    assert list(run.series) == ["episodic_return"]
    assert find(Quantity.REWARD, run.series) == ("episodic_return",)
    assert run.series["episodic_return"].values[:2] == (20.5, 21.5)


def test_a_mapping_of_columns_and_names_in_a_container(tmp_path: Path) -> None:
    columns, rows = tmp_path / "columns.json", tmp_path / "rows.jsonl"
    columns.write_text('{"_step": [0, 1, 2], "Train/mean_reward": [1.0, null, 3.0], "note": ["a"]}')
    run = load([columns], {})
    assert {name: (series.steps, series.values) for name, series in run.series.items()} == {"Train/mean_reward": ((0, 2), (1.0, 3.0))}
    rows.write_text("".join(f'{{"when": {n}, "values": {{"actor.grad_norm": 0.{n}}}, "note": "x"}}\n' for n in range(1, 4)))
    run = load([rows], {"step": "when"})
    assert list(run.series) == ["actor.grad_norm"]
    assert find(Quantity.GRAD_NORM, run.series) == ("actor.grad_norm",)


def test_the_parts_of_one_run_lie_beside_each_other(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for part, tag in (("train", "train/reward"), ("eval", "reward")):
        writer = EventFileWriter(str(tmp_path / part))
        for step in range(3):
            writer.add_event(Event(step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=step)])))
        writer.close()
    assert set(load([tmp_path], {}).series) == {"train/reward", "eval/reward"}
    (tmp_path / "eval").rename(tmp_path / "seed2")
    with pytest.raises(UsageError, match="holds 2 runs"):
        load([tmp_path], {})
