"""The same live set on many versions of Ray and Python: demo, examples that hang, doctor, timeline and watch, each for real.

    python benchmarks/versions.py --home /big/disk                      every environment of PLAN: hours, and 400 MB each
    python benchmarks/versions.py --home /big/disk --env 2.41.0:3.10 --env 2.60.0:3.13 --only ray_get_ring_of_three
    python benchmarks/versions.py --home /big/disk --table              the table again, of all that was run there

Each environment is a folder of its own below --home, made once: Ray of that version, this project as a wheel, and torch where --torch names the
Python, such as 3.11 or 3.10=2.4.0 (a build for CPUs is not everywhere to be had; examples with collectives need it). Pythons are found as the tests
find them: on PATH, below pyenv and uv, or in RAYRL_DEBUG_PYTHONS. Nothing is run in parallel. A step that fails is tried once more; then the table
says why it failed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import lab_runs
from integration.pythons import find_python

ROOT = Path(__file__).resolve().parents[1]

PLAN = (
    "2.41.0:3.10 2.42.1:3.11 2.43.0:3.12 2.44.1:3.10 2.45.0:3.11 2.46.0:3.12 2.47.1:3.10 2.48.0:3.11 2.49.2:3.12 2.50.1:3.12 2.51.2:3.13 2.52.1:3.10 "
    "2.53.0:3.13 2.54.1:3.12 2.55.1:3.12 2.56.1:3.13 2.57.1:3.11 2.58.1:3.13 2.59.0:3.12 2.60.0:3.10 2.60.0:3.11 2.60.0:3.13 2.60.0:3.14"
).split()
"""The oldest Ray that we take, one of each later minor version, and the newest on every Python."""
EXAMPLES = """
    ray_get_ring_of_three placement_group_wants_three_nodes producer_dead_trainer_polls call_behind_endless_call engine_dead_router_awaits
    mismatch_skipped_all_reduce locks_in_opposite_order semaphore_slots_lost tool_server_never_answers trains_briskly
""".split()
LOOKED_AT = "ray_get_ring_of_three"
"""The hang that doctor, timeline and watch are run beside."""
TORCH = "2.13.0"
STEP_S = 180.0
TRIES = 2
"""On a busy machine Ray itself at times does not start in its own time; the table says where a second try was needed."""
STEPS = ("install", "demo", "examples", "doctor", "timeline", "watch")


class StepError(Exception):
    """A step did not give what it must; the message says why."""


@dataclasses.dataclass
class Result:
    """One environment: what each step said, by the step's name."""

    ray: str
    python: str
    torch: str | None = None
    said: dict[str, str] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Environment:
    """Where one environment lies, and how its Python is run."""

    ray: str
    version: str
    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def run(self, *words: str, timeout_s: float = STEP_S, codes: Sequence[int] = (0,)) -> subprocess.CompletedProcess[str]:
        """Raises StepError for another exit code, with the last line that was printed."""
        env = {**os.environ, "RAY_AUTH_MODE": "disabled", "NO_COLOR": "1", "PATH": f"{self.folder / 'bin'}:{os.environ.get('PATH', '')}"}
        env.pop("PYTHONPATH", None)
        try:
            with tempfile.TemporaryDirectory(prefix="v-") as folder:
                done = subprocess.run([self.python, *words], capture_output=True, text=True, timeout=timeout_s, env=env, cwd=folder, check=False)
        except subprocess.TimeoutExpired:
            raise StepError(f"not done after {timeout_s:.0f} s") from None
        if done.returncode not in codes:
            lines = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()
            why = next((line for line in reversed(lines) if "rror" in line), lines[-1])  # ours stand before a hint, those of Python are the last
            raise StepError(f"ended with {done.returncode}: {why[:200]}")
        return done


def make(one: Environment) -> None:
    """The environment with nothing in it, where it is not there yet. Raises StepError: no such Python here."""
    if not (one.folder / "bin" / "python").exists():
        python = find_python(one.version)
        if python is None:
            raise StepError(f"no Python {one.version} on this machine")
        subprocess.run([python, "-m", "venv", str(one.folder)], check=True)


