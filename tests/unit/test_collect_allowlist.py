"""What may leave a process: nothing that could be a credential."""

from __future__ import annotations

import pytest

from ray_rl_debug.privacy.allowlist import allowed_arguments, allowed_environment


@pytest.mark.parametrize(
    "arguments",
    [
        ["python", "train.py", "--api-key", "hunter2"],
        ["python", "train.py", "--api-key=hunter2"],
        ["mysql", "-phunter2"],
        ["curl", "-HAuthorization:hunter2"],
        ["python train.py --password hunter2"],
        ["python", "-c", "login('hunter2')"],
        ["python", "-m", "areal.infra.rpc.rpc_server", "--role=x y hunter2"],
        ["python", "-m", "tool", "hunter2"],
    ],
)
def test_a_value_of_an_unknown_argument_is_dropped(arguments: list[str]) -> None:
    assert "hunter2" not in allowed_arguments(arguments)


def test_role_and_rank_of_an_rpc_server_are_kept() -> None:
    arguments = ["/usr/bin/python", "-m", "areal.infra.rpc.rpc_server", "--port", "8000", "--role", "actor", "--worker-index", "1", "--name", "x"]
    assert allowed_arguments(arguments) == "/usr/bin/python -m areal.infra.rpc.rpc_server --port 8000 --role actor --worker-index 1 --name …"


def test_titles_of_ray_are_kept() -> None:
    assert allowed_arguments(["ray::WorkerDict.update_actor", "", ""]) == "ray::WorkerDict.update_actor"
    assert allowed_arguments(["VLLM::EngineCore"]) == "VLLM::EngineCore"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "abc"),
        ("VLLM_API_KEY", "abc"),
        ("AGL_SECRET", "abc"),
        ("TORCHELASTIC_ERROR_TOKEN", "abc"),
        ("VERL_HEADER", "Bearer abc"),
        ("AREAL_X", "A" * 40),
        ("AWS_ACCESS_KEY_ID", "abc"),
        ("HOME", "/root"),
    ],
)
def test_variables_that_may_not_leave(name: str, value: str) -> None:
    assert allowed_environment([(name, value)]) == {}


def test_variables_that_tell_the_rank_are_kept() -> None:
    wanted = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "10.0.0.1", "RAY_JOB_ID": "01000000", "NCCL_DEBUG": "WARN", "SLURM_PROCID": "3"}
    assert allowed_environment(wanted.items()) == wanted
