"""What other tools really write, fed to ``report``: Ray Train's hang detector, faulthandler, their folders and placeholders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ras_answers import TEXT, answer, rank

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Gap, Snapshot

pytestmark = pytest.mark.integration

RAY_TRAIN = """
import ast, os, subprocess, sys, threading
from importlib.util import find_spec
from pathlib import Path

# ray.train itself wants pyarrow; its function wants nothing.
file = Path(find_spec("ray").origin).parent / "train/v2/_internal/callbacks/nccl_ras.py"
tree = ast.parse(file.read_text()) if file.exists() else ast.Module(body=[], type_ignores=[])
tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "dump_stack_trace"]
if not tree.body:
    sys.exit(9)
exec(compile(tree, str(file), "exec"))

def normalise_answer():
    print(dump_stack_trace(20.0), flush=True)

threading.Thread(target=threading.Event().wait, name="Prefetch", daemon=True).start()
normalise_answer()
"""
FAULTHANDLER = """
import faulthandler, sys, threading

def judge_sample():
    faulthandler.dump_traceback(file=sys.stdout, all_threads=True)

threading.Thread(target=threading.Event().wait, daemon=True).start()
judge_sample()
"""


def printed(code: str, **env: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **env}, check=False)
    if done.returncode == 9:
        pytest.skip("this Ray has no hang detector")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def without_pyspy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return printed(RAY_TRAIN, PATH=str(tmp_path_factory.mktemp("empty")))


def loaded(folder: Path) -> Snapshot:
    found = load([folder]).snapshot
    assert found is not None
    return found


def functions(snapshot: Snapshot, pid_or_label: str) -> set[str]:
    node = next(n for n in snapshot.nodes if any(pid_or_label in (str(p.pid), p.title, f"rank {p.env.get('RANK')}") for p in n.processes))
    process = next(p for p in node.processes if pid_or_label in (str(p.pid), p.title, f"rank {p.env.get('RANK')}"))
    main = next(t for t in process.samples[-1].threads if t.name == "MainThread")
    return {node.frames[i].function for i in node.stacks[main.stack]}


def test_a_traceback_of_ray_trains_worker_without_pyspy(without_pyspy: str, tmp_path: Path) -> None:
    assert without_pyspy.startswith("[py-spy unavailable")
    (tmp_path / "rank_2.log").write_text(without_pyspy)
    assert "normalise_answer" in functions(loaded(tmp_path), "rank 2")


def test_faulthandlers_text(tmp_path: Path) -> None:
    (tmp_path / "rank_1.log").write_text("step 3 done\n" + printed(FAULTHANDLER))
    assert "judge_sample" in functions(loaded(tmp_path), "rank 1")


COLLECTIVE = """Process {pid}: ray::RayTrainWorker
Python v3.11.7 (/usr/bin/python3.11)

Thread {pid} (idle): "MainThread"
    pthread_cond_timedwait (libc.so.6)
    all_reduce (torch/distributed/distributed_c10d.py:3252)
    wrapper (torch/distributed/c10d_logger.py:81)
    train_loop (train.py:40)
"""


@pytest.fixture
def hang_detector(without_pyspy: str, tmp_path: Path) -> Path:
    """The folder as Ray Train writes it: four ranks, one without py-spy, one that did not answer, two polls of RAS."""
    root = tmp_path / "experiment" / "hang_detector"
    stacks, ras = root / "stack_traces", root / "nccl_ras"
    stacks.mkdir(parents=True)
    ras.mkdir()
    for number in (0, 3):
        (stacks / f"rank_{number}.log").write_text(COLLECTIVE.format(pid=1000 + number))
    (stacks / "rank_1.log").write_text("stack dump timed out after 30s")
    (stacks / "rank_2.log").write_text(without_pyspy)
    behind = answer([rank(r, {"AllReduce": 7 if r == 2 else 8}) for r in range(4)])
    for i, stamp in enumerate(("2026-11-21T08-00-00", "2026-11-21T08-01-00")):
        path = ras / f"ncclras_{stamp}.json"
        path.write_bytes(behind)
        os.utime(path, (1_790_000_000 + 60 * i, 1_790_000_000 + 60 * i))
    (ras / "ncclras_report.txt").write_text(TEXT)
    return root


def test_ray_trains_folder(hang_detector: Path) -> None:
    snapshot = loaded(hang_detector)
    report: Report = diagnose(snapshot)
    assert [(w.rank, w.pid) for f in report.findings for w in f.who] in ([(2, 1002)], [(2, 0)])
    unread: list[Gap] = [g for g in snapshot.gaps if g.id == gaps.FILE_UNREAD]
    assert [g.where for g in unread] == ["rank_1.log"]
    assert "stack dump timed out after 30s" in unread[0].reason
