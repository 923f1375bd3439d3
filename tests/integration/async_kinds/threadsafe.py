"""The main thread awaits a coroutine of a loop in another thread.

RRD201
waits at gen (
Event unset
"""

import asyncio
import threading
import time

from ready import ready


async def gen():
    await asyncio.Event().wait()


loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
f = asyncio.run_coroutine_threadsafe(gen(), loop)
time.sleep(0.3)
ready()
f.result()
