"""Workers of a DataLoader that a thread of the program started: their main thread has the name of that thread."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.model.snapshot import Process

THREAD = "Thread.run@threading.py:982 Thread._bootstrap_inner@threading.py:1045"
BEGIN = "BaseProcess.run@multiprocessing/process.py:108 BaseProcess._bootstrap@multiprocessing/process.py:314"
POLL = "wait@multiprocessing/connection.py:947 _ConnectionBase.poll@multiprocessing/connection.py:257 Queue.get@multiprocessing/queues.py:113"
REST = f"{POLL} _worker_loop@torch/utils/data/_utils/worker.py:334 {BEGIN}"
WORK = f"Episodes.__getitem__@app/replay.py:29 _worker_loop@torch/utils/data/_utils/worker.py:374 {BEGIN}"
NEXT = f"{POLL} _MultiProcessingDataLoaderIter._try_get_data@torch/utils/data/dataloader.py:1291 _next_data@torch/utils/data/dataloader.py:1505"
FEEDER = f"Condition.wait@threading.py:327 Queue._feed@multiprocessing/queues.py:231 {THREAD}"
ACCEPT = "socket.accept@socket.py:294 SocketListener.accept@multiprocessing/connection.py:625 Listener.accept@multiprocessing/connection.py:479"
SHARER = f"{ACCEPT} _ResourceSharer._serve@multiprocessing/resource_sharer.py:138 {THREAD}"


def named(one: Process, name: str) -> Process:
    samples = tuple(replace(s, threads=tuple(replace(t, name=name) if t.tid == one.pid else t for t in s.threads)) for s in one.samples)
    return replace(one, samples=samples)


def _by(loaders: str, text: str) -> str:
    """The same stack in the files of torchdata."""
    if loaders == "torch":
        return text
    files = {
        "torch/utils/data/_utils/worker.py": "torchdata/stateful_dataloader/worker.py",
        "torch/utils/data/dataloader.py": "torchdata/stateful_dataloader/stateful_dataloader.py",
    }
    for file, other in files.items():
        text = text.replace(file, other)
    return text


@pytest.mark.parametrize("loaders", ["torch", "torchdata"])
def test_a_worker_at_rest_is_not_waited_for(loaders: str) -> None:
    stacks = Stacks()
    next_, rest, work = (_by(loaders, text) for text in (NEXT, REST, WORK))
    main = process(stacks, 100, "python train.py", f"{next_} prefetch@app/replay.py:37 <module>@app/train.py:5", kind="named")
    helpers = [("QueueFeederThread", FEEDER), ("Thread-1 (_serve)", SHARER)]
    rests = named(process(stacks, 101, "python train.py", rest, kind="child", ppid=100, extra_threads=helpers), "prefetch")
    works = named(process(stacks, 102, "python train.py", work, kind="child", ppid=100, extra_threads=helpers), "prefetch")
    view = build_view(snapshot(stacks.node([main, rests, works])))
    assert {one.process.pid: one.kind for one in view} == {100: Kind.DATALOADER, 101: Kind.IDLE, 102: Kind.CODE}
    assert [e.target for e in find_waits(view).graph.edges if e.source == "node1/100"] == ["node1/102"]
