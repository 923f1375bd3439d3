"""A module that waits, while it is imported, for a thread that imports from it."""

from __future__ import annotations

import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.import_locks import imports_in_ring
from ray_rl_debug.analyze.view import build_view

BOOT = "boot"
FILE = "<frozen importlib._bootstrap>"
"""As Python names it; the words of a made stack have no blanks."""
RUNS = f"_load_unlocked@{BOOT}:690 _find_and_load@{BOOT}:1176 Scorer.score@app/scorer.py:41"
RESULT = "Condition.wait@threading.py:327 Future.result@concurrent/futures/_base.py:451 made@app/plugin.py:11 <module>@app/plugin.py:15"
WORKER = "_WorkItem.run@concurrent/futures/thread.py:58 _worker@concurrent/futures/thread.py:83 run@threading.py:982"
ASKS = f"_ModuleLock.acquire@{BOOT}:120 _lock_unlock_module@{BOOT}:224 one@app/plugin.py:6 {WORKER}"


@pytest.mark.parametrize(
    ("main", "thread", "is_ring"),
    [
        (f"{RESULT} {RUNS}", ASKS, True),
        (f"{RESULT} Scorer.score@app/scorer.py:41", ASKS, False),
        (f"{RESULT} {RUNS}", f"read@app/files.py:3 one@app/plugin.py:6 {WORKER}", False),
        (f"read@app/files.py:3 {RUNS}", ASKS, False),
    ],
    ids=["each waits for the other", "no import below", "the thread reads a file", "the module reads a file"],
)
def test_a_ring_needs_both_sides(main: str, thread: str, is_ring: bool) -> None:
    stacks = Stacks()
    one = process(stacks, 100, "python scorer.py", main, syscall=202, wchan="futex_do_wait", extra_threads=[("ThreadPoolExecutor-0_0", thread)])
    stacks.frames = {(function, FILE if file == BOOT else file, line): i for (function, file, line), i in stacks.frames.items()}
    (seen,) = build_view(snapshot(stacks.node([one])))
    assert (imports_in_ring(seen) is not None) is is_ring
