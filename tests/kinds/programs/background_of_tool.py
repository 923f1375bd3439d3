"""An agent's tool runs what the model wrote in a shell and reads what it prints, to the end. A scorer beside is idle.

One such program leaves a server in the background, which keeps the shell's output open: the end never comes.
In the twin the server prints elsewhere, and the program itself takes some seconds.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import kit

SERVER = "import kit, socket; s = socket.create_server(('127.0.0.1', 0)); kit.mark('server'); s.accept()"


def score(orders: Connection) -> None:
    kit.mark("scorer")
    while True:
        answer = orders.recv()
        kit.work(0.3)
        orders.send(len(answer))


def run_tool(number: int) -> str:
    python = f"PYTHONPATH={Path(__file__).parent} {sys.executable}"
    if kit.differs(number):
        command = f'{python} -c "{SERVER}" & echo started'
    elif number % 3 == 0:
        command = f'timeout 30 {python} -c "{SERVER}" >/dev/null 2>&1 & sleep 4; echo started'
    else:
        command = "sleep 0.3; echo through"
    return subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    kit.begin()
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=score, args=(theirs,), daemon=True).start()
    for number in range(1, 10**6):
        kit.work(0.3)
        ours.send(run_tool(number))
        ours.recv()
        kit.step(number)
