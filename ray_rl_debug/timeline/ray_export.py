"""Ray's own ``ray.timeline()`` by a process of its own: it takes a connection to the cluster, has no deadline, and leaves threads behind.

Run as ``python -m ray_rl_debug.timeline.ray_export ADDRESS FILE``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEADLINE_S = 60.0


def export(address: str, *, deadline_s: float = DEADLINE_S, run: Callable[..., Any] = subprocess.run) -> list[dict[str, Any]]:
    """The rows.

    Raises:
        TimeoutError: no answer in time.
        RuntimeError: it ended without rows; the message is the last line it wrote.
    """
    with tempfile.TemporaryDirectory(prefix="rayrl-") as folder:
        path = Path(folder) / "timeline.json"
        command = [sys.executable, "-m", __name__, address, str(path)]
        try:
            done = run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=deadline_s, check=False
            )
        except subprocess.TimeoutExpired as e:
            raise TimeoutError(f"ray.timeline() did not answer in {deadline_s:g} s") from e
        if not path.is_file():
            raise RuntimeError((done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1][:300])
        return [r for r in json.loads(path.read_text()) if isinstance(r, dict)]


def main(address: str, path: str) -> None:
    """What the process of its own does."""
    import ray

    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    rows = list(ray.timeline() or ())
    part = Path(path).with_suffix(".part")
    part.write_text(json.dumps(rows))
    part.replace(path)


if __name__ == "__main__":
    main(*sys.argv[1:3])
