"""Each outside thing has its own doors, everything right of the snapshot stays pure, and importing us costs nothing."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "ray_rl_debug"
MODULES = sorted(PACKAGE.rglob("*.py"))

DOORS = {
    "ray": (
        "ray_state/",
        "cluster/driver.py",
        "cluster/agent_pool.py",
        "cluster/node_agent.py",
        "demo/demo_job.py",
        "watch/node_watch.py",
        "watch/spawn.py",
        "timeline/ray_export.py",
        "collect/health/",
    ),
    "grpc": ("ray_state/",),
    "torch": ("demo/demo_job.py", "endpoints/"),
    "transformers": ("endpoints/",),
    "openai": ("endpoints/",),
    "aiohttp": ("endpoints/",),
    "pynvml": ("collect/gpus.py", "watch/gpu_watch.py"),
    "click": ("commands/",),
    "opentelemetry": ("otel/",),
    "psutil": ("collect/",),
    "requests": (),
    "hyperscan": ("logs/search.py",),
    "numpy": ("metrics/statistics/numeric.py", "logs/newlines.py"),
    "scipy": ("metrics/statistics/numeric.py",),
    "tensorboard": ("metric_sources/tensorboard.py",),
    "wandb": ("metric_sources/wandb.py", "watch/tracker_child.py"),
    "mlflow": ("watch/tracker_child.py",),
}
"""Who may import what; a folder stands for its modules."""

PURE = (
    "logs/",
    "story/",
    "analyze/",
    "rules/",
    "doctor/",
    "rollouts/",
    "render/",
    "signatures/",
    "diagnosis/",
    "metrics/",
    "model/merge.py",
    "capture/jobs.py",
    "commands/catalogue.py",
    "trial/judge/",
)
OUTSIDE = {"ray", "torch", "pynvml", "click", "opentelemetry", "psutil", "grpc", "socket", "subprocess", "time", "random", "threading", "ctypes"}
MODELS = ("model/",)


@functools.cache
def imports(module: Path) -> frozenset[str]:
    """Top-level packages a module imports, anywhere in it but under TYPE_CHECKING."""
    return frozenset(_imports(module))


def _imports(module: Path) -> Iterator[str]:
    tree = ast.parse(module.read_text())
    only_types = {
        id(inner) for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def name(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("thing", DOORS)
def test_an_outside_thing_is_used_behind_its_doors_only(thing: str) -> None:
    strangers = [name(m) for m in MODULES if thing in imports(m) and not name(m).startswith(DOORS[thing])]
    assert strangers == []


def test_analysis_rules_and_renderers_know_neither_ray_nor_clocks() -> None:
    found = {name(m): sorted(OUTSIDE & imports(m)) for m in MODULES if name(m).startswith(PURE)}
    assert {m: i for m, i in found.items() if i} == {}


def test_what_runs_in_an_agents_interpreter_needs_the_standard_library_alone() -> None:
    lent = [m for m in MODULES if name(m).startswith("trial/child/") or name(m) in ("trial/stand_in.py", "trial/__init__.py")]
    allowed = {"__future__", "ray_rl_debug", *sys.stdlib_module_names}
    assert len(lent) > 4
    assert {name(m): sorted(imports(m) - allowed) for m in lent if imports(m) - allowed} == {}


def test_they_read_no_environment() -> None:
    readers = [name(m) for m in MODULES if name(m).startswith(PURE) and ("os.environ" in m.read_text() or "getenv" in m.read_text())]
    assert readers == []


def test_the_data_models_need_msgspec_alone() -> None:
    allowed = {"__future__", "msgspec", "ray_rl_debug", *sys.stdlib_module_names}
    models = [m for m in MODULES if name(m).startswith(MODELS)]
    assert len(models) >= len(MODELS)
    assert {name(m): sorted(imports(m) - allowed) for m in models if imports(m) - allowed} == {}


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import ray_rl_debug", "ray torch numpy grpc click msgspec yaml rich psutil pynvml opentelemetry"),
        ("import ray_rl_debug.prepare", "ray torch numpy grpc click msgspec yaml rich psutil pynvml opentelemetry"),
        ("import ray_rl_debug.diagnosis.diagnose", "ray torch numpy grpc click rich psutil pynvml opentelemetry"),
        ("from ray_rl_debug.commands.cli import main; main(['explain', 'RRD101'])", "ray torch numpy grpc rich psutil pynvml opentelemetry"),
        ("from ray_rl_debug.commands.cli import main; main(['snapshot', '--help'])", "ray torch numpy grpc yaml rich psutil pynvml opentelemetry"),
        ("from ray_rl_debug.commands.cli import main; main(['--help'])", "ray torch numpy grpc yaml rich psutil pynvml opentelemetry"),
    ],
)
def test_what_is_imported_for(code: str, forbidden: str) -> None:
    program = f"import sys\n{code}\nsys.exit(','.join(sorted(set(sys.modules) & set({forbidden.split()!r}))) or 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
