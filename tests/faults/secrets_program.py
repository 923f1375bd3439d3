"""A program that carries made-up secrets wherever a program can: arguments, environment, folder, files, sockets, threads, tasks, children.

Arguments: a folder, a file to make when everything is in place, and more that are secrets.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from made_up_secrets import make_secrets

THREADS, TASKS, FILES, SOCKETS, CHILDREN = 33, 66, 60, 40, 33


async def wait(texts: list[str], ready: str) -> None:
    event = asyncio.Event()
    tasks = [asyncio.get_running_loop().create_task(event.wait(), name=text) for text in texts]
    await asyncio.sleep(0)
    open(ready, "w").close()
    await asyncio.wait(tasks)


def main() -> None:
    folder, ready = Path(sys.argv[1]), sys.argv[2]
    texts = [text for _, text in make_secrets()]
    flat = [text.replace("/", "|") for text in texts if "://" not in text]
    inside = folder / flat[0]
    inside.mkdir(parents=True, exist_ok=True)
    os.chdir(inside)
    kept: list[object] = [os.open(text, os.O_CREAT | os.O_RDWR) for text in flat[:FILES]]
    for number, text in enumerate(flat[:SOCKETS]):
        one = socket.socket(socket.AF_UNIX)
        one.bind(f"\0{os.getpid()}.{number} {text}"[:100])
        kept.append(one)
    for text in texts[:THREADS]:
        threading.Thread(target=threading.Event().wait, name=text, daemon=True).start()
    children = [subprocess.Popen([text, "600"], executable="/bin/sleep") for text in texts[:CHILDREN]]
    try:
        asyncio.run(wait(texts[:TASKS], ready))
    finally:
        for child in children:
            child.kill()


if __name__ == "__main__":
    main()
