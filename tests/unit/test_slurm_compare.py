"""An existing script beside the rendered one: its request is taken over, the rest is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.commands.cli import main
from ray_rl_debug.slurm.compare import read_request
from ray_rl_debug.slurm.script import parse

OLD = str(Path(__file__).parent.parent / "data" / "slurm" / "verl_like.sbatch")


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        (
            "-N 4 -p gpu -A lab -q high -C ib -t 2-0",
            {"nodes": 4, "partition": "gpu", "account": "lab", "qos": "high", "constraint": "ib", "time": "2-0"},
        ),
        ("--ntasks-per-node=4 --cpus-per-task=8 --gpus-per-task=1", {"cpus_per_node": 32, "gpus_per_node": "4"}),
        ("--gres=gpu:h100:8", {"gpus_per_node": "h100:8", "gpu_flag": "gres"}),
        ("--gpus-per-node=8 --mem=0", {"gpus_per_node": "8", "mem": "0"}),
    ],
)
def test_what_a_script_asks_of_slurm(directives, expected):
    script = "#!/bin/bash\n" + "".join(f"#SBATCH {d}\n" for d in [directives, "--exclusive"])
    assert read_request(parse(script)).parameters == {**expected, "exclusive": True}


def test_what_no_parameter_can_hold_is_said_with_its_line():
    found = read_request(parse("#!/bin/bash\n#SBATCH --nodes=2-4\n#SBATCH --mail-type=END\n#SBATCH --gres=gpu:2,shard:1\n#SBATCH --output=x\n"))
    assert found.left == ((2, "--nodes=2-4"), (3, "--mail-type=END"), (4, "--gres=gpu:2,shard:1"))
    assert found.parameters == {"exclusive": False}


def test_the_difference_and_the_faults_that_go(tmp_path, capsys):
    target = tmp_path / "new.sbatch"
    assert main(["slurm", "render", "verl", "--diff", OLD, "--mem", "300G", "-o", str(target)]) == 0
    shown = capsys.readouterr().out
    assert "-#SBATCH --mem=200G\n+#SBATCH --mem=300G\n" in shown
    assert " #SBATCH --nodes=2\n" in shown
    assert f"--- {OLD}" in shown
    assert "RRD850 node list in one quoted element (line 12)" in shown
    assert "RRD851 srun without --cpus-per-task (lines 29, 38, 44)" in shown
    text = target.read_text()
    for kept in ("nodes=2", "mem=300G", "gres=gpu:4", "cpus-per-task=64", "job-name=verl-two-nodes"):
        assert f"#SBATCH --{kept}\n" in text
    assert "--exclusive" not in text
    assert main(["slurm", "lint", str(target)]) == 0


def test_without_an_output_only_the_difference_is_shown(capsys):
    assert main(["slurm", "render", "ray", "--diff", OLD, "--", "python", "t.py"]) == 0
    assert "#!/bin/bash" not in capsys.readouterr().out


def test_what_cannot_be_compared_is_refused(tmp_path, capsys):
    assert main(["slurm", "render", "attach", "--diff", OLD]) == 2
    assert main(["slurm", "render", "ray", "--diff", str(tmp_path / "absent")]) == 3
    capsys.readouterr()


def test_a_script_of_ours_has_nothing_to_repair(tmp_path, capsys):
    mine = tmp_path / "mine.sbatch"
    assert main(["slurm", "render", "ray", "--nodes", "3", "-o", str(mine), "--", "python", "t.py"]) == 0
    assert main(["slurm", "render", "ray", "--diff", str(mine), "--", "python", "t.py"]) == 0
    shown = capsys.readouterr().out
    assert f"the same request as {mine}" in shown
    assert "no known fault" in shown
