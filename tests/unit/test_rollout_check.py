"""Batches that trainers save: what is wrong is told with its place, a right one is left alone, and nothing in a file is run."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ray_rl_debug.commands.cli import main
from ray_rl_debug.rollouts.batches import Batch, Field
from ray_rl_debug.rollouts.checks import Limits, check_batch
from ray_rl_debug.rollouts.trajectories import answers_of


def field(name: str, rows: list[list[float]], dtype: str = "int64") -> Field:
    return Field(name=name, shape=(len(rows), len(rows[0])), dtype=dtype, rows=tuple(array("d", r) for r in rows))


def batch(kind: str = "AReaL", **changes: list[list[float]] | None) -> Batch:
    """Two trajectories of three read and three made tokens; the second answer is one token shorter."""
    areal: dict[str, list[list[float]] | None] = {
        "input_ids": [[5, 6, 7, 8, 9, 2], [5, 6, 7, 8, 2, 0]],
        "attention_mask": [[1] * 6, [1, 1, 1, 1, 1, 0]],
        "loss_mask": [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0]],
        "logprobs": [[0, 0, 0, -0.1, -0.2, -0.3], [0, 0, 0, -0.4, -0.5, 0]],
        "versions": [[-1, -1, -1, 3, 3, 4], [-1, -1, -1, 4, 4, -1]],
        "rewards": [[1], [0]],
    }
    verl: dict[str, list[list[float]] | None] = {
        "prompts": [[0, 5, 6], [5, 6, 7]],
        "responses": [[8, 9, 2], [8, 2, 0]],
        "input_ids": [[0, 5, 6, 8, 9, 2], [5, 6, 7, 8, 2, 0]],
        "attention_mask": [[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]],
        "response_mask": [[1, 1, 1], [1, 1, 0]],
        "rollout_log_probs": [[-0.1, -0.2, -0.3], [-0.4, -0.5, 0]],
        "old_log_probs": [[-0.1, -0.2, -0.3], [-0.4, -0.5, 0]],
        "token_level_scores": [[0, 0, 1], [0, 0, 0]],
    }
    rows = {**(areal if kind == "AReaL" else verl), **changes}
    return Batch(kind=kind, fields={k: field(k, v) for k, v in rows.items() if v is not None})


LIMITS = Limits(vocabulary=100, pad=0, ends=(2,), staleness=2, group_size=2)


@pytest.mark.parametrize("kind", ["AReaL", "verl"])
def test_a_right_batch_is_left_alone(kind: str) -> None:
    found = check_batch(batch(kind), LIMITS, "b.pt")
    assert (found.findings, found.not_checked, found.size) == ((), (), 2)


@pytest.mark.parametrize(
    ("kind", "changes", "id_", "said"),
    [
        ("verl", {"responses": None}, "RRD231", "KeyError: 'responses'"),
        ("AReaL", {"logprobs": None, "versions": None}, "RRD231", "no logprobs and no versions"),
        ("AReaL", {"logprobs": [[0, 0, -0.1], [0, 0, -0.1]]}, "RRD232", "logprobs has 3 places in trajectory 0, input_ids has 6"),
        ("AReaL", {"rewards": [[1], [0], [1]]}, "RRD232", "rewards has 3 trajectories, the others 2"),
        ("verl", {"prompts": [[5, 6], [6, 7]]}, "RRD232", "make 5 places, input_ids has 6"),
        (
            "AReaL",
            {"logprobs": [[0, 0, 0, -0.1, float("nan"), -0.3], [0] * 6]},
            "RRD233",
            "logprobs: 1 of its values, the first is nan in trajectory 0, place 4",
        ),
        ("verl", {"old_log_probs": [[-1, float("-inf"), -1], [-1] * 3]}, "RRD233", "-inf in trajectory 0, place 1"),
        ("AReaL", {"loss_mask": [[0] * 6, [0, 0, 0, 1, 1, 0]]}, "RRD234", "1 of 2 trajectories have nothing to train on"),
        ("AReaL", {"loss_mask": [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]]}, "RRD234", "trains on padding: trajectory 1, place 5"),
        ("AReaL", {"attention_mask": [[1, 1, 0, 1, 1, 1], [1] * 6]}, "RRD234", "attention_mask has holes in 1 trajectories"),
        ("verl", {"response_mask": [[1, 1, 2], [1, 1, 0]]}, "RRD234", "response_mask has the value 2"),
        ("AReaL", {"logprobs": [[0, 0, 0, 0.9, 0.8, 0.7], [0, 0, 0, -0.4, -0.5, 0]]}, "RRD235", "3 values above 0"),
        ("verl", {"rollout_log_probs": [[-3, -3, -3], [-3, -3, 0]]}, "RRD235", "rollout_probs_diff_mean between rollout_log_probs and old_log_probs"),
        ("AReaL", {"versions": [[-1, -1, -1, 3, 3, -1], [-1, -1, -1, 4, 4, -1]]}, "RRD236", "tokens without a version"),
        ("AReaL", {"versions": [[-1, -1, -1, 1, 4, 4], [-1, -1, -1, 4, 4, -1]]}, "RRD236", "up to 3 versions behind the newest (4); 2 are allowed"),
        ("AReaL", {"versions": [[-1, -1, -1, 4, 3, 3], [-1, -1, -1, 4, 4, -1]]}, "RRD236", "versions fall along 1 trajectories"),
        ("AReaL", {"input_ids": [[5, 6, 7, 8, 400, 2], [5, 6, 7, 8, 2, 0]]}, "RRD237", "400 in trajectory 0, place 4; the vocabulary has 100"),
        ("verl", {"input_ids": [[0, 5, 6, 8, 9, 2], [5, 6, 7, 2, 8, 0]]}, "RRD237", "trajectory 1, place 3 has 2, but 8 in prompts and responses"),
        (
            "AReaL",
            {
                "input_ids": [[5, 6, 7, 8, 9, 2], [5, 6, 2, 0, 0, 0]],
                "attention_mask": [[1] * 6, [1] * 6],
                "loss_mask": [[0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]],
            },
            "RRD234",
            "reads padding in 1 trajectories, the first is 1",
        ),
        ("verl", {"responses": [[8, 0, 2], [8, 2, 0]]}, "RRD237", "pad token 0 stands inside 1 answers, first in trajectory 0, token 2"),
        ("verl", {"responses": [[8, 9, 9], [8, 9, 0]]}, "RRD237", "100% of 2 answers have no end token"),
        ("verl", {"responses": [[2, 9, 2], [8, 2, 0]]}, "RRD237", "go on after an end token, first in trajectory 0, token 1"),
        ("verl", {"token_level_scores": [[0, 0, 0], [0, 0, 0]]}, "RRD238", "all 2 rewards are 0"),
    ],
)
def test_each_fault_is_told_with_its_place(kind: str, changes: dict[str, Any], id_: str, said: str) -> None:
    found = {f.id: f for f in check_batch(batch(kind, **changes), LIMITS, "b.pt").findings}
    assert id_ in found
    assert any(said in text for text in (found[id_].summary, *found[id_].evidence)), found[id_]


def test_ids_that_are_no_whole_numbers_are_told() -> None:
    right = batch("verl")
    fields = {**right.fields, "responses": msgspec.structs.replace(right.fields["responses"], dtype="float32")}
    found = check_batch(msgspec.structs.replace(right, fields=fields), LIMITS, "b.pt").findings
    assert [f.id for f in found] == ["RRD237"]
    assert "responses holds float32" in found[0].summary


def test_groups_of_equal_rewards_teach_nothing() -> None:
    rows = batch("verl", token_level_scores=[[0, 0, 1], [0, 0, 1]])
    four = Batch(kind="verl", fields={"token_level_scores": field("token_level_scores", [[1], [1], [0], [0]])}, others={"uid": ["a", "a", "b", "b"]})
    assert "all 2 rewards are 1" in check_batch(rows, LIMITS, "b").findings[0].summary
    assert "equal within each of 2 groups" in check_batch(four, Limits(), "b").findings[-1].summary


def test_what_is_not_known_is_not_judged() -> None:
    found = check_batch(batch("AReaL", input_ids=[[5, 6, 7, 8, 400, 9], [5, 6, 7, 8, 2, 0]]), Limits(), "b.pt")
    assert found.findings == ()
    assert len(found.not_checked) == 3


def test_trajectories_become_answers_without_padding() -> None:
    first, second = answers_of(batch("verl"))
    assert (first.prompt_ids, first.ids, first.logprobs, first.reward) == ((5, 6), (8, 9, 2), (-0.1, -0.2, -0.3), 1)
    assert (second.prompt_ids, second.ids) == ((5, 6, 7), (8, 2))
    turns = batch("AReaL", loss_mask=[[0, 0, 1, 0, 1, 1], [0, 0, 0, 1, 1, 0]])
    assert answers_of(turns)[0].logprobs == (0.0, None, -0.2, -0.3), "what tools wrote has no log-probability"


class Evil:
    """A pickle that runs a command when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch EVIL",)


