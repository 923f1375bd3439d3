"""Into a running job: Slurm's answers, the lines that nodes write, and the process that stands for the job on a node."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from ray_rl_debug.bounded.programs import Finished
from ray_rl_debug.capture import doctor_facts
from ray_rl_debug.collect.health.job_process import find_job_process
from ray_rl_debug.commands.cli import main
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.errors import MissingToolError, UsageError
from ray_rl_debug.model.health import NodeHealth, Plan
from ray_rl_debug.slurm.allocation import Allocation, ask_nodes, clean, read_allocation
from ray_rl_debug.slurm.node_lines import read_lines, write_lines


def test_lines_of_several_nodes_may_come_in_any_order():
    data = {name: random.Random(name).randbytes(5000) for name in ("n1", "n2")}
    lines = list(itertools.chain(*(write_lines(name, value) for name, value in data.items())))
    assert all(len(line) < 1000 for line in lines)
    random.Random(1).shuffle(lines)
    assert read_lines("\n".join(["srun: a word of Slurm's", *lines])) == data


def test_a_node_whose_lines_are_cut_off_or_spoilt_has_said_nothing():
    first, *others = write_lines("n1", random.Random(1).randbytes(5000))
    assert read_lines("\n".join(others)) == {}
    assert read_lines("rayrl-debug-node n1 1/1 AAAA") == {}
    assert read_lines("\n".join([first[:-8] + "AAAAAAAA", *others])) == {}


def slurm(squeue: Finished, hosts: bytes = b"n1\nn2\n"):
    return lambda command, timeout_s, env=None: squeue if command[0] == "squeue" else Finished(code=0, out=hosts, err=b"")


def test_the_nodes_of_a_job_that_runs():
    run = slurm(Finished(code=0, out=b"RUNNING|me|n[1-2]|/home/me|x\n", err=b""))
    assert read_allocation("7", run=run, which=str) == Allocation(job_id="7", nodes=("n1", "n2"), user="me", work_dir="/home/me|x")


@pytest.mark.parametrize(
    ("squeue", "words"),
    [
        (Finished(code=1, out=b"", err=b"slurm_load_jobs error: Invalid job id specified\n"), "knows no job 7: slurm_load_jobs error"),
        (Finished(code=0, out=b"", err=b""), "knows no job 7"),
        (Finished(code=0, out=b"PENDING|me||/home/me\n", err=b""), "job 7 is PENDING"),
    ],
)
def test_a_job_that_does_not_run_is_refused(squeue, words):
    with pytest.raises(UsageError, match=words):
        read_allocation("7", run=slurm(squeue), which=str)


def test_without_slurm_it_is_said():
    with pytest.raises(MissingToolError):
        read_allocation("7", which=lambda name: None)


def test_a_node_that_says_nothing_is_silent_with_its_own_words():
    out = "\n".join(write_lines("n1", b"facts")).encode()
    err = b"n2: neither /opt/python nor rayrl-debug is there\nsrun: error: n2: task 1: Exited with exit code 127\n"
    seen = []

    def run(command, timeout_s, env=None):
        seen.append(command)
        return Finished(code=127, out=out, err=err)

    answers, silent = ask_nodes(Allocation(job_id="7", nodes=("n1", "n2")), ["doctor"], timeout_s=30, run=run)
    assert answers == {"n1": b"facts"}
    assert silent == {"n2": "n2: neither /opt/python nor rayrl-debug is there"}
    assert {"--jobid=7", "--overlap", "--mem=0", "--nodes=2"} <= set(seen[0])
    assert not any(word.startswith("--cpus-per-task") for word in seen[0])
    _, silent = ask_nodes(
        Allocation(job_id="7", nodes=("n1",)), [], timeout_s=30, run=lambda *a, **k: Finished(code=None, out=b"", err=b"", timed_out=True)
    )
    assert silent == {"n1": "no answer in 30 s"}


def test_a_job_of_another_user_is_refused_by_slurm():
    err = b"srun: error: Unable to create step for job 7: Access/permission denied\n"
    with pytest.raises(UsageError, match="only bob into job 7"):
        ask_nodes(Allocation(job_id="7", nodes=("n1",), user="bob"), [], timeout_s=30, run=lambda *a, **k: Finished(code=1, out=b"", err=err))


def test_the_shells_own_job_does_not_leak_into_the_step():
    env = {"SLURM_CONF": "/etc/slurm.conf", "SLURM_CPUS_PER_TASK": "1", "SRUN_CPUS_PER_TASK": "1", "SBATCH_QOS": "x", "PATH": "/bin"}
    assert clean(env) == {"SLURM_CONF": "/etc/slurm.conf", "PATH": "/bin"}


def test_facts_of_nodes_come_together(monkeypatch):
    plans = []

    def ask(allocation, arguments, *, timeout_s):
        plans.append(json.loads(arguments[2]))
        node = NodeHealth(name="n1", taken_time_s=0.0, plan=Plan())
        return {"n1": encode(node), "n2": b"{}"}, {"n3": "no answer in 60 s"}

    monkeypatch.setattr("ray_rl_debug.slurm.allocation.read_allocation", lambda job: Allocation(job_id=job, nodes=("n1", "n2", "n3"), work_dir="/w"))
    monkeypatch.setattr("ray_rl_debug.slurm.allocation.ask_nodes", ask)
    found = doctor_facts.check_job("7", Plan(num_cpus=4, is_preflight=True), timeout_s=60, progress=lambda text: None)
    assert [n.name for n in found.nodes] == ["n1"]
    assert [name for name, _ in found.silent] == ["n2", "n3"]
    assert plans[0]["slurm_job"] == "7" and plans[0]["meeting_dir"] == "/w" and plans[0]["num_cpus"] == 4
    assert not plans[0].get("is_preflight")


def test_usage(capsys):
    assert main(["doctor", "--jobid", "x"]) == 2
    assert main(["doctor", "--jobid", "7", "--here"]) == 2
    capsys.readouterr()


def process(proc: Path, pid: int, comm: str, env: dict[str, str], start: int) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({comm}) S 1 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 {start} 0 0 " + "0 " * 30)
    (folder / "environ").write_bytes(b"\0".join(f"{k}={v}".encode() for k, v in env.items()))


def test_who_stands_for_a_job(tmp_path):
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"}
    process(tmp_path, 10, "bash", {"SLURM_JOB_ID": "7"}, 1)
    process(tmp_path, 11, "slurmstepd", step, 2)
    process(tmp_path, 12, "python", {**step, "A": "old"}, 3)
    process(tmp_path, 13, "python", {**step, "A": "new"}, 4)
    process(tmp_path, 14, "raylet", {"SLURM_JOB_ID": "8", "SLURM_STEP_ID": "0"}, 1)
    process(tmp_path, 15, "python", {**step, "SLURM_STEP_ID": "9"}, 1)
    own = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "9"}
    found = find_job_process("7", own, tmp_path)
    assert found is not None and (found.pid, found.env["A"]) == (12, "old")
    process(tmp_path, 16, "raylet", {**step, "SLURM_STEP_ID": "2"}, 9)
    found = find_job_process("7", own, tmp_path)
    assert found is not None and found.pid == 16
    assert find_job_process("99", own, tmp_path) is None
