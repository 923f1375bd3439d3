"""Agent-Lightning's store: what is read of it, what the doctor says of it, and who holds which rollout in a snapshot."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
from lightning_store import recorded, serving

from ray_rl_debug.collect.agent_lightning import address_of, ask_runners, ask_store
from ray_rl_debug.diagnosis.rollouts_held import describe_held
from ray_rl_debug.doctor import STORE_CHECKS, examine
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.model.health import Health, Status
from ray_rl_debug.model.snapshot import Runner

STUCK = "ro-5419f4822d29"
SPANS = "/v1/agl/spans?rollout_id="


def examined(answers: dict[str, Any]) -> dict[str, list[tuple[Status, str]]]:
    """What the doctor says, by check."""
    with serving(answers) as url:
        store = ask_store(url, deadline_s=5.0, between_s=0.0)
    said: dict[str, list[tuple[Status, str]]] = {}
    for result in examine(Health(nodes=(), store=store), STORE_CHECKS).results:
        said.setdefault(result.check, []).append((result.status, result.measured))
    return said


def finished(answers: dict[str, Any]) -> dict[str, Any]:
    """The recorded store after its stuck rollout came to a good end, with calls of a model in all of them."""
    for rollout in answers["/v1/agl/rollouts"]["items"]:
        if rollout["rollout_id"] == STUCK:
            rollout["status"] = rollout["attempt"]["status"] = "succeeded"
            rollout["end_time"] = rollout["start_time"] + 20.0
            answers[SPANS + STUCK] = {"items": [{"sequence_id": 1, "name": "x", "attributes": {"agentlightning.reward.0.value": 1.0}}]}
        spans = answers[SPANS + rollout["rollout_id"]]["items"]
        spans.append({"sequence_id": 2, "name": "openai.chat.completion", "attributes": {}, "attempt_id": rollout["attempt"]["attempt_id"]})
    for worker in answers["/v1/agl/workers"]["items"]:
        worker["status"], worker["current_rollout_id"] = "idle", None
    answers["/v1/agl/resources"]["items"] = []
    return answers


def of(answers: dict[str, Any], rollout: int) -> str:
    return SPANS + str(answers["/v1/agl/rollouts"]["items"][rollout]["rollout_id"])


def test_the_recorded_hang() -> None:
    said = examined(recorded())
    status, text = said["agl.runner"][0]
    assert status is Status.FAIL
    assert f"Worker-1 on node1 holds rollout {STUCK} (attempt at-9f3b74b7)" in text
    assert "no span of it has come in" in text and "the slowest that ended took" in text
    assert said["agl.store"] == [(Status.OK, "4 rollouts (1 preparing, 3 succeeded), 3 spans, 2 runners")]
    assert said["agl.beat"][0][0] is Status.OK
    assert said["agl.spans"][0][1].startswith("3 of 3 rollouts that succeeded have rewards or annotations only")
    assert said["agl.reward"] == [(Status.OK, "no rollout ended without a reward; 3 rewards were seen")]


def test_a_healthy_store_is_left_alone() -> None:
    assert {s for results in examined(finished(recorded())).values() for s, _ in results} == {Status.OK}


def test_a_rollout_that_no_runner_says_it_holds() -> None:
    """A runner of an older run took it: its name is that of one of this run, which is idle."""
    answers = recorded()
    worker = next(w for w in answers["/v1/agl/workers"]["items"] if w["worker_id"] == "Worker-1")
    worker["status"], worker["current_rollout_id"] = "idle", None
    status, text = examined(answers)["agl.runner"][0]
    assert status is Status.FAIL
    assert text.startswith(f"rollout {STUCK} (attempt at-9f3b74b7) has not ended for")
    assert "no runner says that it holds it" in text


def test_a_rollout_that_its_runner_gave_up() -> None:
    """As version 0.3.0 does where the store has no resources: the runner logs `Skipping` and takes the next one."""
    answers = recorded()
    next(w for w in answers["/v1/agl/workers"]["items"] if w["worker_id"] == "Worker-1")["status"] = "idle"
    status, text = examined(answers)["agl.runner"][0]
    assert status is Status.FAIL
    assert text.startswith(f"Worker-1 on node1 is idle, but its rollout {STUCK} (attempt at-9f3b74b7) has not ended for")


def test_a_rollout_that_only_takes_as_long_as_others() -> None:
    answers = recorded()
    for rollout in answers["/v1/agl/rollouts"]["items"]:
        if rollout["end_time"]:
            rollout["attempt"]["start_time"] -= 600.0  # the others took ten minutes
    assert examined(answers)["agl.runner"][0][0] is Status.OK


def test_spans_that_still_come_in() -> None:
    answers = recorded()
    newest = max(w["last_heartbeat_time"] for w in answers["/v1/agl/workers"]["items"])
    next(r for r in answers["/v1/agl/rollouts"]["items"] if r["rollout_id"] == STUCK)["attempt"]["last_heartbeat_time"] = newest - 3.0
    assert examined(answers)["agl.runner"][0][0] is Status.OK


def test_spans_that_never_arrived_are_counted() -> None:
    answers = finished(recorded())
    answers[of(answers, 0)]["items"][1]["sequence_id"] = 5
    answers[of(answers, 1)]["items"].clear()
    said = [text for status, text in examined(answers)["agl.spans"] if status is Status.FAIL]
    assert said[0].startswith("1 of 4 rollouts that succeeded have no span: ro-")
    assert said[1].startswith("3 spans of 1 rollouts were begun and never arrived: ro-")


def test_rewards_that_become_zero_without_a_word() -> None:
    answers = finished(recorded())
    items = answers["/v1/agl/rollouts"]["items"]
    items[0]["status"], items[0]["attempt"]["status"] = "failed", "timeout"
    answers[of(answers, 1)]["items"][0]["attributes"] = {}
    said = [text for status, text in examined(answers)["agl.reward"] if status is Status.FAIL]
    assert said == [
        f"1 rollouts ended by time-out: {items[0]['rollout_id']}",
        f"1 rollouts succeeded without a reward: {items[1]['rollout_id']}",
    ]


def test_a_runner_that_is_gone() -> None:
    answers = recorded()
    gone = next(w for w in answers["/v1/agl/workers"]["items"] if w["worker_id"] == "Worker-1")
    gone["last_heartbeat_time"] -= 300.0
    said = examined(answers)
    assert said["agl.beat"][0][0] is Status.FAIL
    assert "Worker-1 on node1 has not beaten for" in said["agl.beat"][0][1] and STUCK in said["agl.beat"][0][1]
    assert said["agl.runner"][0][0] is Status.OK


def test_a_queue_without_runners() -> None:
    answers = recorded()
    answers["/v1/agl/workers"]["items"] = []
    for rollout in answers["/v1/agl/rollouts"]["items"]:
        rollout["status"] = "queuing"
    assert examined(answers)["agl.queue"] == [(Status.FAIL, "4 rollouts are queued, and no runner lives")]


def test_the_proxy_that_is_not_there() -> None:
    status, text = examined(recorded())["agl.proxy"][0]
    assert status is Status.WARN
    assert text.startswith("http://127.0.0.1:9/v1: ")


def test_no_store_at_that_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        store = ask_store(f"http://127.0.0.1:{silent.getsockname()[1]}", deadline_s=2.0)
        assert time.monotonic() - began < 4.0
    assert store.reason == "no answer in time"
    with serving({}) as url:
        assert "status 404" in str(ask_store(url, deadline_s=2.0).reason)
    asked = ("health", "statistics", "workers", "rollouts", "resources")
    for body in (b"<html>", b'{"data": []}'):
        with serving({f"/v1/agl/{p}": body for p in asked}) as url:
            other = ask_store(url, deadline_s=2.0, between_s=0.0)
        result = examine(Health(nodes=(), store=other), STORE_CHECKS).results[0]
        assert (result.status, "give the store's own address" in (result.remedy or "")) == (Status.FAIL, True)
    for result in examine(Health(nodes=(), store=store), STORE_CHECKS).results:
        assert result.status is Status.FAIL
        assert result.check == "agl.store"


@pytest.mark.parametrize("body", [b"[[[[", b"null", b"[]", b'{"items": 5}', b'{"items": [1, null, {"worker_id": 7}]}', b"\xff\xfe", b"[" * 100_000])
def test_hostile_answers(body: bytes) -> None:
    """Nothing is believed that has not the form of a store's answer."""
    with serving({f"/v1/agl/{p}": body for p in ("health", "statistics", "workers", "rollouts", "resources")}) as url:
        store = ask_store(url, deadline_s=3.0, between_s=0.0)
        assert store.runners == () and store.rollouts == ()
        assert ask_runners([address_of(url)], time.monotonic() + 2.0) == ()
        examine(Health(nodes=(), store=store), STORE_CHECKS)


def test_a_silent_listener_costs_no_runner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, serving(recorded()) as url:
        found = ask_runners([silent.getsockname(), address_of(url)], time.monotonic() + 1.0)
    assert [r.worker_id for r in found] == ["Worker-1", "Worker-0"] or [r.worker_id for r in found] == ["Worker-0", "Worker-1"]


@pytest.mark.parametrize("url", ["https://x:1", "http://", "ftp://x", "http://x:port"])
def test_what_is_no_url_of_a_store(url: str) -> None:
    with pytest.raises(UsageError):
        address_of(url)


def test_addresses() -> None:
    assert address_of("node3") == ("node3", 4747)
    assert address_of("http://node3:99/") == ("node3", 99)


def test_words_for_what_a_runner_holds() -> None:
    row = Runner(worker_id="Worker-1", status="busy", rollout_id="ro-1", attempt_id="at-2")
    assert describe_held(row, 20.4) == "Worker-1 holds rollout ro-1 (attempt at-2) for at least 20 s"
    assert describe_held(Runner(worker_id="Worker-0", status="idle"), None) == "Worker-0 holds no rollout: idle"
