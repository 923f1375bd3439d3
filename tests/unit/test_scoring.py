"""The judge of examples/score.py: which answers are read, which are right, and what the peers' methods say of known stacks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from peers import answer_of_report, outside_of_collective, peers_of, smallest_class, unchanged
from score import WrongUsageError, ask, chosen, commands_of, saved
from scoring import Accused, Answer, NoAnswerError, judge, read_answer, sum_up, table, unanswered
from truth import TABLE, Row

STRAGGLER = Row("straggler", "hang", "trainer_1", "straggler")
PENDING = Row("pending", "hang", "label:policy_pool|trainer_9", "ray-pending")
NETWORK = Row("network", "hang", "-", "collective-stalled")
SLOW = Row("slow", "healthy|slow|unknown", "-", "-")
PIDS = {"trainer_0": 10, "trainer_1": 11, "driver": 9}
VICTIMS = ("trainer_0", "driver")


def verdict(row: Row, answer: Answer) -> tuple[str, bool, bool | None]:
    score = judge(row, answer, PIDS, VICTIMS)
    return score.who, score.state, score.cause


@pytest.mark.parametrize(
    ("row", "answer", "expected"),
    [
        (STRAGGLER, Answer("hang", (Accused(11),), "straggler"), ("right", True, True)),
        (STRAGGLER, Answer("hang", (Accused(11),)), ("right", True, None)),
        (STRAGGLER, Answer("hang", (Accused(11),), "gil-held"), ("right", True, False)),
        (STRAGGLER, Answer("hang", (Accused(11), Accused(10)), "straggler"), ("wrong", True, True)),
        (STRAGGLER, Answer("hang", (Accused(4711),), "straggler"), ("wrong", True, True)),
        (STRAGGLER, Answer("unknown"), ("none", False, None)),
        (STRAGGLER, Answer("healthy"), ("none", False, None)),
        (PENDING, Answer("hang", (Accused(label="placement group policy_pool"),), "ray-pending"), ("right", True, True)),
        (PENDING, Answer("hang", (Accused(label="another"),)), ("wrong", True, None)),
        (NETWORK, Answer("hang", (), "collective-stalled"), ("right", True, True)),
        (NETWORK, Answer("hang", (Accused(10),), "straggler"), ("wrong", True, False)),
        (NETWORK, Answer("unknown"), ("none", False, None)),
        (SLOW, Answer("unknown"), ("right", True, None)),
        (SLOW, Answer("hang", (Accused(11),), "straggler"), ("wrong", False, None)),
        (SLOW, Answer("unknown", (Accused(11),), "straggler", "possible"), ("right", True, None)),
        (SLOW, Answer("hang"), ("right", False, None)),
    ],
)
def test_judge(row: Row, answer: Answer, expected: tuple[str, bool, bool | None]) -> None:
    assert verdict(row, answer) == expected


def test_a_process_without_a_seat_is_not_taken_for_a_label() -> None:
    """Only the words of the tool's own label count for what is no living process."""
    assert verdict(PENDING, Answer("hang", (Accused(12, "ray::Worker"),))) == ("wrong", True, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"state": "healthy"}', Answer("healthy")),
        ('progress\n{"state": "hang", "culprits": [{"pid": 7}], "cause": null}\n', Answer("hang", (Accused(7),))),
        (
            '{"a": 1}\n{"state": "slow",\n "culprits": [{"label": "x", "pid": null}], "certainty": "proven"}',
            Answer("slow", (Accused(label="x"),), None, "proven"),
        ),
    ],
)
def test_answers_that_are_read(text: str, expected: Answer) -> None:
    assert read_answer(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no output"),
        ("it hangs", "no JSON object"),
        ('{"state": "hang"} and more', "no JSON object"),
        ('{"state": "stuck"}', "state must be one of"),
        ("{}", "state must be one of"),
        ('{"state": "hang", "certainty": 3}', "certainty must be"),
        ('{"state": "hang", "cause": ["a"]}', "cause must be"),
        ('{"state": "hang", "culprits": {"pid": 1}}', "culprits must be a list"),
        ('{"state": "hang", "culprits": [7]}', "a culprit must be an object"),
        ('{"state": "hang", "culprits": [{"pid": true}]}', "pid must be a number"),
        ('{"state": "hang", "culprits": [{}]}', "needs a pid or a label"),
        ("{" * 200_000, "no JSON object"),
        ("{\n" * 5_000, "no JSON object"),
        ('{"a":' * 100_000, "no JSON object"),
    ],
)
def test_answers_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(NoAnswerError, match=why):
        read_answer(text)


