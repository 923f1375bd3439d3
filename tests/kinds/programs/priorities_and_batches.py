"""A sampler, a replay buffer and a learner as programs that push to each other over sockets, each with one thread.

The learner stops to read while it sends its priorities, the buffer sends batches without reading them: both are full, and then the sampler is, too.
In the twin both read between their messages.
"""

import select
import socket
import struct
import subprocess
import sys

import kit

SAMPLE, BATCH = b"s" * 100_000, b"b" * 400_000


def send(peer, data):
    peer.sendall(struct.pack("!I", len(data)) + data)


def receive(peer):
    return exactly(peer, struct.unpack("!I", exactly(peer, 4))[0])


def exactly(peer, size):
    data = bytearray()
    while len(data) < size:
        part = peer.recv(min(65536, size - len(data)))
        if not part:
            sys.exit(1)
        data += part
    return bytes(data)


def reached(name):
    peer = socket.create_connection(("127.0.0.1", kit.until_there(name)["port"]))
    send(peer, sys.argv[1].encode())
    return peer


def sampler():
    buffer = reached("buffer")
    kit.mark("sampler")
    while True:
        kit.work(0.02)
        send(buffer, SAMPLE)


def learner():
    buffer = reached("buffer")
    kit.mark("learner")
    for number in range(1, 100000):
        receive(buffer)
        kit.work(0.5)
        kit.step(number)
        kit.mark("learner")
        send(buffer, b"p" * (8_000_000 if kit.differs(number) else 2000))


def buffer():
    server = socket.create_server(("127.0.0.1", 0))
    kit.mark("buffer", port=server.getsockname()[1])
    peers = {}
    while len(peers) < 2:
        peer, _ = server.accept()
        peers[receive(peer)] = peer
    send(peers[b"learner"], BATCH)
    number = 0
    while True:
        for ready in select.select(peers.values(), [], [])[0]:
            receive(ready)
            if ready is peers[b"learner"]:
                number += 1
                send(ready, BATCH)
                if kit.differs(number + 2):
                    prefetched(ready)


def prefetched(learner):
    kit.mark("buffer")
    for _ in range(40):
        send(learner, BATCH)


def main():
    kit.begin()
    programs = [subprocess.Popen([sys.executable, __file__, name]) for name in ("buffer", "learner", "sampler")]
    for program in programs:
        program.wait()


if __name__ == "__main__":
    {"sampler": sampler, "learner": learner, "buffer": buffer}.get(sys.argv[1], main)()
