"""What the doctor measures: control groups of both versions, Slurm's answers, folders, ports, tokens, and nodes that meet."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest

from ray_rl_debug.bounded.programs import Finished
from ray_rl_debug.collect.health import collect_health, folders, meeting, network, software
from ray_rl_debug.collect.health.cpu import count_list, read_cpus, read_groups
from ray_rl_debug.collect.health.limits import read_limits
from ray_rl_debug.collect.health.ray_processes import kept_environment, read_ray_processes
from ray_rl_debug.collect.health.slurm_facts import read_slurm
from ray_rl_debug.model.health import Plan


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_lists_of_the_kernel():
    assert [count_list(t) for t in ("0", "0-3", "0-3,8,10-11", "x", "")] == [1, 4, 7, None, None]


def test_cpus_of_step_and_job_with_version_1(tmp_path):
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    write(proc / "self/cgroup", "5:cpuset:/slurm/uid_0/job_7/step_1/task_0\n4:cpu,cpuacct:/slurm/uid_0/job_7\n")
    write(root / "cpuset/slurm/uid_0/job_7/step_1/task_0/cpuset.cpus", "0\n")
    write(root / "cpuset/slurm/uid_0/job_7/cpuset.cpus", "0-7\n")
    write(root / "cpu/slurm/uid_0/job_7/cpu.cfs_quota_us", "-1\n")
    write(root / "cpu/slurm/cpu.cfs_quota_us", "250000\n")
    write(root / "cpu/slurm/cpu.cfs_period_us", "100000\n")
    found = read_cpus({"SLURM_CPUS_PER_TASK": "8", "SLURM_CPUS_ON_NODE": "8"}, proc, root)
    assert (found.step, found.job, found.quota, found.slurm_per_task) == (1, 8, 2.5, 8)


def test_cpus_of_step_and_job_with_version_2(tmp_path):
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    write(proc / "self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n")
    base = root / "system.slice/slurmstepd.scope/job_7"
    write(base / "cpuset.cpus.effective", "0-15\n")
    write(base / "step_0/user/task_0/cpuset.cpus.effective", "0-3\n")
    write(base / "cpu.max", "max 100000\n")
    write(base / "step_0/cpu.max", "400000 100000\n")
    write(base / "step_0/user/task_0/pids.max", "max\n")
    write(base / "step_0/pids.max", "512\n")
    write(base / "step_0/pids.current", "40\n")
    found = read_cpus({}, proc, root)
    assert (found.step, found.job, found.quota) == (4, 16, 4.0)
    limits = read_limits(read_groups(proc), proc, root)
    assert (limits.group_max, limits.group_now) == (512, 40)


CONFIG = b"""\
Configuration data as of 2026-11-21
KillWait                = 30 sec
SelectTypeParameters    = CR_CORE_MEMORY
SLURM_VERSION           = 22.05.8
UnkillableStepTimeout   = 60 sec
"""


def test_what_slurm_says():
    def run(command: list[str], timeout_s: float) -> Finished:
        return Finished(code=0, out=CONFIG if command[0] == "scontrol" else b"1-02:03:04\n", err=b"")

    found = read_slurm({"SLURM_JOB_ID": "7"}, run=run, which=lambda name: name)
    assert found is not None
    assert (found.version, found.kill_wait_s, found.unkillable_timeout_s, found.has_memory) == ("22.05.8", 30, 60, True)
    assert found.left_s == 93_784
    assert read_slurm({}) is None
    nothing = read_slurm({"SLURM_JOB_ID": "7"}, which=lambda name: None)
    assert nothing is not None
    assert nothing.kill_wait_s is nothing.left_s is nothing.has_memory is None


def test_a_folder_is_tried_and_left_as_it_was(tmp_path):
    found = folders.read_temp(tmp_path / "ray", ())
    assert (found.error, found.is_ours) == (None, None)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "ray" / "session_2026-01-01_1").mkdir(parents=True)
    (tmp_path / "ray" / "session_2026-01-02_2").mkdir()
    stale = folders.read_temp(tmp_path / "ray", [str(tmp_path / "ray" / "session_2026-01-02_2")]).stale
    assert stale == (str(tmp_path / "ray" / "session_2026-01-01_1"),)
    deep = tmp_path / ("x" * 120)
    assert folders.read_temp(deep, ()).error is None, "the length of its name is another check's matter"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o555)
    assert folders.read_temp(tmp_path / "ray", ()).error == "Permission denied"


def test_nodes_that_see_one_log_folder_see_one_mark(tmp_path):
    first, second = folders.read_logs(tmp_path), folders.read_logs(tmp_path)
    assert first.mark == second.mark is not None
    assert abs(first.clock_ahead_s or 0) < 5
    assert folders.read_logs(tmp_path / "other").mark != first.mark


def test_a_file_in_the_way_is_an_error(tmp_path):
    (tmp_path / "logs").write_text("")
    assert folders.read_logs(tmp_path / "logs").error is not None


def test_ports_of_a_block_and_who_holds_one():
    assert [use for _, use in network.planned_ports(20000)][:2] == ["GCS", "node manager"]
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        taken = next(p for p in network.try_ports(port) if p.number == port)
    assert taken.error == "Address already in use"


def test_two_nodes_meet_and_compare_clocks(tmp_path):
    step = {"SLURM_STEP_NUM_NODES": "2", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"}
    seen: dict[str, object] = {}

    def come(rank: str, name: str) -> None:
        seen[name] = meeting.meet(tmp_path, {**step, "SLURM_NODEID": rank}, name, ["127.0.0.1"], patience_s=15)

    threads = [threading.Thread(target=come, args=pair) for pair in (("1", "n2"), ("0", "n1"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    (of_guest,), (of_host,) = seen["n2"], seen["n1"]  # type: ignore[misc]
    assert (of_guest.peer, of_guest.error) == ("n1", None)
    assert abs(of_guest.clock_ahead_s) < 1
    assert (of_host.peer, of_host.error) == ("n2", None)
    assert not list(tmp_path.glob(".meeting*"))


def test_a_first_node_that_never_invites_and_a_step_of_one(tmp_path):
    alone = {"SLURM_STEP_NUM_NODES": "2", "SLURM_NODEID": "1"}
    found = meeting.meet(tmp_path, alone, "n2", [], patience_s=0.2)
    assert found is not None
    assert "did not appear" in str(found[0].error)
    assert meeting.meet(tmp_path, {"SLURM_STEP_NUM_NODES": "1", "SLURM_NODEID": "0"}, "n1", []) is None
    assert meeting.meet(tmp_path, {}, "n1", []) is None


def test_a_token_is_told_by_its_digest_only(tmp_path):
    token = "f" * 64
    (tmp_path / "token").write_text(token + "\n")
    found = software.read_auth({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}, tmp_path)
    assert found.digest == hashlib.sha256(token.encode()).hexdigest()[:12]
    assert token not in repr(found)
    assert software.read_auth({"RAY_AUTH_TOKEN": token}, tmp_path).digest == found.digest
    assert software.read_auth({}, tmp_path).digest is None


def test_only_listed_variables_are_kept():
    given = {
        "NCCL_DEBUG": "INFO",
        "AWS_SECRET_ACCESS_KEY": "x",
        "RAY_AUTH_TOKEN": "t",
        "CUDA_LAUNCH_BLOCKING": "1",
        "http_proxy": "http://me:pw@proxy",
    }
    assert kept_environment(given.items()) == {"NCCL_DEBUG": "INFO", "CUDA_LAUNCH_BLOCKING": "1"}


def test_a_raylet_as_the_process_table_shows_it(tmp_path):
    raylet = tmp_path / "812"
    write(raylet / "stat", "812 (raylet) S 1 " + "0 " * 20)
    arguments = ["/opt/raylet", "--static_resource_list=node:10.0.0.1,1.0,CPU,128,GPU,8", "--gcs-address=10.0.0.1:6379", "--temp_dir=/tmp/rr7"]
    write(raylet / "cmdline", "\0".join(arguments) + "\0")
    write(raylet / "environ", "NCCL_DEBUG=WARN\0SLURM_JOB_ID=7\0SECRET=x\0")
    (found,) = read_ray_processes(tmp_path)
    assert (found.kind, found.address, found.cpus_claimed, found.gpus_claimed, found.slurm_job) == ("raylet", "10.0.0.1:6379", 128.0, 8.0, "7")
    assert found.temp_dir == "/tmp/rr7"
    assert "SECRET" not in (found.env or {})


def test_starting_ray_is_timed_and_a_failure_is_told():
    answers = iter([b'{"took": 9.0, "cpu": 2.0, "count": 128}\n', b'{"took": 0.5, "cpu": 0.4, "count": 128}\n'])
    found = software.read_start({}, run=lambda argv, timeout_s, env: Finished(code=0, out=next(answers), err=b""))
    assert (found.cold_s, found.warm_s, found.cpu_s, found.ray_cpus) == (9.0, 0.5, 0.4, 128)
    broken = software.read_start({}, run=lambda argv, timeout_s, env: Finished(code=1, out=b"", err=b"Traceback\nImportError: no ray\n"))
    assert broken.error == "ImportError: no ray"
    slow = software.read_start({}, run=lambda argv, timeout_s, env: Finished(code=None, out=b"", err=b"", timed_out=True))
    assert slow.error == "not within 45 s"


def test_a_collector_that_fails_is_a_gap(monkeypatch):
    def explode(env: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(network, "read_network", explode)
    found = collect_health(Plan())
    assert found.network is None
    assert [(g.what, g.reason) for g in found.gaps] == [("network", "OSError: no network")]
    assert found.cpus.allowed


def test_versions_beside_a_raylet_of_another_image(tmp_path):
    packages = tmp_path / "7/root/opt/env/lib/python3.12/site-packages"
    write(packages / "ray-2.49.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: ray\nVersion: 2.49.1\n")
    (tmp_path / "7/exe").symlink_to("/opt/env/lib/python3.12/site-packages/ray/core/src/ray/raylet/raylet")
    assert software.read_versions(7, tmp_path) == {"executable": "/opt/env/lib/python3.12/site-packages", "ray": "2.49.1"}
    assert software.read_versions(8, tmp_path)["python"] == software.read_versions()["python"]


def test_a_job_whose_processes_cannot_be_read_is_a_gap_and_not_taken_for_ours(tmp_path):
    found = collect_health(Plan(slurm_job="123456789"), env={"PATH": os.environ["PATH"]}, name="n1")
    gap = next(g for g in found.gaps if "processes of the job" in g.what)
    assert "our own step" in gap.reason
