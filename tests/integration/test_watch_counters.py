"""The collectives of real gloo ranks, as the watch counts them from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from integration.clusters import wait_for

from ray_rl_debug.watch.close_signs import Counters

pytestmark = pytest.mark.integration
PROGRAM = Path(__file__).parent / "flight_program.py"


def test_counts_of_ranks_that_serve_their_recorder(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "WORLD_SIZE": "3"}
    argv = [sys.executable, str(PROGRAM), str(tmp_path)]
    ranks = [subprocess.Popen(argv, env={**env, "RANK": str(r)}, stdin=subprocess.PIPE) for r in range(3)]
    try:
        wait_for(lambda: all((tmp_path / f"ready{r}").exists() for r in range(3)), 90)
        if (tmp_path / "ready0").read_text() == "0":
            pytest.skip("this torch has no worker server")
        pids = [r.pid for r in ranks]
        counters = Counters()
        wait_for(lambda: set(counters.read(pids, with_ras=False)) == set(pids), 30)
        counts = counters.read(pids, with_ras=False)
        assert counts[pids[0]] > counts[pids[2]]  # rank 2 has left out the last collective
        assert counts[pids[0]] == counts[pids[1]]
    finally:
        for one in ranks:
            one.kill()
            one.wait()
            assert one.stdin is not None
            one.stdin.close()
