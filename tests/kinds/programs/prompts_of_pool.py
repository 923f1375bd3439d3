"""A pool of graders gets its work from a generator, which asks a process for the next prompt: the pool's own thread stands in it, not the main one.

Once that process waits for a file that nobody writes: all graders are idle, the main thread waits for a score. In the twin a prompt takes long.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import kit


def prompts() -> None:
    kit.mark("prompts")
    for number, _ in enumerate(sys.stdin, 1):
        kit.work(0.1)
        if kit.differs(number // 4):
            kit.mark("prompts")
            Path(kit.fifo("part2")).read_bytes()
        if number % 4 == 0 and kit.is_late(number // 4):
            time.sleep(kit.LONG_S)
        print(number, flush=True)


def grade(prompt: int) -> int:
    kit.work(0.1)
    return prompt


def asked(source: subprocess.Popen[str]) -> Iterator[int]:
    while True:
        source.stdin.write("next\n")
        source.stdin.flush()
        yield int(source.stdout.readline())


def main() -> None:
    kit.begin()
    source = subprocess.Popen([sys.executable, __file__, "prompts"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        for number, _ in enumerate(pool.imap(grade, asked(source)), 1):
            kit.mark("main")
            kit.step(number // 4)


if __name__ == "__main__":
    prompts() if sys.argv[1] == "prompts" else main()
