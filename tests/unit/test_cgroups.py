"""Control groups of both versions, from folders laid out as the kernel does."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.collect.cgroups import CgroupMemory, frozen_group, read_cgroup, read_cgroup_memory


def lay(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_version_2_takes_the_tightest_limit_and_the_innermost_events(tmp_path: Path) -> None:
    proc = lay(tmp_path / "proc", {"7/cgroup": "0::/slurm/job_1/step_0\n"})
    root = lay(
        tmp_path / "sys",
        {
            "slurm/job_1/memory.max": "4096\n",
            "slurm/job_1/memory.events": "low 0\noom 9\noom_kill 8\n",
            "slurm/job_1/step_0/memory.max": "max\n",
            "slurm/job_1/step_0/memory.current": "1024\n",
            "slurm/job_1/step_0/memory.events": "low 0\noom 3\noom_kill 2\n",
        },
    )
    assert read_cgroup(7, proc) == "/slurm/job_1/step_0"
    assert read_cgroup_memory(7, proc, root) == CgroupMemory(oom_kills=2, limit_bytes=4096, used_bytes=1024)


def test_version_2_in_a_container_whose_path_is_of_the_host(tmp_path: Path) -> None:
    proc = lay(tmp_path / "proc", {"7/cgroup": "0::/../../other\n"})
    root = lay(tmp_path / "sys", {"memory.events": "oom_kill 1\n", "memory.max": "8192\n"})
    assert read_cgroup_memory(7, proc, root) == CgroupMemory(oom_kills=1, limit_bytes=8192)


def test_version_1_has_its_own_memory_controller_and_a_number_for_no_limit(tmp_path: Path) -> None:
    proc = lay(tmp_path / "proc", {"7/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n"})
    root = lay(
        tmp_path / "sys",
        {
            "memory/docker/abc/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
            "memory/docker/abc/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/docker/abc/memory.usage_in_bytes": "77\n",
        },
    )
    assert read_cgroup(7, proc) == "/docker/abc"
    assert read_cgroup_memory(7, proc, root) == CgroupMemory(oom_kills=5, used_bytes=77)


def test_nothing_readable_is_none_and_not_zero(tmp_path: Path) -> None:
    assert read_cgroup(7, tmp_path) is None
    assert read_cgroup_memory(7, tmp_path, tmp_path) == CgroupMemory()


def test_version_2_names_the_outermost_group_that_was_frozen(tmp_path: Path) -> None:
    proc = lay(tmp_path / "proc", {"7/cgroup": "0::/pods/one/main\n", "8/cgroup": "0::/pods/two\n", "9/cgroup": "0::/\n"})
    root = lay(
        tmp_path / "sys",
        {
            "pods/one/cgroup.freeze": "1\n",
            "pods/one/cgroup.events": "populated 1\nfrozen 1\n",
            "pods/one/main/cgroup.freeze": "0\n",
            "pods/one/main/cgroup.events": "populated 1\nfrozen 1\n",
            "pods/two/cgroup.freeze": "1\n",
            "pods/two/cgroup.events": "populated 1\nfrozen 0\n",
        },
    )
    assert frozen_group(7, proc, root) == "/pods/one"
    assert frozen_group(8, proc, root) is None  # asked to, and not yet still
    assert frozen_group(9, proc, root) is None


def test_version_1_freezes_by_a_controller_of_its_own(tmp_path: Path) -> None:
    proc = lay(tmp_path / "proc", {"7/cgroup": "6:freezer:/docker/1f\n0::/\n", "8/cgroup": "6:freezer:/\n0::/\n"})
    root = lay(tmp_path / "sys", {"freezer/docker/1f/freezer.state": "FROZEN\n", "freezer/docker/1f/freezer.self_freezing": "1\n"})
    (root / "unified").mkdir()
    assert frozen_group(7, proc, root) == "/freezer/docker/1f"
    assert frozen_group(8, proc, root) is None
