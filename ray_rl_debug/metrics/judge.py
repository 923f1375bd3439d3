"""All rules over one run, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.model import Judgement, MetricsReport, MetricsVerdict, Run, SeriesSummary, State, Status
from ray_rl_debug.metrics.quantities import Quantity, find
from ray_rl_debug.metrics.rules import METRIC_RULES
from ray_rl_debug.metrics.statistics.changes import forget_search
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Gap

_ORDER = (Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE)


def judge(run: Run, thresholds: Mapping[str, float], names: Mapping[str, str] | None = None, *, tool_version: str = "") -> MetricsReport:
    """The report of one run; a rule that raises becomes a gap.

    Raises:
        MissingExtraError: a trend is to be judged, and scipy is not there.
    """
    bench = Bench(run, thresholds, names)
    found: list[Judgement] = []
    trouble = list(run.gaps)
    for rule in METRIC_RULES:
        try:
            found += rule.judge(bench)
        except RayRlDebugError:
            raise
        except Exception as e:  # noqa: BLE001 the other rules still run
            trouble.append(Gap(id=gaps.RULE_RAISED, where=rule.ID, what=f"rule {rule.NAME}", reason=f"{type(e).__name__}: {e}"))
    forget_search()
    findings = sorted((j for j in found if j.status is Status.BAD), key=lambda j: (_ORDER.index(j.certainty or Certainty.POSSIBLE), _step(j)))
    judged = tuple(j for j in found if j.status is not Status.BAD)
    meaning = {name: q.value for q in Quantity for name in find(q, run.series, names)}
    return MetricsReport(
        tool_version=tool_version,
        run=run.label,
        framework=run.framework,
        sources=run.sources,
        verdict=_verdict(run, findings, judged, bench),
        findings=tuple(findings),
        judged=judged,
        series=tuple(_summary(run, name, meaning.get(name)) for name in sorted(run.series)),
        settings=run.settings,
        thresholds=dict(thresholds),
        gaps=tuple(trouble),
    )


def _verdict(run: Run, findings: list[Judgement], judged: tuple[Judgement, ...], bench: Bench) -> MetricsVerdict:
    sure = [f for f in findings if f.certainty is not Certainty.POSSIBLE]
    if sure:
        best = sure[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        summary = f"{best.summary}{more}"
        return MetricsVerdict(
            state=State.TROUBLE, summary=summary, certainty=best.certainty or Certainty.LIKELY, next=f"rayrl-debug explain {best.id}"
        )
    steps, wanted = len(run.steps()), bench.count("min_trend")
    if not run.series:
        text = "no metric is in the source; wanted: the trainer's log, JSON lines, CSV, or a folder of TensorBoard, W&B or MLflow"
        return MetricsVerdict(state=State.UNKNOWN, summary=text, certainty=Certainty.POSSIBLE)
    if steps < wanted:
        text = f"{steps} of the {wanted} steps that it takes to judge a trend"
        return MetricsVerdict(state=State.UNKNOWN, summary=text, certainty=Certainty.POSSIBLE)
    good = sum(j.status is Status.GOOD for j in judged)
    known = {j.id for j in judged if j.status is Status.GOOD} - {"RRD701", "RRD717"}
    if not known:
        text = f"no metric that a rule knows is in {len(run.series)} metrics; name one with --map reward=COLUMN"
        return MetricsVerdict(state=State.UNKNOWN, summary=text, certainty=Certainty.POSSIBLE)
    doubt = f", {len(findings)} possible" if findings else ""
    return MetricsVerdict(state=State.HEALTHY, summary=f"{good} judgements are good{doubt}, over {steps} steps", certainty=Certainty.LIKELY)


def _summary(run: Run, name: str, quantity: str | None) -> SeriesSummary:
    series = run.series[name]
    values = series.finite()[1]
    return SeriesSummary(
        name=name,
        points=len(series.steps),
        first_step=series.steps[0] if series.steps else None,
        last_step=series.steps[-1] if series.steps else None,
        last=values[-1] if values else None,
        quantity=quantity,
    )


def _step(found: Judgement) -> int:
    return found.first_step if found.first_step is not None else 1 << 60
