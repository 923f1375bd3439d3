"""What others do to find the culprit of a hang, in a few lines each, under the interface of `score.py`.

    python -m examples.peers METHOD --address GCS_ADDRESS --driver PID [--flight FOLDER]

Prints one answer of the form in `scoring.py`. Each method sees the same processes: Ray's busy workers below the driver. All but ours look only at
the largest set of workers of one class, as programs of equal ranks are what these methods were made for; without such a set, at all workers.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent))  # for ``python -m examples.peers``

from scoring import Accused, Answer

Stack = tuple[str, ...]
"""``file:function:line`` of each frame of a main thread, innermost first."""
BETWEEN_S = 2.0
"""Between the two looks of `unchanged`."""
IN_COLLECTIVE = "torch/distributed/distributed_c10d.py:"


def smallest_class(stacks: Mapping[int, Stack]) -> list[int]:
    """STAT (Arnold et al., 2007): processes of equal stacks are one class; the smallest class is where to look first.

    Nobody where all classes are equally large.
    """
    classes = defaultdict(list)
    for pid, stack in stacks.items():
        classes[stack].append(pid)
    sizes = sorted(len(c) for c in classes.values())
    return min(classes.values(), key=len) if len(sizes) > 1 and sizes[0] < sizes[-1] else []


def outside_of_collective(stacks: Mapping[int, Stack]) -> list[int]:
    """The ranks that are in no collective while others are in one."""
    outside = [pid for pid, stack in stacks.items() if not any(IN_COLLECTIVE in frame for frame in stack)]
    return outside if len(outside) < len(stacks) else []


def unchanged(before: Mapping[int, Stack], after: Mapping[int, Stack]) -> list[int]:
    """The first process whose stack did not change between two looks."""
    return [pid for pid in sorted(before) if before[pid] == after.get(pid)][:1]


def torch_analyser(folder: Path) -> list[int]:
    """torch's own Flight Recorder analyser on the ranks' dumps: who is missing or differs in the first collective that does not match."""
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig
    from torch.distributed.flight_recorder.components.loader import read_dir

    settings = JobConfig().parse_args([str(folder / "dumps")])
    with contextlib.redirect_stdout(io.StringIO()):  # it prints tables
        details, version = read_dir(settings)
        _as_of_nccl(details)
        found = build_db(details, settings, version)
    bad = next((c for c in found.collectives if not c.pass_check), None)
    ranks = sorted({*(bad.missing_ranks or ()), *(bad.mismatch_collectives or ())}) if bad is not None else []
    return [int((folder / "pids" / str(rank)).read_text()) for rank in ranks]


def _as_of_nccl(details: Mapping[str, Any]) -> None:
    """The analyser knows NCCL's dumps only. Gloo's name the default group in their entries but not in its description, and other operations."""
    for dump in details.values():
        groups = dump["pg_config"]
        if "" in groups:
            groups["0"] = {**groups.pop(""), "desc": "default_pg"}
        for entry in dump["entries"]:
            entry["profiling_name"] = entry["profiling_name"].replace("gloo:", "nccl:")


def workers(driver: int) -> dict[int, str]:
    """Ray's busy workers below the driver: pid and class or function, from their titles such as ``ray::Trainer.step``."""
    found = {}
    for process in psutil.Process(driver).children(recursive=True):
        with contextlib.suppress(psutil.Error, IndexError):
            title = process.cmdline()[0]
            if title.startswith("ray::") and title != "ray::IDLE":
                found[process.pid] = title[5:].split(".")[0].split("(")[0]
    return found


def peers_of(found: Mapping[int, str]) -> list[int]:
    """The largest set of workers of one class; all of them when no class has two."""
    classes = defaultdict(list)
    for pid, name in found.items():
        classes[name].append(pid)
    largest = max(classes.values(), key=len, default=[])
    return largest if len(largest) > 1 else list(found)


def stacks_of(pids: list[int]) -> dict[int, Stack]:
    """Stacks of the main threads by py-spy; a process that cannot be read in half a minute is left out."""
    beside = Path(sysconfig.get_path("scripts"), "py-spy")
    program = str(beside) if beside.exists() else "py-spy"
    found = {}
    for pid in pids:
        try:
            done = subprocess.run([program, "dump", "--json", "--pid", str(pid)], capture_output=True, timeout=30, check=True)
            threads = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)  # a py-spy that is killed leaves its target stopped
            continue
        except (subprocess.CalledProcessError, ValueError):
            continue
        main = next((t for t in threads if t["thread_name"] == "MainThread"), threads[0] if threads else None)
        found[pid] = tuple(f"{f['filename']}:{f['name']}:{f['line']}" for f in main["frames"]) if main else ()
    return found


def ours(address: str) -> Answer:
    """This project's command."""
    command = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--address", address, "--json"]
    return answer_of_report(json.loads(subprocess.run(command, capture_output=True, check=False).stdout))


def answer_of_report(report: Mapping[str, Any]) -> Answer:
    """A document of the form ``rayrl-debug/report/1``; the accused are those of its first root finding."""
    first = next((f for f in report["findings"] if f["root"]), None)
    state = report["verdict"]["state"]
    if first is None:
        return Answer(state=state)
    accused = tuple(Accused(pid=w["pid"], label=w["label"] or "") for w in first["who"])
    return Answer(state=state, culprits=accused, cause=first["cause"], certainty=first["certainty"])


METHODS = ("smallest-class", "outside-of-collective", "unchanged", "torch-analyser", "rayrl-debug")


def ask(method: str, address: str, driver: int, flight: Path | None) -> Answer:
    """The answer of one of METHODS. A peer's method knows no states: it says *hang* where it accuses somebody."""
    if method == "rayrl-debug":
        return ours(address)
    if method == "torch-analyser":
        if flight is None:
            raise SystemExit("torch-analyser needs --flight: the Flight Recorder dumps of a job that was prepared")
        accused = torch_analyser(flight)
    else:
        pids = peers_of(workers(driver))
        stacks = stacks_of(pids)
        if method == "unchanged":
            time.sleep(BETWEEN_S)
            accused = unchanged(stacks, stacks_of(pids))
        else:
            accused = smallest_class(stacks) if method == "smallest-class" else outside_of_collective(stacks)
    return Answer(state="hang" if accused else "unknown", culprits=tuple(Accused(pid=pid) for pid in accused))


def main() -> None:
    """Print the answer of one method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--address", required=True, help="of the cluster's GCS")
    parser.add_argument("--driver", type=int, required=True, help="pid of the process that started the job")
    parser.add_argument("--flight", type=Path, metavar="FOLDER", help="where a prepared job leaves its Flight Recorder dumps")
    given = parser.parse_args()
    print(json.dumps(dataclasses.asdict(ask(given.method, given.address, given.driver, given.flight))))


if __name__ == "__main__":
    main()
