"""What starting Ray costs here, which versions would run, and whose token would be used."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ray_rl_debug.bounded.own_python import PLAIN_PATH
from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.collect.procfs import PROC
from ray_rl_debug.collect.ray_token import find_token
from ray_rl_debug.model.health import Auth, Start

IMPORT_DEADLINE_S = 45.0
PACKAGES = ("ray", "torch", "vllm", "sglang", "verl", "areal", "agentlightning", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "ray-rl-debug")
# The function moved between Ray's versions; without it the count stays unknown, the cost is still known.
_PROGRAM = """
import json, resource, time
began = time.monotonic()
import ray
took = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_SELF)
count = None
try:
    from ray._private.utils import get_num_cpus
    count = int(get_num_cpus(override_docker_cpu_warning=True))
except Exception:
    pass
print(json.dumps({"took": took, "cpu": used.ru_utime + used.ru_stime, "count": count}))
"""

Run = Callable[..., Finished]


def read_start(env: Mapping[str, str], run: Run = run_bounded) -> Start:
    """Import Ray twice in a process of its own: first as cold as it is, then warm."""
    cold, error = _import(env, run)
    if cold is None:
        return Start(error=error)
    warm, error = _import(env, run)
    if warm is None:
        return Start(cold_s=cold["took"], ray_cpus=_whole(cold["count"]), error=error)
    return Start(cold_s=cold["took"], warm_s=warm["took"], cpu_s=warm["cpu"], ray_cpus=_whole(warm["count"]))


def _import(env: Mapping[str, str], run: Run) -> tuple[dict[str, float] | None, str | None]:
    quiet = {**env, "RAY_DISABLE_DOCKER_CPU_WARNING": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    try:
        done = run([sys.executable, "-c", PLAIN_PATH + _PROGRAM], IMPORT_DEADLINE_S, env=quiet)
    except OSError as e:
        return None, e.strerror or str(e)
    if done.timed_out:
        return None, f"not within {IMPORT_DEADLINE_S:g} s"
    try:
        return json.loads(done.out.splitlines()[-1]), None
    except (ValueError, IndexError):
        said = done.err.decode("utf-8", "replace").strip().splitlines()
        return None, said[-1][:200] if said else f"it ended with {done.code}"


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None else None


def read_versions(raylet: int | None = None, proc: Path = PROC) -> dict[str, str]:
    """Python, its path, and the packages that all nodes must share: ours, or those beside the Ray of a raylet, also inside its image."""
    packages = _packages_of(raylet, proc) if raylet is not None else None
    found = {"python": platform.python_version(), "executable": sys.executable}
    search: list[str] = sys.path
    if packages is not None:
        found = {"executable": packages}
        search = [f"{proc}/{raylet}/root{packages}"]
    for package in PACKAGES:
        for distribution in importlib.metadata.distributions(name=package, path=search):
            found[package] = distribution.version
            break
    return found


def _packages_of(raylet: int, proc: Path) -> str | None:
    """The folder of packages that a raylet's program lies in, as its process sees it; None where that may not be read."""
    try:
        program = os.readlink(proc / str(raylet) / "exe")
    except OSError:
        return None
    before, sign, _ = program.partition("/ray/core/src/ray/raylet/raylet")
    return before if sign and (proc / str(raylet) / "root" / before.lstrip("/")).is_dir() else None


def read_auth(env: Mapping[str, str], home: Path | None = None) -> Auth:
    """Which token Ray would use here, told by the first digits of its SHA-256 (a token is random: they reveal nothing)."""
    variables = dict(env)
    source = find_token(variables, home)
    text = variables.get("RAY_AUTH_TOKEN")
    if source is not None and source != "RAY_AUTH_TOKEN":
        path = Path(source.replace("~", str(home or os.path.expanduser("~")), 1)) if source.startswith("~") else Path(source)
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = None
    digest = hashlib.sha256(text.strip().encode()).hexdigest()[:12] if text and text.strip() else None
    return Auth(mode=variables.get("RAY_AUTH_MODE"), source=source, digest=digest)
