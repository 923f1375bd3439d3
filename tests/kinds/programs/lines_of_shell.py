"""A driver has a shell check answers: it sends the name of a task and an answer, each on a line, and reads the shell's verdict.

Once it sends an answer without its last line feed: the shell reads on, and both wait. In the twin a check takes long now and then. A judge is idle.
"""

from __future__ import annotations

import subprocess
import sys

import kit

SCRIPT = "while read -r task && read -r answer; do sleep $answer; echo checked $task; done"


def judge() -> None:
    kit.mark("judge")
    while sys.stdin.readline():
        kit.work(0.2)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    judging = subprocess.Popen([sys.executable, __file__, "judge"], **pipes)
    shell = subprocess.Popen(["sh", "-c", SCRIPT], **pipes)
    kit.mark("shell", shell.pid)
    for step in range(1, 10**6):
        kit.mark("main")
        judging.stdin.write("1\n")
        judging.stdin.flush()
        judging.stdout.readline()
        answer = str(kit.LONG_S) if kit.is_late(step) else "0.3"
        shell.stdin.write(f"task{step}\n{answer}" + ("" if kit.differs(step) else "\n"))
        shell.stdin.flush()
        shell.stdout.readline()
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "judge":
        judge()
    else:
        main()
