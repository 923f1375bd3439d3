"""What can be known of a script before it is submitted: bash's syntax and, where Slurm is, whether the job would be taken."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def check_script(text: str, *, run: Run = subprocess.run, which: Callable[[str], str | None] = shutil.which) -> tuple[bool, tuple[str, ...]]:
    """Whether the script may be submitted, and what each check said; a check whose program is missing says so."""
    said, good = [], True
    with tempfile.NamedTemporaryFile("w", suffix=".sbatch", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        for name, command in (("bash -n", ["bash", "-n", file.name]), ("sbatch --test-only", ["sbatch", "--test-only", file.name])):
            if which(command[0]) is None:
                said.append(f"{name}: not checked, {command[0]} is not here")
                continue
            if command[0] == "sbatch" and "#SBATCH" not in text:
                continue
            try:
                done = run(command, capture_output=True, text=True, timeout=60, check=False)
            except subprocess.TimeoutExpired:
                said.append(f"{name}: no answer in 60 s")
                continue
            answer = (done.stderr + done.stdout).replace(file.name, Path(file.name).suffix[1:]).strip()
            good = good and done.returncode == 0
            said.append(f"{name}: {answer or 'good'}")
    return good, tuple(said)
