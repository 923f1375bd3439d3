"""One real run of verl with all its loggers on at once: the same steps, metrics, values and verdict from each form.

`verl_161_steps.tar.gz` is a run of verl 0.9.1 on CPUs (`tests/frameworks/trainer`; its engine makes tokens up, so probabilities do not agree) with
``trainer.logger=[console,file,tensorboard,wandb,mlflow]``, W&B offline, MLflow in its database, a validation before the training and every ten steps.
Of 97 metrics 17 are kept, as each logger wrote them (the console through Ray); MLflow's folder was written by MLflow 3.17 from the same values, the
table is what a person exports. What names people, machines and folders was taken out.
"""

from __future__ import annotations

import math
import tarfile
from pathlib import Path

import pytest

from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.model import MetricsReport, Run
from ray_rl_debug.metrics.thresholds import read_thresholds
from ray_rl_debug.model.report import Certainty

ARCHIVE = Path(__file__).parent.parent / "data" / "metrics" / "verl_161_steps.tar.gz"
FORMS = {
    "file logger": "run.jsonl",
    "console": "console.log",
    "TensorBoard": "tensorboard",
    "W&B": "run-abc12345.wandb",
    "MLflow database": "mlruns.db",
    "MLflow folder": "mlflow",
    "table": "run.csv",
}
NEED = {"TensorBoard": "tensorboard", "W&B": "wandb"}
SINGLE = {"TensorBoard"}
"""Forms whose values have 24 bits."""
JUDGED = ("console", "TensorBoard", "MLflow database")
"""One form of each sort: it tells the end, has 24 bits, or tells settings. Of the others the values are compared, to the last bit."""
SETTINGS = {
    "actor_rollout_ref.actor.ppo_epochs": "1",
    "actor_rollout_ref.actor.ppo_mini_batch_size": "4",
    "actor_rollout_ref.rollout.n": "2",
    "actor_rollout_ref.rollout.name": "vllm",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("forms")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(where)
    return where


@pytest.fixture(scope="module")
def expected(folder: Path) -> Run:
    return load([folder / FORMS["file logger"]], {})


@pytest.fixture(scope="module")
def first(expected: Run) -> MetricsReport:
    pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")
    return judge(expected, read_thresholds(()))


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name in NEED:
        pytest.importorskip(NEED[name], reason="the reader of this form is an extra")
    return name


def test_each_form_tells_the_same_steps_metrics_and_values(form: str, folder: Path, expected: Run) -> None:
    run = load([folder / FORMS[form]], {})
    assert (run.framework, run.gaps) == ("verl", ())
    assert run.steps() == expected.steps() == tuple(range(161))
    assert list(run.series) == list(expected.series)
    assert "val-core/sums/acc/mean@1" in run.series
    for name, series in run.series.items():
        assert series.steps == expected.series[name].steps
        assert series.values == pytest.approx(expected.series[name].values, rel=1e-7 if form in SINGLE else 0, abs=0, nan_ok=True)
    never = run.series["training/rollout_actor_probs_pearson_corr"].values
    assert sum(math.isnan(v) for v in never if v is not None) > 0


def test_settings_and_the_end_are_told_where_a_form_has_them(form: str, folder: Path) -> None:
    run = load([folder / FORMS[form]], {})
    assert run.settings == (SETTINGS if form.startswith(("W&B", "MLflow")) else {})
    assert run.is_ended is (True if form in ("console", "W&B", "MLflow database", "MLflow folder") else None)


def told(report: MetricsReport) -> list[tuple[str, str, Certainty | None, int | None]]:
    return [(f.id, f.metric, f.certainty, f.first_step) for f in report.findings]


@pytest.mark.parametrize("form", JUDGED)
def test_each_form_is_judged_the_same(form: str, folder: Path, first: MetricsReport) -> None:
    if form in NEED:
        pytest.importorskip(NEED[form], reason="the reader of this form is an extra")
    report = judge(load([folder / FORMS[form]], {}), read_thresholds(()))
    assert report.verdict.state is first.verdict.state
    assert told(report) == told(first)
    assert [(j.id, j.metric, j.status) for j in report.judged] == [(j.id, j.metric, j.status) for j in first.judged]
    assert told(report) == [
        ("RRD710", "training/rollout_probs_diff_mean", Certainty.LIKELY, 1),
        ("RRD715", "response_length/clip_ratio", Certainty.LIKELY, 1),
        ("RRD701", "training/rollout_actor_probs_pearson_corr", Certainty.POSSIBLE, 2),
        ("RRD720", "timing_s/gen", Certainty.POSSIBLE, 157),
    ]
