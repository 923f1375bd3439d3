"""Stacks that people collected by hand: what one look allows, what two, and what to dump next."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.stacks_by_hand import GATHER, IDLE, MEET, RAY_GET, REDUCE, STEP, dump, judge, ranks, told

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State

WORK = f"get_batch (scheduler.py:610)\nevent_loop (scheduler.py:300)\n{STEP}"
SEVEN = {4000 + n: f"{GATHER}\n{STEP}" for n in range(7)}


def test_one_look_names_the_absent_rank_as_possible(tmp_path: Path) -> None:
    report = judge(tmp_path, ranks({**SEVEN, 4008: WORK}))
    assert told(report) == ("hang", "straggler", "possible", {4008})
    assert report.verdict.summary.startswith("if this run hangs: train.py (")
    assert "7 processes wait for it" in report.verdict.summary
    again = report.next_dumps[0]
    assert again.command == "sleep 30; py-spy dump --native --pid 4008"
    assert [o.seen for o in again.outcomes] == ["the same lines", "other lines"]
    assert any("one world" in text for text in report.assumed)
    assert any("seen once" in doubt.text for doubt in report.findings[0].against)


def test_equal_looks_at_a_distance_are_likely(tmp_path: Path) -> None:
    look = ranks({**SEVEN, 4008: WORK})
    report = judge(tmp_path, look, look, apart_s=30)
    assert told(report) == ("hang", "straggler", "likely", {4008})
    assert report.next_dumps == ()


@pytest.mark.parametrize("apart_s", [None, 3.0, 25.0])
def test_equal_looks_within_moments_stay_possible(tmp_path: Path, apart_s: float | None) -> None:
    look = ranks({**SEVEN, 4008: WORK})
    report = judge(tmp_path, look, look, apart_s=apart_s)
    assert told(report)[:3] == ("hang", "straggler", "possible")


def test_who_says_how_long_it_hangs_makes_equal_looks_likely(tmp_path: Path) -> None:
    look = ranks({**SEVEN, 4008: WORK})
    report = judge(tmp_path, look, look, hung_for_s=2400)
    assert told(report)[:3] == ("hang", "straggler", "likely")
    assert "for 40 min" in report.assumed[0]


def test_long_hang_and_one_look_stay_possible(tmp_path: Path) -> None:
    report = judge(tmp_path, ranks({**SEVEN, 4008: WORK}), hung_for_s=2400)
    assert told(report)[:3] == ("hang", "straggler", "possible")
    assert report.verdict.summary.startswith("the run is said to hang for 40 min: ")


def test_one_that_moves_is_not_accused(tmp_path: Path) -> None:
    elsewhere = f"decode (model.py:7)\nrun (engine.py:20)\n{STEP}"
    report = judge(tmp_path, ranks({**SEVEN, 4008: WORK}), ranks({**SEVEN, 4008: elsewhere}), apart_s=30)
    assert report.findings == ()
    assert report.verdict.state is not State.HANG


def test_all_in_one_collective_are_stalled(tmp_path: Path) -> None:
    report = judge(tmp_path, ranks(SEVEN))
    assert told(report)[:3] == ("hang", "collective-stalled", "possible")
    assert report.findings[0].who[0].pid is None
    assert "rank that was not dumped" in report.findings[0].against[-1].text
    assert any("on every node" in look.what for look in report.next_dumps)


def test_all_in_one_backward_are_stalled(tmp_path: Path) -> None:
    backward = f"_engine_run_backward (torch/autograd/graph.py:825)\nbackward (torch/autograd/__init__.py:347)\n{STEP}"
    report = judge(tmp_path, ranks(dict.fromkeys(range(1, 5), backward)))
    assert told(report)[1:3] == ("collective-stalled", "possible")
    assert "wait in the same backward" in report.verdict.summary


def test_one_in_backward_while_others_wait_is_absent(tmp_path: Path) -> None:
    backward = f"_engine_run_backward (torch/autograd/graph.py:825)\nbackward (torch/autograd/__init__.py:347)\n{STEP}"
    report = judge(tmp_path, ranks({**SEVEN, 9: backward}))
    assert told(report)[1:] == ("straggler", "possible", {9})


def test_collective_of_an_unnamed_thread_is_the_place_of_its_rank(tmp_path: Path) -> None:
    backward = f"_engine_run_backward (torch/autograd/graph.py:825)\n{STEP}"
    hook = f"{REDUCE}\n_post_backward_hook (torch/distributed/fsdp/_runtime_utils.py:766)"
    in_hook = [dump(pid, backward, hook) for pid in (1, 2, 3)]
    report = judge(tmp_path, [*in_hook, dump(9, WORK)])
    assert told(report)[1:] == ("straggler", "possible", {9})


def test_native_frames_do_not_hide_a_collective(tmp_path: Path) -> None:
    native = "sched_yield (libc.so.6)\nc10d::Work::wait(std::chrono::duration<long, std::ratio<1l, 1000l> >) (libtorch_cpu.so)"
    report = judge(tmp_path, ranks({**dict.fromkeys((1, 2, 3), f"{native}\n{GATHER}\n{STEP}"), 9: WORK}))
    assert told(report)[1:] == ("straggler", "possible", {9})


def test_different_collectives_are_a_mismatch_with_its_doubt(tmp_path: Path) -> None:
    report = judge(tmp_path, ranks({**SEVEN, 9: f"{REDUCE}\nevaluate (trainer.py:120)\nfit (trainer.py:44)\n<module> (train.py:12)"}))
    assert told(report)[1:] == ("collective-mismatch", "possible", {9})
    assert any("tensor, pipeline and data parallel" in doubt.text for doubt in report.findings[0].against)


def test_collective_rpc_is_no_collective(tmp_path: Path) -> None:
    engine = "sample (vllm/v1/sample.py:31)\ncollective_rpc (vllm/v1/executor/uniproc_executor.py:103)\n__init__ (vllm/v1/engine/core.py:145)"
    report = judge(tmp_path, [dump(2403, engine, title="VLLM::EngineCore")])
    assert report.findings == ()
    assert report.verdict.state is State.UNKNOWN
    assert "only one process was dumped" in report.verdict.summary


def test_ranks_that_meet_nobody_wait_for_those_not_dumped(tmp_path: Path) -> None:
    setup = "setup (train.py:25)\n<module> (train.py:90)"
    report = judge(tmp_path, ranks(dict.fromkeys((1, 2, 3), f"{MEET}\n{setup}")))
    assert told(report)[:3] == ("hang", "init-deadlock", "possible")
    assert "were not dumped" in report.findings[0].who[0].label


def test_one_receive_asks_for_its_peer(tmp_path: Path) -> None:
    report = judge(tmp_path, [dump(7, f"irecv (torch/distributed/distributed_c10d.py:2536)\n{STEP}")])
    assert told(report)[1:] == ("p2p-mismatch", "possible", {7})
    assert report.findings[0].victims == ()
    assert "--locals" in report.next_dumps[0].command


def test_one_collective_alone_cannot_tell_who_is_missing(tmp_path: Path) -> None:
    report = judge(tmp_path, [dump(7, f"{GATHER}\n{STEP}")])
    assert told(report)[1:3] == ("collective-stalled", "possible")
    assert "cannot be told from one stack" in report.verdict.summary
    assert any(look.command.startswith("for pid in") for look in report.next_dumps)


def test_idle_workers_point_to_their_driver(tmp_path: Path) -> None:
    report = judge(tmp_path, [dump(pid, IDLE, title="ray::IDLE") for pid in (1, 2, 3)])
    assert report.verdict.state is State.UNKNOWN
    assert "the driver" in report.verdict.summary
    assert report.next_dumps[0].what.startswith("the driver or trainer")


def test_launcher_is_no_rank_and_not_accused(tmp_path: Path) -> None:
    launcher = "wait (subprocess.py:1264)\nmain (torchrun.py:30)\n<module> (torchrun.py:8)"
    look = [dump(1, launcher, title="torchrun"), *ranks({**SEVEN, 4008: WORK})]
    report = judge(tmp_path, look, look, apart_s=60)
    assert told(report)[1:] == ("straggler", "likely", {4008})
    alone = judge(tmp_path / "alone", [look[0]], [look[0]], apart_s=60)
    assert all(f.certainty is Certainty.POSSIBLE for f in alone.findings)


def test_driver_in_ray_get_asks_for_the_call(tmp_path: Path) -> None:
    report = judge(tmp_path, [dump(1, RAY_GET, title="python driver.py")])
    assert report.verdict.state is State.UNKNOWN
    assert report.next_dumps[0].command.startswith("ray list tasks")


def test_moment_of_motion_is_never_told_of_one_look(tmp_path: Path) -> None:
    for number, stack in enumerate((WORK, RAY_GET, IDLE, f"{GATHER}\n{STEP}")):
        report = judge(tmp_path / str(number), [dump(1, stack)])
        assert "during the window" not in report.verdict.summary


def test_files_with_ranks_tell_which_was_not_dumped(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        (tmp_path / f"rank{rank}.txt").write_text(dump(100 + rank, f"{GATHER}\n{STEP}"))
    report = judge(tmp_path)
    assert report.findings[0].cause.value == "rank-died"
    assert report.next_dumps[0].what.startswith("rank 2 of")


def test_who_waits_for_the_gpu_together_is_stalled(tmp_path: Path) -> None:
    wait = f"synchronize (torch/cuda/streams.py:102)\n{STEP}"
    report = judge(tmp_path, ranks(dict.fromkeys(range(1, 9), wait)))
    assert told(report)[1:3] == ("collective-stalled", "possible")


def test_gil_is_told_of_one_look(tmp_path: Path) -> None:
    look = [*ranks(SEVEN), dump(4008, WORK, state="active+gil")]
    report = judge(tmp_path, look)
    assert "get_batch (scheduler.py:610) with the GIL" in report.verdict.summary
    assert any("active" in doubt.text for doubt in report.findings[0].against)


def test_every_claim_names_its_file_and_line(tmp_path: Path) -> None:
    report = judge(tmp_path, ranks({**SEVEN, 4008: WORK}))
    lines = (tmp_path / "look0.txt").read_text().split("\n")
    stack = next(e for e in report.findings[0].evidence if e.kind == "stack" and "get_batch" in e.text)
    file, _, line = (stack.source or "").rpartition(":")
    assert file == "look0.txt"
    assert any("4008" in text for text in lines[int(line) - 1 : int(line) + 3])
    assert all(p.source is not None and p.source.startswith("look0.txt:") for p in report.processes)


def test_only_one_that_is_not_idle_is_looked_at_first(tmp_path: Path) -> None:
    idle = [dump(pid, IDLE, title="ray::IDLE") for pid in (1, 2, 3)]
    report = judge(tmp_path, [*idle, dump(9, f"grade (reward.py:5)\n{STEP}")])
    assert told(report) == ("hang", "straggler", "possible", {9})


def test_who_could_not_be_read_is_the_first_to_look_at(tmp_path: Path) -> None:
    refused = "py-spy dump --pid 4008\nProcess 4008: python train.py\nError: Failed to suspend process\nReason: EPERM: Operation not permitted\n"
    report = judge(tmp_path, [*ranks(SEVEN), refused])
    assert {w.pid for w in report.findings[0].who} == {4008}
    assert report.findings[0].certainty is Certainty.POSSIBLE
    assert "/proc/4008/status" in report.next_dumps[0].command
    assert [o.seen for o in report.next_dumps[0].outcomes] == ["state D", "state T or t", "no such process"]


def test_counts_of_a_remark_tell_who_is_the_smaller_side(tmp_path: Path) -> None:
    c10d = "torch/distributed/distributed_c10d.py"
    text = (
        f"- **~181 ranks** blocked in the all-reduce:\n  ```\n{c10d}:3239 in all_reduce\nfsdp.py:872 in reduce_grad\n```\n"
        f"- **24 ranks** one step ahead:\n  ```\n{c10d}:4381 in all_gather_into_tensor\nfsdp.py:421 in unshard\n```\n"
    )
    report = judge(tmp_path, text)
    assert told(report)[1:3] == ("collective-mismatch", "possible")
    assert report.findings[0].who[0].label.endswith("(24 ranks)")


def test_rank_that_ended_with_an_error_is_named_before_those_who_wait(tmp_path: Path) -> None:
    ended = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/app/train.py", line 31, in step\n'
        "[rank1]:     loss = model(batch)\n"
        "[rank1]: RuntimeError: CUDA error: device-side assert triggered\n"
    )
    (tmp_path / "rank0.txt").write_text(dump(100, f"{GATHER}\n{STEP}"))
    (tmp_path / "log.txt").write_text(ended)
    report = judge(tmp_path)
    assert report.findings[0].cause.value == "rank-died"
    assert report.findings[0].certainty is Certainty.POSSIBLE
    assert {w.rank for w in report.findings[0].who} == {1}


def test_live_report_assumes_nothing() -> None:
    from ray_rl_debug.model import codec

    here = Path(__file__).parents[1] / "cases" / "RRD101"
    report = diagnose(codec.decode_snapshot(codec.inflate((here / "hang.json.gz").read_bytes())))
    assert report.assumed == ()
    assert report.next_dumps == ()
    assert all(f.against == () for f in report.findings)
    assert all(e.source is None for f in report.findings for e in f.evidence)


def test_driver_of_idle_workers_waits_for_a_call_elsewhere(tmp_path: Path) -> None:
    idle = [dump(pid, IDLE, title="ray::IDLE") for pid in (1, 2, 3)]
    report = judge(tmp_path, [*idle, dump(9, RAY_GET, title="python driver.py")])
    assert report.verdict.state is State.UNKNOWN
    assert "all 3 other processes that were dumped are idle" in report.verdict.summary
    assert report.next_dumps[0].command.startswith("ray list tasks")


def test_known_error_in_a_log_beside_idle_stacks_is_told(tmp_path: Path) -> None:
    (tmp_path / "driver.log").write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB\n"
    )
    report = judge(tmp_path, [dump(1, IDLE, title="ray::IDLE"), dump(2, IDLE, title="ray::IDLE")])
    assert report.findings[0].certainty is Certainty.POSSIBLE
    assert report.findings[0].evidence[0].kind == "log"


def test_thread_of_native_frames_only_is_judged(tmp_path: Path) -> None:
    report = judge(tmp_path, [dump(1, "clock_nanosleep (libc.so.6)\nmain (libapp.so)"), dump(2, f"{GATHER}\n{STEP}")])
    assert report.verdict.state is State.HANG


@pytest.mark.parametrize(
    ("loader", "worker"),
    [
        ("torch/utils/data/dataloader.py", "torch/utils/data/_utils/worker.py"),
        ("torchdata/stateful_dataloader/stateful_dataloader.py", "torchdata/stateful_dataloader/worker.py"),
    ],
    ids=["torch", "torchdata"],
)
def test_loader_and_its_child_are_named_together(tmp_path: Path, loader: str, worker: str) -> None:
    asks = f"wait (threading.py:324)\nget (queue.py:180)\n_try_get_data ({loader}:1133)\n_next_data ({loader}:1329)\n{STEP}"
    child = f"resize (images.py:40)\nfetch (torch/utils/data/_utils/fetch.py:51)\n_worker_loop ({worker}:309)"
    report = judge(tmp_path, [dump(1, asks), dump(2, child, title="python train.py child")])
    assert told(report)[1:] == ("dataloader-stuck", "possible", {1, 2})


def test_ranks_that_a_file_says_are_missing_are_named(tmp_path: Path) -> None:
    text = "```\n" + dump(1, f"{GATHER}\n{STEP}") + "```\n... on every rank except rank 3\n"
    report = judge(tmp_path, text)
    assert report.findings[0].certainty is Certainty.POSSIBLE
    assert {w.rank for w in report.findings[0].who} == {3}


def test_loud_numbers_of_ranks_cost_nothing(tmp_path: Path) -> None:
    (tmp_path / "rank_0.txt").write_text(dump(1, f"{GATHER}\n{STEP}"))
    (tmp_path / "rank_999999.txt").write_text(dump(2, f"{GATHER}\n{STEP}"))
    report = judge(tmp_path)
    assert report.worlds[0].missing == ()


@pytest.mark.parametrize(
    "stack", ["acquire (filelock/_api.py:332)\nload (cache.py:9)", IDLE.replace("default_worker.py:323", "default_worker.py:9")], ids=["lock", "idle"]
)
def test_equal_looks_accuse_nobody_whose_reason_stacks_do_not_tell(tmp_path: Path, stack: str) -> None:
    look = [*(dump(pid, f"{GATHER}\n{STEP}", title="ray::Trainer.fit") for pid in (1, 2)), dump(3, stack, title="ray::Trainer.fit")]
    report = judge(tmp_path, look, look, apart_s=30)
    assert {w.pid for w in report.findings[0].who} == {3}
    assert report.findings[0].certainty is Certainty.POSSIBLE
