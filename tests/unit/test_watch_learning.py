"""The companion hears what is new about the metrics of its run, once, and is never held up by them."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_watch_loop import JOB, Stop, World

from ray_rl_debug.bounded.programs import Finished
from ray_rl_debug.metrics.model import Judgement, MetricsReport, MetricsVerdict, SeriesSummary, State, Status
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.watch.history import Event
from ray_rl_debug.watch.learning import EVERY_S, Learning
from ray_rl_debug.watch.live import Live
from ray_rl_debug.watch.loop import Companion
from ray_rl_debug.watch.notify import learning_message, slack_learning
from ray_rl_debug.watch.options import WatchOptions

FLAT = Judgement(
    id="RRD706",
    name="reward does not rise",
    metric="critic/score/mean",
    status=Status.BAD,
    summary="critic/score/mean has been flat since step 1: <0.3>",
    certainty=Certainty.LIKELY,
    first_step=1,
    remedy=("measure the test set", "a", "b", "c"),
)
GOOD = Judgement(id="RRD706", name=FLAT.name, metric=FLAT.metric, status=Status.GOOD, summary="rises")


def report(state: State, *, findings: tuple[Judgement, ...] = (), judged: tuple[Judgement, ...] = ()) -> bytes:
    series = (SeriesSummary(name=FLAT.metric, points=9, first_step=1, last_step=9, last=0.3, quantity="reward"),)
    verdict = MetricsVerdict(state=state, summary="why", certainty=Certainty.LIKELY)
    return encode(MetricsReport(run="r", verdict=verdict, findings=findings, judged=judged, series=series))


def heard(learning: Learning, times: int = 1) -> list[str]:
    said: list[str] = []
    for _ in range(times):
        learning.poll()
        assert learning._thread is not None
        learning._thread.join()
        said += [t.text for t in learning.poll()]
        learning._next_s = float("-inf")
    return said


def answering(*answers: Finished) -> tuple[Learning, list[Sequence[str]]]:
    asked: list[Sequence[str]] = []
    left = iter(answers)

    def run(command: Sequence[str], timeout_s: float) -> Finished:
        asked.append(command)
        return next(left)

    return Learning(Path("/logs/run.jsonl"), clock=lambda: 0.0, run=run), asked


def out(data: bytes) -> Finished:
    return Finished(code=0, out=data, err=b"")


def test_a_finding_is_told_once_and_so_is_its_end() -> None:
    flat, fine = out(report(State.TROUBLE, findings=(FLAT,))), out(report(State.HEALTHY, judged=(GOOD,)))
    learning, asked = answering(flat, flat, fine)
    assert heard(learning, 2) == [f"learning: {FLAT.summary} (RRD706)"]
    assert learning.line() == "learning: trouble, why"
    assert heard(learning) == ["learning: critic/score/mean is good again (RRD706)"]
    assert list(asked[0][-4:]) == ["metrics", "/logs/run.jsonl", "--json", "--quiet"]


def test_what_is_only_possible_or_not_known_wakes_nobody() -> None:
    import msgspec

    possible = msgspec.structs.replace(FLAT, certainty=Certainty.POSSIBLE)
    learning, _ = answering(out(report(State.HEALTHY, findings=(possible,))), out(report(State.UNKNOWN)))
    assert heard(learning, 2) == []


def test_trouble_is_told_once_and_the_last_report_stays() -> None:
    refused = Finished(code=2, out=b"{}", err=b"error: trends need scipy\nhint:  x\n")
    late = Finished(code=None, out=b"", err=b"", timed_out=True)
    learning, _ = answering(refused, refused, late)
    said = heard(learning, 3)
    assert said == ["the metrics cannot be judged: trends need scipy", "the metrics cannot be judged: no answer within 120 s"]


def test_it_never_waits_and_asks_rarely() -> None:
    now, used, release, asked = [0.0], [7.0], threading.Event(), []

    def run(command: Sequence[str], timeout_s: float) -> Finished:
        asked.append(now[0])
        release.wait(10)
        used[0] += 2.0
        return out(report(State.HEALTHY))

    learning = Learning(Path("x"), clock=lambda: now[0], run=run, cpu=lambda: used[0])
    began = time.monotonic()
    assert learning.poll() == [] and learning.poll() == []
    assert time.monotonic() - began < 1
    release.set()
    assert learning._thread is not None
    learning._thread.join()
    now[0] = 30.0  # it waited for a core most of the time: that costs nobody anything
    learning.poll()
    for now[0] in (31.0, 30.0 + EVERY_S, 429.0):
        learning.poll()
    assert asked == [0.0]
    now[0] = 30.0 + 200 * 2.0
    learning.poll()
    assert learning._thread is not None
    learning._thread.join()
    assert asked == [0.0, 430.0]


def test_the_cpu_time_of_a_look_is_measured() -> None:
    from ray_rl_debug.bounded.programs import run_bounded

    def run(command: Sequence[str], timeout_s: float) -> Finished:
        return run_bounded([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], timeout_s)

    learning = Learning(Path("x"), clock=lambda: 0.0, run=run)
    heard(learning)
    assert learning._cost_s >= 0.5


class Hears:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reports: list[MetricsReport] = []

    def event(self, job: str, event: Event) -> None:
        self.events.append(event)

    def learning(self, found: MetricsReport) -> None:
        self.reports.append(found)

    def __getattr__(self, name: str) -> object:
        return lambda *a, **k: None


def test_the_companion_tells_it(tmp_path: Path) -> None:
    one, said, hears = World(), io.StringIO(), Hears()
    one.jobs = (JOB,)

    def run(command: Sequence[str], timeout_s: float) -> Finished:
        return out(report(State.TROUBLE, findings=(FLAT,)))

    class Slow(Stop):
        def wait(self, timeout: float | None = None) -> bool:
            time.sleep(0.001)  # the look is in a thread of its own
            return super().wait(timeout)

    learning = Learning(Path("x"), clock=one.clock, run=run)
    options = WatchOptions(output=tmp_path)
    live = Live(said, is_terminal=False)
    Companion(options, one, one.roll, live, listener=hears, learning=learning, clock=one.clock, wall=one.clock).run(Slow(one, one.now + 300))  # type: ignore[arg-type]
    assert said.getvalue().count("critic/score/mean has been flat") == 1
    assert [e.kind for e in hears.events if "flat" in e.text] == ["learning"]
    assert hears.reports[0].findings == (FLAT,)
    assert '"kind":"learning"' in next(tmp_path.glob("*/history.jsonl")).read_text()


def test_messages() -> None:
    body = learning_message("02000000", FLAT)
    assert (body["event"], body["rule"], body["first_step"], body["certainty"]) == ("learning", "RRD706", 1, "likely")
    text = slack_learning("02000000", FLAT)["blocks"][1]["text"]["text"]
    assert "&lt;0.3&gt;" in text
    assert text.count("•") == 3


def test_gauges() -> None:
    pytest.importorskip("opentelemetry.sdk")
    import msgspec

    from ray_rl_debug.otel.numbers import Numbers

    made = Numbers.__new__(Numbers)
    made._learning = msgspec.json.decode(report(State.TROUBLE, findings=(FLAT,)), type=MetricsReport)
    assert made._findings() == [(0, {"rayrl.certainty": "proven"}), (1, {"rayrl.certainty": "likely"}), (0, {"rayrl.certainty": "possible"})]
    assert made._metrics() == [(0.3, {"rayrl.metric": "critic/score/mean", "rayrl.quantity": "reward"})]
