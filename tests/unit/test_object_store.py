"""RRD405: workers that read or write spilled objects and stand still, as Ray 2.60 shows them; and that nobody is called healthy meanwhile."""

from __future__ import annotations

from scenes import IDLE, Stacks, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.identity import split_title
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, State
from ray_rl_debug.model.snapshot import Snapshot

ASKS = "Worker.get_objects@ray/_private/worker.py:1007 get@ray/_private/worker.py:3009 main@train.py:9"
READS = "FileSystemStorage.restore_spilled_objects@ray/_private/external_storage.py:361 restore_spilled_objects@ray/_private/external_storage.py:655"


def run(title: str, thread: str | None) -> Snapshot:
    stacks = Stacks()
    extra = () if thread is None else (("", thread),)
    worker = process(stacks, 20, title, IDLE, extra_threads=extra)
    return snapshot(stacks.node([process(stacks, 9, "python train.py", ASKS, kind="driver", refs=(task_id(1),)), worker]), ray_state())


def test_titles_of_io_workers() -> None:
    assert split_title("ray::RESTORE_RestoreWorker") == ("RestoreWorker", "restore")
    assert split_title("ray::IDLE_SpillWorker") == ("SpillWorker", None)


def test_a_restore_that_stands_still_is_named() -> None:
    report = diagnose(run("ray::RESTORE_RestoreWorker", READS))
    assert report.verdict.state is State.HANG
    assert [(f.id, f.cause) for f in report.findings if f.root] == [("RRD405", Cause.OBJECT_STORE)]
    assert report.verdict.summary.startswith("RestoreWorker (node1 pid 20) is stuck")
    assert report.verdict.summary.endswith("reading spilled objects; 1 process waits for objects")
    assert [w.label for w in report.findings[0].who] == ["RestoreWorker"]


def test_an_idle_worker_is_not_accused_and_the_waiting_driver_is_not_healthy() -> None:
    report = diagnose(run("ray::IDLE_RestoreWorker", None))
    assert report.findings == ()
    assert report.verdict.state is State.UNKNOWN