def test_files_of_torch_are_read_and_nothing_else_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    good = {k: torch.tensor([list(r) for r in f.rows]) for k, f in batch().fields.items()}
    good["input_ids"] = good["input_ids"].long()
    torch.save(good, "good.pt")
    torch.save([{k: v[n : n + 1, : 5 if v.shape[1] > 1 else 1] for k, v in good.items()} for n in range(2)], "list.pt")
    assert main(["rollout", "check", "good.pt", "--max-staleness", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "AReaL"
    assert main(["rollout", "check", "list.pt"]) == 0
    torch.save({"input_ids": Evil()}, "evil.pt")
    Path("evil.pkl").write_bytes(pickle.dumps(Evil()))
    Path("cut.pt").write_bytes(Path("good.pt").read_bytes()[:700])
    Path("empty.pt").write_bytes(b"")
    Path("text.pt").write_text("hello")
    Path("cut.pkl").write_bytes(pickle.dumps({"a": 1})[:-3])
    Path("number.pkl").write_bytes(pickle.dumps(7))
    capsys.readouterr()
    for name in ("evil.pt", "evil.pkl", "cut.pt", "empty.pt", "text.pt", "cut.pkl", "number.pkl"):
        assert main(["rollout", "check", name]) == 3, name
        said = capsys.readouterr().err.splitlines()
        assert [line[:6] for line in said] == ["error:", "hint: ", "id:   "], said
    assert not Path("EVIL").exists()


RECORDED = Path(__file__).parent.parent / "data" / "rollouts"
"""Written by verl 0.9.1 and tensordict 0.10."""


@pytest.mark.parametrize("name", ["dataproto.pkl", "dataproto_numpy.pkl", "tensordict.pt", "tensordict_consolidated.pt"])
def test_batches_of_verl_are_read_without_verl(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["rollout", "check", str(RECORDED / name), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["size"]) == ("verl", 4)
    assert [f["id"] for f in found["findings"]] == ["RRD235", "RRD238"], "random log-probabilities, rewards of 0"


def test_a_dataproto_that_torch_saved_is_read_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["rollout", "check", str(RECORDED / "dataproto_torch.pt"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["size"], found["findings"]) == ("verl", 2, [])
    (tmp_path / "cut.pt").write_bytes((RECORDED / "dataproto_torch.pt").read_bytes()[:2000])
    assert main(["rollout", "check", str(tmp_path / "cut.pt")]) == 3


def test_rows_of_different_lengths_of_torchs_own_kind_are_read() -> None:
    """In a process that has not loaded torch's compiler: then torch itself refuses the file."""
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "ray_rl_debug", "rollout", "check", str(RECORDED / "tensordict_jagged.pt"), "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout)
    assert {f["name"]: f["shape"] for f in found["fields"]} == {"response_mask": [2, 3], "responses": [2, 3], "rollout_log_probs": [2, 3]}
