"""A script given on the command line asks a server of the standard library for its numbers."""

from __future__ import annotations

import subprocess
import sys
import threading
from multiprocessing.connection import Listener

import kit

SCRIPT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Client

server = Client(("127.0.0.1", int(sys.argv[1])))
threads = ThreadPoolExecutor(1)
while True:
    threads.submit(server.send, "next").result()
    threads.submit(server.recv).result()
"""


def serve() -> None:
    listener = Listener(("127.0.0.1", 0))
    kit.mark("server", port=listener.address[1])
    numbers = threading.Condition()
    client = listener.accept()
    for step in range(1, 10**6):
        client.recv()
        kit.mark("server")
        kit.work(0.5)
        with numbers:
            if kit.differs(step):
                numbers.wait()
        client.send(step)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        script = subprocess.Popen([sys.executable, "-c", SCRIPT, str(kit.until_there("server")["port"])])
        kit.mark("script", pid=script.pid)
        script.wait()
