"""A trainer sends the episodes of a step to a collector as one stream of gRPC; the collector answers with their mean when the stream has ended.

A thread plays and hands the episodes to the stream by a queue, at last a None that ends it. Once an episode fails, and the thread returns
without. In the twin an episode takes half a minute.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import kit


class Collector(grpc.GenericRpcHandler):
    def service(self, handler_call_details: Any) -> Any:
        return grpc.stream_unary_rpc_method_handler(self.collect)

    def collect(self, episodes: Iterator[bytes], context: Any) -> bytes:
        rewards = [float(episode) for episode in episodes]
        return str(sum(rewards) / len(rewards)).encode()


def serve() -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Collector(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    kit.mark("collector", port=port)
    server.wait_for_termination()


def play(number: int, episodes: queue.Queue[bytes | None]) -> None:
    for one in range(4):
        kit.work(0.2)
        if one == 3 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        if one == 3 and kit.differs(number):
            print("episode failed, dropped")
            kit.mark("main")
            return
        episodes.put(str(one / 4).encode())
    episodes.put(None)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    with grpc.insecure_channel(f"127.0.0.1:{kit.until_there('collector')['port']}") as channel:
        collect = channel.stream_unary("/collector/Collect")
        for number in range(1, 10**6):
            episodes: queue.Queue[bytes | None] = queue.Queue()
            player = threading.Thread(target=play, args=(number, episodes), name="player")
            player.start()
            collect(iter(episodes.get, None))
            player.join()
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        main()
