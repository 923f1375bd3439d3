"""Real starts of Ray that hang: too many workers on one core, a taken port, an address that nobody answers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from clusters import command, environment, wait_for
from test_doctor_real import many_cpus

pytestmark = pytest.mark.integration

RAY = str(Path(sys.executable).with_name("ray"))
NO_ADDRESS = "192.0.2.77:6379"  # of a network that exists nowhere (RFC 5737)


@contextlib.contextmanager
def running(argv: list[str], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended with everything it started."""
    with log.open("wb") as out:
        child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield child
    finally:
        family = [child.pid]
        with contextlib.suppress(psutil.NoSuchProcess):
            family += [p.pid for p in psutil.Process(child.pid).children(recursive=True)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait(20)


def raylet_below(pid: int) -> psutil.Process | None:
    with contextlib.suppress(psutil.NoSuchProcess):
        return next((p for p in psutil.Process(pid).children(recursive=True) if p.name() == "raylet"), None)
    return None


def finding(done: Any) -> dict[str, Any]:
    return first_of(json.loads(done.stdout))


def first_of(report: dict[str, Any]) -> dict[str, Any]:
    assert report["verdict"]["state"] == "hang", report["verdict"]
    found: dict[str, Any] = report["findings"][0]
    assert (found["id"], found["cause"]) == ("RRD406", "raylet-start")
    return found


def test_plain_ray_init_on_one_core_of_many_hangs_and_the_raylets_log_says_why():
    folder = Path(tempfile.mkdtemp(prefix="rrd", dir="/tmp"))
    try:
        env = {**many_cpus(folder, 24), "RAY_worker_register_timeout_seconds": "2"}
        code = f"import ray; ray.init(include_dashboard=False, _temp_dir={str(folder / 'ray')!r}, object_store_memory=80 << 20); print('came back')"
        with running(["taskset", "-c", "0", sys.executable, "-c", code], env, folder / "log") as driver:
            wait_for(lambda: any("not registered within the timeout" in p.read_text() for p in folder.glob("ray/session_2*/logs/raylet.err")), 90)
            raylet = raylet_below(driver.pid)
            assert raylet is not None
            address = next(a.partition("=")[2] for a in raylet.cmdline() if a.startswith("--gcs-address="))
            found = finding(command("snapshot", "--here", "--address", address, "--json", "--samples", "2", "--interval", "0.5"))
            assert driver.poll() is None
            assert "came back" not in (folder / "log").read_text()
        assert "its workers do not register in time" in found["summary"]
        assert re.search(r"on 1 core\)", found["summary"])
        assert found["who"][0]["pid"] == driver.pid
        assert any(e["kind"] == "log" and "not registered within the timeout" in e["text"] for e in found["evidence"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_an_address_that_nobody_answers_is_told_by_the_connection(tmp_path):
    with running([sys.executable, "-c", f"import ray; ray.init(address={NO_ADDRESS!r})"], environment(), tmp_path / "log") as driver:
        time.sleep(2)
        deadline = time.monotonic() + 40
        while True:
            done = command("snapshot", "--pid", driver.pid, "--json", "--samples", "2", "--interval", "0.5")
            if json.loads(done.stdout)["findings"] or time.monotonic() > deadline:
                break
        found = finding(done)
    assert f"no process answers at {NO_ADDRESS}" in found["summary"] or "no GCS answers" in found["summary"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a process table of its own needs root")
def test_a_taken_port_where_no_raylet_ever_came_up(tmp_path):
    """`snapshot --here` needs no raylet: it finds ray start, and the log of the session that it made."""
    folder = Path(tempfile.mkdtemp(prefix="rrd", dir="/tmp"))
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        start = f"{RAY} start --head --port={port} --num-cpus=1 --include-dashboard=false --temp-dir={folder}/ray"
        script = f"""
{start} >{tmp_path}/start.log 2>&1 &
for i in $(seq 600); do grep -qs 'Failed to start the grpc server' {folder}/ray/session_2*/logs/gcs_server.err && break; sleep 0.1; done
{sys.executable} -m ray_rl_debug snapshot --here --json --samples 2 --interval 0.5
kill $!
"""
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script]
        try:
            done = subprocess.run(apart, capture_output=True, text=True, timeout=120, check=False, env=environment())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if "unshare" in done.stderr:
        pytest.skip(f"namespaces are not allowed here: {done.stderr.strip()}")
    found = finding(done)
    assert "a port of Ray is taken" in found["summary"]
    assert any("gcs_server.err" in e["where"] for e in found["evidence"])


KNOCK = """
knock() {{ # name, words in its output that tell that it waits, variables
  local name=$1 words=$2
  shift 2
  env "$@" {python} -c "import ray; ray.init(address='$address')" >{folder}/$name.log 2>&1 &
  local driver=$!
  for i in $(seq 900); do grep -qs "$words" {folder}/$name.log && break; sleep 0.1; done
  for i in $(seq 10); do
    {python} -m ray_rl_debug snapshot --here --json --samples 2 --interval 0.5 >{folder}/$name.json 2>{folder}/$name.err
    grep -q RRD406 {folder}/$name.json && break
  done
  echo $driver >{folder}/$name.pid
  kill -KILL $driver
}}
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH={folder}/token
size="--num-cpus=1 --include-dashboard=false --object-store-memory=80000000"
{ray} start --head --port={port} $size --temp-dir={folder}/ray >{folder}/start.log 2>&1
address=$(grep -o "[0-9.]*:{port}" {folder}/start.log | head -n 1)
knock token InvalidAuthToken RAY_AUTH_TOKEN_PATH={folder}/other
gcs=$(pgrep -x gcs_server)
kill -STOP $gcs
knock stopped "Connecting to existing Ray cluster" A=1
kill -CONT $gcs
kill -KILL $(pgrep -x raylet)
knock gone "Connecting to existing Ray cluster" A=1
kill -KILL $gcs
knock killed "Connecting to existing Ray cluster" A=1
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a process table of its own needs root")
def test_a_refused_token_a_stopped_and_a_dead_gcs_and_a_dead_raylet_are_told_apart():
    """The driver is in no table and in no session, and Ray cannot be asked."""
    folder = Path(tempfile.mkdtemp(prefix="rrd", dir="/tmp"))
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
    for name, letter in (("token", "a"), ("other", "b")):
        (folder / name).write_text(letter * 40)
    script = KNOCK.format(folder=folder, python=sys.executable, ray=RAY, port=port)
    try:
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script]
        done = subprocess.run(apart, capture_output=True, text=True, timeout=280, check=False, env=environment())
        if "unshare" in done.stderr:
            pytest.skip(f"namespaces are not allowed here: {done.stderr.strip()}")
        reports = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("token", "stopped", "gone", "killed")}
        drivers = {name: int((folder / f"{name}.pid").read_text()) for name in reports}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    token, stopped, gone, killed = (first_of(reports[name]) for name in ("token", "stopped", "gone", "killed"))
    assert "the token is refused" in token["summary"]
    assert token["who"][0]["pid"] == drivers["token"]
    assert any(e["kind"] == "log" and "InvalidAuthToken" in e["text"] for e in token["evidence"])
    assert "is stopped (state T)" in stopped["summary"]
    assert (stopped["who"][0]["label"], stopped["certainty"]) == ("GCS", "proven")
    assert "the GCS answers but knows no live raylet on this node" in gone["summary"]
    assert "no GCS answers, and none runs on this node" in killed["summary"]
    assert killed["who"][0]["pid"] == drivers["killed"]
