"""A runner keeps its spans in SQLite and plays in coroutines; spans are written in threads, each with a connection of its own.

Once the loop begins a transaction for the attempt and, in it, awaits an episode, whose first span waits for the database: within SQLite, in the
same process. In the twin the transaction ends before, and a tool, a program beside, takes long.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time

import kit


def open_store() -> sqlite3.Connection:
    return sqlite3.connect(kit.folder() / "store.db", timeout=10**6, isolation_level=None)


def add_span(text: str) -> None:
    store = open_store()
    store.execute("insert into spans values (?)", (text,))
    store.close()


def tool() -> None:
    kit.mark("tool")
    for line in sys.stdin:
        number = int(line)
        time.sleep(kit.LONG_S if kit.is_late(number) and number % 3 == 0 else kit.pause() * 0.3)
        print("ok", flush=True)


async def main() -> None:
    store = open_store()
    store.execute("create table spans (text)")
    store.execute("create table attempts (number)")
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, "tool", stdin=pipe, stdout=pipe)
    assert child.stdin is not None and child.stdout is not None
    for number in range(1, 10**6):
        store.execute("begin immediate")
        store.execute("insert into attempts values (?)", (number,))
        is_early = not kit.differs(number)
        if is_early:
            store.execute("commit")
        await asyncio.to_thread(add_span, f"episode {number}")
        child.stdin.write(f"{number}\n".encode())
        await child.stdout.readline()
        if not is_early:
            store.execute("commit")
        kit.mark("main")
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "tool":
        tool()
    else:
        kit.begin()
        asyncio.run(main())
