"""Names, titles, paths, environments and logs of other processes that are not UTF-8."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from faults.odd_names_program import ODD
from integration.programs import starting

from ray_rl_debug.collect.logs import read_log_paths
from ray_rl_debug.model.codec import decode_snapshot, encode, pack
from ray_rl_debug.model.foreign_text import as_text, map_text
from ray_rl_debug.model.snapshot import Gap, Node, OpenFile, Process, Snapshot

HERE = Path(__file__).parent
SHOWN = "caf\\xe9"
start = pytest.fixture(starting)


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-m", "ray_rl_debug", *(a if isinstance(a, bytes) else str(a) for a in arguments)]
    return subprocess.run(argv, capture_output=True, timeout=120, check=False, **options)


def odd_folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path) + b"/" + ODD


@pytest.fixture
def odd(start: Any, tmp_path: Path) -> subprocess.Popen[bytes]:
    """The program, ready; its title, its variable and its file of output are as odd as the rest."""
    program, ready = HERE / "odd_names_program.py", tmp_path / "ready"
    env: dict[bytes, bytes] = {**os.environb, b"RANK": b"3", b"NCCL_DEBUG_FILE": b"/tmp/" + ODD, b"VERL_" + ODD: b"1"}
    argv = [sys.executable, program, tmp_path, ready, os.fsdecode(b"--role=" + ODD), os.fsdecode(ODD + b".py")]
    child: subprocess.Popen[bytes] = start(*argv, ready=ready, env=env)
    return child


def test_a_process_with_odd_names_is_told_in_full(odd: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A process has a folder, an open file, a title, a variable, a thread, a socket and an output whose names are not UTF-8.
    Its snapshot, report and page are made, and name all of them with the odd bytes spelled out."""
    done = run("snapshot", "--pid", odd.pid, "--samples", 1, "--once", "--json", "-o", tmp_path / "out")
    assert done.returncode in (0, 1, 3), done.stderr
    report = json.loads(done.stdout)
    assert not [g for g in report["gaps"] if g["id"] == "RRD919"], report["gaps"]
    (process,) = decode_snapshot((tmp_path / "out" / "snapshot.json.gz").read_bytes()).nodes[0].processes
    assert process.cwd == f"{tmp_path}/{SHOWN}"
    assert {f.path for f in process.files or ()} >= {f"{tmp_path}/{SHOWN}/open-{SHOWN}", f"{tmp_path}/{SHOWN}/log-{SHOWN}"}
    assert process.title.endswith(f" … --role=… {SHOWN}.py") and process.samples
    assert process.env["RANK"] == "3" and not any(ord(c) > 127 for pair in process.env.items() for text in pair for c in text)
    names = {t.comm for t in process.threads}
    assert any("thr" in name for name in names), names
    sockets = {s.local for s in process.sockets or ()}
    assert any("sock-caf" in s for s in sockets) and any(s.startswith("@caf") for s in sockets), sockets
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"report.json", "report.txt", "report.html"}


def test_a_node_and_its_companion_files_are_made_from_odd_names(odd: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """The folder that the files go to and the working folder of the command have such names.
    The files are there, the command says so, and reads them again."""
    folder = os.fsencode(tmp_path) + b"/out-" + ODD
    done = run("snapshot", "--pid", odd.pid, "--samples", 1, "--once", "-o", folder, cwd=odd_folder(tmp_path))
    assert done.returncode in (0, 1, 3), done.stderr
    assert b"Traceback" not in done.stderr and os.path.exists(folder + b"/report.html")
    again = run(
        "report", folder + b"/snapshot.json.gz", cwd=odd_folder(tmp_path), env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict"}
    )
    assert again.returncode in (0, 1, 3), again.stderr
    assert again.stdout and b"Traceback" not in again.stderr


def test_a_log_with_an_odd_name_is_read(tmp_path: Path) -> None:
    """A log file's name and its text are not UTF-8, plain or packed, and one that cannot be read has such a name too.
    Known errors in it are found, and the report of the folder is one document."""
    folder = os.fsencode(tmp_path)
    text = b"\xe9\xff RuntimeError: received 0 items of ancdata \xe9\n"
    with open(folder + b"/" + ODD + b".log", "wb") as plain:
        plain.write(text)
    with open(folder + b"/" + ODD + b".gz", "wb") as packed:
        packed.write(gzip.compress(text))
    with open(folder + b"/bad-" + ODD + b".gz", "wb") as broken:
        broken.write(gzip.compress(text * 99)[:-20])
    lines, missing = read_log_paths([tmp_path])
    assert {Path(line.file).name for line in lines} >= {f"{SHOWN}.log", f"{SHOWN}.gz"}
    assert any(f"bad-{SHOWN}.gz" in gap.reason for gap in missing)
    assert all(encode(one) for one in (*lines, *missing))
    done = run("report", tmp_path, "--json")
    assert done.returncode in (0, 1, 3), done.stderr
    assert SHOWN in json.dumps(json.loads(done.stdout)).replace("\\\\", "\\")
    named = run("report", folder + b"/" + ODD + b".log", folder + b"/absent-" + ODD, "--json")
    json.loads(named.stdout)


def test_the_codec_never_raises_on_text() -> None:
    """A value with every kind of broken text reaches the codec past all doors.
    It is written and read back, with the broken places spelled out and everything else unchanged."""
    broken = "a\udce9b\ud800c\udfff"
    gap = Gap(id="RRD901", where=broken, what="é ok", reason=broken)
    process = Process(pid=1, title=broken, env={broken: broken}, files=(OpenFile(fd=1, path=broken, kind="file"),))
    whole = Snapshot(
        taken_time_s=1.0, nodes=(Node(name=broken, started_time_s=0, window_s=1, processes=(process,)),), gaps=(gap,), options={broken: broken}
    )
    back = decode_snapshot(encode(whole))
    spelled = "a\\xe9b\\ud800c\\udfff"
    assert back.gaps[0] == Gap(id="RRD901", where=spelled, what="é ok", reason=spelled)
    (node,) = back.nodes
    assert node.name == spelled and node.processes[0].env == {spelled: spelled}
    assert node.processes[0].files == (OpenFile(fd=1, path=spelled, kind="file"),)
    assert msgspec.msgpack.decode(pack(gap), type=Gap).where == spelled
    assert list(json.loads(encode(whole))) == list(json.loads(encode(map_text(whole, as_text))))


def test_text_from_outside_can_be_written() -> None:
    """Any bytes and any string of Python come from outside.
    They come out as text that can be encoded, and what could be encoded before is the same."""
    assert as_text(b"caf\xe9 \xc3\xa9") == "caf\\xe9 é"
    assert as_text(os.fsdecode(b"caf\xe9 \xc3\xa9")) == "caf\\xe9 é"
    assert as_text("é ok \0 \u2028") == "é ok \0 \u2028"


def test_an_odd_host_name_of_a_process_of_its_own(tmp_path: Path) -> None:
    """A machine's own name is not UTF-8.
    A snapshot of it is made and has a name for it."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root and namespaces, for a host name of its own")
    rename = "import os, socket, sys; socket.sethostname(os.fsencode(sys.argv[1])); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
    tool = ["-m", "ray_rl_debug", "snapshot", "--pid", str(os.getpid()), "--samples", "1", "--once", "--json"]
    argv = ["unshare", "--uts", sys.executable, "-c", rename, ODD, *tool]
    done = subprocess.run(argv, capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, 1, 3), done.stderr
    assert json.loads(done.stdout)["nodes"][0]["name"] == SHOWN
