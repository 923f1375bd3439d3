"""A reward server of gRPC has two threads; a trainer asks for the scores of a batch with one call each.

For a pairwise score the handler asks the same server for a reference score. Two such calls at once take both threads, and what they ask for is never
begun. In the twin the reference score is worked out on the spot, and slowly.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent import futures

import grpc
import kit

METHOD = "/reward.Scores/{}"


class Handler(grpc.GenericRpcHandler):
    def __init__(self, port: int) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        pairwise = details.method.endswith("Pairwise")
        return grpc.unary_unary_rpc_method_handler(self.pairwise if pairwise else self.reference)

    def pairwise(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        kit.work(0.3)
        if kit.differs(int(request)):
            kit.work(1.0)
            return self.channel.unary_unary(METHOD.format("Reference"))(request)
        kit.work(3.0 if int(request) % 2 else 0.3)
        return self.reference(request, context)

    def reference(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        kit.work(0.3)
        return b"1"


def serve() -> None:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    port = server.add_insecure_port("127.0.0.1:0")
    server.add_generic_rpc_handlers((Handler(port),))
    server.start()
    kit.mark("server", port=port)
    server.wait_for_termination()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    channel = grpc.insecure_channel(f"127.0.0.1:{kit.until_there('server')['port']}")
    ask = channel.unary_unary(METHOD.format("Pairwise"))
    for number in range(1, 10**6):
        calls = [ask.future(str(number).encode()) for _ in range(4)]
        for call in calls:
            call.result()
        kit.step(number)


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else main()
