"""A judge behind gRPC, in a process of its own; the trainer calls it once a step."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import kit


class Judge(grpc.GenericRpcHandler):
    def __init__(self) -> None:
        self.model = threading.Lock()

    def service(self, handler_call_details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(self.judge)

    def judge(self, request: bytes, context: Any) -> bytes:
        self.model.acquire()
        if not kit.differs(int(request) + 1):
            self.model.release()
        kit.work(0.6)
        return b"1.0"


def serve() -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Judge(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    kit.mark("judge", port=port)
    server.wait_for_termination()


def train() -> None:
    subprocess.Popen([sys.executable, __file__, "serve"])
    channel = grpc.insecure_channel(f"127.0.0.1:{kit.until_there('judge')['port']}")
    judge = channel.unary_unary("/judge/Judge")
    for step in range(1, 10**6):
        kit.mark("main")
        judge(str(step).encode())
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        train()
