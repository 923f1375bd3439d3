"""Job scripts for Slurm: `render` writes them, `lint` finds what is wrong in existing ones. The texts lie in ``slurm/`` beside the package."""
