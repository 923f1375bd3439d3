"""``python -m examples.score`` as a whole: two real programs, a tool that knows the answer, one that fails, and our own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
TOOL = """
import sys, psutil
titles = {p.pid: p.cmdline()[0] for p in psutil.Process(int(sys.argv[1])).children(recursive=True) if p.cmdline()}
pids = [pid for pid, title in titles.items() if title.startswith('ray::TwoLockScorer')]
print('looking')
print('{"state": "hang", "culprits": [{"pid": %d}]}' % pids[0] if pids else '{"state": "unknown"}')
"""


def score(*given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "examples.score", *given], cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)


@pytest.mark.slow
@pytest.mark.timeout(450)
def test_two_examples_and_three_tools(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    tool, saved = tmp_path / "tool.py", tmp_path / "scores.jsonl"
    tool.write_text(TOOL)
    ours = f"ours={sys.executable} {ROOT / 'examples' / 'peers.py'} rayrl-debug --address {{address}} --driver {{driver}}"
    tools = ["--cmd", f"titles={sys.executable} {tool} {{driver}}", "--cmd", "broken=false {address}", "--cmd", ours]
    done = score(*tools, "--only", "locks_in_opposite_order", "--only", "idle_notebook", "--save", str(saved))
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in saved.read_text().splitlines()]
    found = {(line["example"], line["tool"]): (line["who"], line["state"]) for line in lines}
    assert found == {
        ("locks_in_opposite_order", "titles"): ("right", True),
        ("locks_in_opposite_order", "broken"): ("none", False),
        ("locks_in_opposite_order", "ours"): ("right", True),
        ("idle_notebook", "titles"): ("right", False),
        ("idle_notebook", "broken"): ("right", False),
        ("idle_notebook", "ours"): ("right", True),
    }, done.stderr[-3000:]
    assert [row.split(" | ")[0] for row in done.stdout.splitlines()[2:]] == ["| ours", "| titles", "| broken"]
    assert score("--from", str(saved)).stdout == done.stdout


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((), "nothing to score"),
        (("--cmd", "tool {who}"), "holds {who}"),
        (("--cmd", "true", "--only", "no_such_example"), "no example of that name"),
        (("--from", "/no/such/file"), "No such file"),
    ],
)
def test_wrong_usage_is_one_sentence(given: tuple[str, ...], error: str) -> None:
    done = score(*given)
    assert done.returncode == 2
    assert error in done.stderr.splitlines()[-1]
