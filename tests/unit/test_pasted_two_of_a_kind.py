"""Two that look alike: stacks below *the ones in* and *the one in*, a parent and its child, two threads of one rank; and who keeps the store."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports.folder import load


def first(folder: Path, text: str) -> tuple[str, str, set[str]]:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    finding = next(f for f in diagnose(snapshot).findings if f.root)
    return finding.cause.value, finding.certainty.value, {w.label for w in finding.who}


def test_the_ones_and_the_one_are_two() -> None:
    bt = '```\n(gdb) py-bt\nTraceback (most recent call first):\n  File "/e/torch/distributed/distributed_c10d.py", line 9, in all_reduce\n'
    bt += "    work = group.allreduce([tensor], opts)\n```\n"
    found = read(f"Stack of the ones in allreduce\n{bt}Stack of the one in split\n{bt}")
    assert [d.label for d in found] == ["the ones in allreduce", "the one in split"]


def test_a_child_with_what_it_is_in_brackets() -> None:
    stack = '```\nThread (idle): "MainThread"\n    wait (threading.py:359)\n    get (queue.py:180)\n```\n'
    assert [d.label for d in read(f"### py-spy of the parent\n{stack}### child (DataLoader subprocess)\n{stack}")] == ["parent", "child"]


def test_two_threads_of_one_rank_in_two_collectives(tmp_path: Path) -> None:
    text = "- `MainThread`: `barrier` from `save`\n- `AsyncCheckpointExecutor_0`: `gather_object` from `_save_state_dict`\n"
    assert first(tmp_path, text)[:2] == ("collective-mismatch", "possible")


def test_a_worker_in_the_storage_of_spilled_objects(tmp_path: Path) -> None:
    spill = 'Process 31: ray::SPILL_SpillWorker\nThread 31 (idle): "MainThread"\n    open_output_stream (pyarrow/fs.py:412)\n'
    spill += "    spill_objects (ray/_private/external_storage.py:380)\n    main_loop (ray/_private/worker.py:451)\n"
    driver = 'Process 32: python sort.py\nThread 32 (idle): "MainThread"\n    get (ray/_private/worker.py:1831)\n    reduce (sort.py:210)\n'
    assert first(tmp_path, f"{spill}\n{driver}")[:2] == ("object-store", "possible")
