"""Faults of job scripts: all that the widely copied scripts have, none in our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ray_rl_debug.commands.cli import main
from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.lint import explain, lint_script
from ray_rl_debug.slurm.lint_rules import RULES
from ray_rl_debug.slurm.render import render
from ray_rl_debug.slurm.templates import FRAMEWORKS

DATA = Path(__file__).parent.parent / "data" / "slurm"


def faults(text: str) -> list[tuple[str, int]]:
    return [(f.id, f.line) for f in lint_script(text, "job.sbatch")]


def ids(text: str) -> set[str]:
    return {i for i, _ in faults(text)}


def test_a_script_like_verls_has_every_known_fault_of_it():
    assert faults((DATA / "verl_like.sbatch").read_text()) == [
        ("RRD850", 12),
        ("RRD871", 14),
        ("RRD872", 18),
        ("RRD856", 25),
        *((i, 29) for i in ("RRD851", "RRD857", "RRD858", "RRD860", "RRD867", "RRD868", "RRD869", "RRD874")),
        ("RRD855", 33),
        *((i, 38) for i in ("RRD851", "RRD867", "RRD874")),
        ("RRD855", 41),
        *((i, 44) for i in ("RRD851", "RRD859", "RRD862", "RRD865", "RRD866", "RRD867", "RRD874")),
    ]


def test_a_script_like_rays_classic_one():
    assert faults((DATA / "ray_like.sbatch").read_text()) == [
        ("RRD871", 11),
        ("RRD872", 14),
        ("RRD856", 16),
        *((i, 19) for i in ("RRD851", "RRD857", "RRD858", "RRD860", "RRD867", "RRD868", "RRD869")),
        ("RRD855", 22),
        *((i, 24) for i in ("RRD851", "RRD867")),
        ("RRD855", 26),
        ("RRD865", 28),
    ]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("container", ["none", "apptainer", "pyxis"])
@pytest.mark.parametrize("more", [{}, {"exclusive": False, "requeue": 2, "auth": "disabled", "doctor": "fail", "debug_level": "full"}])
def test_our_own_scripts_have_none(framework, container, more):
    nodes = 1 if framework in ("verl-single", "areal-slurm") else 3
    job = Job(
        framework=framework, nodes=nodes, container=container, image=None if container == "none" else "image.sif", command=("python", "t.py"), **more
    )
    found = lint_script(render(job), framework)
    if more.get("auth") == "disabled":
        found = [f for f in found if f.id != "RRD868"]
    assert found == []


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("srun -c 8 ray start --head --num-gpus=0 --temp-dir=/tmp/x --port=$P &\n", "RRD852"),
        ("ray start --head --num-cpus=8\n", "RRD853"),
        ("ray start --num-cpus=$SLURM_CPUS_PER_TASK\n", "RRD854"),
        ("#SBATCH --gpus-per-node=h100:8\nray start --num-gpus=$SLURM_GPUS_PER_NODE\n", "RRD861"),
        ("srun ray start --head --block &\nsrun python train.py\n", "RRD863"),
        ("ray start --head\npython train.py\nray stop\n", "RRD864"),
        ("ray start --head --temp-dir=/scratch/users/somebody/experiments/reinforcement/tmp\n", "RRD870"),
        ("srun ray symmetric-run --address $A -- python train.py\n", "RRD873"),
        ("#SBATCH --output=/dev/null\nsrun hostname\n", "RRD875"),
        ("ray start --head\nwhile ! ray status; do sleep 2; done\n", "RRD876"),
    ],
)
def test_each_other_fault(script, expected):
    assert expected in ids("#!/bin/bash\n" + script)


@pytest.mark.parametrize(
    ("script", "absent"),
    [
        ("export SRUN_CPUS_PER_TASK=8\nsrun ray start --num-cpus=8\n", "RRD851"),
        ('OPTIONS=(--overlap --mem=0 -c 8)\nsrun "${OPTIONS[@]}" ray start\n', "RRD862"),
        ("#SBATCH --gpus-per-task=1\nray start --num-gpus=$SLURM_GPUS_PER_TASK\n", "RRD860"),
        ("ray start --num-gpus=${SLURM_GPUS_PER_NODE:-8}\n", "RRD860"),
        ("#SBATCH --exclusive\nray start\nray stop\n", "RRD864"),
        ("# srun ray start\necho 'sleep 10'\n", "RRD851"),
        ("set -o pipefail\nray start --head\npython t.py | tee log\n", "RRD859"),
        ("ray start --head\nuntil ray status; do sleep 5; done\n", "RRD855"),
        ('mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")\nnodes=("${nodes[@]}")\n', "RRD850"),
        ("srun -N1 hostname\nsrun python train.py\n", "RRD851"),
    ],
)
def test_what_is_no_fault(script, absent):
    assert absent not in ids("#!/bin/bash\n" + script)


def test_command_line_gives_text_json_and_sarif(tmp_path, capsys):
    script = str(DATA / "verl_like.sbatch")
    assert main(["slurm", "lint", script]) == 1
    shown = capsys.readouterr().out
    assert f"{script}:12: error RRD850 node list in one quoted element" in shown
    assert "reason  the array gets one element" in shown
    assert "repair  mapfile -t NODES" in shown
    assert main(["slurm", "lint", script, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "rayrl-debug/lint/1"
    assert document["faults"][0]["line"] == 12
    sarif = tmp_path / "lint.sarif"
    assert main(["slurm", "lint", script, "--format", "sarif", "-o", str(sarif)]) == 1
    run = json.loads(sarif.read_text())["runs"][0]
    assert len(run["tool"]["driver"]["rules"]) == len(RULES)
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 12


def test_command_line_without_faults_and_without_a_file(tmp_path, capsys):
    clean = tmp_path / "job.sbatch"
    clean.write_text(render(Job(framework="ray", command=("python", "t.py"))))
    assert main(["slurm", "lint", str(clean)]) == 0
    assert capsys.readouterr().out == f"nothing wrong in {clean}\n"
    assert main(["slurm", "lint", str(tmp_path / "absent")]) == 3


def test_every_rule_explains_itself():
    assert len({r.id for r in RULES}) == len(RULES)
    for rule in RULES:
        assert "Repair" in (explain(rule.id) or "")
        assert rule.severity in ("error", "warning")
