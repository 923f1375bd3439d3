"""A trainer asks two judges for grades by ZeroMQ, through a router that passes questions and answers on in C.

Once a judge runs a checker that reads a pipe without a writer. In the twin a judge takes long.
"""

from __future__ import annotations

import subprocess
import sys
import time

import kit


def address(name: str) -> str:
    return f"ipc://{kit.folder()}/{name}.ipc"


def router() -> None:
    import zmq

    context = zmq.Context()
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    front.bind(address("front"))
    back.bind(address("back"))
    kit.mark("router")
    zmq.proxy(front, back)


def judge(name: str) -> None:
    import zmq

    questions = zmq.Context().socket(zmq.REP)
    questions.connect(address("back"))
    kit.mark(name)
    while True:
        step = questions.recv_pyobj()
        kit.work(0.3)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        if kit.differs(step):
            checker = subprocess.Popen(["cat", kit.fifo("proofs")], stdout=subprocess.DEVNULL)
            kit.mark("checker", pid=checker.pid)
            kit.mark("judge")
            checker.wait()
        questions.send_pyobj(step)


def main() -> None:
    import zmq

    kit.begin()
    for name in ("router", "judge0", "judge1"):
        subprocess.Popen([sys.executable, __file__, name])
    kit.until_there("router")
    asks = zmq.Context().socket(zmq.REQ)
    asks.connect(address("front"))
    for step in range(1, 10**6):
        for _ in range(2):
            asks.send_pyobj(step)
            asks.recv_pyobj()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "router":
        router()
    elif sys.argv[1].startswith("judge"):
        judge(sys.argv[1])
    else:
        main()