def test_methods_of_the_peers() -> None:
    waits, works = ("torch/distributed/distributed_c10d.py:all_reduce:1", "a.py:step:2"), ("reward.py:score:3", "a.py:step:2")
    stacks = {10: waits, 11: works, 12: waits}
    assert smallest_class(stacks) == [11]
    assert smallest_class({10: waits, 11: works}) == []
    assert smallest_class({10: waits, 12: waits}) == []
    assert smallest_class({}) == []
    assert outside_of_collective(stacks) == [11]
    assert outside_of_collective({11: works}) == []
    assert unchanged(stacks, {10: works, 11: works, 12: waits}) == [11]
    assert unchanged(stacks, {}) == []


def test_peers_look_at_the_largest_set_of_equal_workers() -> None:
    assert peers_of({1: "Trainer", 2: "Loop", 3: "Trainer"}) == [1, 3]
    assert peers_of({1: "Trainer", 2: "Loop"}) == [1, 2]
    assert peers_of({}) == []


def test_a_report_becomes_an_answer() -> None:
    who = [{"pid": 11, "label": "actor/1"}, {"pid": None, "label": "policy_pool"}]
    victim = {"root": False, "who": [{"pid": 10, "label": None}], "cause": "straggler", "certainty": "proven"}
    root = {"root": True, "who": who, "cause": "blocked-io", "certainty": "likely"}
    found = answer_of_report({"verdict": {"state": "hang"}, "findings": [victim, root]})
    assert found == Answer("hang", (Accused(11, "actor/1"), Accused(None, "policy_pool")), "blocked-io", "likely")
    assert answer_of_report({"verdict": {"state": "healthy"}, "findings": []}) == Answer("healthy")


def test_table_of_tools() -> None:
    good = [judge(STRAGGLER, Answer("hang", (Accused(11),), "straggler"), PIDS, VICTIMS), judge(SLOW, Answer("unknown"), PIDS, VICTIMS)]
    bad = [unanswered(STRAGGLER, "not done after 60 s"), judge(SLOW, Answer("hang", (Accused(11),)), PIDS, VICTIMS)]
    assert table([sum_up("bad", bad), sum_up("good", good)]).splitlines()[2:] == [
        "| good | 1 of 1 | 0 | 0 | 1 | 0 of 1 | 0 | 0.0 |",
        "| bad | 0 of 1 | 0 | 1 | - | 1 of 1 | 0 | 0.0 |",
    ]


def test_who_does_not_answer_has_not_accused_anybody() -> None:
    assert [unanswered(row, "x").who for row in (STRAGGLER, NETWORK, SLOW)] == ["none", "none", "right"]


def test_commands_and_their_names() -> None:
    assert commands_of(["/opt/mine --at {address}"], peers=False) == {"mine": "/opt/mine --at {address}"}
    assert commands_of(["their-own=env X=1 tool {driver}"], peers=False) == {"their-own": "env X=1 tool {driver}"}
    assert "{flight}" in commands_of([], peers=True)["torch-analyser"]
    for wrong in ("tool {adress}", "tool {", "", "x=", "tool 'x", "tool {driver:zz}", "tool {0}", "tool {driver.x}"):
        with pytest.raises(WrongUsageError):
            commands_of([wrong], peers=False)


def test_examples_are_chosen_by_pattern() -> None:
    runnable = {row.scenario: {} for row in TABLE}
    assert {r.cause for r in chosen(["mismatch_*"], runnable)} == {"collective-mismatch"}
    assert len(chosen([], runnable)) == len(TABLE)
    with pytest.raises(WrongUsageError):
        chosen(["nothing_like_it"], runnable)


PYTHON = "/proc/self/exe" if not sys.executable else sys.executable


def test_a_tool_is_asked_and_its_output_taken() -> None:
    assert ask(f"{PYTHON} -c 'print({{driver}})'", {"driver": 7}, 30) == "7\n"
    assert ask("printf '%s' 'two words {driver}'", {"driver": 7}, 30) == "two words 7"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/no/such/tool", "No such file"),
        ("sleep 30", "not done after 1 s"),
        ("false", "ended with 1: nothing on stderr"),
        ("ls /no/such/folder", "ended with 2: ls: .*no/such/folder"),
        ("head -c 17000000 /dev/zero", "more than 16 MiB"),
    ],
)
def test_a_tool_that_fails_gives_no_answer(command: str, why: str) -> None:
    with pytest.raises(NoAnswerError, match=why):
        ask(command, {}, 1 if command == "sleep 30" else 30)


def test_saved_scores(tmp_path: Path) -> None:
    score = {"example": "a", "hangs": True, "who": "right", "state": True, "cause": None, "said": "hang", "took_s": 1.0, "tool": "x"}
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({**score, "who": "none"}) + "\n" + json.dumps(score) + "\n")
    assert saved([path])["x"]["a"].who == "right"
    for text in ("{", "[]\n", "{}\n", '{"tool": 1}\n'):
        path.write_text(text)
        with pytest.raises(WrongUsageError):
            saved([path])
    with pytest.raises(WrongUsageError):
        saved([tmp_path / "none"])
