"""Many logs as one story: order in time, echoes, what was survived, clocks, steps."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.log_story import LogStory
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.render import html, markdown, terminal

RAISED = "Traceback (most recent call last):\n  File \"/w/reward.py\", line 41, in score\n    return table[key]\nKeyError: 'math'\n"


def report_on(folder: Path, files: dict[str, str], *, written: dict[str, float] | None = None) -> Report:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if written is not None:
            os.utime(path, (written[name], written[name]))
    found = load([folder]).snapshot
    assert found is not None
    return diagnose(found)


def story_of(report: Report) -> LogStory:
    assert report.story is not None
    return report.story


def line(clock: str, text: str, *, level: str = "INFO", day: str = "2026-11-21") -> str:
    return f"{day} {clock},000 - trainer - {level} - {text}\n"


def steps(first: int, last: int, minute: int = 0, hour: int = 10) -> str:
    return "".join(line(f"{hour:02d}:{minute + i:02d}:00", f"step: {step} loss: 0.5") for i, step in enumerate(range(first, last + 1)))


def test_the_first_failure_in_time_stands_in_front(tmp_path: Path) -> None:
    watchdog = (
        "[rank{0}]:[E1121 10:40:0{0}.000000000 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800001 milliseconds before timing out.\n"
    )
    files = {f"rank{i}.log": steps(1, 3) + watchdog.format(i) for i in range(3)}
    files["rank3.log"] = steps(1, 3) + line("10:09:59", "reward failed", level="ERROR") + RAISED
    report = report_on(tmp_path, files)
    story = story_of(report)
    assert story.first is not None
    assert (story.first.who[0].label, story.first.text, story.first.frame) == ("rank 3", "KeyError: 'math'", "reward.py:41 in score")
    assert story.first.time == "2026-11-21 10:09:59.0"
    assert [(len(e.who), e.signature, e.after_s) for e in story.then] == [(3, "RRD645", 1801.0)]
    assert (report.findings[0].id, report.findings[0].certainty) == ("RRD507", Certainty.LIKELY)
    assert report.verdict.state is State.UNKNOWN and "rank 3" in report.verdict.summary


def test_a_line_that_is_shown_has_its_own_number(tmp_path: Path) -> None:
    """Of a traceback the text is its last line; a known record is told with what was raised below it."""
    chained = RAISED + "\nDuring handling of the above exception, another exception occurred:\n\n" + RAISED.replace("'math'", "'code'")
    report = report_on(tmp_path / "a", {"driver.log": steps(1, 2) + chained})
    first = story_of(report).first
    assert first is not None and (first.text, first.line, first.text_line) == ("KeyError: 'code'", 3, 13)
    assert [e.where.rsplit("/", 1)[1] for e in report.findings[0].evidence] == ["driver.log:13", "driver.log:3-13"]
    assert "driver.log:3-13" in "\n".join(terminal.render(report, colour=False))
    story = story_of(report_on(tmp_path / "b", {"engine.log": line("10:20:00", "EngineCore failed to start.", level="ERROR") + RAISED}))
    assert story.first is not None and (story.first.line, story.first.text_line) == (2, 5)
    assert [(e.signature, e.line, e.text_line, e.beneath) for e in story.then] == [("RRD668", 1, None, "KeyError: 'math'")]


def test_a_flag_called_terminated_ended_nothing_from_outside(tmp_path: Path) -> None:
    raised = RAISED.replace("KeyError: 'math'", "RuntimeError: Env done entry 'terminated' was (partially) True after reset")
    first = story_of(report_on(tmp_path, {"run.log": "Error executing job with overrides: ['task=walker']\n" + raised})).first
    assert first is not None and (first.kind, first.is_echo) == ("traceback", False)


def test_the_driver_repeats_what_its_worker_raised(tmp_path: Path) -> None:
    worker = f"worker-{'a' * 56}-01000000-4211.err"
    remote = "ray.exceptions.RayTaskError(KeyError): ray::RewardWorker.score() (pid=4211, ip=10.0.0.3, actor_id=ab)\n"
    driver = line("10:00:01", "start") + 'Traceback (most recent call last):\n  File "/w/main.py", line 3, in main\n    ray.get(x)\n' + remote
    files = {
        "driver.log": driver + "  File \"/w/reward.py\", line 41, in score\n    return table[key]\nKeyError: 'math'\n",
        f"node3/{worker}": RAISED,
    }
    story = story_of(report_on(tmp_path, files))
    assert story.first is not None and story.first.who[0].pid == 4211
    assert story.first.file.endswith(worker)
    alone = story_of(report_on(tmp_path / "alone", {"driver.log": files["driver.log"]}))
    assert alone.first is not None and (alone.first.who[0].pid, alone.first.who[0].node) == (4211, "10.0.0.3")


def test_pythons_marks_may_stand_between_a_call_and_its_frames(tmp_path: Path) -> None:
    died = "ray.exceptions.ActorDiedError: The actor died because of an error in its creation, ray::Policy.__init__() (pid=2791, ip=10.0.0.3)\n"
    frames = '  File "/w/policy.py", line 41, in __init__\n    self.n = a // b\nTypeError: unsupported operand\n'
    for marks in ("", "           ^^^^^^^^\n"):
        first = story_of(report_on(tmp_path / f"m{len(marks)}", {"driver.log": died + marks + frames})).first
        assert first is not None and (first.who[0].pid, first.frame) == (2791, "policy.py:41 in __init__")


def test_torch_npu_names_its_process_within_an_error(tmp_path: Path) -> None:
    raised = "RuntimeError: [ERROR] 2026-08-19-10:22:13 (PID:712, Device:3, RankID:{}) ERR02200 DIST call hccl api failed.\n"
    for rank, told in (("3", 3), ("-1", None)):
        first = story_of(report_on(tmp_path / rank, {"a.log": raised.format(rank)})).first
        assert first is not None and (first.who[0].pid, first.who[0].rank) == (712, told)


def test_a_rank_of_a_part_is_not_that_of_the_world(tmp_path: Path) -> None:
    text = "[2026-03-17 17:15:55 TP1] Scheduler hit an exception: " + RAISED.replace("KeyError: 'math'", "ValueError: TP rank 1 waits")
    first = story_of(report_on(tmp_path, {"server.log": text})).first
    assert first is not None and [(w.label, w.rank) for w in first.who] == [("TP1", None)]


def test_equal_failures_of_many_ranks_are_one(tmp_path: Path) -> None:
    files = {f"rank{i}.log": steps(1, 2) + RAISED for i in range(8)}
    story = story_of(report_on(tmp_path, files))
    assert story.first is not None and len(story.first.who) == 8 and story.then == ()


def test_what_a_run_survived_is_no_failure(tmp_path: Path) -> None:
    text = steps(1, 2) + line("10:03:00", "tool failed", level="ERROR") + RAISED + steps(3, 6, minute=4)
    report = report_on(tmp_path, {"rank0.log": text})
    story = story_of(report)
    assert story.first is None and report.findings == ()
    assert [e.why for e in story.survived] == ["went on: step 6 at line 11"]


def test_the_last_of_many_retries_that_gives_up_is_the_failure(tmp_path: Path) -> None:
    failed = line("10:00:01", "call 1 failed", level="ERROR")
    tried = "".join(failed.replace("call 1", f"call {i}") + line("10:00:02", "retrying") for i in range(1, 6))
    story = story_of(report_on(tmp_path, {"rank0.log": tried + failed}))
    assert story.first is not None and story.first.line == 11
    assert [e.count for e in story.survived] == [5]


def test_another_time_zone_is_found_by_equal_steps(tmp_path: Path) -> None:
    late = steps(1, 5, hour=18) + line("18:05:30", "x", level="ERROR") + RAISED
    early = steps(1, 5, hour=10) + line("10:06:00", "worker 1 died", level="ERROR")
    story = story_of(report_on(tmp_path, {"rank0.log": early, "rank1.log": late}))
    assert [c.shift_s for c in story.clocks] in ([-28800.0], [28800.0])
    assert story.first is not None and story.first.text == "KeyError: 'math'"
    assert story.then[0].after_s == 30.0


def test_a_clock_that_is_off_is_found_by_equal_steps(tmp_path: Path) -> None:
    def shifted(by: int) -> str:
        return "".join(line(f"10:0{i}:{10 + by:02d}", f"step: {i} loss: 0.5") for i in range(1, 6))

    story = story_of(report_on(tmp_path, {"rank0.log": shifted(0) + RAISED, "rank1.log": shifted(37)}))
    assert [abs(c.shift_s) for c in story.clocks] == [37.0]
    assert "37.0 s" in story.clocks[0].why and "5 equal steps" in story.clocks[0].why


def test_stamps_that_name_their_zone_need_no_guess(tmp_path: Path) -> None:
    utc = "2026-11-21T10:00:00Z step: 1\n2026-11-21T10:00:05Z ERROR x\n" + RAISED
    other = "2026-11-21T18:00:00+08:00 step: 1\n2026-11-21T18:00:09+08:00 ERROR lost rank 0: worker 0 died\n"
    story = story_of(report_on(tmp_path, {"a.log": utc, "b.log": other}))
    assert story.clocks == () and story.first is not None and story.first.text == "KeyError: 'math'"
    assert story.then[0].after_s == 4.0


@pytest.mark.parametrize("hour", [4, 19])
def test_a_file_that_names_no_zone_is_not_ordered_against_one_that_does(tmp_path: Path, hour: int) -> None:
    server = f"2026-11-21T10:00:00.1Z served a request\n2026-11-21T10:03:30.2Z {RAISED}"
    refused = "reward call failed: aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host reward:8000"
    trainer = steps(1, 3, hour=hour) + line(f"{hour:02d}:22:40", refused, level="ERROR")
    told = story_of(report_on(tmp_path, {"reward-server.log": server, "trainer.log": trainer}))
    assert told.first is not None and told.first.text == "KeyError: 'math'"
    assert told.order is not None and "do not overlap" in told.order


def test_failures_whole_hours_apart_tell_another_zone(tmp_path: Path) -> None:
    killed = "Out of memory: Killed process 77 (ray::Sampler) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB"
    driver = steps(1, 3) + line("10:03:12", "ray.exceptions.WorkerCrashedError: The worker died unexpectedly", level="ERROR")
    files = {"driver.log": driver, "dmesg.txt": f"[Sat Nov 21 09:03:01 2026] {killed}\n"}
    told = story_of(report_on(tmp_path, files))
    assert told.first is not None and (told.first.who[0].pid, told.first.time) == (77, "2026-11-21 10:03:01.0")
    assert [(c.shift_s, "failures" in c.why) for c in told.clocks] == [(3600.0, True)]
    files["dmesg.txt"] = files["dmesg.txt"].replace("09:03:01", "09:41:01")
    told = story_of(report_on(tmp_path, files))
    assert told.clocks == () and told.first is not None and told.first.who[0].pid is None


def test_without_times_the_order_is_said_to_be_unsure(tmp_path: Path) -> None:
    story = story_of(report_on(tmp_path, {"a/rank0.log": RAISED, "b/rank1.log": "torch.distributed.DistBackendError: x\n"}))
    assert story.first is not None and story.first.text == "KeyError: 'math'"
    assert story.order is not None and "no times" in story.order


def test_who_stopped_first(tmp_path: Path) -> None:
    files = {f"rank{i}.log": steps(1, 9 if i != 5 else 7) for i in range(8)}
    story = story_of(report_on(tmp_path, files))
    assert story.stopped == "rank 5 stopped first, after step 7; others came to 9"
    assert (story.progress[0].who.label, story.progress[0].behind) == ("rank 5", 2.0)


def test_progress_of_many_writers_in_one_file(tmp_path: Path) -> None:
    text = "".join(f"[rank{r}]: 2026-11-21 10:0{s}:0{r} iteration {s}/100 loss 0.1\n" for s in range(5) for r in range(4) if (r, s) != (2, 4))
    story = story_of(report_on(tmp_path, {"torchrun.out": text}))
    assert story.stopped == "rank 2 stopped first, after iteration 3; others came to 4"


def test_consequences_alone_accuse_nobody(tmp_path: Path) -> None:
    report = report_on(tmp_path, {"driver.log": "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"})
    assert report.findings == ()
    assert "consequences only" in report.verdict.summary


def test_packed_logs_and_json_lines_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "rank1.log.gz").write_bytes(gzip.compress((steps(1, 2) + RAISED).encode()))
    record = {"time": "2026-11-21T10:00:05Z", "level": "error", "msg": "failed", "exc_info": RAISED.strip(), "rank": 3}
    (tmp_path / "a" / "pod.jsonl").write_text(f'{{"level":"info","msg":"x","time":"2026-11-21T10:00:01Z"}}\n{json.dumps(record)}\n')
    story = story_of(diagnose(load([tmp_path / "a"]).snapshot))  # type: ignore[arg-type]
    assert story.first is not None
    assert sorted(w.label for w in story.first.who) == ["rank 1", "rank 3"]


def test_zstd_without_a_library_is_said(tmp_path: Path) -> None:
    from ray_rl_debug.imports.unpacking import ZSTD
    from ray_rl_debug.model.errors import UnreadableFileError

    (tmp_path / "x.zst").write_bytes(ZSTD + b"damaged")
    with pytest.raises(UnreadableFileError, match=r"zstd|damaged"):
        load([tmp_path / "x.zst"])


def test_zstd_with_a_library(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="an extra of its own")
    (tmp_path / "rank0.log.zst").write_bytes(zstandard.ZstdCompressor().compress((steps(1, 2) + RAISED).encode()))
    story = story_of(diagnose(load([tmp_path / "rank0.log.zst"]).snapshot))  # type: ignore[arg-type]
    assert story.first is not None and story.first.text == "KeyError: 'math'"


def test_a_traceback_over_the_border_of_two_blocks_is_one(tmp_path: Path) -> None:
    from ray_rl_debug.logs.book import BookReader

    text = ("x" * 99 + "\n") * 1000 + RAISED
    for cut in (100_005, 100_050, 100_090, len(text) - 3):
        reader = BookReader("rank0.log", modified_time_s=1.79e9)
        reader.feed(text[:cut].encode())
        reader.feed(text[cut:].encode())
        (event,) = reader.end().events
        assert (event.kind, event.text, event.file_line) == ("traceback", "KeyError: 'math'", 1001)


def test_all_forms_tell_the_story(tmp_path: Path) -> None:
    report = report_on(tmp_path, {"rank3.log": steps(1, 2) + line("10:03:00", "x", level="ERROR") + RAISED, "rank0.log": steps(1, 3)})
    text = "\n".join(terminal.render(report, colour=False))
    assert "first failure" in text and "rank 3" in text and "reward.py:41 in score" in text
    assert "rank 3 stopped first" in text
    assert "first failure: rank 3" in "\n".join(markdown.render(report))
    page = html.render(report)
    assert "What the logs tell" in page and "First failure" in page


def test_secrets_in_logs_do_not_reach_the_report(tmp_path: Path) -> None:
    raised = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: HF_TOKEN=hf_abcdefghij0123456789abcd\n'
    text = line("10:00:00", "x", level="ERROR") + raised
    report = report_on(tmp_path, {"a.log": text})
    from ray_rl_debug.model.codec import encode

    assert b"hf_abcdefghij" not in encode(report)


REMOTE = (
    "Traceback (most recent call last):\n"
    '  File "/job/main.py", line 9, in main\n    ray.get(run)\n'
    "ray.exceptions.RayTaskError(ValueError): ray::TaskRunner.run() (pid=6100, ip=10.0.0.1, actor_id=a1)\n"
    '  File "/job/main.py", line 31, in run\n    trainer.fit()\n'
    "ray.exceptions.RayTaskError(ValueError): ray::WorkerDict.update() (pid=6003, ip=10.0.0.1, actor_id=a3)\n"
    '  File "/job/actor.py", line 7, in update\n    loss.backward()\n'
    "ValueError: no samples left\n"
)


def test_a_stamp_far_above_does_not_tell_that_the_run_went_on(tmp_path: Path) -> None:
    """A driver stamps its first line only, and its last words are those of a worker that failed: neither a clock nor a survival."""
    written = "".join(f"(TaskRunner pid=6100) step:{i} - actor/pg_loss:0.1\n" for i in range(1, 6))
    files = {f"worker-{i}a-01000000-600{i}.err": f"[Rank {i}] ready\n" + steps(1, 6, minute=4) for i in (1, 2, 3)}
    files["driver.log"] = line("10:00:00", "connected") + written + REMOTE
    story = story_of(report_on(tmp_path, files))
    assert story.clocks == ()
    assert story.first is not None and story.first.text == "ValueError: no samples left"
    assert (story.first.time, story.first.who[0].label, story.first.who[0].rank) == (None, "WorkerDict rank 3 pid 6003", 3)
    driver = next(p for p in story.progress if p.who.pid == 6100)
    assert (driver.step, driver.time) == (5.0, None)


def test_what_a_driver_repeats_of_calls_within_each_other_is_no_look_at_them(tmp_path: Path) -> None:
    report = report_on(tmp_path, {"driver.log": line("10:00:00", "connected") + REMOTE})
    assert report.verdict.state is State.UNKNOWN
    assert [f.id for f in report.findings] == ["RRD507"]


def test_the_last_step_of_a_rank_is_told_although_it_wrote_on_elsewhere(tmp_path: Path) -> None:
    late = "[rank{0}]:[W1121 10:30:00.{0}00000000 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=7): Broken pipe\n"
    files = {f"attempt_0/{i}/stdout.log": steps(1, 4) for i in range(3)} | {f"attempt_0/{i}/stderr.log": late.format(i) for i in range(3)}
    assert [(p.who.label, p.step) for p in story_of(report_on(tmp_path, files)).progress] == [("rank 0", 4.0), ("rank 1", 4.0), ("rank 2", 4.0)]


def test_the_same_number_on_two_machines_is_two_processes(tmp_path: Path) -> None:
    files = {f"node-{n}/worker-{n}a-01000000-77.err": f"[Rank {n}] ready\n" + steps(1, n) for n in (1, 2)}
    assert sorted((p.who.node, p.step) for p in story_of(report_on(tmp_path, files)).progress if p.step) == [("node-1", 1.0), ("node-2", 2.0)]


def test_lines_below_an_error_that_repeat_its_head_belong_to_it(tmp_path: Path) -> None:
    head = "(Worker_TP1 pid=991) ERROR 08-14 08:15:12 [executor.py:671] "
    raised = "".join(f"{head}{row}\n" for row in f"{RAISED}Kernel errors might be reported late.".splitlines())
    story = story_of(report_on(tmp_path, {"server.log": raised + head.replace("671", "690") + "the pool is gone\n"}))
    assert [e.text for e in story.noted] == ["KeyError: 'math'", "the pool is gone"]


def test_what_somebody_tells_of_a_death_in_sentences_is_only_possible(tmp_path: Path) -> None:
    told = (
        "With four long conversations at once the engine stopped making progress; rank 0 died with signal 9 five minutes later,"
        " and all three others stayed alive at 96 % busy.\n"
    )
    finding = report_on(tmp_path, {"post.md": told}).findings[0]
    assert (finding.id, finding.certainty) == ("RRD507", Certainty.POSSIBLE)


ACTOR_DIED = """\
(TaskRunner pid=71001) ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
(TaskRunner pid=71001) \tclass_name: WorkerDict
(TaskRunner pid=71001) \tpid: 88213
(TaskRunner pid=71001) \tip: 10.1.0.9
(TaskRunner pid=71001) The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly \
exits with a connection error code 2. End of file.
"""


@pytest.mark.parametrize("reason", [True, False], ids=["the kernel tells why", "nobody tells why"])
def test_what_a_caller_says_of_a_dead_actor_is_about_the_actor(tmp_path: Path, reason: bool) -> None:
    killed = "[912331.221] Memory cgroup out of memory: Killed process 88213 (ray::WorkerDict) total-vm:98123412kB, anon-rss:61231232kB\n"
    report = report_on(tmp_path, {"driver.log": ACTOR_DIED + (killed if reason else "")})
    first = story_of(report).first
    assert first is not None
    assert (first.signature, [w.pid for w in first.who]) == ("RRD692" if reason else "RRD6125", [88213])
    assert {w.pid for f in report.findings for w in f.who} == {88213}
    assert report.findings[0].cause is Cause.RANK_DIED


GONE = "(APIServer pid=8518) WARNING 11-28 09:18:40 [core_client.py:817] [shutdown] MPClient: engine core exited unexpectedly; starting cleanup"


@pytest.mark.parametrize(("pids", "label"), [((8937,), "EngineCore pid 8937"), ((8937, 8938), "engine core of APIServer pid 8518")])
def test_who_is_called_by_a_role_is_its_one_process(pids: tuple[int, ...], label: str, tmp_path: Path) -> None:
    """The core says nothing of its own end; the server calls it by its role. Of two cores nobody can tell which."""
    served = "".join(f"(EngineCore pid={pid}) INFO 11-28 09:18:39 [core.py:27] step: 3 loss: 0.5\n" for pid in pids)
    report = report_on(tmp_path, {"server.log": f"{served}{GONE}\n"})
    assert [w.label for w in report.findings[0].who] == [label]
