"""Score a tool that claims to find the culprit of a hang, on real programs that hang on purpose.

    python -m examples.score --cmd 'TOOL {address}'                         all examples, one tool
    python -m examples.score --peers --only 'mismatch_*' --only trains_briskly
    python -m examples.score --cmd 'mine=TOOL --pid {driver}' --save mine.jsonl
    python -m examples.score --from mine.jsonl --from others.jsonl          the table again, of saved answers

Each example is started once; when its hang is reached, every tool is asked, one after another. A command may hold {address} (of the cluster's GCS),
{driver} (pid of the process that started the job; all others are below it) and {flight} (folder with Flight Recorder dumps; the ranks write them
when a command asks for them). The tool prints one JSON object; examples/scoring.py and docs/scoring.md tell its form. The truth is in
examples/truth.py. A tool that ends badly, takes longer than --timeout or prints no such object has accused nobody.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fnmatch
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent))  # for ``python -m examples.score``

import lab_runs
from peers import METHODS
from scoring import NoAnswerError, Score, judge, read_answer, sum_up, table, unanswered
from truth import TABLE, Row

FIELDS = ("address", "driver", "flight")
MAX_OUTPUT = 16 << 20
PEERS = Path(__file__).resolve().with_name("peers.py")
PEER = f"{shlex.quote(sys.executable)} {shlex.quote(str(PEERS))} {{method}} --address {{{{address}}}} --driver {{{{driver}}}}"


class WrongUsageError(Exception):
    """What was asked for cannot be done; the message says why, and what to type instead."""


def commands_of(given: Sequence[str], peers: bool) -> dict[str, str]:
    """Command templates by the tool's name; ``NAME=COMMAND`` gives the name, else it is the command's first word. Raises WrongUsageError."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, command = text.partition("=")
        if not equals or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            name, command = Path((text.split() or ["?"])[0]).name, text
        found[name] = command
    if peers:
        for method in METHODS:
            found[method] = PEER.format(method=method) + (" --flight {flight}" if method == "torch-analyser" else "")
    for name, command in found.items():
        try:
            words = [word.format(**dict.fromkeys(FIELDS, 1)) for word in shlex.split(command)]
        except (ValueError, LookupError, AttributeError) as e:
            why = f"holds {{{e.args[0]}}}" if isinstance(e, LookupError) else str(e)
            raise WrongUsageError(f"the command of {name}: {why}; it may hold {{address}}, {{driver}}, {{flight}}, and {{{{ for a brace") from None
        if not words:
            raise WrongUsageError(f"the command of {name} is empty")
    return found


def chosen(patterns: Sequence[str], runnable: Mapping[str, Any]) -> list[Row]:
    """The examples of these names or patterns that can run here. Raises WrongUsageError when there are none."""
    rows = [r for r in TABLE if r.scenario in runnable and (not patterns or any(fnmatch.fnmatch(r.scenario, p) for p in patterns))]
    if not rows:
        raise WrongUsageError("no example of that name can run here: python examples/hang_lab.py list tells them; most need torch")
    return rows


def ask(command: str, values: Mapping[str, Any], timeout_s: float) -> str:
    """The tool's standard output. It and all that it started in its session end at the deadline. Raises NoAnswerError."""
    words = [word.format(**values) for word in shlex.split(command)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        try:
            tool = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,
                env={**os.environ, "RAY_AUTH_MODE": "disabled"},
            )
        except OSError as e:
            raise NoAnswerError(f"{words[0]}: {e.strerror}") from None
        try:
            tool.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise NoAnswerError(f"not done after {timeout_s:.0f} s") from None
        finally:
            if tool.poll() is None:
                os.killpg(tool.pid, signal.SIGKILL)
                tool.wait()
        out.seek(0)
        data = out.read(MAX_OUTPUT + 1)
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - 2000))
        last = (errors.read().decode("utf-8", errors="replace").strip().splitlines() or ["nothing on stderr"])[-1]
    if len(data) > MAX_OUTPUT:
        raise NoAnswerError(f"more than {MAX_OUTPUT >> 20} MiB")
    if not data.strip() and tool.returncode:
        raise NoAnswerError(f"it ended with {tool.returncode}: {last[:200]}")
    return data.decode("utf-8", errors="replace")


