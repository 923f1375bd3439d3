"""What can be wrong around us: each trouble gives one clear sentence, a hint and its exit code, and with ``--json`` one document."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.clusters import cluster, command, environment, program
from ports import free_port

from ray_rl_debug.model import gaps
from ray_rl_debug.model.codec import read_snapshot

pytestmark = pytest.mark.integration

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
TOKEN = "f3b6a1d94c0e4a5e9d1c7b2f8a6e5d40"
NEW_PIDS = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Any]]:
    """A cluster with a job of two actors."""
    with cluster(1) as c, program("job_program.py", c["address"], "Stage", 2) as job:
        yield {**c, **job}


def trouble(done: subprocess.CompletedProcess[str], code: int, id_: str) -> tuple[str, str]:
    """Sentence and hint of a failed command, on stderr and in the document."""
    assert done.returncode == code, (done.stdout, done.stderr)
    said = done.stderr.strip().splitlines()[-3:]
    assert [line[:7] for line in said] == ["error: ", "hint:  ", "id:    "], done.stderr
    assert "Traceback" not in done.stderr
    sentence, hint = said[0][7:], said[1][7:]
    assert f"{id_} " in said[2]
    document = json.loads(done.stdout)
    assert document["schema"] == "rayrl-debug/error/1"
    assert document["error"] == {"message": sentence, "hint": hint, "id": id_, "exit_code": code}
    return sentence, hint


def is_allowed(*prefix: str) -> bool:
    return subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0


def become_nobody() -> None:
    """Skip where a program cannot be started as another user, with the reason."""
    if os.geteuid() != 0 or not is_allowed(*NOBODY):
        pytest.skip("needs root and setpriv, to become another user")
    if subprocess.run([*NOBODY, sys.executable, "-c", "import click, ray_rl_debug"], capture_output=True, check=False, cwd="/").returncode:
        pytest.skip("other users may not read this Python environment")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter and write, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="rrd", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def test_the_address_is_no_address() -> None:
    sentence, hint = trouble(command("snapshot", "--address", "head", "--json"), 2, "RRD957")
    assert sentence == "'head' is not an address"
    assert "HOST:PORT" in hint


def test_the_address_is_of_the_dashboard() -> None:
    sentence, hint = trouble(command("snapshot", "--address", "http://127.0.0.1:8265", "--json"), 2, "RRD957")
    assert sentence == "http://127.0.0.1:8265 is a http address"
    assert "GCS" in hint


def test_nothing_listens_at_the_address() -> None:
    port = free_port()
    sentence, hint = trouble(command("snapshot", "--address", f"127.0.0.1:{port}", "--json"), 3, "RRD954")
    assert sentence == f"nothing listens at 127.0.0.1:{port}"
    assert "--here" in hint


def test_something_else_listens_at_the_address() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        sentence, _ = trouble(command("snapshot", "--address", address, "--timeout", "8", "--json"), 3, "RRD954")
    assert sentence.startswith(f"{address} accepts connections but does not answer")


def test_no_cluster_runs_here() -> None:
    if not is_allowed(*NEW_PIDS):
        pytest.skip("this kernel or container does not allow new PID namespaces")
    sentence, hint = trouble(command("snapshot", "--json", prefix=NEW_PIDS), 3, "RRD951")
    assert sentence == "no Ray cluster runs on this machine, and none was named"
    assert "--address" in hint
    sentence, _ = trouble(command("snapshot", "--here", "--json", prefix=NEW_PIDS), 3, "RRD951")
    assert sentence == "no raylet runs on this node"


def test_several_clusters_are_a_question_with_the_choices(running: dict[str, Any]) -> None:
    with cluster(1) as other:
        for more in ((), ("--here",)):
            sentence, hint = trouble(command("snapshot", *more, "--json"), 2, "RRD952")
            assert "Ray clusters run on this" in sentence
            for address in (running["address"], other["address"]):
                assert f"--address {address} (1 raylet of " in hint


def test_the_job_is_not_there(running: dict[str, Any]) -> None:
    sentence, hint = trouble(command("snapshot", "--address", running["address"], "--job", "77000000", "--json"), 2, "RRD957")
    assert sentence == "there is no job 77000000 on this cluster"
    assert running["job"] in hint


def test_the_process_is_not_there() -> None:
    sentence, _ = trouble(command("snapshot", "--pid", 2**22 + 1, "--json"), 3, "RRD951")
    assert sentence == f"there is no process {2**22 + 1} on this node"


def test_the_folder_for_the_result_cannot_be_written(running: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = command("snapshot", "--pid", running["pids"][0], "--samples", 1, "-o", tmp_path / "file" / "hang", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["schema"] == "rayrl-debug/report/1", "people are told all the same"
    sentence, hint, id_ = done.stderr.splitlines()[-3:]
    assert sentence.startswith("error: cannot write ")
    assert "--output" in hint
    assert "RRD958" in id_


@pytest.mark.parametrize("way", [("--address",), ("--here", "--address")])
def test_workers_of_another_user(running: dict[str, Any], way: tuple[str, ...], open_folder: Path) -> None:
    become_nobody()
    env = environment(HOME=str(open_folder))
    done = command("snapshot", *way, running["address"], "--timeout", 20, "--json", "-o", open_folder / "hang", prefix=NOBODY, env=env)
    assert done.returncode == 3, (done.stdout, done.stderr)
    report = json.loads(done.stdout)
    assert report["verdict"]["state"] == "unknown"
    assert report["verdict"]["next"] == "run rayrl-debug as the user who runs the job, or with sudo"
    refused = [g for g in report["gaps"] if g["id"] == gaps.STACKS_REFUSED]
    assert len(refused) == 1, "one gap per node, whatever the number of processes"
    assert refused[0]["remedy"] == report["verdict"]["next"]
    seen = {p.pid: p for n in read_snapshot(open_folder / "hang" / "snapshot.json.gz").nodes for p in n.processes}
    for pid in running["pids"]:
        assert seen[pid].title.startswith("ray::Stage")
        assert (seen[pid].state, seen[pid].samples) == ("S", ())
        assert seen[pid].cpu_s is not None


def test_py_spy_is_not_there(running: dict[str, Any], tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    for source in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
        for entry in Path(source).iterdir():
            if not entry.name.startswith(("py_spy", "py-spy")):
                (packages / entry.name).symlink_to(entry)
    interpreter = tmp_path / "bin" / "python"
    interpreter.parent.mkdir()
    interpreter.symlink_to(os.path.realpath(sys.executable))
    paths = os.pathsep.join([str(Path(__file__).parents[2]), str(packages)])
    env = environment(PYTHONPATH=paths, PATH="/usr/bin:/bin", PYTHONNOUSERSITE="1")
    argv = [str(interpreter), "-m", "ray_rl_debug", "snapshot", "--here", "--address", running["address"], "--samples", "2", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 3, (done.stdout, done.stderr)
    report = json.loads(done.stdout)
    (missing,) = [g for g in report["gaps"] if g["id"] == gaps.PYSPY_MISSING]
    assert missing["remedy"] == "pip install py-spy"
    assert report["verdict"]["next"] == "pip install py-spy"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A snapshot of this test's own process."""
    done = command("snapshot", "--pid", os.getpid(), "--samples", 1, "-q", "-o", tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    return tmp_path / "snapshot.json.gz"


def test_a_snapshot_that_is_cut_off(saved: Path) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: len(data) // 2])
    sentence, hint = trouble(command("report", saved, "--json"), 3, "RRD955")
    assert "cut off" in sentence
    assert str(saved.name) in sentence
    assert "copy it again" in hint


def test_a_snapshot_that_is_damaged(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 20] = bytes(20)
    saved.write_bytes(bytes(data))
    sentence, _ = trouble(command("report", saved, "--json"), 3, "RRD955")
    assert "damaged" in sentence or "cut off" in sentence


def test_a_snapshot_of_a_newer_schema(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text('{"schema": "rayrl-debug/snapshot/9", "taken_time_s": 0}')
    sentence, _ = trouble(command("report", file, "--json"), 3, "RRD955")
    assert "rayrl-debug/snapshot/9" in sentence


def test_a_snapshot_that_may_not_be_read(saved: Path, open_folder: Path) -> None:
    if os.geteuid() == 0:
        become_nobody()
    closed = open_folder / "snapshot.json.gz"
    closed.write_bytes(saved.read_bytes())
    closed.chmod(0o000)
    sentence, hint = trouble(command("report", closed, "--json", prefix=NOBODY if os.geteuid() == 0 else ()), 3, "RRD955")
    assert "Permission denied" in sentence
    assert "its owner" in hint


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    sentence, _ = trouble(command("report", tmp_path / "nothing.json.gz", "--json"), 2, "RRD957")
    assert "nothing.json.gz" in sentence


@pytest.fixture(scope="module")
def guarded() -> Iterator[dict[str, Any]]:
    """A cluster that asks for a token."""
    with cluster(1, env=environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=TOKEN)) as c:
        yield c


def stranger(home: Path, **more: str) -> dict[str, str]:
    """The environment of a user who has set nothing."""
    kept = {k: v for k, v in environment(HOME=str(home), **more).items() if not k.startswith("RAY_AUTH")}
    return {**kept, **more}


def test_a_cluster_that_asks_for_a_token_which_we_do_not_have(guarded: dict[str, Any], tmp_path: Path) -> None:
    done = command("snapshot", "--address", guarded["address"], "--json", env=stranger(tmp_path))
    sentence, hint = trouble(done, 3, "RRD953")
    assert "token" in sentence
    assert "RAY_AUTH_TOKEN_PATH" in hint


def test_a_cluster_that_refuses_our_token(guarded: dict[str, Any], tmp_path: Path) -> None:
    wrong = TOKEN[::-1]
    done = command("snapshot", "--address", guarded["address"], "--json", env=stranger(tmp_path, RAY_AUTH_TOKEN=wrong))
    sentence, _ = trouble(done, 3, "RRD953")
    assert "token" in sentence
    assert wrong not in done.stdout + done.stderr


@pytest.mark.parametrize("place", ["home", "path", "variable"])
def test_a_token_that_lies_where_ray_keeps_it_is_used_and_never_shown(guarded: dict[str, Any], place: str, tmp_path: Path) -> None:
    (tmp_path / ".ray").mkdir()
    file = tmp_path / (".ray/auth_token" if place == "home" else "token")
    file.write_text(TOKEN)
    more = {"home": {}, "path": {"RAY_AUTH_TOKEN_PATH": str(file)}, "variable": {"RAY_AUTH_TOKEN": TOKEN}}[place]
    done = command("snapshot", "--address", guarded["address"], "--samples", 1, "--json", "-o", tmp_path / "hang", env=stranger(tmp_path, **more))
    assert done.returncode in (0, 1, 3), done.stderr
    assert json.loads(done.stdout)["schema"] == "rayrl-debug/report/1"
    assert "the cluster asks for a token: using the one of" in done.stderr
    snapshot = read_snapshot(tmp_path / "hang" / "snapshot.json.gz")
    assert not {gaps.AGENT_SILENT, gaps.NODE_SILENT, gaps.RAY_TABLES} & {g.id for g in snapshot.gaps}, snapshot.gaps
    everything = done.stdout + done.stderr + (tmp_path / "hang" / "report.json").read_text() + repr(snapshot)
    assert TOKEN not in everything
