"""A scorer serves over gRPC with one thread. For pairs of answers it asks itself for the score of each, over its own port.

Once that happens in the thread that should answer. In the twin there are no pairs, and a score takes long now and then. A rollout waits for its line.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import kit


class Scores(grpc.GenericRpcHandler):
    def service(self, _: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(self.score)

    def score(self, request: bytes, _: Any) -> bytes:
        step = int(request)
        kit.work(0.2)
        if kit.differs(step):
            return ask(kit.until_there("port")["port"], step)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        return b"1"


def ask(port: int, step: int) -> bytes:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        return bytes(channel.unary_unary("/scores/score")(str(step).encode(), wait_for_ready=True))


def serve() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Scores(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    kit.mark("scorer")
    kit.mark("port", port=port)
    server.wait_for_termination()


def rollout() -> None:
    kit.mark("rollout")
    while sys.stdin.readline():
        kit.work(0.2)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rollouts = subprocess.Popen([sys.executable, __file__, "rollout"], **pipes)
    port = kit.until_there("port")["port"]
    for step in range(1, 10**6):
        kit.mark("main")
        rollouts.stdin.write("1\n")
        rollouts.stdin.flush()
        rollouts.stdout.readline()
        ask(port, step)
        kit.step(step)


if __name__ == "__main__":
    {"serve": serve, "rollout": rollout}.get(sys.argv[1], main)()
