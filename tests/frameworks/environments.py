"""Environments with real frameworks and engines: built once per machine, kept in the user's cache.

The frameworks' one is laid over the environment of the tests: torch and Ray come from that one, only what the frameworks add is installed.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OUTER = "RAYRL_DEBUG_TESTS_OUTER"
"""Variable that names the site-packages underneath; every process of the programs under test inherits it."""
OVERLAY = f"import os, sys; sys.path.append(os.environ.get({OUTER!r}) or '')\n"
DEADLINE_S = 900


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What an environment consists of; its folder in the cache is named after all of it."""

    name: str
    installs: tuple[tuple[str, ...], ...]
    """Arguments of ``pip install``, one after another; files of requirements and constraints count with what is in them."""
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Text by path below site-packages, written before anything is installed."""

    def home(self) -> Path:
        return cache() / self.name / self.key()

    def python(self) -> Path:
        return self.home() / "bin" / "python"

    def site_packages(self) -> Path:
        return self.home() / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"

    def key(self) -> str:
        """Changes with everything that is installed."""
        arguments = [Path(a).read_text() if a.endswith(".txt") else a for install in self.installs for a in install]
        what = [*arguments, *self.files.keys(), *self.files.values(), sys.version]
        return hashlib.sha256("\n".join(what).encode()).hexdigest()[:16]

    def build(self) -> str | None:
        """Builds it if need be; the reason where that is impossible."""
        home = self.home()
        home.parent.mkdir(parents=True, exist_ok=True)
        with home.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return None if (home / "complete").exists() else self._build(home)

    def _build(self, home: Path) -> str | None:
        shutil.rmtree(home, ignore_errors=True)
        failed = _run([sys.executable, "-m", "venv", str(home)])
        for path, text in self.files.items() if failed is None else ():
            (self.site_packages() / path).parent.mkdir(parents=True, exist_ok=True)
            (self.site_packages() / path).write_text(text)
        pip = [str(self.python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for install in self.installs:
            failed = failed or _run([*pip, *install])
        if failed is None:
            (home / "complete").touch()
        return failed


FRAMEWORKS = Recipe(
    name="frameworks",
    installs=(
        ("--no-deps", "verl==0.9.1", "areal==1.0.4", "TransferQueue==0.1.11"),
        ("-c", str(HERE / "constraints.txt"), "-r", str(HERE / "packages.txt")),
    ),
    files={"zz_overlay.pth": OVERLAY},
)
LIGHTNING = Recipe(name="lightning", installs=(("--no-deps", "-r", str(HERE / "packages_lightning.txt")),))
"""Agent-Lightning asks for other versions of what the others share."""


def python(recipe: Recipe = FRAMEWORKS) -> Path:
    """The interpreter of the environment, built if need be; skips the test with the reason where that is impossible."""
    reason = recipe.build()
    if reason:
        pytest.skip(f"{recipe.name} cannot be installed here: {reason}")
    return recipe.python()


def environment(**more: str) -> dict[str, str]:
    """Variables for a program in that environment."""
    kept = {k: v for k, v in os.environ.items() if k not in ("RAY_ADDRESS", "RAY_TMPDIR", "PYTHONPATH")}
    ray = {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    quiet = {"CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled"}
    return {**kept, **ray, **quiet, OUTER: sysconfig.get_path("purelib"), **more}


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ray-rl-debug"


def _run(command: list[str]) -> str | None:
    # Without compiled files in the cache every start of an engine compiles some thousand modules anew.
    plain = {k: v for k, v in environment().items() if k != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, env=plain, check=False)
    except subprocess.TimeoutExpired:
        return f"not done in {DEADLINE_S} s"
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
    return None if done.returncode == 0 else (errors or ["no reason given"])[-1][:300]
