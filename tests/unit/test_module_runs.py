"""Who runs the bodies of modules, each of which runs once."""

from __future__ import annotations

import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import build_view

BOOT = "boot"
FILE = "<frozen importlib._bootstrap>"
"""As Python names it; the words of a made stack have no blanks."""
RUNS = f"_call_with_frames_removed@{BOOT}:241 _find_and_load@{BOOT}:1176"
MAIN = f"<module>@torch/__init__.py:2895 {RUNS} member@app/judge.py:26 <module>@app/judge.py:65"
CACHE = f"_process_class@dataclasses.py:1047 <module>@torch/_cache.py:22 {RUNS} {MAIN}"
OTHER = f"_process_class@dataclasses.py:990 <module>@torch/_ops.py:7 {RUNS} {MAIN}"
LOOP = f"step@torch/_cache.py:3 <module>@torch/_cache.py:22 {RUNS} {MAIN}"


@pytest.mark.parametrize(
    ("looks", "went_on"),
    [
        ((CACHE, OTHER, OTHER), True),
        ((CACHE, MAIN, MAIN), True),
        ((MAIN, CACHE, CACHE), False),
        ((CACHE, LOOP, CACHE), False),
        (
            ("step@app/judge.py:9 <module>@app/judge.py:65", "grade@app/judge.py:5 <module>@app/judge.py:65", "step@app/judge.py:9 x@app/run.py:1"),
            False,
        ),
    ],
    ids=["another one", "its importer goes on", "has come into one", "goes round in one", "the program is imported by nobody"],
)
def test_who_left_the_body_of_a_module_went_on(looks: tuple[str, ...], went_on: bool) -> None:
    stacks = Stacks()
    one = process(stacks, 100, "python judge.py", *looks, cpu_s=1.9)
    stacks.frames = {(function, FILE if file == BOOT else file, line): i for (function, file, line), i in stacks.frames.items()}
    (seen,) = build_view(snapshot(stacks.node([one])))
    assert (seen.motion_reason == "ran a module that it imports to its end during the window") is went_on
    assert seen.motion is Motion.MOVING or not went_on
