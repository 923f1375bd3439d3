"""The companion's history on the report's page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from big_run import NOW_S, big_run

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.codec import encode
from ray_rl_debug.render.html import render
from ray_rl_debug.watch.history import Event, History
from ray_rl_debug.watch.page_strips import MAX_BANDS, strips_of


def beats(*ages: tuple[float, float, float]) -> list[Event]:
    """Events from seconds before the capture, the age told then, and the step."""
    return [
        Event(time_s=NOW_S - before, kind="progress", age_s=age, numbers={"processes": 6.0, "working": 5.0 if age < 5 else 1.0, "step": step})
        for before, age, step in ages
    ]


RUN = beats((100, 0, 1), (90, 0, 2), (80, 0, 3), (70, 0, 4), (60, 0, 5), (50, 10, 5), (30, 30, 5), (5, 55, 5))


def test_where_it_stood() -> None:
    progress, working = strips_of(RUN, until_s=NOW_S)
    assert [(b.start_s - NOW_S, b.end_s - NOW_S, b.value) for b in progress.bands] == [
        (-100, -90, "moved"),
        (-90, -80, "moved"),
        (-80, -70, "moved"),
        (-70, -60, "moved"),
        (-60, 0, "stood"),
    ]
    assert progress.bands[-1].text == "no progress for 60 s, step 5"
    assert (progress.note, progress.is_bad) == ("last progress 60 s before the capture, at step 5", True)
    assert [round(float(b.value)) for b in working.bands] == [83, 83, 83, 83, 83, 17, 17, 17]
    assert (working.bands[0].text, working.bands[-1].end_s) == ("5 of 6 processes work", NOW_S)


def test_gpus_over_time() -> None:
    more = {"gpus": 8.0, "gpus_idle": 2.0, "gpu_utilization": 0.725, "gpu_power_watts": 2100.4}
    run = [msgspec.structs.replace(e, numbers={**e.numbers, **more}) for e in RUN]
    *_, gpus = strips_of(run, until_s=NOW_S)
    assert gpus.label == "GPUs of the cluster"
    assert gpus.bands[0].value == pytest.approx(72.5)
    assert gpus.bands[0].text == "72 % of the time with a kernel, 2100 W, 2 of 8 idle"
    assert len(strips_of(RUN, until_s=NOW_S)) == 2  # not measured is no strip


def test_a_companion_that_has_just_begun_shows_nothing() -> None:
    assert strips_of(RUN[:1], until_s=NOW_S) == ()
    assert strips_of([Event(time_s=NOW_S, kind="started")], until_s=NOW_S) == ()
    assert strips_of(RUN, until_s=NOW_S - 200) == ()


def test_a_long_night_fits() -> None:
    night = beats(*((20_000 - 10 * i, 0, i) for i in range(1990)))
    progress, working = strips_of(night, until_s=NOW_S)
    assert len(progress.bands) <= MAX_BANDS
    assert len(working.bands) <= MAX_BANDS
    assert (progress.bands[0].start_s, progress.bands[-1].end_s) == (NOW_S - 20_000, NOW_S)


def test_from_the_file_onto_the_page(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_bytes(b"".join(encode(e) + b"\n" for e in RUN) + b'{"cut off')
    history = History(tmp_path)
    history.load()
    snapshot = big_run(4)
    html = render(diagnose(snapshot), snapshot, history=strips_of(history.events, until_s=NOW_S))
    assert "last progress 60 s before the capture, at step 5" in html
    assert '<rect class="ph-stood" x="400.0"' in html
    assert "5 of 6 processes work" in html
