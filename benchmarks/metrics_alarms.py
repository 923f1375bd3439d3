"""How often each rule of ``rayrl-debug metrics`` is wrong: false alarms in healthy runs, faults missed, steps named wrongly.

    python benchmarks/metrics_alarms.py [RUNS [RULE ...]]     runs made from seeds, so many of each kind
    python benchmarks/metrics_alarms.py LOG ...               real runs that are known to be healthy

Made runs come from `tests/unit/made_runs.py` and `tests/unit/made_hard_runs.py`. Printed per rule: alarms in healthy runs of each kind, as *likely*
or *proven* and as *possible*; faults found of those put in, and the largest distance of the step that was named from the one at which the fault began
(in values of the metric, where it is not logged at each step), first for the kinds whose noise forgets, then for those that wander, then for the hard
ones. For real runs: what is found in them as they are, and the same for faults put into them at a third, a half and two thirds.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))

import made_hard_runs
import made_runs

from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.metrics.judge import judge
from ray_rl_debug.metrics.model import Run
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
    for kind in KINDS:
        for seed in range(runs):
            report = judge(_told(_healthy(seed, kind), seed, kind), LIMITS)
            for rule, is_sure in {(f.id, f.certainty is not Certainty.POSSIBLE) for f in report.findings}:
                alarms[rule, kind, is_sure] += 1
            assert not report.gaps, report.gaps
    took = time.monotonic() - began
    print(f"{runs} healthy runs of each kind, {took / max(1, runs * len(KINDS)):.2f} s a run; false alarms as sure + possible")
    columns = " | ".join(f"{name} | step off, at most" for name in ("faults found", "under wandering noise", "in hard runs"))
    print(f"| rule | {' | '.join(KINDS)} | {columns} |")
    print(f"| --- |{' --- |' * (len(KINDS) + 6)}")
    for rule in (r.ID for r in METRIC_RULES if not only or r.ID in only):
        cells = [f"{alarms[rule, k, True]} + {alarms[rule, k, False]}" for k in KINDS]
        groups = (made_runs.KINDS, made_runs.WANDERING, made_hard_runs.KINDS)
        found = [_in_words(list(_made_faults(rule, kinds)) if rule in made_runs.FAULTS else []) for kinds in groups]
        print(f"| {rule} | {' | '.join(cells)} | {' | '.join(found)} |", flush=True)


KINDS = (*made_runs.ALL_KINDS, *made_hard_runs.KINDS)


def _healthy(seed: int, kind: str, steps: int | None = None) -> made_runs.Columns:
    return made_hard_runs.healthy(seed, kind) if kind in made_hard_runs.KINDS else made_runs.healthy(seed, kind, steps)


def _told(columns: made_runs.Columns, seed: int, kind: str) -> Run:
    return made_hard_runs.told(columns, seed, kind) if kind in made_hard_runs.KINDS else made_runs.as_run(columns)


def _made_faults(rule: str, kinds: Iterable[str]) -> Iterator[int | None]:
    for kind in kinds:
        for i in range(FAULTY_PER_KIND):
            columns = _healthy(10_000 + i, kind, 200)
            steps = len(columns["critic/score/mean"])
            # each kind has the metrics of its own; rewards without bounds have no fault made for those between 0 and 1
            if set(made_runs.COLUMNS_OF.get(rule, ())) <= set(columns) and not (kind == "heavy" and rule in OF_BOUNDED):
                at = int(np.random.default_rng(i).integers(steps * 0.3, steps * 0.7))
                yield _off(rule, columns, at, lambda columns, i=i, kind=kind: _told(columns, 10_000 + i, kind))  # type: ignore[misc]


OF_BOUNDED = ("RRD706", "RRD707", "RRD708", "RRD709", "RRD722")


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
        print(f"| {rule} | {_in_words(distances)} |")


def _off(rule: str, columns: made_runs.Columns, at: int, told: Callable[[made_runs.Columns], Run] = made_runs.as_run) -> int | None:
    """How far from its step a fault is told, in values of the metric; None when it is not."""
    metric, fault = made_runs.FAULTS[rule]
    fault(columns, at)
    run = told(columns)
    named = [f for f in judge(run, LIMITS).findings if (f.id, f.metric) == (rule, metric)]
    steps = run.series[metric].steps if metric in run.series else range(1, at + 10_000)
    return bisect_left(steps, named[0].first_step or 0) - bisect_left(steps, 1 if rule == "RRD706" else at + 1) if named else None


def _in_words(distances: list[int | None]) -> str:
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
