"""The second, longer look: taken where the first says that it was too short, never in place of an answer."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.commands.second_look import look
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.diagnosis.open_questions import LONGER, LONGEST
from ray_rl_debug.model.codec import read_snapshot
from ray_rl_debug.model.errors import ClusterUnreachableError
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import Snapshot

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded"
OPEN, SURE = (read_snapshot(RECORDED / f"{name}.json.gz") for name in ("retried_for_ever-hang", "jobs_of_broker-hang"))


class Captures:
    """Gives out recorded snapshots, and remembers with which options it was asked."""

    def __init__(self, *snapshots: Snapshot | Exception) -> None:
        self._left = list(snapshots)
        self.asked: list[CollectOptions] = []
        self.kept: list[Snapshot] = []
        self.said: list[str] = []
        self.stop = threading.Event()

    def __call__(self, options: CollectOptions) -> Snapshot:
        self.asked.append(options)
        given = self._left.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    def look(self, options: CollectOptions | None = None, *, once: bool = False) -> tuple[Snapshot, str]:
        given = options or CollectOptions()
        taken, report = look(self, given, once=once, keep=self.kept.append, show=self.said.append, stop=self.stop)
        return taken, report.verdict.state


def test_an_open_answer_is_looked_at_again() -> None:
    captures = Captures(OPEN, SURE)
    taken, state = captures.look()
    assert (taken, state) == (SURE, State.HANG)
    first, second = captures.asked
    assert (second.samples - 1) * second.interval_s == 20 > (first.samples - 1) * first.interval_s
    assert captures.kept == [OPEN, SURE]
    assert "looking again for 20 s" in captures.said[0]


@pytest.mark.parametrize(
    ("first", "options", "once"),
    [(SURE, None, False), (OPEN, None, True), (OPEN, CollectOptions(samples=5, interval_s=5.0), False)],
    ids=["sure", "once", "was-long"],
)
def test_one_look_is_enough(first: Snapshot, options: CollectOptions | None, once: bool) -> None:
    captures = Captures(first)
    assert captures.look(options, once=once)[0] == first
    assert captures.said == []


def test_the_first_look_counts_where_the_second_fails() -> None:
    captures = Captures(OPEN, ClusterUnreachableError("it is gone"))
    assert captures.look()[0] == OPEN
    assert "the second look failed: it is gone" in captures.said[1]


def test_the_first_look_counts_where_somebody_ends_the_second() -> None:
    captures = Captures(OPEN, SURE)
    told = captures.said.append

    def show(text: str) -> None:
        told(text)
        captures.stop.set()

    taken, _ = look(captures, CollectOptions(), once=False, keep=captures.kept.append, show=show, stop=captures.stop)
    assert taken == OPEN
    assert captures.kept == [OPEN]


def test_what_comes_next_is_longer_than_what_was_done() -> None:
    assert diagnose(OPEN).verdict.next == LONGER
    long = msgspec.structs.replace(OPEN, options={**OPEN.options, "samples": 5, "interval_s": 5.0})
    assert diagnose(long).verdict.next == LONGEST
