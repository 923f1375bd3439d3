"""Snapshots of healthy and slow runs, and a table of what they say: ``python tests/quiet/suite.py [KIND ...]``.

Nobody may be accused: neither the state *hang* nor a finding that claims more than *possible*. Each kind of run is looked at several times, with
windows of different length and at different moments.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from integration.clusters import command, environment  # noqa: E402

KINDS = (
    "trains_fast slow_rank sleepy_reward many_micro_batches long_generation long_async_generation long_checkpoint compiles_first_step weight_sync"
    " validation loader_training idle_notebook queue_consumer slow_producer async_rollouts reward_pool slow_tool slow_environments short_tasks"
    " idle_actors_busy_driver plain_ranks served_ranks served_slow_rank plain_loader"
).split()
LOOKS = ((3, 1.0), (2, 0.5), (4, 1.5))
"""Samples and seconds between two of them, of each look at a run."""


class NotStarted(Exception):
    """The program ended before it came to its steady state."""


class Row(NamedTuple):
    """One snapshot."""

    kind: str
    look: int
    state: str
    accused: str
    summary: str
    seconds: float

    @property
    def is_quiet(self) -> bool:
        return self.state != "hang" and not self.accused


@contextlib.contextmanager
def running(kind: str) -> Iterator[dict[str, Any]]:
    """The program in its steady state."""
    with tempfile.TemporaryDirectory(prefix="rrq", dir="/tmp", ignore_cleanup_errors=True) as folder, (Path(folder) / "errors").open("w") as errors:
        child = subprocess.Popen(
            [sys.executable, str(HERE / "programs.py"), kind, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES=""),
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            line = next((text for text in child.stdout if text.startswith("{")), None)
            if line is None:
                raise NotStarted(f"{kind}: {(Path(folder) / 'errors').read_text()[-2000:]}")
            yield json.loads(line)
        finally:
            child.stdin.close()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait(10)
            child.stdout.close()


def look(kind: str, announced: dict[str, Any], number: int, keep: Path | None = None) -> Row:
    """One snapshot of a running program."""
    samples, interval_s = LOOKS[number % len(LOOKS)]
    where = ["--address", announced["address"]] if announced["address"] else ["--here", "--pid", announced["pid"]]
    kept = ["-o", keep / f"{kind}_{number}"] if keep is not None else []
    started = time.monotonic()
    done = command("snapshot", *where, "--json", "--samples", samples, "--interval", interval_s, *kept)
    seconds = time.monotonic() - started
    report = json.loads(done.stdout) if done.returncode in (0, 1, 3) else {}
    assert "findings" in report, f"{kind}: {done.stdout[-500:]} {done.stderr[-2000:]}"
    sure = [f for f in report["findings"] if f["certainty"] != "possible"]
    accused = "; ".join(f"{f['cause']} {', '.join(w['label'] for w in f['who'])}" for f in sure)
    return Row(kind, number, report["verdict"]["state"], accused, report["verdict"]["summary"], seconds)


def looks(kind: str, count: int = len(LOOKS), keep: Path | None = None) -> list[Row]:
    """So many snapshots of one run; a machine under load may be too slow to start Ray, so there is a second try."""
    for attempt in (1, 2):
        try:
            with running(kind) as announced:
                return [look(kind, announced, number, keep) for number in range(count)]
        except NotStarted:
            if attempt == 2:
                raise
    raise AssertionError


def main() -> int:
    arguments = sys.argv[1:]
    keep = Path(arguments.pop(0)[7:]) if arguments and arguments[0].startswith("--keep=") else None
    rows: list[Row] = []
    for kind in arguments or KINDS:
        try:
            found = looks(kind, keep=keep)
        except (NotStarted, AssertionError) as e:
            print(f"{kind:24} no answer: {str(e).splitlines()[-1][:150]}", flush=True)
            continue
        for row in found:
            rows.append(row)
            print(f"{row.kind:24} {row.look}  {row.state:9} {row.seconds:5.1f} s  {row.accused or '-':30}  {row.summary[:110]}", flush=True)
    loud = [row for row in rows if not row.is_quiet]
    print(f"\n{len(rows)} snapshots of {len({row.kind for row in rows})} kinds of runs; accusations: {len(loud)}")
    return 1 if loud else 0


if __name__ == "__main__":
    raise SystemExit(main())
