"""A coroutine awaits the answer of a gRPC service, a child of it, whose handler waits for an event.

RRD502
waits at ask (
TCP
"""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from ready import soon


class Service(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        return grpc.unary_unary_rpc_method_handler(self.answer)

    def answer(self, request, context):
        threading.Event().wait()


def serve():
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Service(),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


async def ask(call):
    return await call(b"")


async def main(port):
    soon()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await ask(channel.unary_unary("/service/Answer"))


if sys.argv[1:] == ["serve"]:
    serve()
else:
    child = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    asyncio.run(main(int(child.stdout.readline())))
