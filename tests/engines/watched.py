"""``watch`` beside real verl with a real vLLM: ``PYTHONPATH=tests python -m engines.watched CASE... [--minutes M] [--out DIR] [--tool CHECKOUT]``.

At a healthy case it watches so many minutes and must stay quiet; at a sick one it learns for a minute, then the trouble is made, and the row says
after how many seconds it told somebody, and whom it named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from engines.lab import Bench, Options, Row, chosen, judged
from engines.processes import Late, until
from engines.tool import CHECKOUT, Look
from engines.trainers import Trainer
from engines.truth import Case

LEARNING_STEPS = 15
TOLD_WITHIN_S = 20.0
GIVEN_UP_S = 180.0


class LastStep:
    """Notes when the run last ended a step (seconds since 1970)."""

    def __init__(self, run: Trainer) -> None:
        self.run, self.time_s = run, time.time()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        seen = self.run.run.steps()
        while self.run.run.child.poll() is None:
            if self.run.run.steps() != seen:
                seen, self.time_s = self.run.run.steps(), time.time()
            time.sleep(0.2)


@contextlib.contextmanager
def watching(run: Trainer, folder: Path, tool: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command beside the run; it ends when it has told of a hang, and has copied its report to ``told.json``."""
    variables = {**os.environ, "PYTHONPATH": str(tool), "RAY_AUTH_MODE": "disabled"}
    options = ["-q", "-o", str(folder / "watch"), "--once-hung", "exit", "--on-hang", f'cp "$RAYRL_DEBUG_REPORT" {folder}/told.json']
    with (folder / "watch.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "ray_rl_debug", "watch", *run.where(), *options], env=variables, cwd=tool, stdout=log, stderr=log
        )
    try:
        yield child
    finally:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(20)
        child.kill()


def quiet_row(case: Case, run: Trainer, minutes: float, tool: Path) -> Row:
    with tempfile.TemporaryDirectory(prefix="rrw", dir="/tmp") as name, watching(run, Path(name), tool) as watch:
        began, first = time.monotonic(), run.run.steps()
        with contextlib.suppress(Late):
            until(lambda: watch.poll() is not None, 60 * minutes, "the watcher ends", every=1.0)
        took, said = time.monotonic() - began, (Path(name) / "watch.log").read_text(errors="replace")
        is_quiet = watch.poll() is None and not (Path(name) / "told.json").exists()
        return Row(case.name, 1, "quiet" if is_quiet else "told", f"{run.run.steps() - first} steps; {said[-200:]}", is_quiet, took)


def told_row(case: Case, run: Trainer, tool: Path, out: Path | None) -> Row:
    with tempfile.TemporaryDirectory(prefix="rrw", dir="/tmp") as name, watching(run, Path(name), tool) as watch:
        run.run.await_steps(LEARNING_STEPS, 300)
        assert watch.poll() is None, (Path(name) / "watch.log").read_text(errors="replace")
        last = LastStep(run)
        with case.trouble(run) as pids:
            told = Path(name) / "told.json"
            with contextlib.suppress(Late):
                until(told.exists, GIVEN_UP_S, "somebody is told", every=0.2)
            report = json.loads(told.read_text()) if told.exists() else {"verdict": {"state": "quiet"}, "findings": []}
            took = (told.stat().st_mtime if told.exists() else time.time()) - last.time_s
            if out is not None:
                shutil.copytree(name, out / f"{case.name}-{os.getpid()}")
            row = judged(case, 1, Look(report, took), pids)
            return row._replace(is_right=row.is_right and took <= TOLD_WITHIN_S)


def main() -> int:
    parser = argparse.ArgumentParser(prog="engines.watched", description=__doc__)
    parser.add_argument("case", nargs="+")
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--out", type=Path, help="keep what the watcher wrote")
    parser.add_argument("--tool", type=Path, default=CHECKOUT)
    asked = parser.parse_args()
    rows = []
    with contextlib.closing(Bench(Options(fresh=True))) as bench:
        for case in chosen(asked.case):
            run = bench.running(case)
            assert isinstance(run, Trainer), "only runs on Ray are watched"
            tool = asked.tool.resolve()
            rows.append(quiet_row(case, run, asked.minutes, tool) if case.is_healthy else told_row(case, run, tool, asked.out))
            print(rows[-1], flush=True)
            bench.after(case)
    return 0 if all(row.is_right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
