"""Real engines, real troubles, one row each: ``PYTHONPATH=tests python -m engines.lab CASE... [--times N] [--out DIR] [--keep] [--tool CHECKOUT]``.

A case may be a pattern as of the shell (``vllm-tp1-*``). A program is started once for all its cases and brought back to rest between them, and
started again only after a trouble that it does not survive. ``--list`` names the cases with what is true of them.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import fnmatch
import json
import random
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from engines import cases_clients, cases_sglang, cases_verl, cases_vllm
from engines.tool import CHECKOUT, Look, report, snapshot
from engines.truth import Case
from frameworks.environments import cache

PROGRAMS: dict[str, Callable[[], Any]] = {**cases_vllm.PROGRAMS, **cases_verl.PROGRAMS, **cases_sglang.PROGRAMS, **cases_clients.PROGRAMS}
CASES: tuple[Case, ...] = (*cases_vllm.CASES, *cases_verl.CASES, *cases_sglang.CASES, *cases_clients.CASES)


class Program(Protocol):
    """What the lab wants of a server or trainer."""

    folder: Path
    is_engine: bool
    """Whether it must have the machine for itself."""

    def start(self) -> None: ...
    def where(self) -> Sequence[str]: ...
    def settle(self) -> None: ...
    def stop(self) -> None: ...


class Row(NamedTuple):
    """One look at one case."""

    case: str
    n: int
    state: str
    finding: str
    is_right: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.case:<32} {self.n:>3}  {self.state:<8} {'right' if self.is_right else 'WRONG'}  {self.seconds:5.1f} s  {self.finding}"


class Options(NamedTuple):
    times: int = 1
    out: Path | None = None
    tool: Path = CHECKOUT
    keep: bool = False
    fresh: bool = False
    """Every sick case gets a program of its own: what it has gone through before says nothing about what is usual."""


def chosen(patterns: Sequence[str]) -> list[Case]:
    return [case for case in ordered() if any(fnmatch.fnmatch(case.name, pattern) for pattern in patterns)]


def ordered() -> list[Case]:
    """In an order that needs as few starts as possible: healthy cases first, fatal ones last."""
    programs = list(PROGRAMS)
    return sorted(CASES, key=lambda case: (programs.index(case.program), case.is_fatal, not case.is_healthy))


class Bench:
    """At most one running program: kept for the next case where that is possible."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.name = ""
        self.program: Program | None = None
        self.turn: IO[str] | None = None

    def rows(self, case: Case, times: int) -> Iterator[Row]:
        """Healthy cases are looked at many times in one go, sick ones made anew each time."""
        for n in range(1, (1 if case.is_healthy else times) + 1):
            try:
                program = self.running(case)
            except Exception as error:
                traceback.print_exc()
                yield Row(case.name, n, "-", f"the program did not start: {type(error).__name__} {error}"[:200], False, 0.0)
                continue
            yield from _looks(case, n, times, program, self.options)
            self.after(case)

    def running(self, case: Case) -> Any:
        """The program that the case needs, started if it is not there."""
        if self.name != case.program:
            self.close()
        if self.program is None:
            self.program, self.name = PROGRAMS[case.program](), case.program
            if self.program.is_engine:
                self._wait_for_turn()
            try:
                self.program.start()
            except BaseException:
                # What could not start has cleaned up after itself.
                self.program = None
                self.close()
                raise
        return self.program

    def after(self, case: Case) -> None:
        """Keeps the program for the next case where that is possible."""
        if case.is_fatal or (self.options.fresh and not case.is_healthy) or (self.program is not None and not _is_settled(self.program)):
            self.close()

    def close(self) -> None:
        program, self.program = self.program, None
        if program is not None:
            program.stop()
            if not self.options.keep:
                shutil.rmtree(program.folder, ignore_errors=True)
        if self.turn is not None:
            self.turn.close()
            self.turn = None

    def _wait_for_turn(self) -> None:
        """One engine at a time on a machine: two of them starve each other and what is measured."""
        self.turn = (cache() / "running.lock").open("w")
        try:
            fcntl.flock(self.turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("# another engine runs on this machine: waiting for its end", flush=True)
            fcntl.flock(self.turn, fcntl.LOCK_EX)


def run(cases: Sequence[Case], options: Options) -> Iterator[Row]:
    """Every case so many times."""
    with contextlib.closing(Bench(options)) as bench:
        for case in cases:
            yield from bench.rows(case, options.times)


def _is_settled(program: Program) -> bool:
    try:
        program.settle()
    except Exception as error:
        print(f"# started again: {type(error).__name__} {error}", flush=True)
        return False
    return True


def _looks(case: Case, n: int, times: int, program: Program, options: Options) -> Iterator[Row]:
    try:
        with case.trouble(program) as pids:
            for one in range(n, (times if case.is_healthy else n) + 1):
                time.sleep(random.uniform(0, 3) if case.is_healthy else case.wait_s)
                output = options.out / case.name / str(one) if options.out else None
                look = snapshot(program.where(), output, options.tool)
                if output is not None:
                    output.mkdir(parents=True, exist_ok=True)
                    (output / "culprits.json").write_text(json.dumps(list(pids)))
                yield judged(case, one, look, pids)
    except Exception as error:
        traceback.print_exc()
        yield Row(case.name, n, "-", f"the case was not made: {type(error).__name__} {error}"[:200], False, 0.0)


def again(folder: Path, patterns: Sequence[str], tool: Path) -> Iterator[Row]:
    """What the command says now of the snapshots that were kept."""
    for case in chosen(patterns or ["*"]):
        for file in sorted(folder.glob(f"{case.name}/*/snapshot.json.gz")):
            culprits = file.with_name("culprits.json")
            pids = json.loads(culprits.read_text()) if culprits.exists() else ()
            yield judged(case, int(file.parent.name), report(file, tool), pids)


def judged(case: Case, n: int, look: Look, pids: Collection[int]) -> Row:
    verdict, findings = look.report["verdict"], look.report["findings"]
    first = f"{verdict.get('summary')}"
    if findings:
        f = findings[0]
        who = ", ".join(f"{w['label']}" for w in f["who"])
        first = f"{f['id']} {f['certainty']} {f['cause']} [{who}] {f['summary']}"
    return Row(case.name, n, verdict["state"], first[:260], case.truth.is_told(look.report, pids), look.seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="engines.lab", description=__doc__)
    parser.add_argument("case", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep each snapshot there: DIR/CASE/N/snapshot.json.gz")
    parser.add_argument("--keep", action="store_true", help="keep the programs' folders with their logs")
    parser.add_argument("--fresh", action="store_true", help="start the program anew for each sick case")
    parser.add_argument("--again", type=Path, metavar="DIR", help="start nothing: judge the snapshots that --out has kept there")
    parser.add_argument("--tool", type=Path, default=CHECKOUT, help="the checkout whose command is run")
    asked = parser.parse_args()
    if asked.list or not (asked.case or asked.again):
        for case in CASES:
            print(f"{case.name:<32} {'/'.join(case.truth.states):<14} {'/'.join(case.truth.causes)}")
        return 0
    rows = []
    tool = asked.tool.resolve()
    options = Options(asked.times, asked.out, tool, asked.keep, asked.fresh)
    with contextlib.suppress(KeyboardInterrupt):
        for row in again(asked.again, asked.case, tool) if asked.again else run(chosen(asked.case), options):
            rows.append(row)
            print(row, flush=True)
    print(f"{sum(row.is_right for row in rows)} of {len(rows)} right")
    return 0 if rows and all(row.is_right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
