"""Jobs that hang on a real Slurm of two nodes: the doctor and attach look into them, and the templates do better."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.render import render
from slurm_cluster.cluster import HERE, SlurmCluster
from slurm_cluster.jobs import BIN, DRIVER, PATIENCE_S, assert_nothing_left, output, submit, wait_for_output

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


MANY = "import multiprocessing, os\nmultiprocessing.cpu_count = os.cpu_count = lambda: 24\n"


def many_cpus(slurm: SlurmCluster) -> tuple[str, ...]:
    """A node that claims 24 CPUs to every Python."""
    folder = slurm.shared / "many"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(MANY)
    return (f"PYTHONPATH={folder}", "RAY_USE_MULTIPROCESSING_CPU_COUNT=1", "RAY_AUTH_MODE=disabled", "RAY_USAGE_STATS_ENABLED=0")


def attach(slurm: SlurmCluster, job: str) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    """Run the rendered attach script on a job; its report."""
    script = slurm.shared / "attach.sh"
    script.write_text(render(Job(framework="attach")))
    folder = slurm.shared / f"hang-{job}"
    done = slurm.run(["bash", str(script), job], timeout_s=PATIENCE_S, OUTPUT=str(folder), PATH=f"{BIN}:{os.environ['PATH']}")
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    return done, json.loads((folder / "report.json").read_text())


def test_one_core_of_a_node_that_claims_many(slurm: SlurmCluster) -> None:
    """Plain ray.init hangs; the doctor predicts it and sees it, attach says why, the template starts."""
    env = many_cpus(slurm)
    exports = "\n".join(f"export {pair}" for pair in (*env, "RAY_worker_register_timeout_seconds=2", f"PATH={BIN}:$PATH"))
    script = slurm.shared / "plain.sbatch"
    script.write_text(
        f"""#!/bin/bash
{exports}
rayrl-debug doctor --preflight --no-color -q
echo doctor ended with $?
python -c 'import ray; ray.init(include_dashboard=False, object_store_memory=100 << 20); print("came back")' &
until grep -qs 'not registered within the timeout' /tmp/ray/session_2*/logs/raylet.err; do sleep 0.2; done
echo too late
wait
"""
    )
    job = slurm.sbatch(
        script, options=("--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--mem=3000", "--time=10", f"--output={slurm.shared}/plain.out")
    )
    try:
        wait_for_output(slurm, job, "too late")
        predicted = output(slurm, job)
        assert "Ray would take 24 CPUs (Ray's own guess), Slurm allows 1" in predicted
        assert "24 workers would start at once on 1 core and ray.init() would hang" in re.sub(r"\s+", " ", predicted)
        assert "doctor ended with 1" in predicted
        asked = slurm.run([sys.executable, "-m", "ray_rl_debug", "doctor", "--jobid", job, "--json"])
        told = {r["check"]: r["measured"] for r in json.loads(asked.stdout)["results"] if r["status"] == "fail"}
        assert "offers 24 CPUs and may use 1" in told["cpu.allowed"], asked.stdout + asked.stderr
        assert "not registered within the timeout" in told["log.scan"]
        _, report = attach(slurm, job)
        first = report["findings"][0]  # type: ignore[index]
        assert (first["id"], first["cause"]) == ("RRD406", "raylet-start")
        assert "on 1 core" in first["summary"]
        assert "came back" not in output(slurm, job)
    finally:
        slurm.run(["scancel", job])
        slurm.wait(job)
    assert_nothing_left(slurm, job, 60)
    started = submit(
        slurm,
        sys.executable,
        DRIVER,
        nodes=1,
        cpus_per_node=1,
        exclusive=False,
        mem="3000",
        gpus_per_node="0",
        doctor="off",
        auth="disabled",
        env=env,
    )
    fields = slurm.wait(started, timeout_s=PATIENCE_S)
    assert fields["JobState"] == "COMPLETED", output(slurm, started)
    assert re.search(r"ran on n[12] CPU=1 GPU=0", output(slurm, started))


def test_attach_names_the_culprit_of_a_hung_two_node_job(slurm: SlurmCluster) -> None:
    job = submit(slurm, sys.executable, str(HERE / "hung_actors.py"), doctor="off")
    try:
        wait_for_output(slurm, job, r"stays")
        done, report = attach(slurm, job)
        assert report["verdict"]["state"] == "hang", done.stdout  # type: ignore[index]
        first = report["findings"][0]  # type: ignore[index]
        assert first["cause"] == "blocked-io", done.stdout
        assert first["who"][0]["node"] == "n2"
        assert "trainer" in first["who"][0]["label"].lower()
        assert any("score" in e["text"] for e in first["evidence"])
        assert {n["name"] for n in report["nodes"]} == {"n1", "n2"}  # type: ignore[union-attr,index]
    finally:
        slurm.run(["scancel", job])
        slurm.wait(job)


def test_attach_needs_no_ray_at_all(slurm: SlurmCluster) -> None:
    """A job as AReaL's own Slurm scheduler starts it: plain programs, no raylet anywhere."""
    script = slurm.shared / "ranks.sbatch"
    script.write_text(
        f"""#!/bin/bash
export MASTER_ADDR=$(getent ahostsv4 n1 | awk '{{print $1; exit}}')
srun --cpus-per-task=1 --mem=0 {sys.executable} {HERE}/hung_ranks.py
"""
    )
    out = f"--output={slurm.shared}/ranks.out"
    job = slurm.sbatch(script, options=("--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=1", "--mem=2000", "--time=10", out))
    try:
        wait_for_output(slurm, job, "reads")
        done, report = attach(slurm, job)
        first = report["findings"][0]  # type: ignore[index]
        assert (first["cause"], first["who"][0]["node"], first["who"][0]["rank"]) == ("blocked-io", "n2", 1), done.stdout + done.stderr
        assert [v["rank"] for v in first["victims"]] == [0]
    finally:
        slurm.run(["scancel", job])
        slurm.wait(job)
    assert_nothing_left(slurm, job)
