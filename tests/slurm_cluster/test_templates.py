"""Rendered job scripts on a real Slurm of two nodes, each in namespaces of its own; started and stopped here."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest

from slurm_cluster.cluster import HERE, KILL_WAIT_S, USER, SlurmCluster
from slurm_cluster.jobs import (
    BIN,
    DRIVER,
    PATIENCE_S,
    TRAINER,
    assert_nothing_left,
    logs,
    output,
    submit,
    wait_for_output,
    wait_for_text,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def stand_in_for_verl(slurm: SlurmCluster, folder: str, program: str) -> Path:
    """A folder of the shared file system with a program under the name of verl's trainer."""
    package = slurm.shared / folder / "verl" / "trainer"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "main_ppo.py").write_text(program)
    return slurm.shared / folder


def test_an_ordinary_users_program_runs_on_both_nodes(slurm: SlurmCluster) -> None:
    job = submit(slurm, sys.executable, DRIVER, "a b", user=USER, watch=True)
    fields = slurm.wait(job, timeout_s=PATIENCE_S)
    text = output(slurm, job)
    assert (fields["JobState"], fields["ExitCode"]) == ("COMPLETED", "0:0"), text
    cores = os.cpu_count() or 1
    assert f"ran on n1 n2 CPU={2 * cores} GPU=4 arguments: a b" in text
    assert "2 of 2 nodes are alive" in text
    assert_nothing_left(slurm, job)
    folder = logs(slurm, job)
    assert all((folder / f"ray-{n}" / "raylet.out").exists() for n in slurm.names)
    assert not (folder / ".ray_token").exists()
    told = (folder / "doctor.txt").read_text()
    assert "on n1, n2" in told.splitlines()[0]
    facts = [json.loads(p.read_text()) for p in (folder / "doctor").glob("*.health.json")]
    assert sorted(f["name"] for f in facts) == ["n1", "n2"]
    contacts = {f["name"]: f["contacts"] for f in facts}
    assert [c["peer"] for c in contacts["n1"]] == ["n2"] and [c["peer"] for c in contacts["n2"]] == ["n1"]
    assert all("error" not in c for found in contacts.values() for c in found)


IMAGE_RUNTIME = r"""#!/bin/bash
# Stands for apptainer with --cleanenv: programs get what APPTAINERENV_ says, and little else.
shift # exec
while [[ $1 == --* ]]; do case $1 in --bind) shift 2 ;; *) shift ;; esac; done
shift # the image
kept=(HOME="$HOME" PATH="$PATH" USER="$USER")
[[ -z ${CUDA_VISIBLE_DEVICES:-} ]] || kept+=(CUDA_VISIBLE_DEVICES="$CUDA_VISIBLE_DEVICES")
while IFS= read -r name; do kept+=("${name#APPTAINERENV_}=${!name}"); done < <(compgen -v APPTAINERENV_)
exec env -i "${kept[@]}" "$@"
"""


SRUN_WITH_PYXIS = r"""#!/bin/bash
# Stands for srun with Pyxis: the options of images are noted and taken off.
kept=()
for word in "$@"; do
  case $word in --container-* | --no-container-*) echo "$word" >>"${0%/*}/noted" ;; *) kept+=("$word") ;; esac
done
exec /usr/bin/srun "${kept[@]}"
"""


def stand_in(slurm: SlurmCluster, program: str, text: str) -> Path:
    """A folder with a program for PATH."""
    folder = slurm.shared / f"{program}_bin"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / program).write_text(text)
    (folder / program).chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("framework", "sizes"),
    [
        ("verl", ("trainer.nnodes=2", "trainer.n_gpus_per_node=1")),
        pytest.param("areal-ray", ("scheduler.type=ray", "cluster.n_nodes=2", "cluster.n_gpus_per_node=1"), marks=pytest.mark.slow),
    ],
)
def test_a_trainer_trains_on_both_nodes_with_the_sizes_it_gets(slurm: SlurmCluster, framework: str, sizes: tuple[str, ...]) -> None:
    """Ranks on both nodes train one model over gloo, in the place of the framework's own program, with each way into an image."""
    if framework == "areal-ray":
        folder = stand_in(slurm, "apptainer", IMAGE_RUNTIME)
        more: dict[str, object] = {"container": "apptainer", "image": "areal.sif", "container_args": ("--cleanenv",), "collect_logs": False}
    else:
        folder = stand_in(slurm, "srun", SRUN_WITH_PYXIS)
        more = {"container": "pyxis", "image": "nvcr.io#verl:1"}
    more["env"] = (f"PATH={folder}:{BIN}:$PATH",)
    program = (sys.executable, TRAINER)
    job = submit(slurm, "data.train_files=x.parquet", framework=framework, command=program, gpus_per_node="1", doctor="off", **more)
    fields = slurm.wait(job, timeout_s=PATIENCE_S)
    text = output(slurm, job)
    assert (fields["JobState"], fields["ExitCode"]) == ("COMPLETED", "0:0"), text
    told = next(line for line in text.splitlines() if line.startswith("trained"))
    assert "with 2 ranks on n1 n2" in told
    assert all(word in told for word in (*sizes, "data.train_files=x.parquet"))
    assert any(logs(slurm, job).glob("ray-n*")) == (framework == "verl")
    if framework == "verl":
        noted = (folder / "noted").read_text().splitlines()
        assert noted.count("--container-image=nvcr.io#verl:1") == noted.count(f"--container-name=rr{job}") == 3, "two nodes and the driver"
    assert_nothing_left(slurm, job)


