"""``rollout compare`` against the real vLLM on a CPU, with a tiny model: equal weights agree, each kind of difference is told with its token."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import environments
from engines.servers import MODEL, Server, Vllm
from rollouts.lab import causes, compared, make_models, run

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]
SAMPLED = ("--temperature", 1, "--samples", 4, "--seed", 1, "--no-generate")


class Tiny(Vllm):
    """vLLM with a folder and a precision of our choice."""

    def __init__(self, folder: Path, dtype: str, *more: str) -> None:
        sizes = ("--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "4")
        Server.__init__(self, environments.VLLM, ("BIN/vllm", "serve", str(folder), "--dtype", dtype, *more, *sizes, *MODEL), {})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := environments.VLLM.build():
        pytest.skip(reason)
    return make_models(tmp_path_factory.mktemp("models"))


def served(models: Path, dtype: str, folder: str = "base", *more: str) -> Iterator[Tiny]:
    server = Tiny(models / folder, dtype, *more)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def exact(models: Path) -> Iterator[Tiny]:
    yield from served(models, "float32")


def test_equal_weights_agree(models: Path, exact: Tiny) -> None:
    found = compared(models / "prompts.jsonl", "--engine", exact.url, "--reference", models / "base")
    assert (found["verdict"]["state"], found["exit"], causes(found)) == ("agree", 0, [])
    assert found["distance"]["tokens"] == 8 * 64
    assert found["distance"]["logprob_diff_mean"] < 1e-4
    assert found["best"] > 0.99


@pytest.mark.parametrize(
    ("folder", "cause", "named"),
    [
        ("template", "chat-template", "<think>"),
        ("tokenizer", "tokenizer", "What"),
        ("perturbed", "weights", "token"),
        ("rope", "attention", "token"),
    ],
)
def test_each_difference_is_told_with_its_token(models: Path, exact: Tiny, folder: str, cause: str, named: str) -> None:
    found = compared(models / "prompts.jsonl", "--engine", exact.url, "--reference", models / folder, "--no-generate")
    assert (found["exit"], causes(found)) == (1, [cause])
    assert named in found["verdict"]["summary"]


def test_an_end_token_that_is_none_for_the_engine_is_named(models: Path, exact: Tiny) -> None:
    found = compared(models / "prompts.jsonl", "--engine", exact.url, "--reference", models / "end", *SAMPLED)
    assert causes(found) == ["end-token"]
    assert "<|im_end|>" in found["verdict"]["summary"]


def test_bfloat16_against_float32_is_rounding(models: Path, exact: Tiny) -> None:
    found = compared(models / "prompts.jsonl", "--engine", exact.url, "--reference", models / "base", "--dtype", "bfloat16", "--no-generate")
    assert [f["cause"] for f in found["findings"]] == ["precision"]
    assert found["likeness"] > 0.9, "an exact engine differs from rounded weights exactly as float32 does"


def test_an_update_that_did_not_arrive_is_found(models: Path, exact: Tiny, tmp_path: Path) -> None:
    new = ("--reference", models / "step", "--no-generate")
    by_folder = compared(models / "prompts.jsonl", "--engine", exact.url, *new, "--after-update", models / "base")
    assert causes(by_folder) == ["update"]
    assert abs(by_folder["update"]["share"]) < 0.02
    assert run("compare", models / "prompts.jsonl", "--engine", exact.url, "--reference", models / "base", "-o", tmp_path, "-q").returncode == 0
    by_answers = compared(models / "prompts.jsonl", "--engine", exact.url, *new, "--after-update", tmp_path / "engine.jsonl")
    assert causes(by_answers) == ["update"]


def test_a_rounding_engine_is_no_trouble(models: Path) -> None:
    for server in served(models, "bfloat16"):
        found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--no-generate")
        assert [f["cause"] for f in found["findings"]] == ["precision"]
        assert found["exit"] == 0
        arrived = compared(
            models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", "--after-update", models / "step", "--no-generate"
        )
        assert arrived["update"]["arrival"] == "arrived"
        sampled = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", *SAMPLED)
        assert (sampled["exit"], causes(sampled)) == (0, []), "tokens of a rounding engine are drawn as asked"


def test_a_cache_in_fp8_under_a_rounding_engine_is_told_by_the_engine(models: Path) -> None:
    many = ("--temperature", 1, "--samples", 6, "--seed", 1, "--no-generate")
    for server in served(models, "bfloat16", "base", "--kv-cache-dtype", "fp8"):
        found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", *many)
        assert "attention" in [f["cause"] for f in found["findings"]], found["findings"]
        assert "keeps its key-value cache in fp8" in json.dumps(found["findings"])


def test_a_cut_that_the_models_folder_adds_is_told(models: Path) -> None:
    folder = shutil.copytree(models / "base", models / "defaults")
    given = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**given, "top_k": 5}))
    for server in served(models, "float32", "defaults"):
        found = compared(models / "prompts.jsonl", "--engine", server.url, "--reference", models / "base", *SAMPLED)
        assert causes(found) == ["choice"]
        assert "the rarest token taken is number 5 of its place" in found["verdict"]["summary"]
