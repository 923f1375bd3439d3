"""The recorded programs as somebody would have pasted them: the stacks of py-spy and nothing else, one look or two."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from kinds.truth import PROGRAMS

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, Report
from ray_rl_debug.model.snapshot import Node, Process, Sample, Snapshot

HERE = Path(__file__).parent / "recorded"
MARKS = json.loads((HERE / "marks.json").read_text())
OF_RANKS = frozenset("straggler collective-mismatch p2p-mismatch init-deadlock rank-died".split())
HANGS = sorted(n for n in MARKS if n.endswith("-hang") and OF_RANKS & set(PROGRAMS[n.removesuffix("-hang")].causes))
"""Those in which ranks wait for each other; of the others stacks alone seldom show the cause."""
CANNOT_TELL = {
    "barrier_tried_again-hang": "who has not come to a barrier of multiprocessing is in no stack: unknown",
    "checkpoints_behind-hang": "the file call of a thread hides in its stack: told as a stalled collective",
    "counted_microbatches-hang": "the receive hides in a request that is waited for: told as a straggler",
    "converted_checkpoints-hang": "a child that has ended, and others that look for its file: no stack is left of it",
    "late_evaluation-hang": "a rank in a collective of a group that stacks do not show",
    "packed_batches-hang": "a queue of multiprocessing and a child that has ended: no stack is left of it",
    "mesh_of_four-hang": "all ranks stand at one line, in groups that stacks do not show: told as a stalled collective",
    "pairs_of_three-hang": "the same",
    "threads_of_rank_cross-hang": "the group in which a thread stands is in no stack: told as a stalled collective",
    "ring_exchange-hang": "the receive hides in a C call: told as a straggler",
    "weights_from_source-hang": "the source that each rank names is in no stack: told as a stalled collective",
    "flag_of_round-hang": "a file that is looked for again and again: no stack shows that anybody waits for it",
    "module_instead_of_ddp-hang": "two collectives and one that stands at neither: told as a straggler",
    "graded_again-hang": "a task that is tried again and again: stacks show a worker at work, or an idle one",
    "prompts_tried_again-hang": "an actor that is started anew for each try: stacks show it idle",
    "rounds_of_players-hang": "a queue of multiprocessing and a child that has ended: no stack is left of it",
    "health_before_weights-hang": "which call the trainer waits for is in no stack: its engines are told as a stalled collective",
    "reports_of_workers-hang": "a coroutine of an actor waits for the report of one more worker: no stack shows it",
    "sentinels_of_loaders-hang": "a call that has failed, and actors that are idle: no stack is left of it",
    "calls_of_torch-hang": "a call by RPC to a member that its stack does not name: told as a wait for a message",
    "lists_of_manager-hang": "a list that is looked at again and again: no stack shows who should add to it",
    "waves_of_cores-hang": "pipes of multiprocessing, and a rank that stands at one: no stack shows who holds the other end",
    "makers_of_driver-hang": "an actor that has died and an idle loop: no stack is left of what it waits for",
    "answers_of_engine-hang": "a pipe is read in C, and the child that wrote there has ended: told as a straggler",
    "samples_for_learner-hang": "an actor that has died and an idle queue: no stack is left of it",
    "half_of_message-hang": "a child that has ended in the middle of a message: no stack is left of it",
    "tasks_of_dead-hang": "a child that has ended with the only tasks: no stack is left of it",
    "version_of_killed-hang": "a child that was killed before it published: a judge without a part in it is told as a straggler",
    "acks_of_buckets-hang": "a word that one engine left out, in a queue of multiprocessing: no stack shows who should put it there",
    "cores_at_barrier-hang": "a barrier in C: no stack shows that others share its memory",
    "samples_pushed-hang": "a queue that requests fill: no stack shows who should send them",
    "answers_by_recv-hang": "which thread of a rank sends what another receives is in no stack: told as sends and receives that do not fit",
    "calls_before_barrier-hang": "a call by RPC to a member that its stack does not name: told as a wait for a message",
    "workers_behind_port-hang": "who listens at a port is in no stack: the server that sleeps is told as a straggler",
}
KINDS = ("ray-worker", "driver", "named", "child", "other")


def judge(snapshot: Snapshot, folder: Path, looks: int) -> Report | None:
    """The report on the stacks of some looks, as files; None where there are none."""
    for node in snapshot.nodes:
        for process in (p for p in node.processes if p.kind in KINDS and p.samples):
            for number, sample in enumerate((process.samples[0], process.samples[-1])[-looks:]):
                path = folder / re.sub(r"\W", "_", node.name) / f"dump_{number}_{process.pid}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text_of(node, process, sample))
                time_s = 1_700_000_000 + sample.at_s
                os.utime(path, (time_s, time_s))
    found = load((folder,)) if any(folder.iterdir()) else None
    return diagnose(found.snapshot) if found is not None and found.snapshot is not None else None


def text_of(node: Node, process: Process, sample: Sample) -> str:
    lines = [f"Process {process.pid}: {process.title or 'python'}", "Python v3.11.4 (/usr/bin/python3.11)", ""]
    for thread in sample.threads:
        state = "active+gil" if thread.owns_gil else "active" if thread.active else "idle"
        lines.append(f'Thread {thread.tid} ({state}): "{thread.name}"' if thread.name else f"Thread {thread.tid} ({state})")
        frames = (node.frames[i] for i in node.stacks[thread.stack])
        lines += [f"    {f.function} ({f.file}:{f.line or 0})" for f in frames]
    return "\n".join(lines) + "\n"


def recorded(name: str) -> Snapshot:
    snapshot = load((HERE / f"{name}.json.gz",)).snapshot
    assert snapshot is not None
    return snapshot


@pytest.mark.parametrize("name", HANGS)
def test_cause_is_the_first_hypothesis(name: str, tmp_path: Path) -> None:
    report = judge(recorded(name), tmp_path, 1)
    assert report is not None
    first = next(iter(report.findings), None)
    assert (first is not None and first.cause.value in PROGRAMS[name.removesuffix("-hang")].causes) is (name not in CANNOT_TELL)
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
    assert report.next_dumps != ()


@pytest.mark.parametrize("looks", [1, 2])
@pytest.mark.parametrize("name", sorted(n for n in MARKS if n.endswith("-healthy")))
def test_nobody_of_a_healthy_run_is_accused_with_likely(name: str, looks: int, tmp_path: Path) -> None:
    report = judge(recorded(name), tmp_path, looks)
    assert report is None or all(f.certainty is Certainty.POSSIBLE for f in report.findings)
