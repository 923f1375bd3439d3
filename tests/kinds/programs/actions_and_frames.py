"""An agent plays over one stream of gRPC in both directions, in coroutines on both sides: it writes actions, the simulator answers by frames.

Usually it writes an action and reads its frame. For a long game it writes all actions first, as large as the frames: once neither side reads,
gRPC's own window is full in both directions. In the twin it writes and reads in turn, and a frame takes long. A judge is idle.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import kit

LARGE = 200_000


class Simulator(grpc.GenericRpcHandler):
    def service(self, handler_call_details: Any) -> Any:
        return grpc.stream_stream_rpc_method_handler(self.play)

    async def play(self, actions: AsyncIterator[bytes], context: Any) -> None:
        async for action in actions:
            number = int(action[:8])
            await asyncio.sleep(kit.LONG_S if kit.is_late(number) and action[8:9] == b"1" else kit.pause() * 0.02)
            await context.write(action[:9] + b"f" * len(action))


async def serve() -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Simulator(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    kit.mark("simulator", port=port)
    await server.wait_for_termination()


async def main() -> None:
    port = (await asyncio.to_thread(kit.until_there, "simulator"))["port"]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        game = channel.stream_stream("/simulator/Play")()
        for number in range(1, 10**6):
            actions = [f"{number:8}{which % 10}".encode() + b"a" * LARGE for which in range(80 if kit.differs(number) else 5)]
            if kit.differs(number):
                for action in actions:
                    kit.mark("main")
                    await game.write(action)
                for _ in actions:
                    await game.read()
            else:
                for action in actions:
                    await game.write(action)
                    await game.read()
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    elif sys.argv[1] == "judge":
        kit.mark("judge")
        sys.stdin.read()
    else:
        kit.begin()
        judge = subprocess.Popen([sys.executable, __file__, "judge"], stdin=subprocess.PIPE)
        server = subprocess.Popen([sys.executable, __file__, "serve"])
        kit.until_there("judge")
        asyncio.run(main())
