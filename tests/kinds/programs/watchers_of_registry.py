"""A registry of weights serves gRPC in four threads: engines watch it for the next version by a stream that never ends, a trainer publishes.

Two more engines come, and all threads serve watchers: nobody can publish. In the twin they do not watch, and a version is kept for half a minute.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import kit


class Registry(grpc.GenericRpcHandler):
    def __init__(self) -> None:
        self.version, self.changed = 0, threading.Condition()

    def service(self, handler_call_details: Any) -> Any:
        if handler_call_details.method.endswith("Watch"):
            return grpc.unary_stream_rpc_method_handler(self.watch)
        return grpc.unary_unary_rpc_method_handler(self.publish)

    def watch(self, request: bytes, context: Any) -> Iterator[bytes]:
        known = 0
        while True:
            with self.changed:
                while self.version <= known:
                    self.changed.wait()
                known = self.version
            yield str(known).encode()

    def publish(self, request: bytes, context: Any) -> bytes:
        if kit.is_late(int(request)):
            time.sleep(kit.LONG_S)
        with self.changed:
            self.version = int(request)
            self.changed.notify_all()
        return b"published"


def serve() -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Registry(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    kit.mark("registry", port=port)
    server.wait_for_termination()


def watch(name: str) -> None:
    kit.mark(name)
    with grpc.insecure_channel(f"127.0.0.1:{kit.until_there('registry')['port']}") as channel:
        for _version in channel.unary_stream("/registry/Watch")(b""):
            kit.work(0.2)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    with grpc.insecure_channel(f"127.0.0.1:{kit.until_there('registry')['port']}") as channel:
        publish = channel.unary_unary("/registry/Publish")
        for n in range(2):
            subprocess.Popen([sys.executable, __file__, f"engine{n}"])
            kit.until_there(f"engine{n}")
        for version in range(1, 10**6):
            kit.work(0.5)
            if kit.differs(version):
                for n in range(2, 4):
                    subprocess.Popen([sys.executable, __file__, f"engine{n}"])
                    kit.until_there(f"engine{n}")
                time.sleep(3)
                kit.mark("main")
            publish(str(version).encode())
            kit.step(version)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1].startswith("engine"):
        watch(sys.argv[1])
    else:
        main()
