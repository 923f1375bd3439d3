"""An error that was raised is likely what ended a run only where the text tells whose or when it was, or how far the run came."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty

COMPARED = """
Since the new version my job dies at start. Before it the log had

Traceback (most recent call last):
  File "launch.py", line 8, in main
    setup(cfg)
  File "kernels/setup.py", line 31, in setup
    import fastkernels
ModuleNotFoundError: No module named 'fastkernels'

(and went on), after it

Traceback (most recent call last):
  File "launch.py", line 8, in main
    setup(cfg)
  File "kernels/setup.py", line 33, in setup
    import slowkernels
ImportError: libfoo.so.3: cannot open shared object file
"""
LISTED = """
Errors seen so far on that cluster:

1. a timeout on two nodes
2. this on one of them, once:

Traceback (most recent call last):
  File "/w/train_npu.py", line 150, in main
    loss.backward()
RuntimeError: ACL stream synchronize failed, error code:507048
"""
IN_A_LOG = """
2026-11-02 10:00:01,000 INFO step 12 loss 0.3
2026-11-02 10:00:03,000 ERROR worker failed
Traceback (most recent call last):
  File "/w/train_npu.py", line 150, in main
    loss.backward()
RuntimeError: ACL stream synchronize failed, error code:507048
"""


def certainties(tmp_path: Path, text: str) -> set[Certainty]:
    file = tmp_path / "post.md"
    file.write_text(text, encoding="utf-8")
    snapshot = load([file]).snapshot
    assert snapshot is not None
    return {f.certainty for f in diagnose(snapshot).findings if f.root}


@pytest.mark.parametrize("text", [COMPARED, LISTED])
def test_an_error_that_is_only_shown_is_possible(tmp_path: Path, text: str) -> None:
    assert certainties(tmp_path, text) <= {Certainty.POSSIBLE}


def test_an_error_with_its_time_is_likely(tmp_path: Path) -> None:
    assert Certainty.LIKELY in certainties(tmp_path, IN_A_LOG)
