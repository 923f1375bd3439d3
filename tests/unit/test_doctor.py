"""Every check of the doctor: what it says of a good node, and of one with its trouble."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.capture import doctor_facts
from ray_rl_debug.commands.cli import main
from ray_rl_debug.doctor import CHECKS, Check, examine
from ray_rl_debug.model.health import (
    Auth,
    Contact,
    Cpus,
    Folder,
    Gpus,
    Health,
    Interface,
    Limit,
    Limits,
    Looking,
    Memory,
    Network,
    NodeHealth,
    Plan,
    Port,
    RayProcess,
    Result,
    Slurm,
    Start,
    Status,
)
from ray_rl_debug.model.pod import Pod
from ray_rl_debug.model.snapshot import Doors, Gpu
from ray_rl_debug.render.checkup import render

DATA = Path(__file__).parent.parent / "data"
GIB = 1 << 30
DEBUG = {"TORCH_FR_BUFFER_SIZE": "20000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "NCCL_DEBUG": "WARN", "PYTHONFAULTHANDLER": "1"}
NETWORK = Network(
    host="n1",
    resolved=("10.0.0.1",),
    interfaces=(Interface(name="lo", addresses=("127.0.0.1",), is_up=True), Interface(name="eth0", addresses=("10.0.0.1",), is_up=True)),
    infiniband=("mlx5_0/1",),
)
H200 = Gpu(index=0, uuid="GPU-1", name="NVIDIA H200", memory_used_bytes=4 << 20)
GOOD = NodeHealth(
    name="n1",
    taken_time_s=1_700_000_000.0,
    plan=Plan(is_preflight=True, num_cpus=8, num_gpus=1, port_base=20000, temp_dir="/tmp/rr1", log_dir="/shared/logs"),
    cpus=Cpus(machine=128, allowed=8, step=8, job=8, slurm_per_task=8, slurm_on_node=8),
    limits=Limits(processes=Limit(soft=60000, hard=60000), user_threads=100, files=Limit(soft=1 << 20, hard=1 << 20), locked_memory=Limit()),
    memory=Memory(total_bytes=512 * GIB, shm_total_bytes=256 * GIB, shm_free_bytes=250 * GIB),
    temp=Folder(path="/tmp/rr1", owner="root", filesystem="ext4", free_bytes=500 * GIB),
    logs=Folder(path="/shared/logs", filesystem="nfs4", mark="a", clock_ahead_s=0.01, free_bytes=GIB),
    ray=(),
    ports=(Port(number=20000, use="GCS"),),
    network=NETWORK,
    contacts=(Contact(peer="n0", address="10.0.0.9:4000", took_s=0.001, clock_ahead_s=0.002, bound_s=0.001),),
    auth=Auth(mode="token", source="/shared/logs/.ray_token", digest="abc"),
    versions={"python": "3.11.7", "executable": "/opt/venv/bin/python", "ray": "2.60.0"},
    start=Start(cold_s=2.0, warm_s=0.5, cpu_s=0.4, ray_cpus=128),
    looking=Looking(doors=Doors(attach=True, memory=True), pyspy="0.4.1"),
    gpus=Gpus(devices=(H200,), has_driver=True, driver="580.1", slurm=1),
    slurm=Slurm(job_id="7", version="24.05.1", kill_wait_s=30, unkillable_timeout_s=60, has_memory=True, left_s=86_000),
    env={**DEBUG, "SRUN_CPUS_PER_TASK": "8", "CUDA_VISIBLE_DEVICES": "0", "NCCL_SOCKET_IFNAME": "eth"},
)
RAYLET = RayProcess(
    pid=50, kind="raylet", user="me", address="10.0.0.1:6379", cpus_claimed=8, cpus_allowed=8, gpus_claimed=1, is_of_our_group=True, env=DEBUG
)
POD = Pod(user_id=0, has_ptrace=True, may_have_ptrace=True, no_new_privileges=False, has_seccomp=True, ptrace_scope=1, shares_processes=False)
RUNNING = msgspec.structs.replace(GOOD, plan=Plan(address="10.0.0.1:6379"), ray=(RAYLET,), ports=None, start=None)
PLAN = GOOD.plan


def but(node: NodeHealth = GOOD, **changed: object) -> NodeHealth:
    """`node` with some facts changed; ``plan__num_cpus=1`` changes one of the plan."""
    flat: dict[str, object] = {}
    for key, value in changed.items():
        group, _, field = key.partition("__")
        flat[group] = msgspec.structs.replace(flat.get(group, getattr(node, group)), **{field: value}) if field else value
    return msgspec.structs.replace(node, **flat)


def results(*nodes: NodeHealth, silent: tuple[tuple[str, str], ...] = ()) -> tuple[Result, ...]:
    return examine(Health(nodes=nodes or (GOOD,), silent=silent)).results


def bad(*nodes: NodeHealth, silent: tuple[tuple[str, str], ...] = ()) -> dict[str, Result]:
    return {r.check: r for r in results(*nodes, silent=silent) if r.status is not Status.OK}


def test_a_good_node_has_nothing_but_good_results_and_every_check_speaks():
    assert bad(GOOD) == {}
    other = msgspec.structs.replace(GOOD, name="n2")
    assert bad(GOOD, other) == {}
    running = (RUNNING, msgspec.structs.replace(RUNNING, name="n2"))
    in_pod = but(RUNNING, pod=POD)
    assert {r.check for r in (*results(GOOD, other), *results(*running), *results(in_pod))} | {"log.scan"} == {c.key for c in CHECKS}
    assert bad(*running) == {}
    assert bad(in_pod) == {}


TROUBLES = [
    ("cpu.allowed", but(plan__num_cpus=64), "fail", "64 workers would start at once on 8 cores and ray.init() would hang"),
    ("cpu.allowed", but(plan__num_cpus=None), "fail", "128 workers would start at once on 8 cores"),
    ("cpu.allowed", but(plan__num_cpus=64, cpus=Cpus(machine=8, allowed=8)), "warn", "tasks share cores"),
    ("cpu.allowed", but(plan__num_cpus=4, cpus__allowed=4, cpus__step=8), "warn", "fewer cores than the job pays for"),
    ("cpu.allowed", but(RUNNING, ray=(msgspec.structs.replace(RAYLET, cpus_claimed=128),)), "fail", "128 workers start at once on 8 cores"),
    ("cpu.step", but(cpus__allowed=1, cpus__step=1, plan__num_cpus=1), "fail", "Ray runs on 1 of 8 cores"),
    ("cpu.quota", but(cpus__quota=2.0), "warn", "throttles"),
    ("cpu.quota", but(RUNNING, cpus__quota=2.0), "warn", "raylet 50"),
    ("start.cost", but(plan__num_cpus=128, start__cpu_s=4.0), "fail", "ray.init() hangs without a message"),
    ("start.cost", but(start__cpu_s=20.0), "warn", "when the machine is busy"),
    ("start.cost", but(start=Start(cold_s=40.0, warm_s=1.0, cpu_s=0.4)), "warn", "slow shared file system"),
    ("start.cost", but(start=Start(error="not within 45 s")), "fail", "no worker can start"),
    ("lim.nproc", but(limits__processes=Limit(soft=300, hard=60000)), "fail", "Resource temporarily unavailable"),
    ("lim.nproc", but(limits__processes=Limit(soft=1000, hard=1000)), "warn", "Ray's daemons abort"),
    ("lim.nproc", but(limits__group_max=200, limits__group_now=150), "fail", "Resource temporarily unavailable"),
    ("lim.nofile", but(limits__files=Limit(soft=1024, hard=1 << 20)), "fail", "run out of descriptors"),
    ("lim.nofile", but(limits__files=Limit(soft=8192, hard=8192)), "warn", "hundreds of workers"),
    ("lim.memlock", but(limits__locked_memory=Limit(soft=8 << 20, hard=8 << 20)), "warn", "InfiniBand"),
    ("shm.size", but(memory__shm_free_bytes=64 << 20), "warn", "object store into a disk folder"),
    ("mem.limit", but(memory__limit_bytes=64 * GIB), "warn", "the kernel kills the job"),
    ("tmp.path", but(temp__path="/scratch/users/somebody/experiments/reinforcement"), "fail", "AF_UNIX path length"),
    ("tmp.write", but(temp__error="Permission denied", temp__is_ours=False, temp__owner="bob"), "fail", "PermissionError"),
    ("tmp.write", but(temp__filesystem="nfs4"), "fail", "network file systems"),
    ("tmp.write", but(temp__free_bytes=GIB), "fail", "full disk"),
    ("tmp.write", but(temp__free_bytes=10 * GIB), "warn", "spilling"),
    ("tmp.stale", but(temp__stale=tuple(f"/tmp/rr1/session_{i}" for i in range(30))), "warn", "fill the disk"),
    ("ray.other", but(ray=(RAYLET,)), "warn", "may join it"),
    ("ray.other", but(RUNNING, ray=(RAYLET, msgspec.structs.replace(RAYLET, pid=60, address="10.0.0.1:7777"))), "warn", "may join it"),
    ("port.block", but(ports=(Port(number=20000, use="GCS", error="Address already in use", holder="python, pid 9 of bob"),)), "warn", "this block"),
    (
        "port.block",
        but(plan__port_base=None, ports=(Port(number=6379, use="GCS", error="Address already in use"),)),
        "fail",
        "cannot connect to the GCS",
    ),
    ("net.head", but(contacts=(Contact(peer="n0", address="10.0.0.9:4000", error="timed out"),)), "fail", "cannot join"),
    (
        "net.head",
        but(contacts=(Contact(peer="n0", address="172.20.0.1:4000", error="timed out"), Contact(peer="n0", address="10.0.0.9:4000", took_s=0.001))),
        "warn",
        "choose the address that does not work",
    ),
    ("net.name", but(network__resolved=("127.0.1.1",)), "warn", "cannot reach"),
    ("net.name", but(network__resolved=("fe80::1", "10.0.0.1")), "warn", "IPv4"),
    ("net.name", but(network__resolved=("203.0.113.7",)), "warn", "cannot reach"),
    ("net.proxy", but(network__proxies=("http_proxy",), network__no_proxy=("localhost",)), "warn", "calls between nodes go to the proxy"),
    ("net.nccl", but(env={**GOOD.env, "NCCL_SOCKET_IFNAME": "ib0"}), "fail", "no socket interface"),
    ("net.nccl", but(env={**GOOD.env, "GLOO_SOCKET_IFNAME": "eth"}), "fail", "Gloo"),
    ("auth.same", but(auth=Auth(mode="token")), "fail", "every call to the cluster is refused"),
    ("gpu.count", but(plan__num_gpus=8), "fail", "invalid device ordinal"),
    ("gpu.env", but(env={**GOOD.env, "ROCR_VISIBLE_DEVICES": "0"}), "warn", "verl refuses"),
    ("gpu.busy", but(gpus__devices=(msgspec.structs.replace(H200, memory_used_bytes=70 * GIB, pids=(99,)),)), "warn", "too little memory"),
    ("gpu.driver", but(gpus__error="NVML: Driver/library version mismatch"), "fail", "CUDA fails or hangs"),
    (
        "clock.skew",
        but(contacts=(Contact(peer="n0", address="a:1", took_s=0.001, clock_ahead_s=-70.0, bound_s=0.01),)),
        "fail",
        "cannot be put in order",
    ),
    ("clock.skew", but(contacts=None, logs__clock_ahead_s=2.0), "warn", "wrong order"),
    ("dbg.ptrace", but(looking=Looking(doors=Doors(setting="ptrace_scope=1"), pyspy="0.4.1", error="Permission denied")), "warn", "has no stacks"),
    ("dbg.ptrace", but(looking=Looking(doors=Doors(memory=True))), "warn", "unless the snapshot can send py-spy there"),
    ("pod.proc", but(RUNNING, ray=(), pod=POD), "warn", "no process of the job"),
    ("dbg.env", but(RUNNING, ray=(msgspec.structs.replace(RAYLET, env={}),)), "warn", "no record of which rank was late"),
    ("dbg.env", but(RUNNING, ray=(msgspec.structs.replace(RAYLET, env={**DEBUG, "TORCH_FR_BUFFER_SIZE": "0"}),)), "warn", "TORCH_FR_BUFFER_SIZE"),
    ("train.env", but(env={**GOOD.env, "CUDA_LAUNCH_BLOCKING": "1"}), "warn", "may deadlock"),
    ("train.env", but(env={**GOOD.env, "TORCH_DISTRIBUTED_DEBUG": "DETAIL"}), "warn", "slow"),
    ("train.env", but(env={**GOOD.env, "NCCL_TIMEOUT": "864000"}), "warn", "240 h"),
    ("fs.logdir", but(logs__error="Permission denied"), "fail", "nothing is left to read"),
    ("slurm.kill", but(slurm__kill_wait_s=5), "warn", "may not be saved"),
    ("slurm.kill", but(slurm__left_s=60), "warn", "before training begins"),
    ("slurm.mem", but(env={**GOOD.env, "SLURM_MEM_PER_NODE": "200000"}), "warn", "Memory required by task"),
    ("slurm.ver", but(env={**DEBUG, "CUDA_VISIBLE_DEVICES": "0"}), "warn", "gets one CPU"),
]


@pytest.mark.parametrize(("check", "node", "status", "words"), TROUBLES, ids=[f"{c}-{i}" for i, (c, *_) in enumerate(TROUBLES)])
def test_each_trouble_is_found_with_measure_consequence_and_cure(check, node, status, words):
    found = bad(node)[check]
    assert found.status.value == status
    assert words in f"{found.measured} {found.consequence}"
    assert found.measured and found.threshold and found.consequence and found.remedy


def test_every_check_has_a_trouble_here():
    elsewhere = {"node.seen", "log.scan", "ver.same", "ray.all"}
    assert {c for c, *_ in TROUBLES} | elsewhere == {c.key for c in CHECKS}


def test_what_only_several_nodes_show():
    other = but(name="n2")
    assert bad(GOOD, other, silent=(("n3", "no agent in 20 s"),))["node.seen"].measured == "no agent in 20 s"
    assert bad(GOOD, but(name="n2", versions={**GOOD.versions, "ray": "2.49.0"}))["ver.same"].status is Status.FAIL
    assert bad(GOOD, but(name="n2", versions={**GOOD.versions, "torch": "2.8"}))["ver.same"].status is Status.WARN
    assert bad(GOOD, but(name="n2", auth=Auth(mode="token", digest="xyz")))["auth.same"].measured == "n1: abc, n2: xyz"
    assert bad(GOOD, but(name="n2", auth=Auth(mode="disabled")))["auth.same"].status is Status.FAIL
    assert bad(but(auth=Auth(digest="abc")), but(name="n2", auth=Auth(digest="abc")))["auth.same"].status is Status.WARN
    assert bad(GOOD, but(name="n2", network__host="n2"))["net.name"].measured == "n1, n2 are all 10.0.0.1"
    assert bad(GOOD, but(name="n2", logs__mark="b"))["fs.logdir"].status is Status.FAIL
    assert bad(GOOD, but(name="n2", network__infiniband=()))["net.nccl"].status is Status.WARN
    assert bad(GOOD, but(name="n2", gpus__devices=(), gpus__slurm=None, plan__num_gpus=0, env=DEBUG))["gpu.count"].status is Status.FAIL


def test_a_node_of_the_job_without_ray_is_named_and_strangers_do_not_count():
    stranger = msgspec.structs.replace(RAYLET, slurm_job="8", address="10.0.0.7:6379")
    mine = msgspec.structs.replace(RAYLET, slurm_job="7")
    plan = Plan(slurm_job="7", address=None)
    found = bad(but(RUNNING, plan=plan, ray=(mine, stranger)), but(RUNNING, name="n2", plan=plan, ray=(stranger,)))
    assert (found["ray.all"].node, found["ray.all"].status) == ("n2", Status.FAIL)
    assert "waits forever" in (found["ray.all"].consequence or "")
    assert "Slurm job 8" in found["ray.other"].measured


def test_interface_names_in_nccls_and_gloos_notation():
    from ray_rl_debug.doctor.network import is_named

    assert is_named("eth0", "eth", by_prefix=True)
    assert is_named("ib0", "^lo,docker", by_prefix=True)
    assert not is_named("docker0", "^lo,docker", by_prefix=True)
    assert not is_named("eth0", "=eth", by_prefix=True)
    assert not is_named("eth0", "eth", by_prefix=False)
    assert is_named("eth0", "ib0,eth0", by_prefix=False)


def test_proxies_are_no_trouble_where_no_proxy_covers_the_nodes():
    for covering in (("*",), ("10.0.0.1",), ("10.0.0.0/8",), ("n1",)):
        assert "net.proxy" not in bad(but(network__proxies=("http_proxy",), network__no_proxy=covering))


def test_nothing_measured_is_unknown_and_never_good():
    empty = NodeHealth(name="n1", taken_time_s=0.0, plan=Plan(is_preflight=True))
    found = results(empty)
    assert {r.check for r in found if r.status is Status.OK} <= {"node.seen", "gpu.env", "train.env"}
    assert any(r.status is Status.UNKNOWN for r in found)


def test_a_check_that_crashes_is_a_result_and_the_others_run():
    def explode(node):
        raise RuntimeError("no such thing")

    found = examine(Health(nodes=(GOOD,)), (Check("RRD899", "x.y", "broken", explode), *CHECKS))
    assert found.state is Status.OK
    crashed = next(r for r in found.results if r.id == "RRD899")
    assert crashed.status is Status.UNKNOWN
    assert crashed.measured == "this check failed: RuntimeError: no such thing"


def test_equal_results_of_many_nodes_are_one_row_and_good_ones_one_line():
    nodes = [but(name=f"n{i}", limits__files=Limit(soft=1024, hard=1 << 20)) for i in range(8)]
    lines = list(render(examine(Health(nodes=tuple(nodes))), colour=False))
    assert lines[0].startswith("FAIL: 8 of ")
    assert [line for line in lines if "lim.nofile" in line] == ["fail    lim.nofile   all            ulimit -n 1024"]
    assert any(line.strip() == 'cure    ulimit -Sn "$(ulimit -Hn)"' for line in lines)
    assert lines[-1].endswith("(-v shows what was measured)") or "(-v shows what was measured)" in "".join(lines[-3:])


CASES = {
    "actors100_on_1cpu_default": "RRD608",
    "auth_token_client_without_token": "RRD613",
    "auth_token_worker_join": "RRD613",
    "gcs_port_taken": "RRD610",
    "long_tempdir": "RRD614",
    "nproc_limit_40": "RRD693",
    "nproc_limit_64": "RRD693",
    "num_cpus_with_existing_cluster": "RRD615",
    "raylet_killed_during_register": "RRD606",
    "register_timeout_1s": "RRD608",
    "temp_dir_unwritable": "RRD697",
    "tmp_ray_owned_by_other": "RRD697",
    "worker_cannot_reach_head": "RRD611",
}


@pytest.mark.parametrize(("case", "expected"), CASES.items())
def test_logs_of_each_failed_start_are_recognised(case, expected, capsys):
    assert main(["doctor", "--logs", str(DATA / "raylet_errors" / case), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "fail"
    assert any(expected in r["measured"] for r in found["results"])
    assert all(r["remedy"] for r in found["results"])


def test_every_recorded_case_is_listed():
    assert {p.name for p in (DATA / "raylet_errors").iterdir()} == {*CASES, "healthy_one_of_128_cpus"}


@pytest.mark.parametrize("path", ["raylet_errors/healthy_one_of_128_cpus", "logs"])
def test_healthy_logs_have_no_error(path, capsys):
    assert main(["doctor", "--logs", str(DATA / path)]) == 0
    assert capsys.readouterr().out.startswith("OK: ")


def test_files_of_several_nodes_are_merged_and_missing_nodes_named(tmp_path, capsys):
    doctor_facts.save(tmp_path, [GOOD, but(name="n2")])
    assert main(["doctor", str(tmp_path), "--expect", "n1,n2"]) == 0
    assert "on n1, n2" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path), "--expect", "n1,n2,n3"]) == 1
    assert "node.seen    n3" in capsys.readouterr().out
    (tmp_path / "n4.health.json").write_text("{}")
    assert main(["doctor", str(tmp_path)]) == 3


def test_strict_counts_warnings_and_usage_is_checked(tmp_path, capsys):
    doctor_facts.save(tmp_path, [but(slurm__kill_wait_s=5)])
    assert main(["doctor", str(tmp_path)]) == 0
    assert main(["doctor", str(tmp_path), "--strict"]) == 1
    assert main(["doctor", str(tmp_path), "--here"]) == 2
    assert main(["doctor", "--logs", str(tmp_path / "absent")]) == 2
    capsys.readouterr()


def test_explain_knows_every_check():
    from ray_rl_debug.commands.catalogue import explain

    for check in CHECKS:
        text = explain(check.id)
        assert text is not None and text.startswith(f"{check.id} {check.name}\n")
        for head in ("Story", "Evidence", "Remedy", "Not this when"):
            assert f"\n{head}\n" in text, (check.key, head)
