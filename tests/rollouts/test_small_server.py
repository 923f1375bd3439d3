"""``rollout compare`` against a real model behind a small server: each difference alone, bad networks, interruptions, and recordings."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import processes
from rollouts.lab import SmallEngine, SmallServer, causes, compared, interpreter, make_models, run, variables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
SHORT = ("--limit", 4, "--max-tokens", 24)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def engines(models: Path) -> Iterator[list[SmallEngine]]:
    folders = (models / "base", "float32"), (models / "end", "float32"), (models / "perturbed", "float32"), (models / "base", "bfloat16")
    with SmallServer(*folders) as started:
        yield started


@pytest.fixture
def server(engines: list[SmallEngine]) -> SmallEngine:
    """The one that most tests ask."""
    return engines[0]


def test_equal_sides_agree_and_everything_is_kept(models: Path, server: SmallEngine, tmp_path: Path) -> None:
    reward = tmp_path / "reward.py"
    reward.write_text("def score(record, text):\n    return len(text) + int(record['answer'])\n")
    asked = (models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "-o", tmp_path / "out", *SHORT)
    found = compared(*asked, "--reward", f"{reward}:score")
    assert (found["verdict"]["state"], found["identical"], found["answers"], found["rewards_differ"]) == ("agree", 4, 4, 0)
    assert found["distance"]["logprob_diff_mean"] < 1e-4
    page = (tmp_path / "out" / "comparison.html").read_text()
    assert page.count('class="t h0"') >= 4 * 20
    again = run("compare", tmp_path / "out" / "engine.jsonl", tmp_path / "out" / "reference.jsonl")
    assert again.returncode == 0
    assert again.stdout.startswith("AGREE")
    other = run("compare", *asked, "--temperature", 1)
    assert other.returncode == 2, "answers to other questions are not mixed"
    assert "temperature changed" in other.stderr


@pytest.mark.parametrize(
    ("folder", "dtype", "cause", "named"),
    [
        ("template", "float32", "chat-template", "<think>"),
        ("tokenizer", "float32", "tokenizer", "'What' (3"),
        ("perturbed", "float32", "weights", "(prompt q"),
    ],
)
def test_each_difference_is_told_alone(models: Path, server: SmallEngine, folder: str, dtype: str, cause: str, named: str) -> None:
    found = compared(
        models / "prompts.jsonl", "--engine", server.url, "--reference", models / folder, "--dtype", dtype, "--no-generate", "--max-tokens", 32
    )
    assert (found["exit"], causes(found)) == (1, [cause])
    assert named in found["verdict"]["summary"]


def test_an_end_token_is_named(models: Path, engines: list[SmallEngine]) -> None:
    sampled = ("--temperature", 1, "--samples", 3, "--seed", 1, "--no-generate", "--max-tokens", 32)
    found = compared(models / "prompts.jsonl", "--engine", engines[1].url, "--reference", models / "base", *sampled)
    assert causes(found) == ["end-token"]
    assert "'<|im_end|>' (4)" in found["verdict"]["summary"]


def test_an_update_arrives_or_not(models: Path, engines: list[SmallEngine], tmp_path: Path) -> None:
    short, engine = ("--no-generate", "--max-tokens", 24), engines[3]
    asked = ("--reference", models / "step", *short)
    first = run("compare", models / "prompts.jsonl", "--engine", engine.url, "--reference", models / "base", "-o", tmp_path, *short)
    assert first.returncode == 0, first.stdout
    live = (models / "prompts.jsonl", "--engine", engine.url, *asked)
    assert causes(compared(*live, "--after-update", models / "base")) == ["update"]
    assert causes(compared(*live, "--after-update", tmp_path / "engine.jsonl")) == ["update"]
    engine.ask("/load", {"folder": str(models / "step")})
    for old in (models / "base", tmp_path / "engine.jsonl"):
        found = compared(*live, "--after-update", old)
        assert (found["update"]["arrival"], causes(found)) == ("arrived", [])


def test_penalties_and_temperature_are_not_taken_for_weights(models: Path, server: SmallEngine) -> None:
    with server.trouble(repetition_penalty=1.5):
        found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--no-generate", *SHORT)
    assert causes(found) == ["choice"]
    with server.trouble(processed_logprobs=True):
        sampled = ("--temperature", 0.6, "--seed", 3)
        found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--no-generate", *SHORT, *sampled)
    assert [f["cause"] for f in found["findings"]] == ["temperature"]
    assert found["exit"] == 0


@pytest.mark.parametrize(
    ("trouble", "cause", "named"),
    [
        ({"top_k": 4}, "choice", "the rarest token taken is number 4"),
        ({"temperature": 1.0}, "choice", "the engine does not use 0.6"),
        ({"prompt_tokens": 20}, "prompt", "cuts prompts to 20 tokens"),
        ({"max_tokens": 12}, "length", "always after 12 tokens"),
    ],
)
def test_what_no_request_asked_for_is_told(models: Path, server: SmallEngine, trouble: dict[str, object], cause: str, named: str) -> None:
    sampled = ("--temperature", 0.6, "--samples", 2, "--seed", 1, "--no-generate", "--max-tokens", 24)
    asked = (models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", *sampled)
    with server.trouble(**trouble):
        found = compared(*asked)
    assert (found["exit"], causes(found)) == (1, [cause])
    assert named in found["verdict"]["summary"]
    whole = compared(*asked)
    assert (whole["exit"], causes(whole)) == (0, [])


def test_a_cache_of_lower_precision_accuses_no_weights(models: Path, server: SmallEngine) -> None:
    with server.trouble(cache_dtype="float8_e4m3fn"):
        found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--no-generate", "--max-tokens", 32)
    assert [f["cause"] for f in found["findings"]] == ["attention"]
    assert "key-value cache" in found["findings"][0]["summary"]


def test_a_cache_of_lower_precision_under_an_engine_that_rounds_is_told_by_the_engine(models: Path, engines: list[SmallEngine]) -> None:
    sampled = ("--temperature", 1, "--samples", 6, "--seed", 1, "--no-generate", "--max-tokens", 24)
    asked = (models / "prompts.jsonl", "--engine", engines[3].url, "--reference", models / "base", *sampled)
    with engines[3].trouble(cache_dtype="float8_e4m3fn"):
        found = compared(*asked)
    assert [f["id"] for f in found["findings"]] == ["RRD240"]
    assert "the engine keeps its key-value cache in float8_e4m3fn" in found["findings"][0]["summary"]
    assert [f["cause"] for f in compared(*asked)["findings"]] == ["precision"]


def test_rows_of_single_tokens_are_named(models: Path, server: SmallEngine) -> None:
    sampled = ("--temperature", 1, "--samples", 4, "--seed", 1, "--no-generate")
    found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "rows", *sampled)
    assert [f["id"] for f in found["findings"] if f["is_trouble"]] == ["RRD241"]
    assert "(100)" in found["verdict"]["summary"] or "(200)" in found["verdict"]["summary"]


def test_stretched_positions_are_no_other_weights(models: Path, server: SmallEngine) -> None:
    found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "rope", "--no-generate")
    assert (found["exit"], causes(found)) == (1, ["attention"])
    assert "after one token alone both sides agree" in found["verdict"]["summary"]


def test_a_server_that_tells_only_what_openai_tells(models: Path, server: SmallEngine) -> None:
    with server.trouble(is_plain=True):
        same = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", *SHORT)
        other = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "template", "--no-generate", *SHORT)
    assert causes(same) == []
    assert any("plain text" in m["what"] for m in same["missing"])
    assert causes(other) == ["chat-template"]
    assert "the engine counts" in other["verdict"]["summary"]


def test_two_endpoints(models: Path, engines: list[SmallEngine]) -> None:
    found = compared(models / "prompts.jsonl", "--engine", engines[0].url, "--reference", engines[2].url, *SHORT)
    assert found["verdict"]["state"] != "agree"
    assert causes(found) in (["weights"], [])
    assert found["distance"]["tokens"] == 4 * 24


def test_overload_is_tried_again_and_failures_are_told(models: Path, server: SmallEngine) -> None:
    with server.trouble(fail_next=3):
        found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--no-generate", *SHORT)
    assert found["answers"] == 4
    with server.trouble(fail_next=1000):
        failed = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--no-generate", "--retries", 0, *SHORT)
    assert (failed["exit"], failed["answers"]) == (3, 0)
    assert "503" in failed["missing"][0]["reason"]
    with server.trouble(delay_s=2):
        slow = compared(
            models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--no-generate", "--retries", 0, "--timeout", 1, *SHORT
        )
    assert slow["answers"] == 0


def test_an_interrupted_comparison_goes_on(models: Path, server: SmallEngine, tmp_path: Path) -> None:
    asked = ["compare", models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--no-generate", "-o", tmp_path]
    command = [interpreter(), "-m", "ray_rl_debug", "rollout", *map(str, asked), "--max-tokens", "8", "--concurrency", "1"]
    kept = tmp_path / "engine.jsonl"
    with server.trouble(delay_s=1.0):
        child = subprocess.Popen(command, env=variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.until(lambda: kept.exists() and len(kept.read_text().splitlines()) >= 3, 60, "two answers", every=0.2)
        child.send_signal(signal.SIGINT)
        err = child.communicate(timeout=30)[1]
    assert child.returncode == 130, err
    assert "Traceback" not in err
    done = len(kept.read_text().splitlines()) - 1
    assert 2 <= done < 8
    again = run(*asked, "--max-tokens", 8, "--concurrency", 1)
    assert again.returncode == 0, again.stderr
    assert f"{done} of 8 answers are known" in again.stderr
    assert len({json.loads(line)["key"] for line in kept.read_text().splitlines()[1:]}) == 8


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("PROMPTS", "--engine", "http://127.0.0.1:9/v1", "--reference", "BASE", "--retries", 0), 3, "does not list its models"),
        (("PROMPTS", "--engine", "URL", "--reference", "NOWHERE"), 3, "NOWHERE"),
        (("PROMPTS", "--engine", "URL"), 2, "a reference is needed"),
        (("PROMPTS",), 2, "two recordings are needed"),
        (("PROMPTS", "--reference", "BASE"), 3, "neither a recording"),
        (("EMPTY", "--engine", "URL", "--reference", "BASE"), 3, "holds no prompts"),
        (("BROKEN", "--engine", "URL", "--reference", "BASE"), 3, "line 2"),
        (("PROMPTS", "--engine", "URL", "--reference", "BASE", "--no-generate", "--limit", 1, "--reward", "nothing:here"), 2, "--reward"),
    ],
)
def test_bad_input_gives_one_sentence(models: Path, server: SmallEngine, tmp_path: Path, arguments: tuple[object, ...], code: int, said: str) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "broken.jsonl").write_text('{"prompt": "a"}\n{"prompt": \n')
    names = {
        "PROMPTS": models / "prompts.jsonl",
        "BASE": models / "base",
        "URL": server.url,
        "EMPTY": tmp_path / "empty.jsonl",
        "BROKEN": tmp_path / "broken.jsonl",
        "NOWHERE": tmp_path / "NOWHERE",
    }
    done = run("compare", *(names.get(str(a), a) for a in arguments), "-q")
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 3
