"""The speedscope export: what its published schema asks for, the accused first, nothing hostile left."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State, Verdict
from ray_rl_debug.render import speedscope

WAITS = f"{ALL_REDUCE} update_actor@/job/trainer.py:30 {EXECUTOR} {MAIN}"
LOOPS = f"compute_score@/job/reward.py:88 update_actor@/job/trainer.py:28 {EXECUTOR} {MAIN}"


def check_form(document: dict[str, Any]) -> None:
    """The requirements of speedscope's file-format-schema.json for sampled profiles."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame["name"], str)
        assert isinstance(frame.get("line", 1), int)
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in ("none", "seconds")
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= i < len(frames) for stack in profile["samples"] for i in stack)
        assert profile["endValue"] >= profile["startValue"]


def test_one_profile_a_process_and_one_of_all() -> None:
    stacks = Stacks()
    people = [process(stacks, 101 + i, "ray::Trainer.update_actor", WAITS if i != 2 else LOOPS, rank=i) for i in range(4)]
    taken = snapshot(stacks.node(people))
    report = diagnose(taken)
    document = json.loads(speedscope.render(report, taken))
    check_form(document)
    everybody, *profiles = document["profiles"]
    assert everybody["name"] == "all processes"
    assert everybody["weights"] == [1.0, 3.0]
    assert len(profiles) == 4
    assert "pid 103" in profiles[0]["name"], "the accused comes first"
    assert profiles[0]["weights"] == [1.0, 1.0, 1.0]
    names = [document["shared"]["frames"][i]["name"] for i in profiles[0]["samples"][0]]
    assert names[0] == "<module>"
    assert names[-1] == "compute_score"


def test_a_saved_report_alone_and_an_empty_one() -> None:
    stacks = Stacks()
    report = diagnose(snapshot(stacks.node([process(stacks, 101, "ray::Trainer.update_actor", LOOPS)])))
    document = json.loads(speedscope.render(report))
    check_form(document)
    assert len(document["profiles"]) == 1
    empty = Report(verdict=Verdict(state=State.UNKNOWN, summary="nothing", certainty=Certainty.POSSIBLE))
    check_form(json.loads(speedscope.render(empty)))


def test_hostile_names_and_damaged_tables() -> None:
    stacks = Stacks()
    node = stacks.node([process(stacks, 101, "</script>\x00\u202e", "evil\x1b[2J@/x\x00y.py:1 other@z.py:2")])
    broken = msgspec.structs.replace(node, stacks=((0, 99), *node.stacks[1:]))
    for taken in (snapshot(node), snapshot(broken)):
        text = speedscope.render(diagnose(taken), taken)
        check_form(json.loads(text))
        assert not [c for c in text if ord(c) < 32 or c == "\u202e"]
