"""The doctor on a real cluster, and before a start that would hang."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from clusters import cluster, command, environment

from ray_rl_debug.commands.cli import main

pytestmark = pytest.mark.integration

MANY_CPUS = """
import multiprocessing, os
multiprocessing.cpu_count = os.cpu_count = lambda: {count}
"""


def many_cpus(folder: Path, count: int) -> dict[str, str]:
    """An environment in which Python, and so Ray, believes in a machine of so many CPUs."""
    (folder / "sitecustomize.py").write_text(MANY_CPUS.format(count=count))
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    # without this Ray also counts the CPUs of the root control group
    return environment(PYTHONPATH=path, RAY_USE_MULTIPROCESSING_CPU_COUNT="1")


def test_all_nodes_of_a_running_cluster_are_looked_at():
    with cluster(2) as made:
        done = command("doctor", "--address", made["address"], "--json")
        found = json.loads(done.stdout)
        assert len(found["nodes"]) == 2, done.stderr
        by_check = {}
        for result in found["results"]:
            by_check.setdefault(result["check"], []).append(result)
        assert [r["status"] for r in by_check["net.head"]] == ["ok", "ok"]
        assert [r["status"] for r in by_check["clock.skew"]] == ["ok", "ok"]
        assert {r["status"] for r in by_check["cpu.allowed"]} <= {"ok", "warn"}
        assert "RAY" not in "".join(r["measured"] for r in by_check["auth.same"] if r["status"] == "fail")
        assert "lacks TORCH_FR_BUFFER_SIZE=2000" in by_check["dbg.env"][0]["measured"]
        assert by_check["ver.same"][0]["status"] == "ok"
        assert "this check failed" not in done.stdout
        shown = command("doctor", "--address", made["address"])
        assert shown.stdout.splitlines()[0].partition(":")[0] in ("WARN", "FAIL", "OK")


def test_a_cluster_that_does_not_answer_leaves_this_node_and_says_so():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    done = command("doctor", "--address", f"127.0.0.1:{port}", "--timeout", "20", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    failing = {r["check"] for r in found["results"] if r["status"] == "fail"}
    assert {"node.seen", "net.head"} <= failing


def test_before_a_start_with_more_cpus_than_allowed_the_hang_is_predicted(tmp_path):
    one_core = ("taskset", "-c", "0")
    done = command("doctor", "--preflight", "--json", prefix=one_core, env=many_cpus(tmp_path, 128))
    results = {r["check"]: r for r in json.loads(done.stdout)["results"]}
    assert done.returncode == 1
    allowed = results["cpu.allowed"]
    assert allowed["status"] == "fail"
    assert allowed["measured"] == "Ray would take 128 CPUs (Ray's own guess), the affinity mask allows 1"
    assert allowed["consequence"] == "128 workers would start at once on 1 core and ray.init() would hang"
    assert allowed["remedy"].startswith("ray start --num-cpus=1")
    assert results["start.cost"]["measured"].startswith("128 workers, ")
    assert results["start.cost"]["status"] in ("warn", "fail")
    cured = command("doctor", "--preflight", "--num-cpus", "1", "--json", prefix=one_core, env=many_cpus(tmp_path, 128))
    after = {r["check"]: r["status"] for r in json.loads(cured.stdout)["results"]}
    assert (after["cpu.allowed"], after["start.cost"]) == ("ok", "ok")


def test_a_taken_port_and_its_holder():
    # of both families: another program may hold the same number of the other one; in a program of its own, which inherits no socket of ours
    both = socket.has_dualstack_ipv6()
    with socket.create_server(("", 0), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both) as server:
        port = server.getsockname()[1]
        done = command("doctor", "--preflight", "--port-base", str(port), "--json")
    results = [r for r in json.loads(done.stdout)["results"] if r["check"] == "port.block"]
    assert results[0]["status"] == "warn"
    assert f"{port} (GCS)" in results[0]["measured"]
    assert f"pid {os.getpid()}" in results[0]["measured"] or os.geteuid() != 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path, capsys):
    tmp_path.chmod(0o555)
    main(["doctor", "--here", "--temp-dir", str(tmp_path / "ray"), "--json"])
    results = {r["check"]: r for r in json.loads(capsys.readouterr().out)["results"]}
    assert results["tmp.write"]["status"] == "fail"


def test_looking_leaves_nothing_behind(tmp_path, capsys):
    before = set(tmp_path.iterdir())
    main(["doctor", "--preflight", "--temp-dir", str(tmp_path / "t"), "--log-dir", str(tmp_path), "--json"])
    capsys.readouterr()
    left = {p.name for p in set(tmp_path.iterdir()) - before}
    assert left == {".rayrl-debug-mark"}
