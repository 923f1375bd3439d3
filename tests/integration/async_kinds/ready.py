"""How the programs here tell that all their tasks have come as far as they can: the file of the first argument."""

import asyncio
import subprocess
import sys
from pathlib import Path

SILENT = """
import socket
server, kept = socket.create_server(("127.0.0.1", 0)), []
print(server.getsockname()[1], flush=True)
while True:
    kept.append(server.accept())
"""


def ready() -> None:
    Path(sys.argv[1]).touch()


def soon() -> None:
    asyncio.get_running_loop().call_later(0.3, ready)


def silent_server() -> int:
    """The port of a server that accepts and says nothing."""
    child = subprocess.Popen([sys.executable, "-c", SILENT], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return int(child.stdout.readline())
