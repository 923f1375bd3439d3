"""Real programs of many kinds of waiting, and their healthy twins: ``PYTHONPATH=tests python -m kinds.lab NAME[/hang|/healthy]...``.

One row a look: right or wrong, the state, the first finding. A name may be a pattern as of the shell. ``--out DIR`` keeps each snapshot and report
below DIR/NAME/{hang,healthy}/N, ``--again DIR`` judges what was kept there with the present code, ``--record DIR`` takes the first look at each into
``recorded/``, under names that belong to no machine; with ``--beside 2`` next to one that is there.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fnmatch
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import psutil
from cases.store import neutral
from engines.processes import end, until
from engines.tool import CHECKOUT, Look, report, snapshot
from kinds.truth import PROGRAMS, Program

from ray_rl_debug.model.codec import encode, read_snapshot

HERE = Path(__file__).parent / "programs"
MARKS = Path(__file__).parent / "recorded" / "marks.json"
STOOD_S = 12.0
"""So long ago is the last mark of a program that hangs."""
STEPS = 2
"""A healthy one is looked at after so many."""
START_S = 180.0


class Row(NamedTuple):
    """One look at one program."""

    name: str
    n: int
    state: str
    finding: str
    is_right: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.name:<32} {self.n:>2}  {self.state:<8} {'right' if self.is_right else 'WRONG'}  {self.seconds:5.1f} s  {self.finding}"


@contextlib.contextmanager
def running(program: Program, healthy: bool) -> Iterator[Path]:
    """The folder of a program that hangs or has made its first steps."""
    folder = Path(tempfile.mkdtemp(prefix="rk", dir="/tmp"))
    command = [sys.executable, str(HERE / f"{program.name}.py"), str(folder), *(["--healthy"] if healthy else [])]
    variables = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(HERE)}
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(command, env=variables, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        until(lambda: _is_there(child, folder, program, healthy), START_S, f"{program.name} is ready", every=0.2)
        yield folder
    except Exception:
        print((folder / "log").read_text(errors="replace")[-3000:], file=sys.stderr)
        raise
    finally:
        end(child.pid)
        child.wait(10)
        end_session(child.pid)
        remove_system_v(folder)
        shutil.rmtree(folder, ignore_errors=True)


def remove_system_v(folder: Path) -> None:
    """Queues and semaphores of System V, which outlive whoever made them; a program tells their numbers with a mark."""
    libc = ctypes.CDLL(None)
    for mark in marked(folder).values():
        if "semaphore" in mark:
            libc.semctl(mark["semaphore"], 0, 0)
        if "queue" in mark:
            libc.msgctl(mark["queue"], 0, None)


def end_session(leader: int) -> None:
    """What the program has started meanwhile, as pools do that replace a dead worker, or has left behind."""
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(process.pid) == leader and process.pid != leader:
                process.kill()


def _is_there(child: subprocess.Popen[bytes], folder: Path, program: Program, healthy: bool) -> bool:
    if child.poll() is not None:
        raise RuntimeError(f"{program.name} ended with {child.returncode}")
    steps = int((folder / "step").read_text()) if (folder / "step").exists() else 0
    if healthy:
        return steps >= STEPS
    if not all((folder / name).exists() for name in ("left", *(f"{name}.json" for name in program.who if ":" not in name))):
        return False
    return time.time() - max(file.stat().st_mtime for file in (*folder.glob("*.json"), *folder.glob("step"), folder / "left")) >= STOOD_S


def marked(folder: Path) -> dict[str, Any]:
    """What the program told of itself."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}


def looks(program: Program, healthy: bool, times: int, out: Path | None, tool: Path, after_s: float = 0.0) -> Iterator[Row]:
    """Healthy ones are looked at several times in one go, so much later if asked for; the others are made anew each time."""
    name = f"{program.name}/{'healthy' if healthy else 'hang'}"
    n = 0
    while n < times:
        try:
            with running(program, healthy) as folder:
                time.sleep(after_s if healthy else 0)
                for _ in range(times if healthy else 1):
                    n += 1
                    time.sleep(random.uniform(0, 3) if healthy else 0)
                    marks = marked(folder)
                    where = ("--address", marks["cluster"]["address"]) if "cluster" in marks else ("--pid", str(marks["main"]["pid"]))
                    kept = out / name / str(n) if out else None
                    look = snapshot(where, kept, tool)
                    marks = marked(folder)
                    if kept is not None:
                        kept.mkdir(parents=True, exist_ok=True)
                        (kept / "marks.json").write_text(json.dumps(marks))
                    yield judged(program, name, n, look, marks, healthy)
        except Exception as error:
            traceback.print_exc()
            yield Row(name, n, "-", f"not made: {type(error).__name__} {error}"[:200], False, 0.0)
            return


