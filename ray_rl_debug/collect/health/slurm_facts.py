"""What Slurm says of itself and of this job."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping

from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.model.health import Slurm

Run = Callable[..., Finished]
DEADLINE_S = 8.0
_LEFT = re.compile(r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$")


def read_slurm(env: Mapping[str, str], run: Run = run_bounded, which: Callable[[str], str | None] = shutil.which) -> Slurm | None:
    """None outside of a Slurm job."""
    job = env.get("SLURM_JOB_ID")
    if not job:
        return None
    settings = _settings(_ask(["scontrol", "show", "config"], run, which))
    kinds = settings.get("SelectTypeParameters")
    return Slurm(
        job_id=job,
        version=settings.get("SLURM_VERSION"),
        kill_wait_s=_seconds(settings.get("KillWait")),
        unkillable_timeout_s=_seconds(settings.get("UnkillableStepTimeout")),
        has_memory="MEMORY" in kinds.upper() if kinds else None,
        left_s=_left(_ask(["squeue", "-h", "-j", job, "-o", "%L"], run, which)),
    )


def _ask(command: list[str], run: Run, which: Callable[[str], str | None]) -> str:
    if which(command[0]) is None:
        return ""
    try:
        done = run(command, DEADLINE_S)
    except OSError:
        return ""
    return str(done.out.decode("utf-8", "replace")) if done.code == 0 else ""


def _settings(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip() for name, sign, value in pairs if sign}


def _seconds(text: str | None) -> int | None:
    words = (text or "").split()
    return int(words[0]) if words and words[0].isdigit() else None


def _left(text: str) -> int | None:
    found = _LEFT.match(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (int(x or 0) for x in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
