"""The child of a trial: loads the user's class, runs the episodes it is told to, says when each begins and ends. Measures nothing but its loop.

Orders come as lines of JSON on descriptor 0, news go as lines of JSON to the descriptor that argument 1 names. When the orders end, it ends.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
import traceback
from typing import Any

from ray_rl_debug.trial.child.contracts import Contract, ContractError, detect, load
from ray_rl_debug.trial.child.loop_share import LoopShare
from ray_rl_debug.trial.child.watchdog import Watchdog

SETTLE_S = 0.3
"""After a stage: for connections and tasks that are being closed."""
MAX_TEXT = 400


class _Child:
    def __init__(self, out: int) -> None:
        self._out, self._lock = out, threading.Lock()
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._next, self._rest = 0, b""
        self._is_cancelled = False

    def tell(self, kind: str, **what: Any) -> None:
        line = json.dumps({"kind": kind, "at_s": time.monotonic(), **what}, default=str).encode() + b"\n"
        with self._lock:
            while line:
                line = line[os.write(self._out, line) :]

    async def main(self, plan: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        orders: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        contract = detect(load(plan["target"]), plan)
        call = contract.make()
        self.tell("contract", name=contract.name, note=contract.note, loop=type(loop).__module__)
        Watchdog(loop, self.tell)
        share = LoopShare()
        loop.add_reader(0, self._listen, orders)
        while True:
            order = await orders.get()
            share.begin()
            await self._stage(order, contract, call, plan["rows"])
            self.tell("loop", stage=order["number"], **share.seen())
            gc.collect()
            await asyncio.sleep(SETTLE_S)
            self.tell("stage", number=order["number"])

    def _listen(self, orders: asyncio.Queue[dict[str, Any]]) -> None:
        """Take what has come on descriptor 0. No thread reads there: it would look like one that hangs."""
        data = os.read(0, 1 << 16)
        if not data:
            os._exit(0)
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for order in map(json.loads, lines):
            if order.get("cancel"):
                self._cancel()
            else:
                orders.put_nowait(order)

    def _cancel(self) -> None:
        self._is_cancelled = True
        for task in self._tasks.values():
            task.cancel()

    async def _stage(self, order: dict[str, Any], contract: Contract, call: Any, rows: list[dict[str, Any]]) -> None:
        """Groups of equal rows, so many episodes at once as the order says."""
        todo = iter([(g, rows[(order["first"] + g) % len(rows)]) for g in range(order["groups"]) for _ in range(order["group_size"])])

        async def work() -> None:
            for group, row in todo:
                if self._is_cancelled:
                    return
                self._next += 1
                number = self._next
                task = asyncio.create_task(self._episode(number, order["number"], group, row, contract, call), name=f"episode-{number}")
                self._tasks[number] = task
                try:
                    await task
                except asyncio.CancelledError:
                    if not task.done():
                        raise
                finally:
                    del self._tasks[number]

        workers = [asyncio.create_task(work(), name=f"trial-{i}") for i in range(order["concurrency"])]
        await asyncio.gather(*workers)

    async def _episode(self, number: int, stage: int, group: int, row: dict[str, Any], contract: Contract, call: Any) -> None:
        self.tell("begin", number=number, stage=stage, group=group)
        how: dict[str, Any] = {}
        try:
            value = await call(row)
        except asyncio.CancelledError:
            how["cancelled"] = True
            raise
        except Exception as e:  # noqa: BLE001 whatever the user's code raises is told
            how["error"] = _error(e)
        except BaseException as e:
            how["error"] = _error(e)
            raise
        else:
            try:
                how["reward"], how["wrong"] = contract.check(value)
            except Exception as e:  # noqa: BLE001 of a strange object
                how["wrong"] = f"{type(value).__name__}, which cannot be read: {type(e).__name__}: {e}"
        finally:
            self.tell("end", number=number, stage=stage, group=group, **how)


def _error(e: BaseException) -> dict[str, Any]:
    """Type, text, and the frames, innermost first; a cause is told by name."""
    frames = [f"{f.name} ({f.filename}:{f.lineno})" for f in reversed(traceback.extract_tb(e.__traceback__))]
    cause = e.__cause__ or e.__context__
    is_copy = type(cause).__name__ == "_RemoteTraceback"  # the same exception again, as text from a pool's process
    return {
        "type": f"{type(e).__module__}.{type(e).__qualname__}".removeprefix("builtins."),
        "text": (str(e).splitlines() or [""])[0][:MAX_TEXT],
        "cause": f"{type(cause).__name__}: {str(cause)[:MAX_TEXT]}" if cause is not None and not is_copy else None,
        "frames": frames[:40],
    }


def _first_line() -> bytes:
    """Without a buffer: what follows is the loop's."""
    line = bytearray()
    while not line.endswith(b"\n"):
        one = os.read(0, 1)
        if not one:
            os._exit(0)
        line += one
    return bytes(line)


def main() -> None:
    """Run until the orders end; a class that cannot be used is told as ``unusable``."""
    child = _Child(int(sys.argv[1]))
    plan = json.loads(_first_line())
    try:
        asyncio.run(child.main(plan))
    except ContractError as e:
        frames = "".join(traceback.format_exception(e.__cause__)).splitlines()[-12:] if e.__cause__ else []
        child.tell("unusable", reason=str(e), cure=e.cure, frames=frames)
    except BaseException as e:
        child.tell("unusable", reason=f"{type(e).__name__}: {e}", frames=traceback.format_exc().splitlines()[-12:])
        raise
