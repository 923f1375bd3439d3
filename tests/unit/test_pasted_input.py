"""``report -``: a whole issue through standard input."""

from __future__ import annotations

import json

from click.testing import CliRunner

from ray_rl_debug.commands.report import report

ISSUE = """### It hangs at step 41

py-spy of rank 0:
```
Process 4008: ray::WorkerDict.update
Thread 4008 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2806)
    update (trainer.py:412)
```
and rank 1:
```
Process 4009: ray::WorkerDict.update
Thread 4009 (active+gil): "MainThread"
    score (my_reward.py:33)
    update (trainer.py:398)
```
"""


def test_a_whole_issue_comes_through_standard_input() -> None:
    done = CliRunner().invoke(report, ["--json", "-"], input=ISSUE)
    found = json.loads(done.stdout)
    assert [(w["pid"], f["cause"]) for f in found["findings"] if f["root"] for w in f["who"]] == [(4009, "straggler")]
    assert "rayrl-debug-" not in done.stdout, "the folder in which the text lay for a moment"


def test_the_answer_is_there_as_markdown() -> None:
    done = CliRunner().invoke(report, ["--format", "markdown", "-"], input=ISSUE)
    assert done.stdout.startswith("## ")
    assert "<details>" in done.stdout


def test_an_empty_paste_is_told_in_one_sentence() -> None:
    done = CliRunner().invoke(report, ["-"], input="")
    assert done.exit_code != 0
    assert "nothing was pasted" in str(done.exception)


def test_standard_input_is_read_once() -> None:
    done = CliRunner().invoke(report, ["-", "-"], input=ISSUE)
    assert "standard input can be read once" in str(done.exception)
