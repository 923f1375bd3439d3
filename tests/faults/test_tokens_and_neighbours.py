"""A token of another cluster, and another cluster on the same machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.clusters import cluster, command, environment, program

from ray_rl_debug.model.codec import read_snapshot

pytestmark = pytest.mark.integration

TOKEN = "f3b6a1d94c0e4a5e9d1c7b2f8a6e5d40"
WRONG = TOKEN[::-1]


def test_wrong_token(tmp_path: Path) -> None:
    """The cluster asks for a token, and the user has that of another one.

    Each command ends at once with one sentence that says whose token was refused, and never shows it.
    """
    with cluster(1, env=environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=TOKEN)) as c:
        for mode in ("token", None):
            env = {k: v for k, v in environment(HOME=str(tmp_path), RAY_AUTH_TOKEN=WRONG).items() if k != "RAY_AUTH_MODE"}
            env |= {"RAY_AUTH_MODE": mode} if mode else {}
            for verb in (("snapshot", "--timeout", "20"), ("watch", "-o", str(tmp_path))):
                done = command(*verb, "--address", c["address"], env=env, timeout_s=60)
                said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
                assert done.returncode == 3, (verb, done.stdout, done.stderr)
                assert said == ["error: the Ray cluster refused the token of RAY_AUTH_TOKEN: it is not the one it was started with"]
                assert "started again" not in done.stderr
                assert WRONG not in done.stdout + done.stderr


def test_two_clusters_on_one_machine(tmp_path: Path) -> None:
    """Two clusters with a job each run on one machine, as after a run that was not cleaned up.

    A snapshot of one shows its processes and none of the other's.
    """
    with cluster(1) as one, cluster(1) as two:
        with program("job_program.py", one["address"], "Mine", 2) as mine, program("job_program.py", two["address"], "Theirs", 2) as theirs:
            for c, own, other in ((one, mine, theirs), (two, theirs, mine)):
                folder = tmp_path / c["address"].replace(":", "-")
                done = command("snapshot", "--address", c["address"], "--samples", 2, "--interval", 0.2, "-o", folder)
                assert done.returncode in (0, 1, 3), done.stderr
                (node,) = read_snapshot(folder / "snapshot.json.gz").nodes
                seen = {p.pid: p for p in node.processes}
                assert {*own["pids"], own["driver"], *c["raylets"]} <= set(seen)
                assert all(len(seen[pid].samples) >= 2 for pid in (*own["pids"], own["driver"]))
                assert not {*other["pids"], other["driver"], *(two if c is one else one)["raylets"]} & set(seen)
