"""An agent's tools are coroutines in the loop of a thread of its own; the main thread hands each call in and waits for its result.

A tool that meets a broken sandbox stops the loop, and its thread ends: the next call is handed to a loop that nobody runs. In the twin a tool
asks its sandbox, a program, again and again until that is ready.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import kit


def sandbox() -> None:
    kit.mark("sandbox")
    for line in sys.stdin:
        time.sleep(0.1)
        print(line.strip(), flush=True)


class Tools:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.serve, name="tools", daemon=True).start()

    def serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def call(self, program: subprocess.Popen[str], number: int) -> str:
        if kit.differs(number):
            self.loop.call_later(0.1, self.loop.stop)
        for _ in range(50 if kit.is_late(number) else 1):
            program.stdin.write(f"{number}\n")
            program.stdin.flush()
            answer = program.stdout.readline()
            await asyncio.sleep(0.5)
        return answer

    def run(self, program: subprocess.Popen[str], number: int) -> str:
        return asyncio.run_coroutine_threadsafe(self.call(program, number), self.loop).result()


def main() -> None:
    program = subprocess.Popen([sys.executable, __file__, "sandbox"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tools = Tools()
    for number in range(1, 10**6):
        kit.mark("main")
        kit.work(0.2)
        tools.run(program, number)
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "sandbox":
        sandbox()
    else:
        kit.begin()
        main()
