"""The frameworks' tables: every row's own example tells the role and the phase that the row says, however the name is wrapped."""

from __future__ import annotations

import pytest

from ray_rl_debug.analyze.frameworks import FRAMEWORKS
from ray_rl_debug.analyze.frameworks.table import Phase, Role
from ray_rl_debug.analyze.identity import identify, split_title
from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.model.snapshot import Node, Process

PHASES = "init data rollout reward logprob values advantage update weight_sync checkpoint validation cleanup idle".split()


@pytest.mark.parametrize("row", [r for f in FRAMEWORKS for r in f.phases], ids=lambda r: r.function)
def test_the_example_tells_the_phase(row: Phase) -> None:
    assert row.phase in PHASES
    _, method = split_title(row.example)
    assert phase_of_name(method or row.example.split(" ")[0]) == row.phase


@pytest.mark.parametrize("row", [r for f in FRAMEWORKS for r in f.roles], ids=lambda r: r.class_name)
def test_the_class_tells_the_role(row: Role) -> None:
    process = Process(pid=7, title=f"ray::{row.class_name}.work", kind="ray-worker")
    assert identify(Node(name="n", started_time_s=0.0, window_s=0.0), process, {}, {}).role == row.role
    assert row.class_name in row.example or "ray::" not in row.example


def test_every_table_names_its_version_and_no_name_is_told_twice() -> None:
    for framework in FRAMEWORKS:
        assert framework.version.count(".") >= 1, framework.name
    told = [r.function for f in FRAMEWORKS for r in f.phases]
    assert len(told) == len(set(told))


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("init_weights_update_group", "weight_sync"),
        ("Engine.update_weight", "weight_sync"),
        ("broadcast_model_weights", "weight_sync"),
        ("prepare_weight_update", "weight_sync"),
        ("weighted_update", "update"),
        ("update_policy", "update"),
        ("receive_weightings", None),
        ("pause", None),
    ],
)
def test_words_in_names_tell_the_phase_where_no_framework_does(name: str, phase: str | None) -> None:
    assert phase_of_name(name) == phase
