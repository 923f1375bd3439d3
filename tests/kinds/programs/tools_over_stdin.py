"""An agent has a tool server as its child and talks with it over stdin and stdout, a line each way. The server reads its input in a thread.

Once a tool forks a process for its parts. Such a process closes its copy of stdin first, whose lock the reading thread had when it was forked.
In the twin the parts are computed in the server, and some take long.
"""

from __future__ import annotations

import multiprocessing as mp
import queue
import subprocess
import sys
import threading

import kit


def part() -> None:
    kit.work(0.2)


def serve() -> None:
    kit.mark("server")
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    while True:
        number = int(lines.get())
        if kit.differs(number):
            child = mp.get_context("fork").Process(target=part)
            child.start()
            kit.mark("part", child.pid)
            child.join()
        elif kit.is_late(number) and number % 3 == 0:
            kit.in_c(kit.LONG_S)
        else:
            part()
        print("done", flush=True)


def main() -> None:
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert server.stdin is not None and server.stdout is not None
    for number in range(1, 10**6):
        server.stdin.write(f"{number}\n")
        server.stdout.readline()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        main()