def run(row: Row, tools: Mapping[str, str], timeout_s: float) -> Iterator[tuple[str, Score]]:
    """Start one example, and ask each tool about it. Raises lab_runs.NotReachedError."""
    with tempfile.TemporaryDirectory(prefix="score-") as folder:
        flight = Path(folder, "flight")
        more = ("--flight", str(flight)) if any("{flight}" in command for command in tools.values()) else ()
        hold_s = 30 + (timeout_s + 5) * len(tools)
        with lab_runs.running(row.scenario, Path(folder, "lab.log"), hold_s=hold_s, more=more) as announced:
            values = {"address": announced["gcs_address"], "driver": announced["pids"]["driver"], "flight": flight}
            stopped = _stopped(values["driver"])
            for name, command in tools.items():
                started = time.monotonic()
                try:
                    answer = read_answer(ask(command, values, timeout_s))
                    score = judge(row, answer, announced["pids"], announced["truth"]["victims"])
                except NoAnswerError as e:
                    score = unanswered(row, str(e))
                took_s = round(time.monotonic() - started, 1)
                yield name, dataclasses.replace(score, took_s=took_s, left_stopped=_wake(values["driver"], stopped))


def _stopped(driver: int) -> set[int]:
    """Processes below the driver that are stopped; some examples stop one."""
    found = set()
    for process in psutil.Process(driver).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP):
                found.add(process.pid)
    return found


def _wake(driver: int, before: set[int]) -> int:
    """A tool that dies while it reads a process leaves it stopped. The next tool shall see the same hang: let those go on, and count them."""
    left = _stopped(driver) - before
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    return len(left)


def saved(paths: Sequence[Path]) -> dict[str, dict[str, Score]]:
    """Scores by tool and example out of files that --save wrote; of two of the same the later counts. Raises WrongUsageError."""
    found: dict[str, dict[str, Score]] = {}
    for path in paths:
        try:
            for line in path.read_text(encoding="utf-8").splitlines():
                one = json.loads(line)
                tool = one.pop("tool")
                score = Score(**one)
                found.setdefault(tool, {})[score.example] = score
        except OSError as e:
            raise WrongUsageError(f"{path}: {e.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise WrongUsageError(f"{path} is no file that --save wrote") from None
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmd", action="append", default=[], metavar="[NAME=]COMMAND", help="a tool to score; may be given several times")
    parser.add_argument("--peers", action="store_true", help="score the methods of examples/peers.py as well, ours among them")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="these examples; * and ? as in file names")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for one answer of one tool; default 60")
    parser.add_argument("--save", type=Path, metavar="FILE", help="add each score as a line of JSON")
    parser.add_argument("--from", dest="read", action="append", type=Path, default=[], metavar="FILE", help="count what --save wrote as well")
    given = parser.parse_args()
    try:
        scores = saved(given.read)
        tools = commands_of(given.cmd, given.peers)
        rows = chosen(given.only, lab_runs.listed()) if tools else []
        if not tools and not scores:
            raise WrongUsageError("nothing to score: give --cmd, --peers or --from")
    except WrongUsageError as e:
        parser.error(str(e))
    for row in rows:
        try:
            for tool, score in run(row, tools, given.timeout):
                scores.setdefault(tool, {})[score.example] = score
                print(f"{score.example}  {tool}  {score.who}  {score.took_s:.1f} s  {score.said}", file=sys.stderr, flush=True)
                if given.save:
                    with given.save.open("a", encoding="utf-8") as f:
                        f.write(json.dumps({"tool": tool, **dataclasses.asdict(score)}) + "\n")
        except lab_runs.NotReachedError as e:
            print(f"left out {e}", file=sys.stderr, flush=True)
    print(table([sum_up(tool, list(by_example.values())) for tool, by_example in scores.items()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
