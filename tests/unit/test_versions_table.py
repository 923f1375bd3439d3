"""The table of versions: what was tried, what failed and why, sorted by number."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from versions import PLAN, Environment, Result, StepError, read, table

GOOD = {"install": "3.13.0", "demo": "right", "examples": "3 of 3", "doctor": "25 of 25", "timeline": "27 slices", "watch": "52 s"}


def test_table_and_failures_below_it(tmp_path: Path) -> None:
    results = [
        Result("2.60.0", "3.13", said=GOOD),
        Result("2.9.0", "3.10", "2.4.0", said={"install": "3.10.13", "demo": "right"}, failed={"watch": "not done after 180 s"}),
        Result("2.60.0", "3.9", failed={"install": "no Python 3.9 on this machine"}),
    ]
    for number, result in enumerate(results):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "result.json").write_text(json.dumps(dataclasses.asdict(result)))
    assert table(read(tmp_path)).splitlines()[2:] == [
        "| 2.9.0 | 3.10.13 | 2.4.0 | right | - | - | - | **fails** |",
        "| 2.60.0 | 3.9 | - | - | - | - | - | - |",
        "| 2.60.0 | 3.13.0 | - | right | 3 of 3 | 25 of 25 | 27 slices | 52 s |",
        "",
        "- Ray 2.9.0 on 3.10, watch: not done after 180 s",
        "- Ray 2.60.0 on 3.9, install: no Python 3.9 on this machine",
    ]


def test_plan_has_every_minor_version_once_and_the_newest_on_every_python() -> None:
    pairs = [pair.split(":") for pair in PLAN]
    assert [int(ray.split(".")[1]) for ray, _ in pairs[:-3]] == list(range(41, 61))
    assert sorted(python for ray, python in pairs if ray == "2.60.0") == ["3.10", "3.11", "3.13", "3.14"]


def test_a_failure_is_told_by_its_error_line(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    one = Environment("2.60.0", "3.11", tmp_path)
    program = "import sys; print('error: it broke\\nhint:  mend it', file=sys.stderr); sys.exit(3)"
    with pytest.raises(StepError, match="ended with 3: error: it broke"):
        one.run("-c", program)
    with pytest.raises(StepError, match="not done after 1 s"):
        one.run("-c", "import time; time.sleep(20)", timeout_s=1)
    assert one.run("-c", program, codes=(3,)).returncode == 3
