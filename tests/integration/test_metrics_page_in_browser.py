"""The page of ``metrics`` in a real headless Chromium: the curve, the step, readable text, nothing loaded, hostile names."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from test_page_in_browser import CONTRAST, DESK, PHONE, SMALL, Open, browser  # noqa: F401 a fixture

from ray_rl_debug.metrics.model import Judgement, MetricsReport, MetricsVerdict, Run, Series, SeriesSummary, State, Status
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.render.html import learning

pytestmark = pytest.mark.integration
NAME = "actor/grad_norm"
HOSTILE = "x</title><script>alert(1)</script><img src=http://evil.example/>\u202e"


def page_of_a_run() -> str:
    steps = tuple(range(1, 201))
    values = tuple(0.5 + 0.1 * math.sin(s) if s < 120 else 0.5 * 1.05 ** (s - 120) for s in steps)
    series = {n: Series(name=n, steps=steps, values=values) for n in (NAME, "actor/ppo_kl")}
    series[HOSTILE] = Series(name=HOSTILE, steps=steps, values=(None,) * 200)
    finding = Judgement(
        id="RRD711",
        name="gradient norm rises",
        metric=NAME,
        status=Status.BAD,
        summary=f"{NAME} rises by a factor of 49",
        certainty=Certainty.LIKELY,
        first_step=120,
        evidence=("a bend on a straight trend",),
        remedy=("lower the learning rate", HOSTILE),
    )
    good = Judgement(id="RRD712", name="KL too large", metric="actor/ppo_kl", status=Status.GOOD, summary="at most 30", high=30.0)
    unknown = Judgement(id="RRD706", name="reward", metric=HOSTILE, status=Status.UNKNOWN, summary=HOSTILE)
    report = MetricsReport(
        run=HOSTILE,
        verdict=MetricsVerdict(state=State.TROUBLE, summary=finding.summary, certainty=Certainty.LIKELY, next="rayrl-debug explain RRD711"),
        findings=(finding,),
        judged=(good, unknown),
        series=tuple(SeriesSummary(name=n, points=200, first_step=1, last_step=200, last=1.0) for n in series),
        settings={HOSTILE: HOSTILE},
        thresholds={"policy_kl": 0.1},
    )
    return learning.render(report, Run(label=HOSTILE, series=series))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_page_of_metrics(browser: object, tmp_path: Path, width: int, scheme: str) -> None:  # noqa: F811 the fixture
    path = tmp_path / "metrics.html"
    path.write_text(page_of_a_run(), "utf-8")
    window = Open(browser, path, width, scheme)
    page = window.page
    assert page.locator(".word").inner_text() == "TROUBLE"
    assert page.inner_text("h1") == "actor/grad_norm rises by a factor of 49"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    curve = page.locator(".finding svg").first.bounding_box()
    assert curve["y"] < 844 and 250 < curve["width"] <= width
    turn, line = page.locator(".finding .turn").bounding_box(), page.locator(".finding .frame").bounding_box()
    assert (turn["x"] - line["x"]) / line["width"] == pytest.approx(119 / 199, abs=0.02)
    assert page.locator(".finding .at").text_content() == "step 120"
    assert page.locator(".small .band").count() == 1
    readable = page.evaluate(CONTRAST, ["h1", ".word", ".meta", ".chip", ".summary", ".note", ".remedy li", "figcaption", "figcaption i", "footer"])
    assert {selector: round(ratio, 2) for selector, ratio in readable.items() if ratio < 4.5} == {}
    assert page.evaluate(SMALL) == []
    window.context.close()
    assert window.trouble == []
