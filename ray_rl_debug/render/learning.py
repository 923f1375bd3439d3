"""What ``metrics`` found, for a terminal: the verdict, each finding with a picture of its metric, what was judged good in a line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ray_rl_debug.metrics.model import Comparison, Judgement, MetricsReport, Run, State, Status
from ray_rl_debug.render.text_plot import draw
from ray_rl_debug.render.writer import neutralise

_COLOURS = {"red": "31;1", "yellow": "33;1", "green": "32;1", "dim": "2", "bold": "1"}
_STATES = {State.TROUBLE: "red", State.HEALTHY: "green", State.UNKNOWN: "yellow"}
MOST_PLOTS = 4
MOST_SHOWN = 8
MOST_PARTED = 12


def render(report: MetricsReport, run: Run, *, width: int = 100, colour: bool, verbose: bool = False) -> Iterator[str]:
    """The lines of a report; `verbose` shows every judgement and picture."""
    verdict = report.verdict
    word = _style(_STATES[verdict.state], verdict.state.value.upper(), colour)
    sure = "" if verdict.state is State.UNKNOWN else f" ({verdict.certainty.value})"
    head = textwrap.wrap(neutralise(verdict.summary), max(30, width - 20), break_long_words=False) or [""]
    yield f"{word}{sure}: {head[0]}"
    yield from (f"      {line}" for line in head[1:])
    steps = run.steps()
    span = f", steps {steps[0]} to {steps[-1]}" if steps else ""
    yield _style(
        "dim", f"      {neutralise(report.run)}: {len(run.series)} metrics{span}{f', {report.framework}' if report.framework else ''}", colour
    )
    shown = report.findings if verbose else report.findings[:MOST_SHOWN]
    for position, finding in enumerate(shown):
        yield ""
        yield from _finding(finding, run, width, colour, with_plot=verbose or position < MOST_PLOTS)
    if len(shown) < len(report.findings):
        yield ""
        yield f"and {len(report.findings) - len(shown)} more findings (-v shows them)"
    yield ""
    yield from _judged(report, width, verbose)
    for gap in report.gaps[: None if verbose else 5]:
        yield neutralise(f"not seen: {gap.where}: {gap.reason}")
    if verdict.next:
        yield _style("bold", "next: ", colour) + neutralise(verdict.next)


def _finding(found: Judgement, run: Run, width: int, colour: bool, *, with_plot: bool) -> Iterator[str]:
    sure = found.certainty.value if found.certainty is not None else ""
    since = f", from step {found.first_step}" if found.first_step is not None else ""
    yield f"{_style('bold', f'{found.id} {found.name}', colour)}  {sure}{since}"
    yield from _wrapped(found.summary, width, "  ")
    series = run.series.get(found.metric)
    if with_plot and series is not None:
        at, values = series.finite()
        if len(at) > 1:
            yield from (f"  {line}" for line in draw(at, values, width=min(width, 100) - 4, low=found.low, high=found.high, mark=found.first_step))
    for text in found.evidence:
        yield from _wrapped(text, width, "  evidence  ")
    if found.remedy:
        yield "  remedy"
        for text in found.remedy:
            yield from _wrapped(text, width, "    - ")


def _judged(report: MetricsReport, width: int, verbose: bool) -> Iterator[str]:
    good = [j for j in report.judged if j.status is Status.GOOD]
    unknown = [j for j in report.judged if j.status is Status.UNKNOWN]
    if verbose:
        for found in (*good, *unknown):
            yield from _wrapped(f"{found.status.value:8} {found.id} {found.metric}: {found.summary}", width, "  ")
        return
    if good:
        yield from _wrapped(f"good: {len(good)} judgements ({_ids(good)})", width, "")
    if unknown:
        reasons = list(dict.fromkeys(f"{j.metric}: {j.summary}" for j in unknown))
        more = f", and {len(reasons) - 2} more" if len(reasons) > 2 else ""
        yield from _wrapped(f"not judged: {_ids(unknown)} ({'; '.join(reasons[:2])}{more})", width, "")


def _ids(found: list[Judgement]) -> str:
    return ", ".join(sorted({j.id for j in found}))


def render_comparison(found: Comparison, *, width: int = 100, colour: bool, verbose: bool = False) -> Iterator[str]:
    """Where two runs part, as a table."""
    known = [p for p in found.parted if p.quantity is not None]
    if found.parted:
        first = min(known or found.parted, key=lambda p: p.first_step)
        begun = "from the start" if first.from_start else f"at step {first.first_step}"
        text = f"{first.metric} parts first, {begun}; {len(found.parted)} metrics part, {found.alike} do not"
        yield f"{_style('red', 'PART', colour)}: {neutralise(text)}"
    elif found.alike:
        yield f"{_style('green', 'ALIKE', colour)}: no more than noise between {found.alike} metrics, over {found.steps} common steps"
    else:
        yield f"{_style('yellow', 'UNKNOWN', colour)}: too few common steps ({found.steps}) to compare"
        yield "  two parts of one run (a restart)? put them into one file, the older one first: cat A B > run.jsonl"
    yield _style("dim", neutralise(f"  A {found.a}   B {found.b}"), colour)
    if found.equal_until is not None:
        yield f"  all metrics but times are exactly equal up to step {found.equal_until}"
    for key, (a, b) in list(found.settings.items())[: None if verbose else 8]:
        yield neutralise(f"  setting {key}: A {a}, B {b}")
    shown = found.parted if verbose else found.parted[:MOST_PARTED]
    if shown:
        room = max(20, min(max(len(p.metric) for p in shown), width - 52))
        yield ""
        yield f"  {'metric':{room}}  {'from step':>9}  {'A now':>11}  {'B now':>11}  {'p':>8}"
        for part in shown:
            begun = "start" if part.from_start else str(part.first_step)
            yield f"  {neutralise(part.metric)[:room]:{room}}  {begun:>9}  {part.a_now:>11.4g}  {part.b_now:>11.4g}  {part.p:>8.2g}"
    if len(shown) < len(found.parted):
        yield f"  and {len(found.parted) - len(shown)} more (-v shows them)"
    for label, names in (("too short", found.too_short), ("only in A", found.only_a), ("only in B", found.only_b)):
        if names:
            yield from _wrapped(f"{label}: {', '.join(names if verbose else names[:5])}{'' if verbose or len(names) <= 5 else ', ...'}", width, "  ")


def _wrapped(text: str, width: int, before: str) -> Iterator[str]:
    yield from textwrap.wrap(
        neutralise(text), width, initial_indent=before, subsequent_indent=" " * len(before), break_long_words=False, break_on_hyphens=False
    )


def _style(name: str, text: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m" if colour else text
