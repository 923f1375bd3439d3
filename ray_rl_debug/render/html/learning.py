"""The page of ``metrics``: verdict, each finding with its curve, the curves that rules found good, what could not be judged, all metrics."""

from __future__ import annotations

from ray_rl_debug.metrics.model import Judgement, MetricsReport, Run, State, Status
from ray_rl_debug.render.html import curves
from ray_rl_debug.render.html.page import document, footer
from ray_rl_debug.render.html.text import count, esc, name, table

_COLOURS = {State.TROUBLE: "%23c8102e", State.HEALTHY: "%23157f3d", State.UNKNOWN: "%236b5b00"}
MOST_SMALL = 24
MOST_FINDINGS = 60


def render(report: MetricsReport, run: Run) -> str:
    """One HTML document that loads nothing."""
    good = [j for j in report.judged if j.status is Status.GOOD]
    unknown = [j for j in report.judged if j.status is Status.UNKNOWN]
    sections = [
        ("cause", "What is wrong", "".join(_finding(f, run) for f in report.findings[:MOST_FINDINGS]) or "<p class=none>Nothing was found.</p>"),
        ("good", "What is good", _good(good, run)),
        ("unknown", "Not judged", _unknown(unknown, report)),
        ("raw", "All metrics", _all(report)),
    ]
    nav = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    body = "".join(f'<section id={key} aria-labelledby="h-{key}"><h2 id="h-{key}">{title}</h2>{text}</section>' for key, title, text in sections)
    word = report.verdict.state.value.upper()
    return document(
        title=f"{word}: {esc(report.verdict.summary, 110)}",
        colour=_COLOURS[report.verdict.state],
        kind=report.verdict.state.value,
        header=_header(report, run, word),
        nav=nav,
        body=body,
        first="cause",
        footer=footer(report.tool_version, report.schema),
    )


def _header(report: MetricsReport, run: Run, word: str) -> str:
    verdict = report.verdict
    sure = "" if verdict.state is State.UNKNOWN else f"<span class=sure>{verdict.certainty.value}</span>"
    lines = [f"<p class=state><span class=word>{word}</span>{sure}</p>", f"<h1>{esc(verdict.summary, 300)}</h1>"]
    if verdict.next:
        lines.append(f"<p class=next><span>next:</span> <code id=next>{esc(verdict.next)}</code><button data-copy=next hidden>copy</button></p>")
    steps = run.steps()
    meta = [name(report.run), *([esc(report.framework)] if report.framework else []), count(len(run.series), "metric")]
    meta += [f"steps {steps[0]:,} to {steps[-1]:,}"] if steps else ["no steps"]
    lines.append(f"<p class=meta>{' · '.join(meta)}</p>")
    return f"<header>{''.join(lines)}</header>"


def _finding(found: Judgement, run: Run) -> str:
    series = run.series.get(found.metric)
    curve = curves.draw(series, low=found.low, high=found.high, mark=found.first_step) if series is not None else ""
    sure = f"<span class=chip>{found.certainty.value}</span>" if found.certainty is not None else ""
    step = f"<span class=chip>from step {found.first_step}</span>" if found.first_step is not None else ""
    parts = [f"<h3>{esc(found.id)} {esc(found.name)} {sure}{step}</h3><p class=summary>{esc(found.summary)}</p>"]
    parts.append(f"<div class=curve>{curve}</div>" if curve else "")
    parts.append("".join(f"<p class=note>{esc(text)}</p>" for text in found.evidence))
    if found.remedy:
        parts.append(f"<h4>What to do</h4><ul class=remedy>{''.join(f'<li>{esc(text)}</li>' for text in found.remedy)}</ul>")
    return f"<article class=finding>{''.join(parts)}</article>"


def _good(found: list[Judgement], run: Run) -> str:
    """A small curve for each metric, with the bands of the rules that judged it."""
    by_metric: dict[str, list[Judgement]] = {}
    for one in found:
        by_metric.setdefault(one.metric, []).append(one)
    figures: list[str] = []
    others: list[str] = []
    for metric, judgements in by_metric.items():
        words = "; ".join(f"{j.id} {j.summary}" for j in judgements)
        series = run.series.get(metric)
        if series is None or len(figures) >= MOST_SMALL:
            others.append(f"<li>{name(metric)}: {esc(words, 300)}</li>")
            continue
        band = next((j for j in judgements if j.high is not None or j.low is not None), judgements[0])
        curve = curves.draw(series, low=band.low, high=band.high, small=True)
        figures.append(f"<figure class=curve><figcaption><b>{name(metric)}</b> <i>{esc(words, 200)}</i></figcaption>{curve}</figure>")
    more = f"<ul>{''.join(others)}</ul>" if others else ""
    return f"<div class=small>{''.join(figures)}</div>{more}" if found else "<p class=none>Nothing could be judged good.</p>"


def _unknown(found: list[Judgement], report: MetricsReport) -> str:
    rows = [(esc(j.id), name(j.metric), esc(j.summary)) for j in found]
    rows += [(esc(g.id), name(g.where), esc(g.reason)) for g in report.gaps]
    return table(("id", "metric", "why"), rows) if rows else "<p class=none>Every rule that knows a metric of this run has judged it.</p>"


def _all(report: MetricsReport) -> str:
    rows = [
        (
            name(s.name),
            esc(s.quantity or "–"),
            f"{s.points:,}",
            _step(s.first_step),
            _step(s.last_step),
            "–" if s.last is None else esc(f"{s.last:.5g}"),
        )
        for s in report.series
    ]
    settings = [(name(k), esc(v, 200)) for k, v in report.settings.items()]
    sources = "".join(f"<li>{esc(s)}</li>" for s in report.sources)
    return (
        f"<ul>{sources}</ul>"
        + table(("metric", "taken for", "values", "first step", "last step", "last value"), rows)
        + ("<h3>Settings</h3>" + table(("setting", "value"), settings) if settings else "")
        + "<h3>Thresholds</h3>"
        + table(("threshold", "value"), [(esc(k), esc(f"{v:g}")) for k, v in report.thresholds.items()])
    )


def _step(step: int | None) -> str:
    return "–" if step is None else f"{step:,}"
