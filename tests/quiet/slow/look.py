"""Looks at the slow programs as a user would, after a minute: ``python tests/quiet/slow/look.py NAME [NAME ...] [--out DIR] [--record]``.

One row a look: whether it is quiet, the state, the first finding. ``--record`` takes each look among the recorded ones, under names of no machine.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import gzip
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from cases.store import neutral  # noqa: E402
from engines.processes import end  # noqa: E402
from engines.tool import snapshot  # noqa: E402
from kinds.lab import end_session  # noqa: E402

from ray_rl_debug.model.codec import encode, read_snapshot  # noqa: E402

AFTER_S = 55.0
LOOKS = 2


@contextlib.contextmanager
def running(name: str) -> Iterator[tuple[str, ...]]:
    """The options that say where it runs."""
    folder = Path(tempfile.mkdtemp(prefix="rs", dir="/tmp"))
    variables = {**os.environ, "SLOW_FOLDER": str(folder), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    with (folder / "log").open("wb") as log:
        command = [sys.executable, str(HERE / "start.py"), name]
        child = subprocess.Popen(command, env=variables, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        time.sleep(AFTER_S)
        if child.poll() is not None:
            raise RuntimeError(f"{name} has ended: {(folder / 'log').read_text(errors='replace')[-2000:]}")
        address = folder / "address"
        yield ("--address", address.read_text()) if address.exists() else ("--pid", str(child.pid))
    finally:
        end(child.pid)
        child.wait(10)
        end_session(child.pid)
        shutil.rmtree(folder, ignore_errors=True)


def record(kept: Path, name: str, number: int) -> None:
    found = neutral(read_snapshot(kept / "snapshot.json.gz"), {str(HERE): "/srv/programs", sys.prefix: "/opt/env"})
    (HERE.parent / "recorded" / f"{name}-{number}.json.gz").write_bytes(gzip.compress(encode(found), 9, mtime=0))


def main() -> int:
    sys.path.insert(0, str(HERE))
    from start import ALL

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="+")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    out = asked.out or Path(tempfile.mkdtemp(prefix="looks", dir="/tmp"))
    quiet = []
    for name in (one for one in ALL if any(fnmatch.fnmatch(one, pattern) for pattern in asked.name)):
        with running(name) as where:
            for number in range(1, LOOKS + 1):
                time.sleep(random.uniform(2, 10))
                kept = out / name / str(number)
                report = snapshot(where, kept).report
                sure = [f for f in report["findings"] if f["certainty"] != "possible"]
                quiet.append(report["verdict"]["state"] in ("healthy", "slow") and not sure)
                said = (sure or report["findings"] or [report["verdict"]])[0]["summary"]
                print(f"{name:<18} {number}  {'quiet' if quiet[-1] else 'LOUD '}  {report['verdict']['state']:<8} {said[:160]}", flush=True)
                if asked.record:
                    record(kept, name, number)
    print(f"{sum(quiet)} of {len(quiet)} quiet")
    return 0 if all(quiet) else 1


if __name__ == "__main__":
    sys.exit(main())
