"""Three programs in a line, one's output is the next one's input; a fourth keeps a log and is seldom written to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import kit


def encode() -> None:
    kit.mark("encoder")
    for line in sys.stdin:
        if kit.differs(int(line)):
            kit.mark("encoder")
            Path(kit.fifo("vocabulary")).read_text()
        kit.work(0.4)
        print(line.strip(), flush=True)


def decode() -> None:
    kit.mark("decoder")
    for line in sys.stdin:
        kit.mark("decoder")
        print(line.strip(), flush=True)


def log() -> None:
    kit.mark("logger")
    with (kit.folder() / "lines").open("a") as lines:
        lines.writelines(sys.stdin)


def run() -> None:
    def start(role: str, stdin: int, stdout: int | None) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, __file__, role], stdin=stdin, stdout=stdout, text=True)

    encoder = start("encode", subprocess.PIPE, subprocess.PIPE)
    decoder = subprocess.Popen([sys.executable, __file__, "decode"], stdin=encoder.stdout, stdout=subprocess.PIPE, text=True)
    logger = start("log", subprocess.PIPE, None)
    assert encoder.stdin and decoder.stdout and logger.stdin
    for step in range(1, 10**6):
        kit.mark("main")
        encoder.stdin.write(f"{step}\n")
        encoder.stdin.flush()
        decoder.stdout.readline()
        kit.step(step)
        if step % 5 == 0:
            logger.stdin.write(f"{step}\n")
            logger.stdin.flush()


if __name__ == "__main__":
    roles = {"encode": encode, "decode": decode, "log": log}
    if sys.argv[1] in roles:
        roles[sys.argv[1]]()
    else:
        kit.begin()
        run()
