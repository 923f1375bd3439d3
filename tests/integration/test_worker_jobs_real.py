"""A real Ray: its raylets tell whose their workers are, and one with a stopped worker is made up for by the table of actors."""

from __future__ import annotations

import os
import signal

import pytest
from integration.clusters import ENVIRONMENT, cluster, program

from ray_rl_debug.ray_state.roll_call import call_roll

pytestmark = pytest.mark.integration


def test_jobs_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with cluster(2) as c, program("job_program.py", c["address"], "Stage", 4) as job:
        nodes = [n.node_id for n in call_roll(c["address"]).nodes]
        assert call_roll(c["address"]).worker_jobs == {}
        roll = call_roll(c["address"], workers_of=nodes)
        own = {j.job_id for j in roll.jobs if j.alive}
        told = {pid: job_id for jobs in roll.worker_jobs.values() for pid, job_id in jobs.items()}
        assert roll.worker_jobs.keys() == set(nodes)
        assert {told.get(pid) for pid in job["pids"]} == own
        os.kill(job["pids"][0], signal.SIGSTOP)
        try:
            roll = call_roll(c["address"], workers_of=nodes)
            told = {pid: job_id for jobs in roll.worker_jobs.values() for pid, job_id in jobs.items()}
            assert {told.get(pid) for pid in job["pids"]} == own
        finally:
            os.kill(job["pids"][0], signal.SIGCONT)
