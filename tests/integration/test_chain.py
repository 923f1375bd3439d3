"""The wait-for graph of a program of twelve processes, edge by edge, against what the program knows of itself."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from integration.clusters import command, program

pytestmark = [pytest.mark.integration, pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")]


@pytest.fixture(scope="module")
def truth() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="rrc", dir="/tmp", ignore_cleanup_errors=True) as folder:
        with program("chain_program.py", folder) as announced:
            yield announced


@pytest.fixture(scope="module")
def report(truth: dict[str, Any]) -> dict[str, Any]:
    done = command("snapshot", "--address", truth["address"], "--json")
    assert done.returncode == 1, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def test_twelve_processes(truth: dict[str, Any]) -> None:
    assert len(truth["pids"]) == 12


def test_every_edge_and_no_other(truth: dict[str, Any], report: dict[str, Any]) -> None:
    names = {pid: name for name, pid in truth["pids"].items()}
    found = {(names.get(x["waiter"]["pid"], x["waiter"]["label"]), names.get(x["target"]["pid"], x["target"]["label"])) for x in report["links"]}
    assert found == {(a, b) for a, b in truth["edges"]}


def test_the_cause_the_victims_and_the_chain(truth: dict[str, Any], report: dict[str, Any]) -> None:
    pids = truth["pids"]
    names = {pid: name for name, pid in pids.items()}
    assert report["verdict"]["state"] == "hang"
    (finding,) = report["findings"]
    assert (finding["cause"], [names[w["pid"]] for w in finding["who"]]) == ("blocked-io", [truth["cause"]])  # its handler stands in its own code
    assert {names[v["pid"]] for v in finding["victims"]} == set(pids) - {truth["cause"], "rollout_server_0", "rollout_server_1"}
    way = [(names[x["waiter"]["pid"]], names[x["target"]["pid"]]) for x in finding["chain"]]
    assert way[0][0] == "driver"
    assert way[-1] == ("scorer", truth["cause"])
    assert all(one[1] == following[0] for one, following in itertools.pairwise(way))
    assert len(way) >= 5
