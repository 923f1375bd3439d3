"""A gRPC service of coroutines keeps one model for all calls; a client calls it in a thread of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import grpc
import kit


class Service(grpc.GenericRpcHandler):
    def __init__(self) -> None:
        self.model = asyncio.Lock()

    def service(self, handler_call_details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(self.call)

    async def call(self, request: bytes, context: Any) -> bytes:
        await self.model.acquire()
        await asyncio.sleep(kit.pause() * 0.3)
        if not kit.differs(int(request) + 1):
            self.model.release()
        return request


async def serve() -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Service(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    kit.mark("service", port=port)
    await server.wait_for_termination()


def call() -> None:
    with grpc.insecure_channel(f"127.0.0.1:{kit.until_there('service')['port']}") as channel:
        service = channel.unary_unary("/service/Call")
        for step in range(1, 10**6):
            kit.mark("main")
            service(str(step).encode())
            kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        caller = threading.Thread(target=call, name="caller")
        caller.start()
        caller.join()
