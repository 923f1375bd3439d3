"""How long a dump holds its target, and what that costs the target: ``python benchmarks/dump_pause.py [DUMPS]``.

A busy program with 20 threads notes every gap of its main loop above half a millisecond and how many steps it makes. Spells with dumps, one after
another without a pause, take turns with spells without, so that the load of the machine is the same for both. At the end nothing may be left:
no stop, no tracer, no process of ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from ray_rl_debug.bounded.programs import Supervisors
from ray_rl_debug.collect.pyspy import dump, find_pyspy, read_status

SPELL_DUMPS = 25
TARGET = """
import json, sys, threading, time
for _ in range(20):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
stop = threading.Event()
steps, gaps = 0, []
def listen():
    global steps, gaps
    for line in sys.stdin:
        said, steps, gaps = (steps, gaps), 0, []
        print(json.dumps(said), flush=True)
threading.Thread(target=listen, daemon=True).start()
last = time.monotonic()
while True:
    for _ in range(20):
        pass
    now = time.monotonic()
    if now - last > 0.0005:
        gaps.append(now - last)
    last = now
    steps += 1
"""


class Target:
    """The busy program."""

    def __init__(self) -> None:
        self.child = subprocess.Popen([sys.executable, "-c", TARGET], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._since = time.monotonic()
        time.sleep(0.5)
        self.read()

    def read(self) -> tuple[float, list[float]]:
        """Steps a second and gaps, in seconds, since the last call."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(b"\n")
        self.child.stdin.flush()
        steps, gaps = json.loads(self.child.stdout.readline())
        now = time.monotonic()
        span, self._since = now - self._since, now
        return steps / span, gaps


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    pyspy = find_pyspy()
    assert pyspy is not None
    target = Target()
    pauses: list[float] = []
    busy, quiet, took = [], [], []
    with Supervisors() as supervisors:
        for _ in range(max(1, count // SPELL_DUMPS)):
            began = time.monotonic()
            for _ in range(SPELL_DUMPS):
                one = time.monotonic()
                outcome = dump(pyspy, target.child.pid, run=supervisors.run)
                took.append(time.monotonic() - one)
                assert outcome.kind == "ok", outcome.reason
            rate, gaps = target.read()
            busy.append(rate)
            pauses += sorted(gaps)[-SPELL_DUMPS:]
            time.sleep(time.monotonic() - began)
            quiet.append(target.read()[0])
    status = read_status(target.child.pid) or {}
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    left = [c for c in children if int(c) != target.child.pid]
    target.child.kill()
    target.child.wait()
    ratios = sorted(b / q for b, q in zip(busy, quiet, strict=True))
    print(f"{len(took)} dumps; the longest gaps of the target, one for each dump:")
    for name, values in (("gap", pauses), ("whole dump", took)):
        ordered = sorted(values)
        shown = ", ".join(f"{part:g} %: {1000 * ordered[min(len(ordered) - 1, int(part / 100 * len(ordered)))]:.1f} ms" for part in (50, 90, 99, 100))
        print(f"  {name}: {shown}")
    print(f"speed of the target with dumps without a pause, to without: median {ratios[len(ratios) // 2]:.2f} (lowest {ratios[0]:.2f})")
    print(f"afterwards: state {status.get('State')}, tracer {status.get('TracerPid')}, processes of ours {left}")


if __name__ == "__main__":
    main()
