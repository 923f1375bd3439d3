"""Hangs of many kinds: what is named as cause, at which line, and who holds it.

The programs are in ``async_kinds/``. The docstring of each says its story, then the rule that names the cause and texts of the summary or evidence;
of those without a rule nobody can tell whether they hang.
"""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from programs import wait_for
from pythons import find_python

from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report
from ray_rl_debug.model.snapshot import Node, Snapshot

pytestmark = pytest.mark.integration
FOLDER = Path(__file__).with_name("async_kinds")
PROGRAMS = {p.stem: p for p in sorted(FOLDER.glob("*.py")) if p.stem != "ready"}
TOLD = {name: (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[2:] for name, path in PROGRAMS.items()}
Seen = tuple[Node, dict[str, subprocess.Popen[bytes]]]


def python_of(name: str) -> str | None:
    module = next((m for m in ("anyio", "httpx", "aiohttp", "grpc") if name.startswith(m)), None)
    if module is None and sys.version_info >= (3, 12):
        return sys.executable
    versions = (f"3.{sys.version_info[1]}", "3.12", "3.13", "3.11", "3.10")
    return next((p for v in versions if (p := find_python(v, module)) is not None and (name != "eager" or v in ("3.12", "3.13"))), None)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """All programs side by side, looked at once."""
    folder, children = tmp_path_factory.mktemp("kinds"), {}
    for name, program in PROGRAMS.items():
        if (python := python_of(name)) is not None:
            children[name] = subprocess.Popen([python, program, folder / name], stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        for name, child in children.items():
            wait_for(lambda name=name, child=child: (folder / name).exists() or child.poll() is not None, name)  # type: ignore[misc]
            assert child.poll() is None, f"{name} ended"
        time.sleep(1.0)  # connections must have been silent for as long as the window is
        yield collect_node(CollectOptions(pids=tuple(c.pid for c in children.values()), samples=2, interval_s=0.4, logs=False)), children
    finally:
        for child in children.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def report_of(seen: Seen, name: str) -> Report:
    """The report that a look at this program alone would have given."""
    node, children = seen
    if name not in children:
        pytest.skip("no Python with the library that this program needs")
    inside = {children[name].pid}
    inside |= {p.pid for p in node.processes if p.ppid in inside}
    alone = msgspec.structs.replace(node, processes=tuple(p for p in node.processes if p.pid in inside))
    return diagnose(Snapshot(taken_time_s=time.time(), nodes=(alone,)))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if TOLD[n]])
def test_cause(name: str, seen: Seen) -> None:
    id, *texts = TOLD[name]
    report = report_of(seen, name)
    finding = report.findings[0]
    told = "\n".join([finding.summary, *(e.text for e in finding.evidence)])
    assert (finding.id, finding.certainty) == (id, Certainty.LIKELY), told
    for text in texts:
        assert text in told, told
    assert sum(f.root for f in report.findings) == 1, [f.summary for f in report.findings]


@pytest.mark.parametrize("name", [n for n in PROGRAMS if not TOLD[n]])
def test_nothing_sure(name: str, seen: Seen) -> None:
    report = report_of(seen, name)
    assert [f.summary for f in report.findings if f.certainty is not Certainty.POSSIBLE] == []
