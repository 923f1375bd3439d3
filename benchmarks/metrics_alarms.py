"""How often each rule of ``rayrl-debug metrics`` is wrong: false alarms in healthy runs, faults missed, steps named wrongly.

    python benchmarks/metrics_alarms.py [RUNS [RULE ...]]

Runs are made from seeds (`tests/unit/made_runs.py`). Printed per rule: alarms in healthy runs of each of the three kinds, as *likely* or *proven* and
as *possible*; faults found of those put in, and the largest distance of the step that was named from the one at which the fault began.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))

import made_runs

from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.rules import METRIC_RULES
from ray_rl_debug.metrics.thresholds import read_thresholds
from ray_rl_debug.model.report import Certainty

FAULTY_PER_KIND = 7


def main(runs: int, only: tuple[str, ...] = ()) -> None:
    limits = read_thresholds(())
    alarms: Counter[tuple[str, str, bool]] = Counter()
    counts: Counter[str] = Counter()
    began = time.monotonic()
    for seed in range(runs):
        kind = made_runs.KINDS[seed % 3]
        counts[kind] += 1
        report = judge(made_runs.as_run(made_runs.healthy(seed, kind)), limits)
        for key in {(f.id, f.certainty is not Certainty.POSSIBLE) for f in report.findings}:
            alarms[key[0], kind, key[1]] += 1
        assert not report.gaps, report.gaps
    took = time.monotonic() - began
    print(
        f"{runs} healthy runs ({', '.join(f'{n} {k}' for k, n in counts.items())}), {took / max(1, runs):.2f} s a run; false alarms, sure + possible"
    )
    print("| rule | plain | correlated | spiky | all | faults found | step off, at most |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for rule in METRIC_RULES:
        if only and rule.ID not in only:
            continue
        cells = [f"{alarms[rule.ID, k, True]} + {alarms[rule.ID, k, False]}" for k in made_runs.KINDS]
        total = sum(alarms[rule.ID, k, s] for k in made_runs.KINDS for s in (True, False))
        print(f"| {rule.ID} | {' | '.join(cells)} | {total / max(1, runs):.1%} | {' | '.join(_faults(rule.ID, limits))} |", flush=True)


def _faults(rule: str, limits: dict[str, float]) -> tuple[str, str]:
    if rule not in made_runs.FAULTS:
        return "by unit test", ""
    metric, fault = made_runs.FAULTS[rule]
    found, off = 0, []
    for i in range(FAULTY_PER_KIND * 3):
        kind = made_runs.KINDS[i % 3]
        columns = made_runs.healthy(10_000 + i, kind, 200)
        at = int(np.random.default_rng(i).integers(60, 140))
        fault(columns, at)
        named = [f for f in judge(made_runs.as_run(columns), limits).findings if f.id == rule and f.metric == metric]
        if named:
            found += 1
            wanted = 1 if rule == "RRD706" else at + 1
            off.append((named[0].first_step or 0) - wanted)
    return f"{found} of {FAULTY_PER_KIND * 3}", f"{max(map(abs, off), default=0)} ({sum(abs(o) <= 3 for o in off)} within 3)"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, tuple(sys.argv[2:]))
