"""The command ``metrics``: exit codes, formats, files, errors, two runs side by side; what it prints can be shown safely."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ray_rl_debug.commands import streams
from ray_rl_debug.commands.cli import main
from ray_rl_debug.metrics.model import Run, Series
from ray_rl_debug.metrics.statistics import numeric
from ray_rl_debug.render.html import curves
from ray_rl_debug.render.text_plot import draw

DATA = Path(__file__).parent.parent / "data" / "metrics"


def write(path: Path, columns: dict[str, list[float]]) -> str:
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(json.dumps({"step": i, "data": dict(zip(columns, row, strict=True))}) + "\n" for i, row in enumerate(rows, 1)))
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")
    import made_runs

    healthy = {n: [float(v) for v in c] for n, c in made_runs.healthy(4, "plain", 120).items() if not any(math.isnan(v) for v in c)}
    bad = {n: list(v) for n, v in healthy.items()}
    bad["actor/grad_norm"][79:] = [v * 1.2**i for i, v in enumerate(bad["actor/grad_norm"][79:])]
    return {"healthy": write(tmp_path / "healthy.jsonl", healthy), "bad": write(tmp_path / "bad.jsonl", bad)}


def test_exit_codes_and_the_first_line(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", files["healthy"]]) == 0
    assert capsys.readouterr().out.startswith("HEALTHY (likely): ")
    assert main(["metrics", files["bad"]]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("TROUBLE (likely): actor/grad_norm rises by a factor of ")
    assert re.search(r"RRD711 gradient norm rises  likely, from step (79|80|81|82)\n", shown)
    assert shown.rstrip().endswith("next: rayrl-debug explain RRD711")


def test_three_steps_of_a_real_run_give_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", str(DATA / "verl.jsonl")]) == 3
    shown = capsys.readouterr().out
    assert shown.startswith("UNKNOWN: 3 of the 20 steps that it takes to judge a trend")
    assert "not judged: " in shown


@pytest.mark.parametrize("text", ["", "[1, 2]\n", "a log of something else\n"])
def test_a_file_without_metrics_says_what_is_wanted(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.log").write_text(text)
    assert main(["metrics", str(tmp_path / "train.log")]) == 3
    assert capsys.readouterr().out.startswith("UNKNOWN: no metric is in the source; wanted: the trainer's log")


def test_empty_and_damaged_files_are_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train.log", "run.jsonl", "run.csv"):
        (tmp_path / name).touch()
        assert main(["metrics", str(tmp_path / name)]) == 3
        assert f"{name}: the file is empty" in capsys.readouterr().out
    pytest.importorskip("tensorboard", reason="event files need TensorBoard's reader")
    (tmp_path / "events.out.tfevents.1").write_bytes(bytes(range(256)) * 20)
    assert main(["metrics", str(tmp_path / "events.out.tfevents.1")]) == 3
    assert "no event could be read: the file is damaged" in capsys.readouterr().out


def test_a_reader_that_leaves_does_not_change_the_exit_code() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "ray_rl_debug", "metrics", str(DATA / "verl.jsonl"), "-v"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (3, b"")


def test_who_prints_long_after_its_reader_left_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = streams._Patient(writer, 5.0, drops=False)
    assert stream.write(b"a report") == 8
    monkeypatch.setattr(streams, "LAST_WORDS_S", -1.0)
    with pytest.raises(BrokenPipeError):
        stream.write(b"a step")
    os.close(writer)


def test_json_and_files(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", files["bad"], "--json", "-o", str(tmp_path / "out")]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "rayrl-debug/metrics/1"
    assert document["verdict"]["state"] == "trouble"
    assert [f["id"] for f in document["findings"]] == ["RRD711"]
    assert json.loads((tmp_path / "out" / "metrics.json").read_text()) == document
    assert (tmp_path / "out" / "metrics.txt").read_text().startswith("TROUBLE")
    page = (tmp_path / "out" / "metrics.html").read_text()
    assert 'class="line was"' in page
    assert "<line class=turn" in page
    assert re.findall(r'(?:src|href)="(?!#|data:)', page) == []


def test_two_runs_part_where_one_was_changed(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", files["healthy"], files["bad"], "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [p["metric"] for p in found["parted"]] == ["actor/grad_norm"]
    assert abs(found["parted"][0]["first_step"] - 80) <= 3
    assert found["equal_until"] == 80
    assert main(["metrics", files["healthy"], files["healthy"]]) == 0
    assert capsys.readouterr().out.startswith("ALIKE")
    assert main(["metrics", str(DATA / "verl.jsonl"), str(DATA / "verl.jsonl")]) == 3


def test_runs_of_one_seed_are_compared_from_where_they_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    noise = np.random.default_rng(3).normal(0, 0.05, (2, 100))
    one = [float(v) for v in np.exp(noise[0])]
    other = [v if i < 24 else float(0.6 * v * np.exp(noise[1][i])) for i, v in enumerate(one)]
    files = [write(tmp_path / f"{n}.jsonl", {"actor/entropy": values}) for n, values in (("a", one), ("b", other))]
    assert main(["metrics", *files, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["equal_until"] == 24
    assert [(p["metric"], p["first_step"], p["from_start"]) for p in found["parted"]] == [("actor/entropy", 25, False)]


def test_runs_that_differ_from_the_start(tmp_path: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    import made_runs

    other = {n: [float(v) for v in c] for n, c in made_runs.healthy(4, "plain", 120).items() if not any(math.isnan(v) for v in c)}
    other["timing_s/gen"] = [2 * v for v in other["timing_s/gen"]]
    assert main(["metrics", files["healthy"], write(tmp_path / "other.jsonl", other), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["parted"]
    assert [(p["metric"], p["from_start"], p["first_step"]) for p in found] == [("timing_s/gen", True, 1)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["metrics"],
        ["metrics", "a", "b"],
        ["metrics", str(DATA / "verl.jsonl"), "--map", "reward"],
        ["metrics", str(DATA / "verl.jsonl"), "--map", "rewards=x"],
        ["metrics", str(DATA / "verl.jsonl"), "--threshold", "kl=1"],
        ["metrics", str(DATA / "verl.jsonl"), "--set", "gpu"],
        ["metrics", str(DATA / "verl.jsonl"), "--set", "gpus=H100"],
        ["metrics", str(DATA / "verl.jsonl"), "--run", "5"],
        ["metrics", str(DATA / "wandb"), "--run", "nope"],
        ["metrics", *[str(DATA / "verl.jsonl")] * 3],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) >= 3


def test_without_scipy_one_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    numeric.load.cache_clear()  # tests before this one had it
    assert main(["metrics", write(tmp_path / "a.jsonl", {"critic/score/mean": [0.1] * 60})]) == 2
    error, hint, id_ = capsys.readouterr().err.splitlines()
    assert "scipy" in error
    assert hint == "hint:  pip install 'ray-rl-debug[metrics]'"
    assert id_.startswith("id:    RRD961")


def test_hostile_names_are_neutralised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "actor/grad_norm\x1b[2J<script>alert(1)</script>\u202e"
    path = write(tmp_path / "a.jsonl", {name: [math.inf] * 30})
    assert main(["metrics", path, "-v"]) == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\u202e" not in shown
    main(["metrics", path, "--format", "html"])
    page = capsys.readouterr().out
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_a_picture_in_text() -> None:
    lines = list(draw(range(1, 101), [0.0] * 50 + [1.0] * 50, width=40, height=4, high=0.5, mark=51))
    assert lines[4] == " " * 10 + "└" + "─" * 14 + "▲" + "─" * 14
    assert lines[5] == " " * 11 + "step 1       51           100"
    assert all(len(line) <= 40 for line in lines)
    assert any("╌" in line for line in lines)
    assert "⠉" in lines[0] and "⣀" in lines[3]


def test_a_curve_shows_band_change_and_broken_values() -> None:
    series = Series(name="x", steps=tuple(range(1, 101)), values=(*[0.1] * 60, math.nan, *[0.9] * 39))
    drawn = curves.draw(series, high=0.5, mark=61)
    assert drawn.count("class=broken") == 1
    assert "class=band" in drawn and "step 61" in drawn
    assert curves.draw(Series(name="x", steps=(1, 2), values=(None, None))) == ""
    many = curves.draw(Series(name="x", steps=tuple(range(100_000)), values=tuple(math.sin(i / 500) for i in range(100_000))))
    assert len(many) < 60_000


def test_a_limit_that_all_values_are_beyond_is_drawn_at_its_own_value() -> None:
    values = tuple(0.36 + 0.0001 * (i % 7) for i in range(50))
    drawn = curves.draw(Series(name="x", steps=tuple(range(50)), values=values), high=0.05)
    edge = re.search(r'class=edge [^>]*y1="([\d.]+)"', drawn)
    frame = re.search(r'class=frame [^>]*y="?([\d.]+)"?[^>]*height="?([\d.]+)"?', drawn)
    assert edge and frame
    assert float(edge[1]) < float(frame[1]) + float(frame[2]) - 1, "not on the lower edge of the frame"


def test_a_run_knows_its_steps() -> None:
    run = Run(label="x", series={n: Series(name=n, steps=s, values=(1.0,) * len(s)) for n, s in (("a", (1, 3)), ("b", (2, 3)))})
    assert run.steps() == (1, 2, 3)


def test_a_real_run_of_a_tiny_model_on_a_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    """verl 0.9.1 with vLLM 0.32: eight samples of at most 16 tokens for each step. Whether its reward rises cannot be told, and is not."""
    pytest.importorskip("scipy", reason="trends need scipy: pip install 'ray-rl-debug[metrics]'")
    assert main(["metrics", str(DATA / "verl_vllm_63_steps.log.gz"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(f["id"], f["certainty"], f["first_step"]) for f in found["findings"]] == [("RRD708", "likely", 1), ("RRD715", "likely", 1)]
    assert [j["status"] for j in found["judged"] if j["id"] == "RRD706"] == ["unknown"]
    assert {j["status"] for j in found["judged"] if j["id"] in ("RRD711", "RRD714", "RRD719", "RRD720", "RRD721")} == {"good"}
