"""Generated programs run as children; what they print is read when they are through."""

from __future__ import annotations

import subprocess
import sys

import kit

CODE = "import sys, time; time.sleep(0.3); sys.stdout.write('line of output\\n' * int(sys.argv[1]))"


def run_program(lines: int) -> int:
    program = subprocess.Popen([sys.executable, "-c", CODE, str(lines)], stdout=subprocess.PIPE, text=True)
    kit.mark("program", pid=program.pid)
    program.wait()
    assert program.stdout is not None
    return len(program.stdout.read())


if __name__ == "__main__":
    kit.begin()
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark("main")
        run_program(100_000 if kit.differs(step) else 100)
        kit.step(step)
