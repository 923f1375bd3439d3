"""A trainer scores answers over one stream of gRPC in both directions: the scorer compares two answers at a time and sends a score for each.

The trainer sends an answer and waits for its score before it sends the next one, once also where a pair is not complete. In the twin a comparison
takes half a minute.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import kit


class Scorer(grpc.GenericRpcHandler):
    def service(self, handler_call_details: Any) -> Any:
        return grpc.stream_stream_rpc_method_handler(self.compare)

    def compare(self, answers: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for first in answers:
            second = next(answers)
            kit.work(0.2)
            if kit.is_late(int(first)):
                time.sleep(kit.LONG_S)
            yield first
            yield second


def serve() -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Scorer(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    kit.mark("scorer", port=port)
    server.wait_for_termination()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    with grpc.insecure_channel(f"127.0.0.1:{kit.until_there('scorer')['port']}") as channel:
        answers: queue.Queue[bytes] = queue.Queue()
        scores = channel.stream_stream("/scorer/Compare")(iter(answers.get, None))
        for number in range(1, 10**6):
            answers.put(str(number).encode())
            if kit.differs(number):
                kit.mark("main")
                next(scores)
            answers.put(str(number).encode())
            next(scores)
            next(scores)
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        main()
