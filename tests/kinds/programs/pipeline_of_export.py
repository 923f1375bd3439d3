"""Each step a trainer exports its samples through a pipeline of the shell: one program makes them, one packs them, the last writes them.

A supervisor stops the last part when the disk is busy and lets it go on later. Once it forgets to: the parts before it fill their pipes and stand.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import time

import kit

LINES = 600


def make(number: int) -> None:
    kit.mark("maker")
    for n in range(LINES):
        print(f"{number} {n} " + "x" * 1000, flush=True)


def pack() -> None:
    kit.mark("packer")
    for line in sys.stdin:
        print(line.strip(), flush=True)


def write(number: int) -> None:
    kit.mark("writer")
    kit.work(0.5)
    with (kit.folder() / "samples").open("w") as file:
        for line in sys.stdin:
            file.write(line)


def supervise() -> None:
    kit.mark("supervisor")
    for line in sys.stdin:
        number = int(line)
        kit.until_there(f"started{number}")
        writer = int(kit.until_there("writer")["pid"])
        try:
            if kit.differs(number):
                os.kill(writer, signal.SIGSTOP)
            elif random.random() < 0.4:
                os.kill(writer, signal.SIGSTOP)
                time.sleep(random.uniform(1, 3))
                os.kill(writer, signal.SIGCONT)
        except ProcessLookupError:
            pass
        (kit.folder() / f"started{number}.json").unlink()
        print("seen", flush=True)


def main() -> None:
    kit.begin()
    me = f"{shlex.quote(sys.executable)} {shlex.quote(__file__)}"
    supervisor = subprocess.Popen([sys.executable, __file__, "supervise"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert supervisor.stdin and supervisor.stdout
    for number in range(1, 10**6):
        (kit.folder() / "writer.json").unlink(missing_ok=True)
        shell = subprocess.Popen(["sh", "-c", f"{me} make {number} | {me} pack | {me} write {number}; exit $?"])
        kit.mark("shell", shell.pid)
        kit.until_there("writer")
        kit.mark(f"started{number}")
        supervisor.stdin.write(f"{number}\n")
        supervisor.stdin.flush()
        supervisor.stdout.readline()
        shell.wait()
        kit.work(0.3)
        kit.step(number)


if __name__ == "__main__":
    match sys.argv[1]:
        case "make":
            make(int(sys.argv[2]))
        case "pack":
            pack()
        case "write":
            write(int(sys.argv[2]))
        case "supervise":
            supervise()
        case _:
            main()
