"""A generator lives behind multiprocessing's manager; callers hand it prompts, its own thread answers them."""

from __future__ import annotations

import subprocess
import threading
from multiprocessing.managers import BaseManager
from typing import Any

import kit


class Generator:
    def __init__(self) -> None:
        kit.mark("generator")
        self.changed = threading.Condition()
        self.asked: list[int] = []
        self.answered: set[int] = set()
        threading.Thread(target=self.turn, name="decode", daemon=True).start()

    def generate(self, step: int) -> str:
        with self.changed:
            self.asked.append(step)
            self.changed.notify_all()
            self.changed.wait_for(lambda: step in self.answered)
        return "text"

    def turn(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.asked)
                step = self.asked.pop()
            kit.work(0.5)
            if kit.differs(step):
                self.compile_kernels()
            with self.changed:
                self.answered.add(step)
                self.changed.notify_all()

    def compile_kernels(self) -> None:
        compiler = subprocess.Popen(["tail", "-f", "/dev/null"])
        kit.mark("compiler", pid=compiler.pid)
        compiler.wait()


class Service(BaseManager):
    pass


Service.register("Generator", Generator)


if __name__ == "__main__":
    kit.begin()
    service: Any = Service()
    service.start()
    generator = service.Generator()
    for step in range(1, 10**6):
        kit.mark("main")
        generator.generate(step)
        kit.step(step)
