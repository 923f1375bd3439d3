"""One real run in every form gives the same metrics; damaged and hostile files cost themselves only."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import math
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ray_rl_debug.metric_sources.gathered import Gathered, flat_settings
from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.model import Run
from ray_rl_debug.metrics.thresholds import read_thresholds
from ray_rl_debug.model.errors import RayRlDebugError, UnreadableFileError, UsageError
from ray_rl_debug.model.report import Certainty

DATA = Path(__file__).parent.parent / "data" / "metrics"
SAME = ("critic/score/mean", "actor/grad_norm", "timing_s/step", "response_length/mean", "training/rollout_probs_diff_mean")


def read(name: str) -> Run:
    return load([DATA / name], {})


@pytest.mark.parametrize("name", ["verl.jsonl", "verl_console.log", "verl.csv", "mlflow", "tensorboard", "wandb/run-made.wandb", "wandb"])
def test_a_real_run_is_the_same_in_every_form(name: str) -> None:
    if name.startswith(("tensorboard", "wandb")):
        pytest.importorskip(name.split("/")[0], reason="the reader of this form is an extra")
    expected, run = read("verl.jsonl"), read(name)
    assert run.framework == "verl"
    assert run.steps() == (1, 2, 3)
    for metric in SAME:
        assert run.series[metric].values == pytest.approx(expected.series[metric].values, rel=1e-6)
    broken = run.series["training/rollout_actor_probs_pearson_corr"].values
    assert broken[0] is None or math.isnan(broken[0])
    assert run.gaps == ()
    if name != "mlflow":  # of which only some metrics are kept here
        assert set(run.series) == set(expected.series)


def rewritten(run: Run, form: str, folder: Path) -> Path:
    """The values of a run as another logger writes them."""
    steps, names = run.steps(), sorted(run.series)
    value = {name: dict(zip(run.series[name].steps, run.series[name].values, strict=True)) for name in names}
    if form == "jsonl":
        path = folder / "verl.jsonl"
        rows = ({"step": step, "data": {n: value[n][step] for n in names if step in value[n]}} for step in steps)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "csv":
        path = folder / "verl.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", *names])
            writer.writerows([step, *(value[n].get(step, "") for n in names)] for step in steps)
    else:
        path = folder / "events"
        pytest.importorskip("tensorboard", reason="the reader of this form is an extra: pip install 'ray-rl-debug[tensorboard]'")
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        events = EventFileWriter(str(path))
        for step in steps:
            told = [Summary.Value(tag=n, simple_value=value[n][step]) for n in names if step in value[n]]
            events.add_event(Event(step=step, wall_time=1.0, summary=Summary(value=told)))
        events.close()
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv", "tensorboard"])
def test_a_long_real_run_is_judged_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    """63 steps of verl with vLLM on a CPU, from its console; each finding and each judgement, with its step."""
    pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")
    console = read("verl_vllm_63_steps.log.gz")
    run = load([rewritten(console, form, tmp_path)], {})
    assert run.steps() == console.steps() == tuple(range(1, 64))
    assert set(run.series) == set(console.series)
    limits = read_thresholds(())
    expected, found = judge(console, limits), judge(run, limits)
    assert [(f.id, f.metric, f.certainty, f.first_step) for f in found.findings] == [
        ("RRD708", "critic/score/mean", Certainty.LIKELY, 1),
        ("RRD715", "response_length/clip_ratio", Certainty.LIKELY, 1),
    ]
    assert [(j.id, j.metric, j.status) for j in found.judged] == [(j.id, j.metric, j.status) for j in expected.judged]


def test_settings_come_with_some_forms() -> None:
    pytest.importorskip("wandb", reason="the reader of this form is an extra")
    assert read("mlflow").settings == {"actor.ppo_n_minibatches": "4"}
    assert read("wandb").settings == {"actor_rollout_ref.rollout.name": "vllm", "actor.ppo_n_minibatches": "4"}
    assert load([DATA / "wandb"], {}, {"gpu": "A100"}).settings["gpu"] == "A100"


def test_secrets_of_a_configuration_are_not_kept() -> None:
    gathered = Gathered("x")
    config = {
        "stats_logger": {"wandb": {"wandb_api_key": "0123456789abcdef", "wandb_base_url": "https://u:p@host"}, "user_id": 7},
        "actor": {"ppo_n_minibatches": 4, "path": "/home/somebody/model", "use_decoupled_loss": True},
        "actor_rollout_ref": {"rollout": {"name": "vllm"}},
    }
    for name, value in flat_settings(config):
        gathered.keep_setting(name, value)
    assert gathered.settings == {"actor.ppo_n_minibatches": "4", "actor.use_decoupled_loss": "True", "actor_rollout_ref.rollout.name": "vllm"}


def test_the_console_of_areal_through_ray() -> None:
    run = read("areal_console.log")
    assert run.framework == "areal"
    assert run.steps() == (1, 2, 3)
    assert run.series["ppo_actor/task_reward/avg"].values == (0.25, 0.35, 0.45)
    assert len(run.series) == 10
    assert math.isnan(run.series["ppo_actor/update/entropy/avg"].values[2] or 0.0)
    assert run.settings == {"max_head_offpolicyness": "4"}
    assert run.is_ended is True


def test_the_console_of_verl_tells_its_end() -> None:
    assert read("verl_console.log").is_ended is True


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step:7 - actor/lr:1e-06 - a/b:np.float64(0.5)", {"actor/lr": 1e-06, "a/b": 0.5}),
        ("(TaskRunner pid=1, ip=10.0.0.2) step:7 - a/b:0.5 [repeated 2x across cluster]", {"a/b": 0.5}),
        ("\x1b[36m(x pid=1)\x1b[0m step:7 - val-core/openai/gsm8k/reward/mean@1:0.25", {"val-core/openai/gsm8k/reward/mean@1": 0.25}),
        ("step:7 - a/b:nan - c:inf - d:None - e:words", {"a/b": math.nan, "c": math.inf, "d": None}),
        ("global step:7 of 9", {}),
    ],
)
def test_lines_of_verl(line: str, expected: dict[str, float | None], tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"noise\n{line}\n")
    run = load([tmp_path / "log"], {})
    assert {n: str(s.values[0]) for n, s in run.series.items()} == {n: str(v) for n, v in expected.items()}
    assert run.steps() == ((7,) if expected else ())


def test_any_jsonl_with_a_named_step(tmp_path: Path) -> None:
    rows = [{"iter": {"n": i}, "stats": {"score": i / 10}, "name": "x"} for i in range(30)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    run = load([tmp_path / "a.jsonl"], {"step": "iter/n", "reward": "stats/score"})
    assert run.steps() == tuple(range(30))
    assert run.series["stats/score"].values[5] == 0.5
    stepless = load([tmp_path / "a.jsonl"], {})
    assert "--map step=COLUMN" in stepless.gaps[0].reason


def test_a_restart_replaces_the_steps_that_it_repeats(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": v} for s, v in ((1, 1.0), (2, 2.0), (3, 9.0), (2, 2.5), (3, 3.0))]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert load([tmp_path / "a.jsonl"], {}).series["loss"].values == (1.0, 2.5, 3.0)


def test_steps_after_a_restart_are_those_of_the_run_that_goes_on(tmp_path: Path) -> None:
    """The run came to step 6, went back to its checkpoint of step 3, and is at step 5 now: what it told of step 6 is of a course that is no more."""
    course = [{"step": s, "loss": 1.0 / s, "lr": 0.1} for s in range(1, 6)]
    lost = [{"step": 6, "loss": math.nan, "lr": 0.1}]
    again = [{"step": s, "loss": 0.9 / s, "lr": 0.1} for s in (4, 5)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in (*course, *lost, *again)))
    run = load([tmp_path / "a.jsonl"], {})
    assert run.steps() == (1, 2, 3, 4, 5)
    assert run.series["loss"].values == (1.0, 0.5, 1 / 3, 0.225, 0.18)
    assert run.series["lr"].steps == (1, 2, 3, 4, 5)
    assert "goes back once, at last to step 4" in run.sources[-1]


def test_what_is_told_twice_in_the_same_way_is_no_restart(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 1.0 / s, "corr": math.nan} for s in range(1, 6)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in (*rows, *rows[:2])))
    assert load([tmp_path / "a.jsonl"], {}).steps() == (1, 2, 3, 4, 5)


def test_a_late_result_of_an_earlier_step_is_no_restart(tmp_path: Path) -> None:
    rows = [*({"step": s, "loss": 1.0 / s} for s in range(1, 6)), {"step": 2, "eval/acc": 0.5}, {"step": 6, "loss": 0.1}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert load([tmp_path / "a.jsonl"], {}).steps() == (1, 2, 3, 4, 5, 6)


def database(path: Path, *runs: tuple[str, str, str]) -> Path:
    """A database as MLflow makes it, of the columns that are read; each run has id, name and status."""
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time INTEGER, lifecycle_stage TEXT)")
        made.execute("CREATE TABLE metrics (key TEXT, value FLOAT, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan BOOLEAN)")
        made.execute("CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT)")
        for i, (id_, name, status) in enumerate(runs):
            made.execute("INSERT INTO runs VALUES (?, ?, ?, ?, 'active')", (id_, name, status, i))
            told = [(1, 0.25, 0), (2, 0.0, 1), (3, sys.float_info.max, 0), (4, 0.5, 0)]
            made.executemany("INSERT INTO metrics VALUES ('val-core/a/acc/mean_at_4', ?, ?, ?, ?, ?)", [(v, s, id_, s, nan) for s, v, nan in told])
            made.execute("INSERT INTO params VALUES ('actor_rollout_ref/rollout/name', 'vllm', ?)", (id_,))
        made.commit()
    return path


def test_a_database_of_mlflow(tmp_path: Path) -> None:
    for source in (database(tmp_path / "mlruns.db", ("a1", "first", "FINISHED")), tmp_path):
        run = load([source], {})
        assert list(run.series) == ["val-core/a/acc/mean@4"]
        assert [str(v) for v in run.series["val-core/a/acc/mean@4"].values] == ["0.25", "nan", "inf", "0.5"]
        assert run.settings == {"actor_rollout_ref.rollout.name": "vllm"}
        assert run.is_ended is True


def test_a_database_of_several_runs_asks_which(tmp_path: Path) -> None:
    path = database(tmp_path / "mlruns.db", ("a1", "first", "FINISHED"), ("b2", "second", "RUNNING"), ("c3", "second", "RUNNING"))
    with pytest.raises(UsageError, match="holds 3 runs") as e:
        load([path], {})
    assert e.value.hint == "name one with --run ID, the latest first: c3 (second), b2 (second), a1 (first)"
    assert load([path], {}, wanted="first").is_ended is True
    assert load([path], {}, wanted="c3").is_ended is None
    for name, told in (("second", "2 runs called second"), ("fourth", "no run called fourth")):
        with pytest.raises(UsageError, match=told):
            load([path], {}, wanted=name)


def test_a_database_of_something_else_says_so(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as other:
        other.execute("CREATE TABLE runs (id TEXT)")
    with pytest.raises(UnreadableFileError, match="none of MLflow's"):
        load([tmp_path / "a.db"], {})
    (tmp_path / "b.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 3000)
    with pytest.raises(UnreadableFileError, match="this database cannot be read"):
        load([tmp_path / "b.db"], {})


def test_cut_and_damaged_lines_are_told_and_the_others_used(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"step": 1, "x": 1}\n\xff\xfe{"step"\n{"step": 2, "x": 2}\n[1]\n{"step": 3, "x"')
    run = load([tmp_path / "a.jsonl"], {})
    assert run.series["x"].values == (1.0, 2.0)
    assert "lines that are no JSON objects: 3" in run.gaps[0].reason


def test_gzip_that_ends_too_early(tmp_path: Path) -> None:
    text = "".join(json.dumps({"step": i, "x": i * 0.137}) + "\n" for i in range(20000)).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text)[:30000])
    run = load([tmp_path / "a.jsonl.gz"], {})
    assert len(run.steps()) > 100
    assert "too early" in " ".join(g.reason for g in run.gaps)


def read_or_why(path: Path) -> str:
    """Why a file cannot be read, and the hint; empty when it can. Any error that is not ours goes on."""
    try:
        load([path], {})
    except RayRlDebugError as e:
        return f"{e}\n{e.hint}"
    return ""


@pytest.mark.parametrize("name", ["run-x.wandb", "events.out.tfevents.1.x", "a.csv", "a.jsonl", "a.log", "core"])
@pytest.mark.parametrize("data", [b"", b"\x00" * 64, b"\x1f\x8b\x08\x00broken", b":W&B\xe1\xbe\x00\x00\x00", "é\n\x00,".encode()], ids=range(5))
def test_odd_files_give_one_sentence_or_an_empty_run(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    told = read_or_why(tmp_path / name)
    assert told == "" or told.count("\n") == 1


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400), st.sampled_from(["a.csv", "a.jsonl", "a.log"]))
def test_any_bytes(tmp_path: Path, data: bytes, name: str) -> None:
    (tmp_path / name).write_bytes({"a.csv": b"step,x\n1,", "a.jsonl": b'{"step": 1, "x": ', "a.log": b"step:1 - x:"}[name] + data)
    read_or_why(tmp_path / name)


def test_an_offline_run_that_is_still_written(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the reader of this form is an extra")
    whole = (DATA / "wandb" / "run-made.wandb").read_bytes()
    for size in (7, 8, 500, len(whole) // 2, len(whole) - 1):
        (tmp_path / "run-a.wandb").write_bytes(whole[:size])
        assert set(load([tmp_path / "run-a.wandb"], {}).steps()) <= {1, 2, 3}


def test_folders_with_several_runs_ask_which(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(DATA / "mlflow", tmp_path / name)
    with pytest.raises(UsageError, match="holds 2 runs") as e:
        load([tmp_path], {})
    assert "one" in e.value.hint
    assert load([tmp_path], {}, wanted="two").steps() == (1, 2, 3)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("no metrics")
    with pytest.raises(UnreadableFileError, match="no metrics of a form that is known"):
        load([tmp_path / "other"], {})


def test_a_table_without_steps_says_which_option_helps(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,x\n1,2\n")
    with pytest.raises(UnreadableFileError) as e:
        load([tmp_path / "a.csv"], {})
    assert "--map step=" in e.value.hint
    assert load([tmp_path / "a.csv"], {"step": "time"}).series["x"].values == (2.0,)


def test_an_export_of_wandb_has_the_names_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(
        '"Step","run-a - critic/score/mean","run-a - critic/score/mean__MIN","run-a - critic/score/mean__MAX"\n3,0.5,0.1,0.9\n4,0.6,0.1,0.9\n'
    )
    series = load([path], {}).series
    assert {n: s.values for n, s in series.items()} == {"critic/score/mean": (0.5, 0.6)}
    path.write_text('"Step","a - x","a - x__MIN","a - x__MAX","b - x","b - x__MIN","b - x__MAX"\n3,0.5,0.1,0.9,0.5,0.1,0.9\n')
    with pytest.raises(UsageError, match="holds 2 runs"):
        load([path], {})


def test_a_named_column_must_be_there() -> None:
    with pytest.raises(UsageError, match="no metric 'reward'"):
        load([DATA / "verl.jsonl"], {"reward": "reward"})


def executor_says(accepted: int, rejected: int, running: int = 8) -> str:
    did = "Finish and accept rollout." if accepted else "Finish but reject rollout."
    counts = f"{did} enqueued: 4, running: {running}, accepted: {accepted}, rejected: {rejected}."
    return f"\x1b[37m(AReaL)\x1b[0m 20261121-00:02:31.913 WorkflowExecutor INFO: {counts}\x1b[0m\n"


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([(0, n) for n in range(1, 121)], "the last 120 rollouts were all rejected, and none was ever accepted"),
        ([(n, 0) for n in range(1, 9)] + [(8, n) for n in range(1, 131)], "the last 130 rollouts were all rejected, and none after the first 8"),
        # a strict filter, a run that has only begun, one that was started anew
        ([(n // 40, n) for n in range(1, 400)], None),
        ([(0, n) for n in range(1, 60)], None),
        ([(0, n) for n in range(1, 90)] + [(0, n) for n in range(1, 30)], None),
    ],
)
def test_rollouts_that_are_all_rejected_are_told_from_a_strict_filter(counts: list[tuple[int, int]], said: str | None, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(executor_says(*one) for one in counts))
    report = judge(load([tmp_path / "train.log"], {}), read_thresholds(()))
    assert [(f.id, f.certainty) for f in report.findings] == ([("RRD716", Certainty.LIKELY)] if said else [])
    assert report.verdict.state.value == ("trouble" if said else "unknown")
    assert (said or "no metric is in the source") in report.verdict.summary
