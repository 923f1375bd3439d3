"""``report -``: a whole issue through standard input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from ray_rl_debug.commands.report import report
from ray_rl_debug.imports.folder import load

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


DOCUMENTS = """Flight Recorder of one rank:
```json
{"pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "rank": 1, "entries": []}
```
py-spy:
```
[{"pid": 12, "thread_name": "MainThread", "os_thread_id": 12, "frames": [{"name": "f", "filename": "a.py", "line": 3}]}]
```
> ```
> NCCL version 2.27.3 compiled with CUDA 12.8
> Job summary
> Communicators... (0.00s)
> #0-0 (27a079b828ff1a75) MISMATCH
>   Communicator ranks have different AllReduce operation counts
>   3 ranks have launched up to operation 41
>   1 ranks have launched up to operation 40
>   Rank 2 -- GPU 2 managed by process 1602 on node gpu01
> ```
and a broken one:
```
[{"pid": 13, "frames": [{"na
```
"""


def test_documents_of_other_tools_stand_between_sentences(tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text(DOCUMENTS)
    snapshot = load([tmp_path / "issue.md"]).snapshot
    assert snapshot is not None
    assert {p.pid for n in snapshot.nodes for p in n.processes} == {0, 12, 1602}
    assert [r.rank for n in snapshot.nodes for r in n.flight_records] == [1]
    assert [g.what for g in snapshot.gaps if g.id == "RRD912"] == ["the JSON in line 21"]


def test_a_pipe_of_the_shell_is_read_beside_standard_input(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('Traceback (most recent call last):\n  File "/srv/x.py", line 1, in f\nValueError: no\n')
    program = f"{sys.executable} -m ray_rl_debug report -q --json - <(cat {log}) < {log}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert json.loads(done.stdout)["story"]["files"] == 2, done.stderr
    assert "rayrl-debug-" not in done.stdout


def test_a_pipe_in_a_folder_is_left_to_its_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events")
    done = CliRunner().invoke(report, [str(tmp_path / "events")])
    assert "not a regular file" in str(done.exception)
    assert "report - < PIPE" in getattr(done.exception, "hint", "")