def install(one: Environment, wheel: Path, torch: str | None) -> str:
    """Raises StepError: no such Python here, or pip's last line."""
    make(one)
    if torch:  # first: another package's open range would bring the newest with gigabytes of CUDA
        one.run("-m", "pip", "install", "-q", f"torch=={torch}", timeout_s=1200)
    one.run("-m", "pip", "install", "-q", f"ray=={one.ray}", str(wheel), timeout_s=1200)
    one.run("-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(wheel), timeout_s=300)
    found = one.run("-c", "import ray, sys, ray_rl_debug; print(ray.__version__, *sys.version_info[:3], ray_rl_debug.__file__)").stdout.split()
    if found[0] != one.ray or str(one.folder) not in found[-1]:
        raise StepError(f"another Ray or another tool is imported: {' '.join(found)}")
    return ".".join(found[1:4])


def demo(one: Environment) -> str:
    report = json.loads(one.run("-m", "ray_rl_debug", "demo", "--json").stdout)
    root = report["findings"][0]
    if (report["verdict"]["state"], root["cause"]) != ("hang", "blocked-io"):
        raise StepError(f"says {report['verdict']['state']}, {root['cause']}")
    return "right"


def examples(one: Environment, names: Sequence[str]) -> str:
    """How many of the examples that can run here are told right."""
    with tempfile.TemporaryDirectory(prefix="v-") as folder:
        saved = Path(folder, "scores.jsonl")
        ours = f"ours={one.python} {ROOT / 'examples' / 'peers.py'} rayrl-debug --address {{address}} --driver {{driver}}"
        only = [word for name in names for word in ("--only", name)]
        script = str(ROOT / "examples" / "score.py")
        done = one.run(script, "--cmd", ours, *only, "--timeout", "90", "--save", str(saved), timeout_s=STEP_S * len(names))
        scores = [json.loads(line) for line in saved.read_text().splitlines()] if saved.exists() else []
    wrong = [f"{s['example']}: {s['said']}" for s in scores if s["who"] != "right" or not s["state"] or s["cause"] is False]
    left_out = [line.removeprefix("left out ") for line in done.stderr.splitlines() if line.startswith("left out ") and ".py: No module" not in line]
    if wrong or left_out:
        raise StepError(f"{len(scores) - len(wrong)} of {len(scores) + len(left_out)}; {'; '.join(wrong + left_out)[:300]}")
    return f"{len(scores)} of {len(scores)}"


def doctor(one: Environment, address: str) -> str:
    """How many checks could be made."""
    document = json.loads(one.run("-m", "ray_rl_debug", "doctor", "--address", address, "--json", codes=(0, 1)).stdout)
    states = [r["status"] for r in document["results"]]
    if not states or states.count("unknown") > len(states) // 2:
        raise StepError(f"{states.count('unknown')} of {len(states)} checks could not be made")
    return f"{len(states) - states.count('unknown')} of {len(states)}"


def timeline(one: Environment, address: str) -> str:
    """How many slices the trace has; the three calls of the ring must be among them."""
    with tempfile.TemporaryDirectory(prefix="v-") as folder:
        path = Path(folder, "run.pftrace")
        words = ("-m", "ray_rl_debug", "timeline", "--address", address, "--samples", "1", "-o", str(path), "--json")
        trace, data = json.loads(one.run(*words).stdout)["trace"], path.read_bytes()
    missing = [name for name in ("score_answers", "fetch_rollouts", "current_policy") if name.encode() not in data]
    if missing or trace["bytes"] != len(data):
        raise StepError(f"{trace['slices']} slices; not among them: {', '.join(missing)}")
    return f"{trace['slices']} slices"


def watch(one: Environment, address: str, pids: dict[str, int]) -> str:
    """The companion tells of the hang, and of one of its three culprits."""
    with tempfile.TemporaryDirectory(prefix="v-") as folder:
        quick = ("--stall-floor", "3", "--stall-first", "6", "--once-hung", "exit", "-q")
        began = time.monotonic()
        one.run("-m", "ray_rl_debug", "watch", "--address", address, "-o", folder, *quick, codes=(1,))
        took_s = time.monotonic() - began
        reports = [json.loads(path.read_text()) for path in Path(folder).rglob("report.json")]
    accused = {w["pid"] for r in reports for f in r["findings"] if f["root"] for w in f["who"]}
    if not accused & set(pids.values()):
        raise StepError("ended as if it hangs, and names nobody of the ring")
    return f"{took_s:.0f} s"


def try_one(one: Environment, wheel: Path, torch: str | None, names: Sequence[str]) -> Result:
    """All steps; those after a failed installation are left out."""
    result = Result(one.ray, one.version, torch)

    def step(name: str, work: Callable[[], str]) -> None:
        for number in range(1 if name == "install" else TRIES):
            try:
                result.said[name] = work() + (", second try" if number else "")
                result.failed.pop(name, None)
                break
            except (StepError, subprocess.SubprocessError, OSError, ValueError, LookupError) as e:
                result.failed[name] = f"{type(e).__name__}: {e}" if not isinstance(e, StepError) else str(e)
        print(f"{one.ray} on {one.version}: {name}: {result.said.get(name) or result.failed[name]}", file=sys.stderr, flush=True)

    step("install", lambda: install(one, wheel, torch))
    if "install" in result.failed:
        return result
    step("demo", lambda: demo(one))
    step("examples", lambda: examples(one, names))
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="v-") as folder, contextlib.suppress(lab_runs.NotReachedError):
            with lab_runs.running(LOOKED_AT, Path(folder, "log"), hold_s=4 * STEP_S, python=one.python) as lab:
                step("doctor", lambda: doctor(one, lab["gcs_address"]))
                step("timeline", lambda: timeline(one, lab["gcs_address"]))
                step("watch", lambda: watch(one, lab["gcs_address"], lab["pids"]))
            break
    else:
        result.failed.update(dict.fromkeys(("doctor", "timeline", "watch"), f"Ray did not start {LOOKED_AT}"))
    return result


