"""A server, and beside it in another thread a loop whose tasks await events."""

import asyncio
import threading

from ready import soon


async def quiet():
    s = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    await s.serve_forever()


async def episode():
    await asyncio.Event().wait()


async def main():
    soon()
    await asyncio.gather(episode(), episode())


t = threading.Thread(target=lambda: asyncio.run(main()), name="rollout")
t.start()
asyncio.run(quiet())
