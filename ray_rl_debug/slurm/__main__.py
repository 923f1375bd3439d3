"""Write the ready-to-use templates in ``slurm/`` again from their parts."""

from __future__ import annotations

from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.render import render
from ray_rl_debug.slurm.templates import FRAMEWORKS, file_name, find_folder


def default_job(framework: str) -> Job:
    """The parameters of the template that ships."""
    return Job(framework=framework, nodes=1 if framework in ("verl-single", "areal-slurm") else 2)


if __name__ == "__main__":
    for one in FRAMEWORKS:
        (find_folder() / file_name(one)).write_text(render(default_job(one)), encoding="utf-8")
