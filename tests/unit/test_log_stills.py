"""Engines that hold requests and give no token, by the line of figures that vLLM writes every ten seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.logs import add_logs, read_log
from ray_rl_debug.model.report import Certainty, Report
from ray_rl_debug.render.terminal import render


def line(second: int, *, given: float = 0.0, prompt: float = 0.0, running: int = 5, waiting: int = 0, engine: str = "000") -> str:
    return (
        f"(APIServer pid=71) INFO 11-21 03:{second // 60:02}:{second % 60:02} [loggers.py:116] Engine {engine}: "
        f"Avg prompt throughput: {prompt} tokens/s, "
        f"Avg generation throughput: {given} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: 12.3%, "
        "Prefix cache hit rate: 0.0%\n"
    )


def report_on(folder: Path, text: str) -> Report | None:
    (folder / "server.log").write_text(text)
    found = read_log(folder / "server.log", "job")
    return diagnose(add_logs(None, [found])) if found is not None else None


def test_an_engine_that_gives_nothing_for_some_lines_is_possibly_stuck(tmp_path: Path) -> None:
    report = report_on(tmp_path, line(0, given=812.5) + "".join(line(s) for s in (10, 20, 30)))
    assert report is not None and report.story is not None and report.story.first is None
    still = report.story.still[0]
    assert (still.who.pid, still.engine, still.running, still.waiting, still.lines, still.for_s, still.line) == (71, "000", 5, 0, 3, 20.0, 2)
    assert report.verdict.certainty is Certainty.POSSIBLE and report.findings == ()
    assert "gave no token in its last 3 lines of figures over 20 s, while 5 requests ran" in report.verdict.summary
    assert "possibly stuck; server.log:2" in "\n".join(render(report, width=300, colour=False)).replace(str(tmp_path) + "/", "")


def test_where_it_lasts_and_requests_wait_it_is_likely(tmp_path: Path) -> None:
    report = report_on(tmp_path, "".join(line(s, waiting=3) for s in range(0, 310, 10)))
    assert report is not None and report.verdict.certainty is Certainty.LIKELY and "3 wait" in report.verdict.summary
    alone = report_on(tmp_path, "".join(line(s) for s in range(0, 310, 10)))
    assert alone is not None and alone.verdict.certainty is Certainty.POSSIBLE


@pytest.mark.parametrize(
    "text",
    [
        "".join(line(s, running=0) for s in (0, 10, 20, 30)),
        "".join(line(s) for s in (0, 10, 20)) + line(30, given=3.1),
        "".join(line(s, prompt=900.0) for s in (0, 10, 20)),
        line(0) + line(10),
    ],
    ids=["rests", "works", "reads a prompt", "too short"],
)
def test_engines_that_rest_work_or_read_prompts_are_not_stuck(tmp_path: Path, text: str) -> None:
    report = report_on(tmp_path, text)
    assert report is not None and report.story is not None and report.story.still == () and report.findings == ()
    assert report.verdict.summary.startswith("the logs hold no failure that ended anything")


def test_each_engine_counts_for_itself(tmp_path: Path) -> None:
    rows = "".join(line(s) + line(s, given=9.0, engine="001") for s in (0, 10, 20))
    report = report_on(tmp_path, rows)
    assert report is not None and report.story is not None
    assert [(s.engine, s.lines, s.line) for s in report.story.still] == [("000", 3, 1)]