def test_verl_is_what_runs_when_nothing_is_said_and_its_exit_code_is_the_jobs(slurm: SlurmCluster) -> None:
    folder = stand_in_for_verl(slurm, "packages", f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport both_nodes\nsys.exit(both_nodes.main())\n")
    env = (f"PYTHONPATH={folder}", "DRIVER_EXIT=7")
    job = submit(slurm, "data.train_files=x.parquet", framework="verl", nodes=1, doctor="off", env=env)
    fields = slurm.wait(job, timeout_s=PATIENCE_S)
    text = output(slurm, job)
    assert re.search(r"ran on n[12] ", text), text
    assert all(word in text for word in ("trainer.nnodes=1", "trainer.n_gpus_per_node=2", "data.train_files=x.parquet"))
    assert (fields["JobState"], fields["ExitCode"]) == ("FAILED", "7:0")


def test_after_scancel_nothing_is_left_and_logs_are_saved(slurm: SlurmCluster) -> None:
    job = submit(slurm, sys.executable, DRIVER, "stay", user=USER, doctor="off", watch=True)
    wait_for_output(slurm, job, r"stays \d+")
    assert_its_owner_can_ask_the_doctor(slurm, job)
    wait_for_text(logs(slurm, job) / "watch.log", "watching job")
    began = time.monotonic()
    slurm.run(["scancel", job])
    fields = slurm.wait(job, timeout_s=KILL_WAIT_S + 60)
    assert_nothing_left(slurm, job, KILL_WAIT_S + 30)
    assert fields["JobState"] == "CANCELLED"
    assert time.monotonic() - began < KILL_WAIT_S + 60
    folder = logs(slurm, job)
    assert all((folder / f"ray-{n}" / "raylet.out").stat().st_size for n in slurm.names)
    assert not (folder / ".ray_token").exists()


def assert_its_owner_can_ask_the_doctor(slurm: SlurmCluster, job: str) -> None:
    done = slurm.on_node("n2", ["runuser", "-u", USER, "--", sys.executable, "-m", "ray_rl_debug", "doctor", "--jobid", job, "--json"])
    found = json.loads(done.stdout)
    assert (found.get("nodes"), done.returncode) == (["n1", "n2"], 0), done.stdout + done.stderr
    by_check: dict[str, list[dict[str, str]]] = {}
    for result in found["results"]:
        by_check.setdefault(result["check"], []).append(result)
    good = ("node.seen", "cpu.allowed", "cpu.step", "ray.all", "ray.other", "net.head", "auth.same", "gpu.count", "dbg.env", "ver.same", "log.scan")
    assert {check: {r["status"] for r in by_check[check]} for check in good} == {check: {"ok"} for check in good}, done.stdout
    assert len(by_check["net.head"]) == 4, "each node reaches the GCS, and the other node"
    assert all("may use" in r["measured"] for r in by_check["cpu.allowed"])
    assert "this check failed" not in done.stdout
    token = Path(logs(slurm, job) / ".ray_token").read_text()
    assert token not in done.stdout


def test_a_node_that_cannot_join_is_named_with_its_own_log(slurm: SlurmCluster) -> None:
    folder = slurm.shared / "bin"
    folder.mkdir()
    ray = folder / "ray"
    astray = f"exec {BIN}/ray start --address=192.0.2.77:6379 --num-cpus=1 --block"
    ray.write_text(f'#!/bin/bash\nif [[ $SLURMD_NODENAME == n2 && $1 == start ]]; then {astray}; fi\nexec {BIN}/ray "$@"\n')
    ray.chmod(0o755)
    began = time.monotonic()
    job = submit(slurm, sys.executable, DRIVER, doctor="off", ready_timeout_s=45, env=(f"PATH={folder}:{BIN}:$PATH",))
    fields = slurm.wait(job, timeout_s=PATIENCE_S)
    text = output(slurm, job)
    assert fields["JobState"] == "FAILED", text
    assert fields["ExitCode"] in ("5:0", "6:0"), text
    assert "n2| " in text
    assert "192.0.2.77:6379" in text
    assert "n1| " not in text
    assert time.monotonic() - began < 45 + 75
    assert_nothing_left(slurm, job)


def test_the_signal_before_the_time_limit_requeues(slurm: SlurmCluster) -> None:
    job = submit(slurm, sys.executable, DRIVER, "stay", doctor="off", requeue=1)
    wait_for_output(slurm, job, r"stays \d+")
    slurm.run(["scancel", "--batch", "--signal=USR1", job])
    fields = slurm.wait(job, ("PENDING", "COMPLETED", "FAILED"), timeout_s=90)
    assert (fields["JobState"], fields["Restarts"]) == ("PENDING", "1"), output(slurm, job)
    slurm.run(["scancel", job])
    assert_nothing_left(slurm, job)


def test_verl_on_one_node_starts_its_own_ray_with_the_allowed_cpus(slurm: SlurmCluster) -> None:
    folder = stand_in_for_verl(
        slurm,
        "single",
        "import sys, ray\n"
        "given = dict(a.lstrip('+').split('=', 1) for a in sys.argv[1:])\n"
        "cpus, gpus = (int(given[f'ray_kwargs.ray_init.num_{kind}']) for kind in ('cpus', 'gpus'))\n"
        "ray.init(num_cpus=cpus, num_gpus=gpus, include_dashboard=False, object_store_memory=100 << 20)\n"
        "print('single', cpus, gpus, ray.cluster_resources()['CPU'], flush=True)\n",
    )
    env = (f"PYTHONPATH={folder}",)
    shape = {"nodes": 1, "cpus_per_node": 1, "gpus_per_node": "1", "exclusive": False, "mem": "3000", "object_store_mb": None}
    job = submit(slurm, "a=b", framework="verl-single", doctor="off", env=env, **shape)
    fields = slurm.wait(job, timeout_s=PATIENCE_S)
    text = output(slurm, job)
    assert fields["JobState"] == "COMPLETED", text
    assert "single 1 1 1.0" in text
    assert (next(logs(slurm, job).glob("ray-n*")) / "raylet.out").exists()
    assert_nothing_left(slurm, job)


def test_jobs_that_areals_controller_submits_carry_the_evidence_variables(slurm: SlurmCluster) -> None:
    """Each role sources role.sh; a file named look makes every role take a snapshot of itself."""
    controller = slurm.shared / "controller.sh"
    controller.write_text(
        f"""#!/bin/bash
role='source '$LOG_DIR'/role.sh; env | grep -E "^(TORCH_FR_BUFFER_SIZE|NCCL_DEBUG)="; {sys.executable} -c "import time; time.sleep(600)"'
job=$(sbatch --parsable --nodes=1 --ntasks=1 --mem=500 --export=ALL --output=$LOG_DIR/role.out --wrap "srun --mem=0 bash -c '$role'")
until grep -qs TORCH_FR_BUFFER_SIZE $LOG_DIR/role.out; do sleep 0.2; done
touch $LOG_DIR/look
until ls $LOG_DIR/look-$job-*/snapshot.json.gz 2>/dev/null; do sleep 0.5; done
scancel $job
"""
    )
    job = submit(slurm, "bash", str(controller), framework="areal-slurm", nodes=1, gpus_per_node=None, mem="1000", cpus_per_node=1, watch=True)
    fields = slurm.wait(job, timeout_s=PATIENCE_S)
    text = output(slurm, job)
    assert fields["JobState"] == "COMPLETED", text
    assert "/role.sh" in text
    told = (logs(slurm, job) / "role.out").read_text()
    assert "TORCH_FR_BUFFER_SIZE=2000" in told
    assert "NCCL_DEBUG=WARN" in told
