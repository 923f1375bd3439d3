"""How often each rule of ``rayrl-debug metrics`` is wrong: false alarms in healthy runs, faults missed, steps named wrongly.

    python benchmarks/metrics_alarms.py [RUNS [RULE ...]]     runs made from seeds, so many of each kind
    python benchmarks/metrics_alarms.py LOG ...               real runs that are known to be healthy

Made runs come from `tests/unit/made_runs.py`. Printed per rule: alarms in healthy runs of each kind, as *likely* or *proven* and as *possible*;
faults found of those put in, and the largest distance of the step that was named from the one at which the fault began, first for the kinds whose
noise forgets, then for those that wander. For real runs:
what is found in them as they are, and the same for faults put into them at a third, a half and two thirds.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))

import made_runs

from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.quantities import Quantity, find
from ray_rl_debug.metrics.rules import METRIC_RULES
from ray_rl_debug.metrics.thresholds import read_thresholds
from ray_rl_debug.model.report import Certainty

FAULTY_PER_KIND = 7
LIMITS = read_thresholds(())


def made(runs: int, only: tuple[str, ...]) -> None:
    """The table of runs made from seeds."""
    alarms: Counter[tuple[str, str, bool]] = Counter()
    began = time.monotonic()
    for kind in made_runs.ALL_KINDS:
        for seed in range(runs):
            report = judge(made_runs.as_run(made_runs.healthy(seed, kind)), LIMITS)
            for rule, is_sure in {(f.id, f.certainty is not Certainty.POSSIBLE) for f in report.findings}:
                alarms[rule, kind, is_sure] += 1
            assert not report.gaps, report.gaps
    took = time.monotonic() - began
    print(f"{runs} healthy runs of each kind, {took / max(1, runs * len(made_runs.ALL_KINDS)):.2f} s a run; false alarms as sure + possible")
    print(f"| rule | {' | '.join(made_runs.ALL_KINDS)} | faults found | step off, at most | under wandering noise | step off, at most |")
    print(f"| --- |{' --- |' * (len(made_runs.ALL_KINDS) + 4)}")
    for rule in (r.ID for r in METRIC_RULES if not only or r.ID in only):
        cells = [f"{alarms[rule, k, True]} + {alarms[rule, k, False]}" for k in made_runs.ALL_KINDS]
        found = [_told(list(_made_faults(rule, kinds)) if rule in made_runs.FAULTS else []) for kinds in (made_runs.KINDS, made_runs.WANDERING)]
        print(f"| {rule} | {' | '.join(cells)} | {found[0]} | {found[1]} |", flush=True)


def _made_faults(rule: str, kinds: Iterable[str]) -> Iterator[int | None]:
    for kind in kinds:
        for i in range(FAULTY_PER_KIND):
            columns = made_runs.healthy(10_000 + i, kind, 200)
            yield _off(rule, columns, int(np.random.default_rng(i).integers(60, 140)))


def real(paths: list[str]) -> None:
    """The table of real runs."""
    found: dict[str, list[int | None]] = {}
    for path in paths:
        run = load([Path(path)], {})
        report = judge(run, LIMITS)
        told = ", ".join(f.summary for f in report.findings) or "nothing found"
        print(f"{Path(path).name}: {len(run.steps())} steps, {report.verdict.state.value}: {told}")
        columns = made_runs.as_columns(run)
        for rule, (metric, _) in made_runs.FAULTS.items():
            wanted = next((q for q in Quantity if metric in find(q, [metric])), None)
            there = find(wanted, columns)[:1] if wanted is not None else ()
            if rule == "RRD706" or (metric != "steps" and not there):
                continue
            for part in (3, 2, 1.5):
                renamed = {metric if name in there else name: values.copy() for name, values in columns.items()}
                if set(made_runs.COLUMNS_OF.get(rule, ())) <= set(renamed):
                    found.setdefault(rule, []).append(_off(rule, renamed, int(len(run.steps()) / part)))
    print("| rule | faults found | step off, at most |")
    print("| --- | --- | --- |")
    for rule, distances in sorted(found.items()):
        print(f"| {rule} | {_told(distances)} |")


def _off(rule: str, columns: made_runs.Columns, at: int) -> int | None:
    """How far from its step a fault is told; None when it is not."""
    metric, fault = made_runs.FAULTS[rule]
    fault(columns, at)
    named = [f for f in judge(made_runs.as_run(columns), LIMITS).findings if (f.id, f.metric) == (rule, metric)]
    return (named[0].first_step or 0) - (1 if rule == "RRD706" else at + 1) if named else None


def _told(distances: list[int | None]) -> str:
    if not distances:
        return "by unit test | "
    known = [abs(d) for d in distances if d is not None]
    return f"{len(known)} of {len(distances)} | {max(known, default=0)}"


if __name__ == "__main__":
    given = sys.argv[1:] or ["200"]
    if given[0].isdigit():
        made(int(given[0]), tuple(given[1:]))
    else:
        real(given)
