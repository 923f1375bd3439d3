"""Where the templates are, and which parts make which template."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.model.errors import MissingToolError

_PACKAGE = Path(__file__).resolve().parent.parent

FRAMEWORKS = ("ray", "verl", "verl-single", "areal-ray", "areal-slurm", "attach")

ABOUT: dict[str, str] = {
    "ray": "A Ray cluster on all nodes of one Slurm job, and one program that uses it.",
    "verl": "verl on all nodes of one Slurm job; this script starts Ray.",
    "verl-single": "verl on one node of Slurm; verl starts Ray itself, with the CPUs that Slurm allows.",
    "areal-ray": "AReaL with its Ray scheduler on all nodes of one Slurm job.",
    "areal-slurm": "The controller of AReaL with its Slurm scheduler: a small job that submits the others. No Ray.",
    "attach": "Look into a running Slurm job: one snapshot per node, merged into one report.",
}

USE: dict[str, str] = {
    "ray": "sbatch ray.sbatch python train.py",
    "verl": "sbatch verl.sbatch data.train_files=train.parquet actor_rollout_ref.model.path=MODEL",
    "verl-single": "sbatch verl-single.sbatch data.train_files=train.parquet actor_rollout_ref.model.path=MODEL",
    "areal-ray": "sbatch areal-ray.sbatch python3 examples/math/gsm8k_rl.py --config CONFIG.yaml",
    "areal-slurm": "sbatch areal-slurm.sbatch python3 examples/math/gsm8k_rl.py --config CONFIG.yaml",
    "attach": "bash attach.sh JOBID",
}

EXIT_CODES = """\
# Exit codes: the program's own, or 2 settings, 3 the head did not start, 4 it did not answer, 5 a node could not start Ray,
# 6 nodes missing at the deadline, 8 a node lost or the doctor's refusal, 9 counting failed, 10 the program started a Ray of its own."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "ray": (),
    "verl": ("python3", "-m", "verl.trainer.main_ppo"),
    "verl-single": ("python3", "-m", "verl.trainer.main_ppo"),
    "areal-ray": (),
    "areal-slurm": (),
}
"""What runs when nothing else is asked for; arguments of sbatch follow."""


def find_folder(package: Path = _PACKAGE) -> Path:
    """The folder with the templates: inside an installed package, or beside the package in a checkout.

    Raises:
        MissingToolError: neither is there.
    """
    for folder in (package / "slurm_templates", package.parent / "slurm"):
        if (folder / "parts").is_dir():
            return folder
    raise MissingToolError("the Slurm templates are not installed", hint="install ray-rl-debug again from a complete source")


def read_part(name: str) -> str:
    """One part of a template."""
    return (find_folder() / "parts" / f"{name}.sh").read_text(encoding="utf-8")


def file_name(framework: str) -> str:
    """Name of the complete template that ships ready to use."""
    return "attach.sh" if framework == "attach" else f"{framework}.sbatch"
