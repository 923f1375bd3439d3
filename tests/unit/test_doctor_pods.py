"""The doctor in a pod: what the container allows, and the lines of the manifest that are missing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml
from test_doctor import GIB, GOOD, POD, RAYLET, RUNNING, bad, but, results

from ray_rl_debug.collect.health.cpu import read_cpus
from ray_rl_debug.collect.health.limits import read_memory
from ray_rl_debug.collect.health.pod import read_pod
from ray_rl_debug.doctor import examine
from ray_rl_debug.model.health import Health, Looking, NodeHealth, Status
from ray_rl_debug.model.pod import Pod
from ray_rl_debug.model.snapshot import Doors
from ray_rl_debug.render.checkup import render

CLOSED = Looking(doors=Doors(attach=False, memory=False, place="kubernetes", setting="ptrace_scope=1"), pyspy="0.4.1", error="Permission denied")
BARE = msgspec.structs.replace(POD, has_ptrace=False, may_have_ptrace=False)


def closed(pod: Pod) -> NodeHealth:
    return but(RUNNING, pod=pod, looking=CLOSED)


def lines_of_manifest(remedy: str) -> dict[str, object]:
    """The YAML in a remedy: what follows the sentence that names its place."""
    head, _, text = remedy.partition("container:\n")
    assert head.endswith("the pod's ")
    body = text.split("\nor, ")[0]
    return dict(yaml.safe_load(body))


@pytest.mark.parametrize(
    ("pod", "context"),
    [
        (BARE, {"capabilities": {"add": ["SYS_PTRACE"]}}),
        (msgspec.structs.replace(BARE, user_id=1000), {"runAsUser": 0, "capabilities": {"add": ["SYS_PTRACE"]}}),
        (msgspec.structs.replace(POD, user_id=1000, has_ptrace=False), {"runAsUser": 0, "capabilities": {"add": ["SYS_PTRACE"]}}),
        (POD, {"seccompProfile": {"type": "RuntimeDefault"}}),
    ],
    ids=["root without the capability", "user without it", "user in a container that has it", "a filter forbids it"],
)
def test_the_right_to_look_is_lines_of_the_container(pod: Pod, context: dict[str, object]) -> None:
    found = bad(closed(pod))["dbg.ptrace"]
    assert found.remedy is not None
    assert lines_of_manifest(found.remedy) == {"securityContext": context}


def test_a_user_learns_of_sudo_only_where_sudo_helps() -> None:
    user = msgspec.structs.replace(POD, user_id=1000, has_ptrace=False)
    assert "sudo" in (bad(closed(user))["dbg.ptrace"].remedy or "")
    assert "sudo" not in (bad(closed(msgspec.structs.replace(user, no_new_privileges=True)))["dbg.ptrace"].remedy or "")
    assert "sudo" not in (bad(closed(msgspec.structs.replace(user, may_have_ptrace=False)))["dbg.ptrace"].remedy or "")


def test_no_line_helps_where_the_nodes_kernel_forbids_all_tracing() -> None:
    found = bad(closed(msgspec.structs.replace(POD, ptrace_scope=3)))["dbg.ptrace"]
    assert "securityContext" not in (found.remedy or "")
    assert "prepare.open_doors" in (found.remedy or "")


def test_a_pod_that_may_look_is_left_in_peace_whatever_it_lacks() -> None:
    assert "dbg.ptrace" not in bad(but(RUNNING, pod=BARE))
    good = next(r for r in results(but(RUNNING, pod=BARE)) if r.check == "dbg.ptrace")
    assert good.measured.endswith("pod: user 0, no SYS_PTRACE, a seccomp filter, ptrace_scope=1")


def test_a_small_shared_memory_is_a_volume() -> None:
    found = bad(but(RUNNING, pod=POD, memory__shm_total_bytes=64 << 20))["shm.size"]
    of_pod, _, of_container = (found.remedy or "").partition("in the manifest of the pod's container:\n")
    (volume,) = yaml.safe_load(of_pod.partition(":\n")[2])["volumes"]
    (mount,) = yaml.safe_load(of_container)["volumeMounts"]
    assert volume == {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "154Gi"}}
    assert mount == {"name": "shm", "mountPath": "/dev/shm"}


def test_a_container_beside_ray_is_not_measured_for_it() -> None:
    beside = msgspec.structs.replace(RAYLET, is_of_our_group=False)
    node = but(RUNNING, pod=msgspec.structs.replace(POD, shares_processes=True), ray=(beside,), memory__shm_total_bytes=64 << 20, cpus__quota=0.5)
    found = {r.check: r for r in results(node)}
    assert found["shm.size"].status is Status.UNKNOWN
    assert found["cpu.quota"].status is Status.OK
    assert found["pod.proc"].measured == "1 processes of Ray are seen; processes are shared with the pod's other containers"


def test_a_quota_below_rays_cpus_is_a_parameter_of_rays_start() -> None:
    found = bad(but(RUNNING, pod=POD, cpus__quota=2.0))["cpu.quota"]
    assert yaml.safe_load((found.remedy or "").partition(":\n")[2]) == {"rayStartParams": {"num-cpus": "2"}}
    # KubeRay counts a part of a core as a whole one
    part = msgspec.structs.replace(RAYLET, cpus_claimed=1)
    assert "cpu.quota" not in bad(but(RUNNING, pod=POD, ray=(part,), cpus__quota=0.5))


def test_memory_is_good_where_ray_counts_the_limit() -> None:
    assert "mem.limit" not in bad(but(RUNNING, pod=POD, memory__limit_bytes=64 * GIB, memory__ray_bytes=64 * GIB))
    found = bad(but(RUNNING, pod=POD, memory__limit_bytes=64 * GIB, memory__ray_bytes=512 * GIB))["mem.limit"]
    params = yaml.safe_load((found.remedy or "").partition(":\n")[2])["rayStartParams"]
    assert {k: int(v) <= 64 * GIB for k, v in params.items()} == {"memory": True, "object-store-memory": True}


def test_lines_of_a_manifest_keep_their_indents_on_the_screen() -> None:
    shown = list(render(examine(Health(nodes=(closed(BARE),))), colour=False, width=80))
    start = next(i for i, line in enumerate(shown) if line.strip() == "securityContext:")
    assert [line[16:] for line in shown[start : start + 3]] == ["securityContext:", "  capabilities:", "    add: [SYS_PTRACE]"]
    assert max(map(len, shown)) <= 80


def test_outside_of_kubernetes_nothing_of_pods_is_said() -> None:
    assert read_pod(place="bare") is None
    assert not [r for r in results(GOOD, RUNNING) if "pod" in f"{r.check} {r.measured}"]


def lay(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


STATUS = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nCapBnd:\t00000000a80c25fb\nNoNewPrivs:\t1\nSeccomp:\t2\n"


def test_what_proc_says_of_a_container(tmp_path: Path) -> None:
    proc = lay(tmp_path, {"self/status": STATUS, "sys/kernel/yama/ptrace_scope": "1\n", "1/stat": "1 (pause) S 0 1 1 " + "0 " * 48})
    assert read_pod(proc, "kubernetes") == Pod(
        user_id=1000,
        has_ptrace=False,
        may_have_ptrace=True,
        no_new_privileges=True,
        has_seccomp=True,
        ptrace_scope=1,
        shares_processes=True,
    )
    assert read_pod(tmp_path / "absent", "kubernetes") == Pod(ptrace_scope=0)
    damaged = lay(tmp_path / "bad", {"self/status": "CapEff:\tzz\nUid:\nSeccomp:\tx\n"})
    assert read_pod(damaged, "kubernetes") == Pod(ptrace_scope=0)


def test_a_containers_own_groups_count_though_its_path_is_one_of_the_host(tmp_path: Path) -> None:
    proc = lay(
        tmp_path / "proc", {"self/cgroup": "5:cpu,cpuacct:/kubepods/pod1/c1\n4:memory:/kubepods/pod1/c1\n", "meminfo": "MemTotal: 8388608 kB\n"}
    )
    root = lay(
        tmp_path / "one",
        {"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n", "memory/memory.limit_in_bytes": "2147483648\n"},
    )
    assert read_cpus({}, proc, root).quota == 1.5
    assert read_memory(proc, root=root).ray_bytes == 2 << 30
    proc = lay(tmp_path / "proc2", {"self/cgroup": "0::/../../pod1/c1\n", "meminfo": "MemTotal: 8388608 kB\n"})
    root = lay(tmp_path / "two", {"cpu.max": "50000 100000\n", "memory.max": "max\n"})
    assert read_cpus({}, proc, root).quota == 0.5
    assert read_memory(proc, root=root).ray_bytes == 8 << 30
