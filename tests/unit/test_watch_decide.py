"""When a run counts as stopped: hours of made-up runs, healthy and hung."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from watch_runs import Phase, Simulation, irregular, steps

from ray_rl_debug.model.snapshot import TaskHistory
from ray_rl_debug.watch.beats import Beat
from ray_rl_debug.watch.decide import Decision, Progress
from ray_rl_debug.watch.job_watch import REST_S, SUSPECT_S
from ray_rl_debug.watch.learn import Gaps, Learned, Limits, patience_s

HOUR_S = 3600.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("logs", [True, False])
def test_irregular_steps_with_checkpoints_and_validation_cry_no_wolf(seed: int, logs: bool) -> None:
    run = Simulation(steps(irregular(seed), checkpoint_every=10, validate_every=7, first_s=120.0), logs=logs)
    run.run(3 * HOUR_S)
    assert run.declared == []
    assert len(run.looks) < 40


def test_hours_of_regular_steps_need_hardly_a_look() -> None:
    run = Simulation(steps(itertools.repeat(1.0), checkpoint_every=200, validate_every=100))
    run.run(2 * HOUR_S)
    assert run.declared == []
    assert len(run.looks) < 10


@pytest.mark.parametrize("cpu", [0.0, 1.0])
@pytest.mark.parametrize("healthy_s", [30.0, 61.0, 300.0, 3600.0])
@pytest.mark.parametrize(("poller", "logs"), [(True, True), (False, True), (False, False)])
def test_steps_of_a_second_stall_is_seen_within_fifteen(cpu: float, healthy_s: float, poller: bool, logs: bool) -> None:
    run = Simulation(steps(itertools.repeat(1.0)), poller=poller, logs=logs)
    run.run(healthy_s)
    run.run(60.0, hang=True, hang_cpu=cpu)
    assert run.detected_after_s() <= 15.0
    assert run.declared_after_s() <= 15.0


def test_hang_after_irregular_steps_is_declared_in_proportion_to_them() -> None:
    run = Simulation(steps(irregular(3, 1.0, 20.0)))
    run.run(HOUR_S)
    run.run(600.0, hang=True)
    assert 10.0 <= run.declared_after_s() <= 60.0


def test_first_step_is_looked_at_early_and_declared_late() -> None:
    run = Simulation(iter([Phase("init_model", 1e9, 0.0)]))
    run.run(400.0, hang=True)
    assert run.detected_after_s() <= 15.0
    assert 180.0 <= run.declared_after_s() <= 190.0


def test_looks_at_a_long_stall_become_rare() -> None:
    run = Simulation(iter([Phase("init_model", 1e9, 0.0)]))
    run.run(2 * HOUR_S)
    assert len(run.looks) <= 12


def test_floor_and_ceiling_hold() -> None:
    limits = Limits(floor_s=40.0, ceiling_s=90.0)
    run = Simulation(steps(itertools.repeat(1.0)), limits=limits)
    run.run(600.0)
    run.run(120.0, hang=True)
    assert 40.0 <= run.declared_after_s() <= 44.0
    slow = Simulation(steps(irregular(1, 30.0, 60.0)), limits=limits)
    slow.run(HOUR_S)
    before = len(slow.declared)
    slow.run(200.0, hang=True)
    assert before == 0
    assert slow.declared_after_s() <= 94.0


def test_step_much_longer_than_all_before_is_told_as_slow_once_it_is_over() -> None:
    phases = itertools.chain(steps(itertools.repeat(8.0, 60)), [Phase("generate_sequences", 120.0)], steps(itertools.repeat(8.0), start=61))
    run = Simulation(phases)
    run.run(1200.0)
    assert len(run.slow) == 1
    assert "WorkerDict.generate_sequences took 1" in run.slow[0]


def test_what_ray_knows_of_short_calls_makes_their_stall_out_of_the_ordinary() -> None:
    phases = itertools.chain([Phase("generate_sequences", 6.0)], itertools.repeat(Phase("compute_rm_score", 1e9, 0.0)))
    run = Simulation(phases)
    run.run(20.0)
    assert not run.progress.decide(run.now).declared
    run.progress.teach([TaskHistory(name="WorkerDict.compute_rm_score", count=30, longest_s=0.2)])
    assert not run.progress.decide(run.now).declared
    assert run.progress.seen(run.now, is_still=True, is_hang=True, is_sure=True).declared


@pytest.mark.parametrize(
    ("recent", "count", "expected"),
    [([], 0, 180.0), ([100.0], 1, 300.0), ([1.0] * 3, 3, 10.0), ([10.0] * 5, 5, 60.0), ([10.0] * 10, 10, 40.0), ([10.0] * 30, 30, 25.0)],
)
def test_patience(recent: list[float], count: int, expected: float) -> None:
    assert patience_s(Gaps(recent=recent, count=count), Limits()) == expected


@pytest.mark.parametrize(("count", "expected"), [(5, 60.0), (10, 25.0), (30, 25.0)])
def test_patience_is_shorter_once_a_look_is_sure(count: int, expected: float) -> None:
    assert patience_s(Gaps(recent=[10.0] * count, count=count), Limits(), is_hang_seen=True) == expected


def test_warm_up_is_forgotten() -> None:
    gaps = Gaps()
    for seconds in (90.0, 2.0, 2.0, 2.0):
        gaps.add(seconds)
    assert gaps.longest_s == 2.0


def test_time_in_which_nobody_looked_does_not_count() -> None:
    run = Simulation(steps(itertools.repeat(1.0)))
    run.run(300.0)
    run.skip(60.0)
    run.run(300.0)
    assert run.declared == []
    assert run.slow == []
    assert len(run.looks) <= 1


def test_call_that_was_seen_to_last_is_compared_with_what_ray_knows_until_it_moves() -> None:
    progress = Progress(Limits())
    for at in range(9):
        feed(progress, float(at), call="update_actor")
    progress.teach([TaskHistory(name="Trainer.update_actor", count=30, longest_s=0.2)])
    assert not progress.seen(9.0, is_still=True, is_hang=True, is_sure=True).declared  # the floor
    assert feed(progress, 10.5, call="update_actor").declared
    moved = feed(progress, 12.0, call="update_actor", moved=(("Trainer", "update_actor"),))
    assert not moved.declared
    assert not any(feed(progress, 12.0 + at, call="update_actor").declared for at in range(30))


def feed(progress: Progress, at_s: float, *, role: str = "Trainer", call: str = "save_checkpoint", **more: object) -> Decision:
    return progress.feed(Beat(at_s=at_s, calls=((role, call),), processes=2, **more))  # type: ignore[arg-type]


def known_to_last(seconds: float, **more: float) -> Progress:
    learned = Learned(calls={"Trainer.save_checkpoint": Gaps(recent=[seconds] * 20, count=20)}, job=Gaps(recent=[seconds] * 9, count=9))
    return Progress(Limits(**more), learned)


@pytest.mark.parametrize("sign", ["carries", "counted", "none"])
def test_call_that_only_moves_bytes_or_completes_collectives_has_not_stopped(sign: str) -> None:
    progress = known_to_last(10.0)
    more = {sign: ("Trainer",)} if sign != "none" else {}
    declared = [at for at in range(0, 600, 2) if feed(progress, float(at), **more).declared]
    assert declared == [] if sign != "none" else declared[0] == 26


def test_bytes_are_read_as_long_as_a_stall_may_be_declared() -> None:
    progress = known_to_last(10.0)
    at, close = 0.0, 0
    for _ in range(300):
        close = close + 1 if progress.wait_s <= 1.0 else 0
        decision = feed(progress, at, carries=("Trainer",) if close > 1 else ())  # the first of two close readings tells no rate
        assert not decision.declared
        if decision.look:
            at += 3.0
            progress.looked(at, rest_s=SUSPECT_S)
            assert not progress.seen(at, is_still=True, is_hang=True, is_sure=True).declared
        at += progress.wait_s


def test_bytes_do_not_excuse_for_ever() -> None:
    progress = known_to_last(10.0, ceiling_s=300.0)
    declared = [at for at in range(0, 600, 2) if feed(progress, float(at), carries=("Trainer",)).declared]
    assert declared[0] == 300


def test_bytes_of_another_role_do_not_excuse() -> None:
    progress = known_to_last(10.0)
    assert any(feed(progress, float(at), carries=("Logger",)).declared for at in range(0, 60, 2))


def test_signs_are_read_closely_just_before_a_look_and_slowly_while_all_is_well() -> None:
    progress = Progress(Limits(), interval_s=2.0)
    at = 0.0
    for number in range(20):
        at += progress.wait_s
        decision = feed(progress, at, call=f"step{number % 2}", moved=(("Trainer", f"step{(number + 1) % 2}"),))
        assert not decision.soon
    assert progress.wait_s == 3.0
    waits = []
    stopped = at
    while not decision.look:
        at += progress.wait_s
        decision = feed(progress, at)
        waits.append(progress.wait_s)
    assert waits[-1] == 1.0
    assert at - stopped <= 10.0
    assert sum(w == 1.0 for w in waits) >= 2


def looks_of(progress: Progress, seconds: float, start_s: float, judge: Callable[[float], None], **more: object) -> list[float]:
    looks, at = [], start_s
    while at < start_s + seconds:
        at += progress.wait_s
        if feed(progress, at, call="run", **more).look:
            looks.append(at)
            judge(at)
    return looks


def test_look_that_could_not_tell_is_followed_by_another_soon() -> None:
    progress = Progress(Limits(), interval_s=2.0)
    looks = looks_of(progress, 600.0, 0.0, lambda at: progress.looked(at, rest_s=SUSPECT_S, could_tell=False))
    assert looks[1] - looks[0] <= 11.0
    assert looks[2] - looks[1] <= 11.0
    assert len(looks) <= 9
    again = Progress(Limits(), interval_s=2.0)
    assert len(looks_of(again, 600.0, 0.0, lambda at: again.looked(at, rest_s=SUSPECT_S))) <= 7


@pytest.mark.parametrize("working", [0, 3])
def test_run_that_shows_nothing_of_itself_is_looked_at_ever_more_rarely(working: int) -> None:
    progress = Progress(Limits(), interval_s=2.0)

    def healthy(at: float) -> None:
        progress.moved(at, rest_s=REST_S)
        progress.looked(at, rest_s=SUSPECT_S)

    looks = looks_of(progress, 3600.0, 0.0, healthy, working=working)
    assert len(looks) <= 95
    if working:  # it stops to work: that is seen, whatever was found before
        stopped = 3600.0 + progress.wait_s
        assert looks_of(progress, 60.0, stopped, healthy)[0] - stopped <= 15.0


def test_step_much_longer_than_all_before_is_slow_also_where_no_call_is_seen_to_end() -> None:
    progress = Progress(Limits(), interval_s=2.0)
    lengths = [4.0, 6.0, 5.0, 4.0, 6.0, 5.0, 4.0, 6.0, 5.0, 60.0, 5.0]
    at, said = 0.0, []
    for step, length in enumerate(lengths):
        until = at + length
        while at < until:
            at += progress.wait_s
            said.append(feed(progress, at, call="run", step=step, working=2).slow)
    (slow,) = [s for s in said if s]
    assert slow.startswith("a step took 5")


def test_irregular_steps_are_not_slow() -> None:
    run = Simulation(steps(irregular(5)))
    run.run(2 * HOUR_S)
    assert run.slow == []


@pytest.mark.parametrize(
    ("is_hang", "is_sure", "moves", "expected"),
    [(True, True, False, 15.0), (True, False, False, 30.0), (False, True, False, 30.0), (True, True, True, 30.0)],
)
def test_step_within_an_endless_call_is_late_sooner_where_a_closer_look_is_sure(is_hang: bool, is_sure: bool, moves: bool, expected: float) -> None:
    progress = Progress(Limits())
    last = 30
    for at in range(last + 1):
        assert not progress.feed(Beat(at_s=float(at), processes=2, step=at // 2)).declared
    for at in range(last + 1, last + 9):
        progress.feed(Beat(at_s=float(at), processes=2))
    progress.seen(last + 8.5, is_still=is_hang, is_hang=is_hang, is_sure=is_sure)
    if moves:
        progress.feed(Beat(at_s=last + 9.0, processes=2, counted=("Trainer",)))
    declared = next(at for at in range(last + 10, last + 60) if progress.feed(Beat(at_s=float(at), processes=2)).declared)
    assert declared - last == expected


@pytest.mark.parametrize(("is_still", "expected"), [(True, range(15, 16)), (False, range(20, 24))])
def test_the_time_of_a_look_counts_if_it_saw_the_job_stand_still(is_still: bool, expected: range) -> None:
    progress = Progress(Limits(), interval_s=1.0)
    for at in range(31):
        progress.feed(Beat(at_s=float(at), processes=2, step=at // 2))
    for at in range(31, 38):
        progress.feed(Beat(at_s=float(at), processes=2))
    progress.seen(43.0, is_still=is_still, is_hang=False, is_sure=False)
    progress.feed(Beat(at_s=44.0, processes=2))
    progress.seen(44.0, is_still=True, is_hang=True, is_sure=True)
    declared = next(at for at in range(45, 90) if progress.feed(Beat(at_s=float(at), processes=2)).declared)
    assert declared - 30 in expected
