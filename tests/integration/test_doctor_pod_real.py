"""The doctor in a container as a pod's: real control groups, namespaces, capabilities and a real filter of system calls.

Not real here: Kubernetes itself (a variable says that we are in it), and Yama.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import environment
from container_like import can_contain, contained
from ports import free_port

WHY_NOT = can_contain()
pytestmark = [pytest.mark.integration, pytest.mark.skipif(WHY_NOT is not None, reason=f"{WHY_NOT}")]
A_USER = "--reuid=54321 --clear-groups"
DOCTOR = "$PY -m ray_rl_debug doctor --here --json || true"

NO_TRACING = """
import ctypes, os, struct, sys
NUMBERS = {"x86_64": (101, 310), "aarch64": (117, 270)}[os.uname().machine]  # ptrace, process_vm_readv
code = [(0x20, 0, 0, 0)] + [(0x15, len(NUMBERS) - i, 0, n) for i, n in enumerate(NUMBERS)] + [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
block = b"".join(struct.pack("HBBI", *line) for line in code)
held = ctypes.create_string_buffer(block)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(held)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())  # PR_SET_SECCOMP
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Takes ptrace and process_vm_readv away, then becomes another program."""


def pod_environment(**more: str) -> dict[str, str]:
    return environment(KUBERNETES_SERVICE_HOST="10.96.0.1", **more)


def by_check(text: str) -> dict[str, dict[str, Any]]:
    return {r["check"]: r for r in json.loads(text)["results"]}


@pytest.fixture
def folder() -> Iterator[Path]:
    made = tempfile.mkdtemp(prefix="rrd", dir="/tmp")  # short: Unix socket paths are limited to 107 bytes
    yield Path(made)
    shutil.rmtree(made, ignore_errors=True)


def test_a_bare_container_lacks_shared_memory_and_ray() -> None:
    found = by_check(contained(DOCTOR, cores=1.5, memory_bytes=2 << 30, shm="64m", env=pod_environment()))
    assert found["shm.size"]["status"] == "warn"
    assert found["shm.size"]["measured"] == "64 MiB in all"
    assert "sizeLimit: 615Mi" in found["shm.size"]["remedy"]
    assert found["pod.proc"]["status"] == "warn"
    assert found["pod.proc"]["remedy"].endswith("shareProcessNamespace: true")
    assert found["mem.limit"]["status"] == "ok"
    assert found["mem.limit"]["measured"].endswith("and Ray counts 2.0 GiB")
    assert found["cpu.quota"]["measured"] == "quota of 1.5 cores"


def test_ray_with_more_cpus_than_the_container_has_is_told_its_parameter(folder: Path) -> None:
    start = f"ray start --head --port={free_port()} --num-cpus=8 --temp-dir={folder} --include-dashboard=false --object-store-memory=100000000"
    script = f"$PY -m ray.scripts.scripts {start.removeprefix('ray ')} >&2; {DOCTOR}"
    found = by_check(contained(script, cores=1.5, memory_bytes=3 << 30, shm="1g", env=pod_environment()))
    assert found["cpu.quota"]["status"] == "warn"
    assert "quota of 1.5 cores, Ray takes 8 (raylet " in found["cpu.quota"]["measured"]
    assert found["cpu.quota"]["remedy"].endswith('rayStartParams:\n  num-cpus: "1"')
    assert found["pod.proc"]["status"] == "ok"
    assert found["shm.size"]["status"] == "ok"


@pytest.mark.parametrize(
    ("rights", "told"),
    [
        ("", "user 0, SYS_PTRACE"),
        ("--bounding-set=-sys_ptrace --inh-caps=-all", "user 0, no SYS_PTRACE"),
        ("--securebits=+noroot --no-new-privs", "user 0, SYS_PTRACE only for root, no new privileges"),
        (A_USER, "user 54321, SYS_PTRACE only for root"),
    ],
    ids=["root with all", "root without it", "without it though the container adds it", "a user in a container that adds it"],
)
def test_what_the_container_gives_is_measured(rights: str, told: str, folder: Path) -> None:
    folder.chmod(0o777)
    probe = ["setpriv", *A_USER.split(), "sh", "-c", f"{sys.executable} -c 'import ray_rl_debug'"]
    if rights == A_USER and subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("another user may not read this environment")
    env = pod_environment(HOME=str(folder))
    found = by_check(contained(DOCTOR, cores=1.0, memory_bytes=2 << 30, shm="64m", rights=rights, env=env))
    assert f"; pod: {told}, ptrace_scope=" in found["dbg.ptrace"]["measured"]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="numbers of system calls of this machine are not known here")
def test_a_filter_that_forbids_tracing_is_named_with_the_profile_that_allows_it(folder: Path) -> None:
    launcher = folder / "launcher.py"
    launcher.write_text(NO_TRACING)
    script = f"$PY {launcher} -m ray_rl_debug doctor --here --json || true"
    found = by_check(contained(script, cores=1.0, memory_bytes=2 << 30, shm="64m", env=pod_environment()))
    assert found["dbg.ptrace"]["status"] == "warn"
    assert "a seccomp filter" in found["dbg.ptrace"]["measured"]
    assert found["dbg.ptrace"]["remedy"].endswith("securityContext:\n  seccompProfile:\n    type: RuntimeDefault")
