"""A trainer asks a judge over gRPC, where each call waits until the judge can be reached (`wait_for_ready`), and no call has a limit.

Once the judge is killed, as by a guard of memory, and nobody starts it anew. In the twin it is started anew at the same port, half a minute later. A
recorder, a child, is idle.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import kit


class Judge(grpc.GenericRpcHandler):
    def service(self, handler_call_details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(self.score)

    def score(self, answer: bytes, context: Any) -> bytes:
        kit.work(0.3)
        return answer


def serve(port: str) -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Judge(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    kit.mark("judge")
    server.wait_for_termination()


def start(port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "judge", str(port)])


def start_later(port: int) -> None:
    time.sleep(kit.LONG_S)
    start(port)


def main() -> None:
    recorder = subprocess.Popen([sys.executable, __file__, "recorder"], stdin=subprocess.PIPE)
    kit.until_there("recorder")
    port = kit.free_port()
    judge = start(port)
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_reconnect_backoff_ms", 1000)]) as channel:
        score = channel.unary_unary("/judge/Score")
        for number in range(1, 10**6):
            score(str(number).encode(), wait_for_ready=True)
            kit.step(number)
            if number >= kit.STEP - 1 and judge.poll() is None:
                kit.differs(kit.STEP)
                os.kill(judge.pid, signal.SIGKILL)
                judge.wait()
                kit.mark("main")
                if kit.is_healthy():
                    threading.Thread(target=start_later, args=(port,), daemon=True).start()
    recorder.wait()


if __name__ == "__main__":
    match sys.argv[1]:
        case "recorder":
            kit.mark("recorder")
            sys.stdin.read()
        case "judge":
            serve(sys.argv[2])
        case _:
            kit.begin()
            main()