def table(results: Sequence[Result]) -> str:
    """Markdown: one row for each environment, and below it each failure."""
    lines = ["| Ray | Python | torch | " + " | ".join(STEPS[1:]) + " |", "| --- " * (len(STEPS) + 2) + "|"]
    failures = []
    for r in results:
        cells = ["**fails**" if name in r.failed else r.said.get(name, "-") for name in STEPS[1:]]
        lines.append(f"| {r.ray} | {r.said.get('install', r.python)} | {r.torch or '-'} | {' | '.join(cells)} |")
        failures += [f"- Ray {r.ray} on {r.python}, {name}: {why}" for name, why in r.failed.items()]
    return "\n".join([*lines, *([""] if failures else []), *failures])


def read(home: Path) -> list[Result]:
    found = [Result(**json.loads(path.read_text())) for path in home.glob("*/result.json")]
    return sorted(found, key=lambda r: ([int(n) for n in r.ray.split(".")], [int(n) for n in r.python.split(".")]))


def build_wheel(home: Path) -> Path:
    folder = home / "wheel"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)], check=True)
    return max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="environments and results lie below it")
    parser.add_argument("--env", action="append", metavar="RAY:PYTHON", help="instead of PLAN")
    parser.add_argument("--only", action="append", metavar="EXAMPLE", help="instead of all ten")
    parser.add_argument("--torch", action="append", default=[], metavar="PYTHON[=VERSION]", help="install torch where the Python is this one")
    parser.add_argument("--table", action="store_true", help="run nothing")
    given: Any = parser.parse_args()
    home = given.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    if not given.table:
        wheel, torches = build_wheel(home), {python: torch or TORCH for python, _, torch in (word.partition("=") for word in given.torch)}
        for pair in given.env or PLAN:
            ray, colon, version = pair.partition(":")
            if not colon:
                parser.error(f"--env wants RAY:PYTHON such as 2.41.0:3.10, not {pair}")
            one = Environment(ray, version, home / f"ray{ray}-py{version}")
            result = try_one(one, wheel, torches.get(version), given.only or EXAMPLES)
            one.folder.mkdir(exist_ok=True)
            (one.folder / "result.json").write_text(json.dumps(dataclasses.asdict(result)))
    results = read(home)
    print(table(results))
    return 1 if any(result.failed for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
