"""The history on disk: whole after crashes, bounded, and modest when the disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ray_rl_debug.model.report import Cause, Certainty, Finding, Report, State, Verdict, Who
from ray_rl_debug.model.snapshot import RayJob, Snapshot, TaskHistory
from ray_rl_debug.watch import closer_look
from ray_rl_debug.watch.beats import Beat
from ray_rl_debug.watch.closer_look import Keeping, Look, hook_environment, keep_facts, take_look, verdict_key
from ray_rl_debug.watch.history import Event, History
from ray_rl_debug.watch.job_watch import JobWatch
from ray_rl_debug.watch.last_check import check_end, has_trained
from ray_rl_debug.watch.learn import Gaps, Learned, Limits
from ray_rl_debug.watch.live import Live
from ray_rl_debug.watch.signals import GpuSign

NOW_S = 1_800_000_000.0


def event(number: int, kind: str = "look", **more: object) -> Event:
    return Event(time_s=NOW_S + number, kind=kind, text=f"event {number}", **more)  # type: ignore[arg-type]


def test_events_and_what_was_learned_survive(tmp_path: Path) -> None:
    first = History(tmp_path / "job")
    first.add(event(1))
    first.add(event(2, "verdict", key="hang|RRD502|n/1", folder="x"))
    first.save_learned(Learned(calls={"A.b": Gaps(recent=[1.5], count=9)}, step=7))
    second = History(tmp_path / "job")
    learned = second.load()
    assert [e.text for e in second.events] == ["event 1", "event 2"]
    assert learned.calls["A.b"].count == 9
    assert learned.step == 7


def test_line_cut_off_by_a_crash_is_skipped(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.add(event(1))
    with (tmp_path / "history.jsonl").open("ab") as f:
        f.write(b'{"time_s": 1, "kind": "lo\n')
    (tmp_path / "learned.json").write_bytes(b"{")
    history.add(event(2))
    again = History(tmp_path)
    assert again.load() == Learned()
    assert [e.text for e in again.events] == ["event 1", "event 2"]


def test_history_is_bounded(tmp_path: Path) -> None:
    history = History(tmp_path, max_bytes=20_000)
    for number in range(1000):
        history.add(event(number))
    assert (tmp_path / "history.jsonl").stat().st_size < 25_000
    again = History(tmp_path)
    again.load()
    assert again.events[-1].text == "event 999"


def test_two_companions_share_a_folder(tmp_path: Path) -> None:
    one, two = History(tmp_path), History(tmp_path)
    for number in range(50):
        one.add(event(number))
        two.add(event(1000 + number))
    again = History(tmp_path)
    again.load()
    assert len(again.events) == 100


def test_full_disk_costs_only_what_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path)
    history.add(event(1))
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        real(descriptor, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", lambda d, b: real(d, b[:5]))  # a disk that takes a part
    history.add(event(2))
    assert history.trouble is not None
    monkeypatch.setattr(os, "write", full)
    history.add(event(3))
    assert [e.text for e in history.events] == ["event 1", "event 2", "event 3"]
    monkeypatch.undo()
    history.add(event(4))  # there is room again: what was kept back is written
    assert history.trouble is None
    again = History(tmp_path)
    again.load()
    assert {e.text for e in again.events} == {"event 1", "event 2", "event 3", "event 4"}


def make_looks(history: History, count: int, size: int = 1000) -> list[str]:
    names = []
    for number in range(count):
        folder = history.new_folder(NOW_S + number)
        folder.mkdir(parents=True)
        (folder / "snapshot.json.gz").write_bytes(b"x" * size)
        names.append(folder.name)
    return names


def test_oldest_looks_go_first_verdicts_last_and_the_newest_never(tmp_path: Path) -> None:
    history = History(tmp_path)
    names = make_looks(history, 6)
    assert history.prune(keep=3, max_bytes=1 << 30, spare=frozenset(names[:1])) == names[1:4]
    assert history.prune(keep=3, max_bytes=1500, spare=frozenset(names[:1])) == [names[4], names[0]]
    assert [f.name for f in history.folders()] == names[5:]


def test_names_of_looks_in_one_second_differ(tmp_path: Path) -> None:
    history = History(tmp_path)
    names = {history.new_folder(NOW_S).name for _ in range(1)}
    (tmp_path / next(iter(names))).mkdir()
    assert history.new_folder(NOW_S).name not in names


def report(state: State = State.HANG, certainty: Certainty = Certainty.LIKELY, pid: int = 7, cause: Cause = Cause.BLOCKED_IO) -> Report:
    who = Who(label="actor/1", node="n1", pid=pid)
    best = Finding(id="RRD502", name="blocked", cause=cause, certainty=certainty, summary="actor/1 waits", root=True, who=(who,))
    findings = (best,) if state is State.HANG else ()
    return Report(verdict=Verdict(state=state, summary="actor/1 waits", certainty=certainty), findings=findings, taken_time_s=NOW_S)


SNAPSHOT = Snapshot(taken_time_s=NOW_S)


def test_full_output_folder_prunes_then_goes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray_rl_debug.model.errors import OutputError

    history = History(tmp_path / "job")
    names = make_looks(history, 6)
    real = closer_look.save_snapshot

    def full(folder: Path, snapshot: Snapshot) -> None:
        if folder.is_relative_to(tmp_path / "job"):
            raise OutputError(f"cannot write {folder}: No space left on device")
        real(folder, snapshot)

    monkeypatch.setattr(closer_look, "save_snapshot", full)
    monkeypatch.setattr(closer_look.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "elsewhere"))
    folder, trouble = keep_facts(history, SNAPSHOT, NOW_S)
    assert folder == tmp_path / "elsewhere"
    assert (tmp_path / "elsewhere" / "snapshot.json.gz").exists()
    assert trouble is not None
    assert str(folder) in trouble
    assert [f.name for f in history.folders()] == names[3:]


def test_look_writes_facts_and_report(tmp_path: Path) -> None:
    history = History(tmp_path)
    keeping = Keeping(take_look(lambda: SNAPSHOT, history, now_s=NOW_S, judge=lambda s: report()))
    assert keeping.look.folder is None
    assert not history.folders()
    keeping.write(history, NOW_S)
    look = keeping.wait(0)
    assert look.trouble is None
    assert look.folder is not None
    assert {p.name for p in look.folder.iterdir()} >= {"snapshot.json.gz", "report.json", "report.txt", "report.html"}
    assert look.key == "hang|RRD502|n1/7"
    told = hook_environment(look, job_id="01000000", age_s=12.3, base={})
    assert told["RAYRL_DEBUG_SUMMARY"] == "actor/1 waits"
    assert told["RAYRL_DEBUG_REPORT"] == str(look.folder / "report.json")
    assert told["RAYRL_DEBUG_STALLED_S"] == "12"


def test_facts_whose_analysis_fails_are_written(tmp_path: Path) -> None:
    history = History(tmp_path)
    with pytest.raises(ZeroDivisionError):
        take_look(lambda: SNAPSHOT, history, now_s=NOW_S, judge=lambda s: 1 / 0)  # type: ignore[arg-type,return-value]
    assert [p.name for folder in history.folders() for p in folder.iterdir()] == ["snapshot.json.gz"]


def watch(tmp_path: Path) -> JobWatch:
    return JobWatch(RayJob(job_id="01000000"), History(tmp_path), Limits(), interval_s=2.0, now=0.0, now_s=NOW_S)


def look(found: Report) -> Look:
    return Look(snapshot=SNAPSHOT, report=found, folder=None, took_s=2.0)


def test_people_are_told_once_per_verdict_and_again_when_it_changes(tmp_path: Path) -> None:
    job = watch(tmp_path)
    proven = report(certainty=Certainty.PROVEN)
    assert job.judge(look(proven), 10.0, NOW_S)[1] is True
    event, tell = job.judge(look(proven), 50.0, NOW_S + 40)
    assert (tell, event.text) == (False, "still: actor/1 waits")
    assert job.is_confirmed(look(proven), 50.0)
    assert job.judge(look(report(certainty=Certainty.PROVEN, pid=8)), 60.0, NOW_S + 50)[1] is True


def test_second_look_at_the_same_death_needs_no_history(tmp_path: Path) -> None:
    died = report(cause=Cause.ENGINE_DIED)
    job = watch(tmp_path)
    for second in range(0, 9, 2):
        job.take(Beat(at_s=float(second), calls=(("Loop", "generate"),)), NOW_S + second)
    assert job.judge(look(died), 9.0, NOW_S + 9)[1] is False, "one look may meet a process that is just replaced"
    job.take(Beat(at_s=10.0, calls=(("Loop", "generate"),)), NOW_S + 10)
    assert not job.wants_look(10.5)
    assert job.wants_look(12.5)
    assert job.judge(look(report(cause=Cause.ENGINE_DIED, pid=8)), 12.5, NOW_S + 12.5)[1] is False, "another process"
    assert job.judge(look(report(cause=Cause.ENGINE_DIED, pid=8)), 15.0, NOW_S + 15)[1] is True
    assert job.judge(look(report(pid=9)), 20.0, NOW_S + 20)[1] is False, "waits that may be usual"


def test_a_look_that_may_have_missed_something_is_no_progress(tmp_path: Path) -> None:
    ages = {}
    for certainty in (Certainty.LIKELY, Certainty.POSSIBLE):
        job = watch(tmp_path / certainty.value)
        for second in range(0, 9, 2):
            job.take(Beat(at_s=float(second), calls=(("Loop", "generate"),)), NOW_S + second)
        job.judge(look(report(State.HEALTHY, certainty)), 9.0, NOW_S + 9)
        ages[certainty] = job.progress.age_s(9.0)
    assert ages == {Certainty.LIKELY: 0.0, Certainty.POSSIBLE: 9.0}


def test_likely_hang_within_what_is_usual_is_only_suspected(tmp_path: Path) -> None:
    job = watch(tmp_path)
    event, tell = job.judge(look(report()), 10.0, NOW_S)
    assert tell is False
    assert event.text.startswith("suspected: ")


def test_long_stall_without_a_verdict_is_told_as_well(tmp_path: Path) -> None:
    job = watch(tmp_path)
    job.take(Beat(at_s=0.0, calls=(("Trainer", "step"),), processes=2), NOW_S)
    for number in range(1, 200):
        job.take(Beat(at_s=2.0 * number, calls=(("Trainer", "step"),), processes=2), NOW_S + 2 * number)
    unknown = report(State.UNKNOWN, Certainty.POSSIBLE)
    event, tell = job.judge(look(unknown), 400.0, NOW_S + 400)
    assert (event.kind, event.state, tell) == ("verdict", "unknown", True)
    assert job.judge(look(unknown), 500.0, NOW_S + 500)[1] is False
    assert job.judge(look(report(certainty=Certainty.PROVEN)), 600.0, NOW_S + 600)[1] is True


def test_calls_of_a_poller_are_no_recovery(tmp_path: Path) -> None:
    job = watch(tmp_path)
    stands = (("Status", "ping"), ("Trainer", "step"))
    for number in range(20):
        job.take(Beat(at_s=2.0 * number, calls=stands, moved=(("Status", "ping"),), processes=2), NOW_S + 2 * number)
    assert job.judge(look(report(certainty=Certainty.PROVEN)), 40.0, NOW_S + 40)[1] is True
    assert job.take(Beat(at_s=42.0, calls=stands, moved=(("Status", "ping"),), processes=2), NOW_S + 42) == []
    (said,) = job.take(Beat(at_s=44.0, calls=stands, moved=(("Trainer", "step"),), processes=2), NOW_S + 44)
    assert said.kind == "recovered"
    assert job.alarmed is None


def test_successor_knows_what_was_told(tmp_path: Path) -> None:
    first = watch(tmp_path)
    proven = report(certainty=Certainty.PROVEN)
    event, tell = first.judge(look(proven), 10.0, NOW_S)
    assert tell is True
    first.keep(event, look(proven))
    second = watch(tmp_path)
    assert second.alarmed == verdict_key(proven)
    assert second.judge(look(proven), 10.0, NOW_S + 60)[1] is False
    assert "again" in second.history.events[-1].text


def test_gpus_are_part_of_the_history_where_there_are_any(tmp_path: Path) -> None:
    job = watch(tmp_path)
    gpus = (GpuSign(0, 1.0, 300.0, 1 << 30), GpuSign(1, 0.0, 80.0, 1 << 30), GpuSign(2))
    for number in range(32):
        job.take(Beat(at_s=2.0 * number, processes=2), NOW_S + 2 * number, ())
    first = next(e for e in job.history.events if e.kind == "progress")
    job.take(Beat(at_s=160.0, processes=2), NOW_S + 160, gpus)
    last = job.history.events[-1]
    assert "gpus" not in first.numbers
    assert last.numbers["gpu_utilization"] == 0.5
    assert (last.numbers["gpus"], last.numbers["gpus_idle"], last.numbers["gpu_power_watts"]) == (3.0, 1.0, 380.0)


def history_of(*names: str) -> tuple[TaskHistory, ...]:
    return tuple(TaskHistory(name=n, count=1, longest_s=1.0) for n in names)


def test_job_that_ended_without_a_step_is_told() -> None:
    job = RayJob(job_id="01000000", alive=True)  # as the companion saw it last
    calls = history_of("TaskRunner.run", "WorkerDict.init_model")
    found = check_end(job, calls, address="h:1", now_s=NOW_S)
    assert found is not None
    assert [f.id for f in found[1].findings if f.root] == ["RRD206"]
    assert not has_trained(Learned(), (c.name for c in calls))


@pytest.mark.parametrize(
    ("learned", "calls"),
    [
        (Learned(step=3), ()),
        (Learned(calls={"WorkerDict.update_actor": Gaps(recent=[1.0], count=1)}), ()),
        (Learned(), ("WorkerDict.init_model", "WorkerDict.generate_sequences")),
    ],
)
def test_job_that_made_a_step_has_trained(learned: Learned, calls: tuple[str, ...]) -> None:
    assert has_trained(learned, calls)


def test_job_that_is_no_training_is_not_blamed() -> None:
    assert check_end(RayJob(job_id="01000000", alive=False), history_of("preprocess", "Saver.write"), address="h:1", now_s=NOW_S) is None


class Closed:
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        pass


def test_log_on_a_full_disk_does_not_end_the_watch() -> None:
    live = Live(Closed(), is_terminal=False)  # type: ignore[arg-type]
    live.say("text", NOW_S)
    live.show(["text"], 0.0, NOW_S)
