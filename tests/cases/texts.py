"""What a person reads of each recorded case, beside its snapshot: ``PYTHONPATH=tests python -m cases.texts`` writes them anew.

Read the difference as a tired engineer would before you keep it.
"""

from __future__ import annotations

from pathlib import Path

from cases.store import HERE

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.render.terminal import render

AFTER = "stacks  "
"""From there on the report shows facts, not sentences."""


def text_of(case: Path) -> str:
    """The report of a snapshot from its verdict to its symptoms, for 100 columns."""
    snapshot = load((case,)).snapshot
    assert snapshot is not None
    lines = []
    for line in "\n".join(render(diagnose(snapshot), width=100, colour=False)).splitlines():
        if line.startswith(AFTER):
            break
        lines.append(line.rstrip())
    return "\n".join(lines).rstrip() + "\n"


def text_file(case: Path) -> Path:
    """``RRD101/hang.txt`` for ``RRD101/hang.json.gz``."""
    return case.with_name(case.name.removesuffix(".json.gz") + ".txt")


def main() -> None:
    for case in sorted(HERE.glob("RRD*/*.json.gz")):
        text_file(case).write_text(text_of(case))


if __name__ == "__main__":
    main()
