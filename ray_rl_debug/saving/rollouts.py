"""A comparison of rollouts as files of one folder, beside the answers that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ray_rl_debug.rollouts.answers import Trial
    from ray_rl_debug.rollouts.compare import Comparison


def save(folder: Path, trial: Trial, result: Comparison) -> None:
    """Write ``comparison.json`` and ``comparison.html``.

    Raises:
        OutputError: the folder cannot be written.
    """
    from ray_rl_debug.model.codec import encode
    from ray_rl_debug.model.whole_files import write_whole
    from ray_rl_debug.render.html import rollouts

    write_whole(folder / "comparison.json", encode(result) + b"\n")
    write_whole(folder / "comparison.html", rollouts.render(trial, result).encode("utf-8", "replace"))
