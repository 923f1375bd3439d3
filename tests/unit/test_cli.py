"""The command line: exit codes, streams, errors as documents, instant start."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ray_rl_debug.commands.cli import VERBS, main
from ray_rl_debug.commands.options import exit_code
from ray_rl_debug.commands.shortages import shortage
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.report import Cause, Certainty, Finding, Report, State, Verdict

HAND = Path(__file__).parent.parent / "data" / "hand"


def make(state: State, certainty: Certainty | None = None) -> Report:
    finding = Finding(id="RRD101", name="n", cause=Cause.STRAGGLER, certainty=certainty or Certainty.LIKELY, summary="s", root=True)
    return Report(
        verdict=Verdict(state=state, summary="why", certainty=Certainty.LIKELY),
        findings=(finding,) if certainty else (),
    )


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (make(State.HANG, Certainty.PROVEN), 1),
        (make(State.SLOW, Certainty.POSSIBLE), 1),
        (make(State.HEALTHY), 0),
        (make(State.HEALTHY, Certainty.POSSIBLE), 0),
        (make(State.FINISHED), 0),
        (make(State.FINISHED, Certainty.LIKELY), 1),
        (make(State.UNKNOWN), 3),
        (make(State.UNKNOWN, Certainty.POSSIBLE), 3),
        (make(State.UNKNOWN, Certainty.LIKELY), 1),
    ],
)
def test_exit_codes(report: Report, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(report) == code
    (tmp_path / "report.json").write_bytes(encode(report))
    assert main(["report", str(tmp_path / "report.json")]) == code
    assert capsys.readouterr().out.startswith(report.verdict.state.value.upper())


def test_json_is_one_document_and_files_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.json").write_bytes(encode(make(State.HANG, Certainty.PROVEN)))
    assert main(["report", str(tmp_path / "report.json"), "--json", "-o", str(tmp_path / "out")]) == 1
    streams = capsys.readouterr()
    assert json.loads(streams.out)["schema"] == "rayrl-debug/report/1"
    assert "saved in" in streams.err
    assert (tmp_path / "out" / "report.txt").read_text().startswith("HANG")
    assert json.loads((tmp_path / "out" / "report.json").read_text())["verdict"]["state"] == "hang"


def test_errors_are_three_lines_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "core").write_bytes(b"\x00")
    assert main(["report", str(tmp_path / "core")]) == 3
    streams = capsys.readouterr()
    assert streams.out == ""
    error, hint, id_ = streams.err.splitlines()
    assert error == "error: nothing usable: core: binary data, no stacks"
    assert hint.startswith("hint:  ")
    assert id_ == "id:    RRD955 (rayrl-debug explain RRD955)"


def test_errors_are_documents_with_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "core").write_bytes(b"\x00")
    assert main(["report", "--json", str(tmp_path / "core")]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "rayrl-debug/error/1"
    assert document["error"]["id"] == "RRD955"
    assert document["error"]["exit_code"] == 3


@pytest.mark.parametrize("arguments", [["snapshto"], ["report"], ["snapshot", "--samples", "0"], ["snapshot", "--address", "x", "--here"], []])
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("verb", [v.name for v in VERBS])
def test_every_verb_has_help_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"rayrl-debug {verb}" in capsys.readouterr().out.split("Examples:")[1]


def test_a_pipe_gets_no_colours_and_may_close(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(encode(make(State.HANG, Certainty.PROVEN)))
    command = [sys.executable, "-m", "ray_rl_debug", "report", str(tmp_path / "report.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\x1b" not in done.stdout


def test_start_is_instant_because_nothing_heavy_is_imported() -> None:
    program = (
        "import sys; from ray_rl_debug.commands.cli import main; main(['--help'])\n"
        "heavy = {'ray', 'torch', 'numpy', 'grpc', 'opentelemetry', 'rich', 'yaml', 'psutil', 'pynvml'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOSPC, "x", "/a"), OSError(errno.EAGAIN, "x")])
def test_what_is_short_has_a_cure(error: Exception) -> None:
    told = shortage(error)
    assert told is not None
    assert all(told)
    assert shortage(OSError(errno.ENOENT, "x")) is None
    assert shortage(ValueError()) is None
