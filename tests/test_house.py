"""The order of the packages: each may use those below it, none above it, and no module is part of a ring."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from ray_rl_debug.rules import RULES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ray_rl_debug"

ORDER = (
    # what all speak of, and what all are careful with
    "model",
    "bounded",
    "signatures",
    "privacy",
    "logs",
    # facts, up to a snapshot
    "in_job",
    "formats",
    "ray_state",
    "collect",
    "slurm",
    "cluster",
    # from a snapshot to a report
    "analyze",
    "story",
    "rules",
    "diagnosis",
    "doctor",
    "metrics",
    "rollouts",
    # whole captures, and the files of other tools
    "capture",
    "imports",
    "metric_sources",
    # agents tried outside of a run, and where rollouts come from
    "trial",
    "endpoints",
    # what people get
    "render",
    "saving",
    "timeline",
    "watch",
    "otel",
    "demo",
    "commands",
)
"""The lowest first."""

DOORSTEP = {"__init__", "__main__", "prepare", "task_helper"}
"""Modules beside the packages: the version, ``python -m ray_rl_debug``, and the two addresses that jobs name."""


def name_of(module: Path) -> str:
    parts = module.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(m): m for m in sorted(PACKAGE.rglob("*.py"))}


def imports(name: str) -> Iterator[str]:
    """Modules of ours that a module imports: anywhere in it, inside functions and for types as well."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by a relative name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                module = whole if whole in MODULES else node.module
                if module in MODULES:
                    yield module


@functools.cache
def graph() -> Mapping[str, frozenset[str]]:
    """Who imports whom; read once, by whoever runs these tests, not by everybody who collects them."""
    return {name: frozenset(imports(name)) - {name, "ray_rl_debug"} for name in MODULES}


def room_of(name: str) -> str:
    return name.split(".")[1] if "." in name else "__init__"


def upwards(edges: Mapping[str, frozenset[str]]) -> list[str]:
    """Imports of a package that stands higher."""
    height = {room: i for i, room in enumerate(ORDER)}
    pairs = [(a, b) for a in edges for b in sorted(edges[a]) if room_of(a) in height]
    return [f"{a} -> {b}" for a, b in pairs if height.get(room_of(b), len(ORDER)) > height[room_of(a)]]


def ring(edges: Mapping[str, frozenset[str]]) -> list[str]:
    """Modules that import each other in a ring; empty when there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as e:
        return list(e.args[1])
    return []


def test_every_package_has_its_place() -> None:
    assert len(set(ORDER)) == len(ORDER)
    assert {room_of(name) for name in MODULES} - DOORSTEP == set(ORDER)


def test_no_package_imports_one_above_it() -> None:
    assert upwards(graph()) == []


def test_no_modules_import_each_other_in_a_ring() -> None:
    assert ring(graph()) == []


def holds_a_rule(name: str) -> bool:
    """Is it a module of ``rules`` with a function ``detect``?"""
    body = ast.parse(MODULES[name].read_text()).body if room_of(name) == "rules" else []
    return any(isinstance(node, ast.FunctionDef) and node.name == "detect" for node in body)


def test_every_rule_is_named_in_the_tuple() -> None:
    files, named = {name for name in MODULES if holds_a_rule(name)}, [rule.__name__ for rule in RULES]
    assert len(files) > 20
    assert sorted(files - set(named)) == [], "rules that nobody asks: name them in RULES of ray_rl_debug/rules/__init__.py"
    assert sorted(named) == sorted(files), "in RULES of ray_rl_debug/rules/__init__.py twice, or no module of a rule"


def test_the_architecture_page_tells_the_same_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = [line.split("|")[1].strip().strip("`") for line in page.splitlines() if line.startswith("| `")]
    assert rows == [*reversed(ORDER)]


@pytest.mark.parametrize(
    ("low", "high"), [("ray_rl_debug.model.codec", "ray_rl_debug.watch.loop"), ("ray_rl_debug.collect.node", "ray_rl_debug.capture.here")]
)
def test_a_planted_import_is_found(low: str, high: str) -> None:
    planted = {**graph(), low: graph()[low] | {high}}
    assert upwards(planted) == [f"{low} -> {high}"]
    assert low in ring(planted)
