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
    "lock_left_behind-hang": "slow: who made the lock file is not recorded, and its maker may live outside of the job, as it does in the twin",
    "router_of_backends-hang": "a router that tries a dead server again after a pause: its coroutines only sleep: slow",
    "signal_to_save-hang": "possible: a lock of the main thread, taken in its own signal handler: which locks its stack holds below is not read",
    "versions_asked_for-hang": "coroutines poll by short calls: possible, as an early call took half as long",
    "names_of_versions-hang": "slow: two look for each other's files, and a third, which goes round for ever, might make one",
    "stop_word_missing-hang": "a rank that generates without an end: slow, the rank is named as possible; its twin looks the same",
    "some_of_rollouts-hang": "possible: two idle rollouts may as well have left out the call that all wait for",
    "restarted_environment-hang": "slow, named as possible: an actor that was made anew stands in its constructor, and no other was ever slow there",
    "managed_generator-hang": "slow, named as possible: the child is no Python and wakes now and then; after a minute it is likely",
    "named_before_made-hang": "slow, named as possible: it asks again and again for an actor by its name, and who waits so long may be early",
    "flag_of_round-hang": "slow, only possible: all of the job wait for the follower, but a file may come from outside of the job",
    "module_instead_of_ddp-hang": "unknown, the rank is named as possible: three ranks in three calls; no count tells which two are one apart",
    "asked_within_limits-hang": "possible: a coroutine asks for five seconds at a time, and a request to its port might fill the queue",
    "logs_of_envs-hang": "its process is named, in a ring with one that sends lines: which thread gave the queue's room back so far is not recorded",
    "retried_for_ever-hang": "slow: its call runs for 9 s where such took 6 s, and the server may be started again, as it is in the twin",
    "pending_in_pool-hang": "possible for a minute: a driver sleeps between looks, its sandboxes are dead, and it may make others in their place",
    "groups_without_spread-hang": "a driver looks for answers while no call is under way: slow for a minute, its twin backs off and looks the same",
    "compiled_for_shapes-healthy": "a rank computes in one call of C: whether that ends nobody can tell; unknown, only possible",
    "shards_of_tokenizer-healthy": "the same of a worker of a pool",
    "inflight_before_sync-healthy": "the same of an engine's thread",
    "compaction_of_replay-healthy": "the same below a lock of a database",
    "judges_made_ready-healthy": "the same of the one whom others await at a barrier",
    "inflight_before_sync-hang": "a trainer asks every two seconds how many requests an engine still has: slow, as its pause outlasts the window",
    "served_after_load-hang": "two rollouts try to connect with growing pauses, and whom they try waits for them: slow, they pause",
    "kernels_of_device-hang": "a thread has dropped what the main thread waits for in C: possible, as a heartbeat beside it sleeps and might do it",
    "window_of_feedback-hang": "three collectors wait for clients, and who these are was not seen: unknown, only possible",
    "news_of_folder-hang": "unknown, named as possible: it waits for news of files, and who should write these is not recorded",
    "versions_long_polled-hang": "unknown, named as possible: an engine's questions are answered with nothing, each within a second",
    "heartbeat_in_group-hang": "unknown: it awaits the end of a coroutine that goes round for ever, as a service may do by design",
    "reaped_by_other-hang": "slow: it looks for the end of a child whose status a library took; a judge lives, and it may look for that one's end",
    "weights_of_last-hang": "unknown, both engines are named: which of them took a tensor less neither its stack nor its connections tell",
    "lock_at_broker-hang": "slow: two ask again and again for a key of a broker, whose owner has died; the broker answers them",
}
"""What is not told yet, and why. Whoever is to blame is the first to be named there too, if only as *possible*."""
BYSTANDER_FIRST = {
    "second_node_missing-hang",
    "names_of_versions-hang",
    "judges_made_ready-healthy",
    "window_of_feedback-hang",
    "lock_at_broker-hang",
}
"""Where somebody else is named first: one that rests between its rounds looks like one that paces its work; a launcher of another node has no pid
here; who has no client yet delivers nothing; whoever works in a twin is not the one who hangs the other; and who asks again and again is no owner."""
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
