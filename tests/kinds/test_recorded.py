"""Each program and its twin as they were once recorded: whom the report names, and that nobody of a healthy run is accused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from kinds.truth import PROGRAMS

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.report import Certainty, State

HERE = Path(__file__).parent / "recorded"
MARKS = json.loads((HERE / "marks.json").read_text())
MISSED = {
    "second_node_missing-hang": "a launcher in its rendezvous: that the other node's never comes no fact of this machine tells; only possible",
    "lock_left_behind-hang": "a rank waits for a lock file to go away: no fact tells whether its writer lives, and its twin looks the same: slow",
    "router_of_backends-hang": "a router that tries a dead server again after a pause: its coroutines only sleep: slow",
    "runners_of_store-hang": "all look again and again at a store: the runner that died is named, but only possible",
    "inbox_of_files-hang": "a parent looks into a folder, a child reads a pipe whose end was not seen: unknown, the child is where to look first",
    "ring_in_memory-hang": "its sampler looks again and again into shared memory: possible, as one that works in short pauses looks the same",
    "signal_to_save-hang": "a lock of the main thread, taken in its own signal handler: possible. Not in the snapshot: what the line below calls",
    "stream_of_samples-hang": "possible: its call stands for 10 s where such took 3.5 s; half a minute later it is likely",
    "versions_asked_for-hang": "coroutines poll by short calls: possible, as an early call took half as long",
    "looking_for_batches-hang": "a poller that is alone in its process: it is named, but a file may still change what it looks at",
    "names_of_versions-hang": "two look for each other's files, and a third rests between its rounds: slow, as its twin looks the same",
    "batch_above_capacity-hang": "all threads look again and again at a list in memory: unknown, where to look is named",
    "stop_word_missing-hang": "a rank that generates without an end: slow, the rank is named as possible; its twin looks the same",
    "some_of_rollouts-hang": "possible: two idle rollouts may as well have left out the call that all wait for",
    "not_accepted-hang": "a server that no longer accepts: its main thread sleeps, and may do so",
    "not_accepted-healthy": "a server that has not accepted yet: unknown",
    "lines_through_proxy-hang": "a proxy holds half a line: its engine and itself wait for each other, unknown",
    "copy_of_socket-hang": "the other end of a pair of sockets lives on in a copy: the reader is named, only possible",
    "restarted_environment-hang": "an actor that was made anew stands in its constructor: slow, it is named as possible",
    "rounds_of_worlds-hang": "a thread of a child has died, its main thread keeps a clock: slow, the child is named as possible",
    "managed_generator-hang": "possible: the child is no Python and wakes now and then",
    "flag_of_round-hang": "a follower looks again and again for a flag file that was taken away: slow, only possible",
    "question_on_terminal-hang": "a command asks on its terminal: who is on which terminal is not recorded; unknown",
    "flags_in_memory-hang": "ranks spin on flags in shared memory: which of them is not there yet is not recorded; unknown",
    "news_by_datagram-hang": "a datagram that was lost: who may send one is not recorded; unknown, the rollout is named as possible",
    "module_instead_of_ddp-hang": "three ranks stand in three calls, two of them one call apart: unknown, the rank is named as possible",
    "asked_within_limits-hang": "a coroutine waits five seconds at a time for a task that has failed: its own limit looks like hope; healthy",
    "engine_not_reaped-hang": "a trainer looks again and again for a zombie to go: slow, its keeper that does not reap is named as possible",
    "logs_of_envs-hang": "a thread that wrote lines has ended: its process is named, in a ring with one of those that send lines",
    "retried_for_ever-hang": "an actor tries a server again that has ended: slow, its call runs for 9 s where such took 6 s",
    "epoch_of_collector-hang": "a driver asks a buffer by short calls, who filled it so far is idle: unknown, it may also work by short calls",
    "pending_in_pool-hang": "a driver sleeps between looks, and its sandboxes are dead: possible for a minute, as it may make others in their place",
    "jobs_of_broker-hang": "all threads of a broker wait for what its clients push: it is named itself, which of them errs no fact tells",
    "tokens_of_stream-hang": "an answer is lost between a thread and its loop: the client is named, and said to wait for the engine",
}
"""What is not told yet, and why. Whoever is to blame is the first to be named there too, if only as *possible*."""
BYSTANDER_FIRST = {
    "second_node_missing-hang",
    "names_of_versions-hang",
    "lines_through_proxy-hang",
    "question_on_terminal-hang",
    "flags_in_memory-hang",
    "asked_within_limits-hang",
    "jobs_of_broker-hang",
}
"""Where somebody else is named first: one that rests between its rounds looks like one that paces its work; an engine that reads, like its proxy;
who reads a terminal, and who spins, is seen to wait; a launcher of another node has no pid here."""
_FIRST_PID = re.compile(r"pid (\d+)")


@pytest.mark.parametrize("name", sorted(MARKS))
def test_recorded(name: str) -> None:
    snapshot = load((HERE / f"{name}.json.gz",)).snapshot
    assert snapshot is not None
    report = diagnose(snapshot)
    program, _, how = name.rpartition("-")
    told = PROGRAMS[program].is_told(json.loads(encode(report)), MARKS[name], how == "healthy")
    assert told is (name not in MISSED), report.verdict.summary
    if name in MISSED and name not in BYSTANDER_FIRST:
        meant = {MARKS[name].get(mark) for mark in PROGRAMS[program].who}
        first = [w.pid for w in report.findings[0].who] if report.findings else _FIRST_PID.findall(report.verdict.summary)[:1]
        assert meant & {int(pid) for pid in first if pid is not None}, "whoever is to blame is named first, if only as possible"
    if report.verdict.state is State.UNKNOWN:
        assert report.findings or "(node1 pid " in report.verdict.summary
        assert ". To settle it: " in report.verdict.summary
    if how == "healthy":
        assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_what_is_recorded_is_a_program() -> None:
    recorded = {name.rpartition("-")[0] for name in MARKS}
    assert recorded <= set(PROGRAMS)
    assert len(recorded) >= 69
