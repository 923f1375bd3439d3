"""Who is an engine's server, and what its recorded numbers say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.collect.discover import FoundProcess
from ray_rl_debug.collect.engine_endpoints import _address, _kind, _port
from ray_rl_debug.collect.engine_metrics import read_metrics
from ray_rl_debug.collect.procfs import Stat

DATA = Path(__file__).resolve().parents[1] / "data" / "engines"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            "vllm_busy_tp1",
            {"running": 2, "waiting": 0, "kv_usage": 0.005127266068485681, "generated_tokens": 10613, "preemptions": 0, "sleep_level": 0},
        ),
        (
            "vllm_busy_dp2",
            {"running": 4, "waiting": 0, "kv_usage": 0.0037844106695965607, "generated_tokens": 15308, "preemptions": 0, "sleep_level": 0},
        ),
        ("vllm_c_asleep_with_requests", {"running": 0, "waiting": 0, "kv_usage": 0, "generated_tokens": 13166, "preemptions": 2, "sleep_level": 1}),
        ("sglang_busy_tp1", {"running": 1, "waiting": 1, "kv_usage": 0.25, "generated_tokens": 1730}),
        ("sglang_busy_tp2", {"running": 2, "waiting": 0, "kv_usage": 0.02, "generated_tokens": 12}),
    ],
)
def test_recorded_numbers(file: str, expected: dict[str, float]) -> None:
    assert read_metrics((DATA / f"{file}.txt").read_bytes()) == expected


def test_ranks_of_one_engine_tell_of_the_same_requests() -> None:
    rows = [f'sglang:num_running_reqs{{dp_rank="{dp}",model_name="m",tp_rank="{tp}"}} {3 + dp}.0' for dp in (0, 1) for tp in (0, 1)]
    assert read_metrics("\n".join(rows).encode()) == {"running": 7}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\xff\x00",
        "vllm:num_requests_running",
        "vllm:num_requests_running{} NaN",
        "vllm:num_requests_running{} +Inf",
        "vllm:num_requests_running -3",
        "vllm:num_requests_running 1e99",
        "vllm:num_requests_running{" + "} " * 100_000,
        "other:num_requests_running 1",
    ],
)
def test_what_is_no_number_is_left_out(text: str) -> None:
    assert read_metrics(text.encode("latin-1")) == {}


def process(title: str, *, comm: str = "python", ppid: int = 1) -> FoundProcess:
    stat = Stat(comm=comm, state="S", ppid=ppid, ticks=0, nice=0, threads=1, start_ticks=0, rss_pages=0)
    return FoundProcess(pid=9, kind="child", stat=stat, arguments=tuple(title.split()))


@pytest.mark.parametrize(
    ("title", "children", "kind"),
    [
        ("/opt/e/bin/python3 /opt/e/bin/vllm serve /data/tiny --port 8107", (), "vllm"),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", (), "vllm"),
        ("VLLM::APIServer_0", (), "vllm"),
        ("ray::vLLMHttpServer", (), "vllm"),
        ("python serve.py", ("VLLM::EngineCore_DP0",), "vllm"),
        ("python serve.py", ("MINE::EngineCore",), "vllm"),
        ("python serve.py", (" VLLM::EngineCor",), "vllm"),
        ("/opt/e/bin/python -m sglang.launch_server --port 30111", (), "sglang"),
        ("python serve.py", ("sglang::scheduler_TP0",), "sglang"),
        ("python serve.py", (" sglang::detoken",), "sglang"),
        ("python -m sglang_router.launch_router", (), None),
        ("VLLM::EngineCore", ("VLLM::Worker_TP0",), None),
        ("sglang::scheduler", (), None),
        ("vllm bench serve", (), None),
        ("python train.py --vllm serve.py", (), None),
    ],
)
def test_servers_are_recognised(title: str, children: tuple[str, ...], kind: str | None) -> None:
    # a dead child has no title, only its comm
    below = [process("", comm=c.strip()) if c.startswith(" ") else process(c) for c in children]
    assert _kind(process(title), below) == kind


@pytest.mark.parametrize(("arguments", "port"), [("a --port 8107", 8107), ("a --port=80", 80), ("a --port", None), ("a --port x", None), ("a", None)])
def test_the_port_is_read_from_the_arguments(arguments: str, port: int | None) -> None:
    assert _port(arguments.split()) == port


@pytest.mark.parametrize(
    ("local", "address"),
    [("0.0.0.0:8000", ("127.0.0.1", 8000)), ("[::]:8000", ("::1", 8000)), ("10.0.0.5:81", ("10.0.0.5", 81)), ("[fe80::1]:9", ("fe80::1", 9))],
)
def test_all_addresses_are_reached_over_the_loopback(local: str, address: tuple[str, int]) -> None:
    assert _address(local) == address
