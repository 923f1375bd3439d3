"""Two agents in threads have a shell each: they write a command into it and read what it prints, up to a line that ends it."""

from __future__ import annotations

import concurrent.futures
import random
import subprocess

import kit


class Shell:
    def __init__(self, number: int) -> None:
        self.number = number
        self.program = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        kit.mark(f"shell{number}", self.program.pid)

    def run(self, step: int) -> list[str]:
        command = f"sleep {random.uniform(0.1, 1.5):.2f}; echo 'it is {step}'"
        if self.number == 0 and kit.differs(step):
            command = f"echo 'it is {step}"
        assert self.program.stdin and self.program.stdout
        self.program.stdin.write(f"{command}\necho END\n")
        lines = []
        while (line := self.program.stdout.readline()) != "END\n":
            lines.append(line)
        return lines


if __name__ == "__main__":
    kit.begin()
    shells = [Shell(number) for number in range(2)]
    with concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="agent") as agents:
        for step in range(1, 10**6):
            list(agents.map(lambda shell, step=step: shell.run(step), shells))
            kit.work(0.2)
            kit.step(step)
