"""``rollout compare`` against the real SGLang on a CPU, with a tiny model: equal weights agree, other weights and another template are told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import environments
from engines.servers import Sglang
from rollouts.lab import causes, compared, make_models

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := environments.VLLM.build() or environments.SGLANG.build():
        pytest.skip(reason)
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def engine(models: Path) -> Iterator[str]:
    server = Sglang(folder=models / "base")
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}/v1"
    finally:
        server.stop()


def test_equal_weights_agree(models: Path, engine: str) -> None:
    found = compared(models / "prompts.jsonl", "--engine", engine, "--reference", models / "base")
    assert (found["verdict"]["state"], found["exit"], causes(found)) == ("agree", 0, [])
    assert found["distance"]["tokens"] == 8 * 64
    assert found["distance"]["logprob_diff_mean"] < 1e-4


@pytest.mark.parametrize(("folder", "cause"), [("template", "chat-template"), ("perturbed", "weights")])
def test_each_difference_is_told(models: Path, engine: str, folder: str, cause: str) -> None:
    found = compared(models / "prompts.jsonl", "--engine", engine, "--reference", models / folder, "--no-generate")
    assert (found["exit"], causes(found)) == (1, [cause])
