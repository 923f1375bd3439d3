"""Failed calls of whose result nobody asked: what is kept of the error, and who is named, from a recorded run with one fact changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import RayTask, Snapshot
from ray_rl_debug.ray_state.tasks import error_name

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded" / "sentinels_of_loaders-hang.json.gz"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('User exception:\nray::A.f()\n  File "train.py", line 6, in f\n    raise ValueError(text)\nValueError: my password', "ValueError"),
        ('User exception:\n  File "train.py", line 9, in g\n    raise Empty from e\n          ^^^^^^\nqueue.Empty', "Empty"),
        ("the worker died", None),
        ("", None),
    ],
    ids=["with a text", "of a module", "without a traceback", "not told"],
)
def test_of_an_error_only_its_name_is_kept(text: str, name: str | None) -> None:
    assert error_name(text) == name


def recorded() -> Snapshot:
    snapshot = load((RECORDED,)).snapshot
    assert snapshot is not None and snapshot.ray is not None and snapshot.ray.failed
    return snapshot


def with_failed(snapshot: Snapshot, failed: tuple[RayTask, ...]) -> Snapshot:
    assert snapshot.ray is not None
    return msgspec.structs.replace(snapshot, ray=msgspec.structs.replace(snapshot.ray, failed=failed))


def first(report: Report) -> tuple[str, set[str]]:
    return report.findings[0].cause.value, {w.label for w in report.findings[0].who}


def test_an_idle_producer_whose_call_has_failed_is_named() -> None:
    report = diagnose(recorded())
    assert first(report) == ("producer-died", {"Loader"})
    assert "its call Loader.load has failed (ValueError)" in report.findings[0].summary


def test_what_failed_in_an_earlier_step_is_over() -> None:
    snapshot = recorded()
    assert snapshot.ray is not None
    earlier = tuple(msgspec.structs.replace(t, state_times_s={"FAILED": t.state_times_s["FAILED"] - 60.0}) for t in snapshot.ray.failed)
    assert first(diagnose(with_failed(snapshot, earlier))) == ("asyncio-stuck", {"_QueueActor"})


def test_without_failed_calls_the_place_where_all_wait_is_named() -> None:
    assert first(diagnose(with_failed(recorded(), ()))) == ("asyncio-stuck", {"_QueueActor"})
