"""The lab's own judgement: what counts as right in its rows."""

from __future__ import annotations

from typing import Any

import pytest
from engines.lab import CASES, PROGRAMS
from engines.truth import HEALTHY, Truth
from frameworks.environments import Recipe

STOPPED = Truth(("hang",), ("process-stopped",))
DIED = Truth(("hang",), ("engine-died",), "enginecore|engine core")


def said(state: str, *findings: tuple[str, str, str, int]) -> dict[str, Any]:
    listed = [{"cause": cause, "certainty": sure, "who": [{"label": label, "pid": pid, "actor": None}]} for cause, sure, label, pid in findings]
    return {"verdict": {"state": state}, "findings": listed}


@pytest.mark.parametrize(
    ("truth", "report", "right"),
    [
        (HEALTHY, said("healthy"), True),
        (HEALTHY, said("slow", ("straggler", "possible", "EngineCore", 7)), True),
        (HEALTHY, said("healthy", ("straggler", "likely", "EngineCore", 7)), False),
        (HEALTHY, said("unknown"), False),
        (STOPPED, said("hang", ("process-stopped", "proven", "EngineCore", 7)), True),
        (STOPPED, said("hang", ("process-stopped", "proven", "EngineCore", 8)), False),
        (STOPPED, said("hang", ("straggler", "likely", "EngineCore", 7), ("process-stopped", "proven", "worker", 7)), False),
        (STOPPED, said("unknown", ("process-stopped", "possible", "EngineCore", 7)), False),
        (DIED, said("hang", ("engine-died", "likely", "vLLM engine core of vllm_server_0_0", 9)), True),
        (DIED, said("hang", ("engine-died", "likely", "vllm_server_0_0", 9)), False),
    ],
)
def test_a_row_is_right_when_state_cause_and_who_are(truth: Truth, report: dict[str, Any], right: bool) -> None:
    assert truth.is_told(report, (7,)) == right


def test_every_case_has_a_name_of_its_own_and_a_program() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.program for case in CASES} == PROGRAMS.keys()


def test_a_recipe_is_named_after_everything_that_it_installs() -> None:
    plain = Recipe(name="one", installs=(("a==1",),))
    others = (Recipe(name="one", installs=(("a==2",),)), Recipe(name="one", installs=(("a==1",),), files={"a.pth": "x"}))
    assert plain.key() == Recipe(name="one", installs=(("a==1",),)).key()
    assert len({plain.key(), *(other.key() for other in others)}) == 3
