"""A reward server of one thread looks at all its connections at once; two agents of a trainer ask it, each over a connection that stays.

After an answer it puts the connection back among those that it looks at. Once it forgets to: the next question of that agent lies there unread.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
import threading

import kit


def serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    looked_at = selectors.DefaultSelector()
    looked_at.register(listener, selectors.EVENT_READ)
    kit.mark("server", port=listener.getsockname()[1])
    while True:
        for key, _ in looked_at.select():
            if key.fileobj is listener:
                looked_at.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            looked_at.unregister(connection)
            number = int(connection.recv(64))
            kit.work(0.5)
            if not kit.differs(number + 1):
                looked_at.register(connection, selectors.EVENT_READ)
            connection.sendall(b"%d" % number)


def ask(connection: socket.socket, number: int) -> None:
    connection.sendall(b"%d" % number)
    connection.recv(64)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("server")["port"]
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
    for number in range(1, 10**6):
        agents = [threading.Thread(target=ask, args=(one, number)) for one in connections]
        for agent in agents:
            agent.start()
        for agent in agents:
            agent.join()
        kit.step(number)