def judged(program: Program, name: str, n: int, look: Look, marks: Mapping[str, Any], healthy: bool) -> Row:
    verdict, findings = look.report["verdict"], look.report["findings"]
    told = str(verdict.get("summary"))
    pids = {role: mark["pid"] for role, mark in marks.items()}
    if findings:
        first = findings[0]
        roles = {pid: role for role, pid in pids.items()}
        who = ", ".join(roles.get(one.get("pid")) or one["label"] for one in first["who"])
        told = f"{first['id']} {first['certainty']} {first['cause']} [{who}] {first['summary']}"
    return Row(name, n, verdict["state"], told[:260], program.is_told(look.report, pids, healthy), look.seconds)


def again(folder: Path, asked: Sequence[tuple[Program, bool]], tool: Path) -> Iterator[Row]:
    """What the command says now of the snapshots that were kept."""
    for program, healthy in asked:
        name = f"{program.name}/{'healthy' if healthy else 'hang'}"
        for file in sorted((folder / name).glob("*/snapshot.json.gz")):
            marks = json.loads(file.with_name("marks.json").read_text())
            yield judged(program, name, int(file.parent.name), report(file, tool), marks, healthy)


def record(folder: Path, asked: Sequence[tuple[Program, bool]], beside: str = "", names: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Takes what was kept of these programs among the recorded ones; gives their names.

    Args:
        folder: What ``--out`` was told.
        asked: Programs and twins.
        beside: Number of a further look at one of which another is recorded.
        names: Folders of the machine to neutral ones, where that is not this one.
    """
    known = json.loads(MARKS.read_text())
    for program, healthy in asked:
        how = "healthy" if healthy else "hang"
        kept = folder / program.name / how / "1"
        if not (kept / "snapshot.json.gz").exists():
            continue
        snapshot = neutral(read_snapshot(kept / "snapshot.json.gz"), {**(names or {str(HERE): "/srv/programs", sys.prefix: "/opt/env"})})
        name = f"{program.name}-{how}{beside and '.'}{beside}"
        (MARKS.parent / f"{name}.json.gz").write_bytes(gzip.compress(encode(snapshot), 9, mtime=0))
        known[name] = {role: mark["pid"] for role, mark in json.loads((kept / "marks.json").read_text()).items()}
        yield name
    MARKS.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")


def chosen(patterns: Sequence[str]) -> list[tuple[Program, bool]]:
    """Programs and twins; a name without a slash means both."""
    both = [(program, healthy, f"{name}/{'healthy' if healthy else 'hang'}") for name, program in PROGRAMS.items() for healthy in (False, True)]
    return [(p, h) for p, h, name in both if any(fnmatch.fnmatch(name, one) or fnmatch.fnmatch(p.name, one) for one in patterns)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="kinds.lab", description=__doc__)
    parser.add_argument("name", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep each snapshot there: DIR/NAME/{hang,healthy}/N")
    parser.add_argument("--again", type=Path, metavar="DIR", help="start nothing: judge the snapshots that --out has kept there")
    parser.add_argument("--record", type=Path, metavar="DIR", help="start nothing: take what --out has kept there among the recorded ones")
    parser.add_argument("--beside", default="", metavar="N", help="with --record: its number, where one of that name is recorded")
    parser.add_argument(
        "--after", type=float, default=0.0, metavar="S", help="look at healthy ones so much later: who lives long is judged otherwise"
    )
    parser.add_argument("--tool", type=Path, default=CHECKOUT, help="the checkout whose command is run")
    asked = parser.parse_args()
    if asked.list or not (asked.name or asked.again or asked.record):
        for program in PROGRAMS.values():
            print(f"{program.name:<24} {program.kind:<34} {' '.join(program.who):<26} {' '.join(program.causes)}")
        return 0
    tool, cases = asked.tool.resolve(), chosen(asked.name or ["*"])
    if asked.record:
        print(*record(asked.record, cases, asked.beside), sep="\n")
        return 0
    if asked.again:
        found = again(asked.again, cases, tool)
    else:
        found = (row for program, healthy in cases for row in looks(program, healthy, asked.times, asked.out, tool, asked.after))
    rows = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who ends us ends our programs
    with contextlib.suppress(KeyboardInterrupt):
        for row in found:
            rows.append(row)
            print(row, flush=True)
    print(f"{sum(row.is_right for row in rows)} of {len(rows)} right")
    return 0 if rows and all(row.is_right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
