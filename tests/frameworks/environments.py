"""An environment with the real frameworks: built once per machine, kept in the user's cache, laid over the environment of the tests.

torch and Ray come from the environment that runs the tests; only what the frameworks add is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FRAMEWORKS = ("verl==0.9.1", "areal==1.0.4", "TransferQueue==0.1.11")
OUTER = "RAYRL_DEBUG_TESTS_OUTER"
"""Variable that names the site-packages underneath; every process of the programs under test inherits it."""
OVERLAY = f"import os, sys; sys.path.append(os.environ.get({OUTER!r}) or '')\n"
DEADLINE_S = 900


def python() -> Path:
    """The interpreter of the environment, built if need be; skips the test with the reason where that is impossible."""
    home = cache() / key()
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{key()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            reason = _build(home)
            if reason:
                pytest.skip(f"the frameworks cannot be installed here: {reason}")
    return home / "bin" / "python"


def environment(**more: str) -> dict[str, str]:
    """Variables for a program in that environment."""
    kept = {k: v for k, v in os.environ.items() if k not in ("RAY_ADDRESS", "RAY_TMPDIR", "PYTHONPATH")}
    ray = {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    quiet = {"CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled"}
    return {**kept, **ray, **quiet, OUTER: sysconfig.get_path("purelib"), **more}


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ray-rl-debug" / "frameworks"


def key() -> str:
    """Changes with everything that is installed."""
    what = [*FRAMEWORKS, OVERLAY, sys.version, *((HERE / name).read_text() for name in ("packages.txt", "constraints.txt"))]
    return hashlib.sha256("\n".join(what).encode()).hexdigest()[:16]


def _build(home: Path) -> str | None:
    """Installs everything; the reason where that failed."""
    shutil.rmtree(home, ignore_errors=True)
    made = _run([sys.executable, "-m", "venv", str(home)])
    if made:
        return made
    inner = subprocess.run(
        [str(home / "bin" / "python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (Path(inner) / "zz_overlay.pth").write_text(OVERLAY)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    failed = _run([*pip, "--no-deps", *FRAMEWORKS]) or _run([*pip, "-c", str(HERE / "constraints.txt"), "-r", str(HERE / "packages.txt")])
    if failed is None:
        (home / "complete").touch()
    return failed


def _run(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, env=environment(), check=False)
    except subprocess.TimeoutExpired:
        return f"not done in {DEADLINE_S} s"
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
    return None if done.returncode == 0 else (errors or ["no reason given"])[-1][:300]
