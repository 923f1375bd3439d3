"""The object store is full, and the worker that should make room is hung."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from integration.clusters import HERE, cluster, command, program, state_of

from ray_rl_debug.model.codec import decode_report

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

TIMES = int(os.environ.get("RAYRL_DEBUG_TEST_TIMES", "2"))


def test_full_store_and_hung_spill_worker(tmp_path: Path) -> None:
    """The object store is full and the worker that spills it is stopped, so that Ray starts nothing that needs room.

    Every snapshot names the stopped worker, with no help of Ray's, and leaves it as it is.
    """
    with cluster(1) as c, program(str(HERE.parent / "faults" / "full_store_program.py"), c["address"]) as job:
        took = []
        for n in range(TIMES):
            began = time.monotonic()
            done = command("snapshot", "--address", c["address"], "--timeout", 40, "--json", "-o", tmp_path / str(n))
            took.append(time.monotonic() - began)
            assert done.returncode == 1, (done.stdout[-2000:], done.stderr)
            report = decode_report(done.stdout.encode())
            named = {w.pid for f in report.findings if f.root for w in f.who}
            assert named & set(job["stopped"]), json.loads(done.stdout)["verdict"]
            assert {pid: state_of(pid) for pid in job["stopped"]} == dict.fromkeys(job["stopped"], "T"), f"after {n + 1} of {took}"
        print("seconds", [round(t, 1) for t in took])
        assert max(took) < 45
