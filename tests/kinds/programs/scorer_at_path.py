"""A scorer serves at a Unix socket, one connection after the other; two writers ask it for scores.

The first writer keeps its connection and waits for a word of the launcher, who waits for the scores of the second. In the twin it closes after some
seconds.
"""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
import time

import kit


class Score(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line)


def serve() -> None:
    with socketserver.UnixStreamServer(str(kit.folder() / "scores"), Score) as server:
        kit.mark("scorer")
        server.serve_forever(0.1)


def write(name: str) -> None:
    kit.mark(name)
    for word in sys.stdin:
        number = int(word)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(kit.folder() / "scores"))
            lines = connection.makefile("rwb")
            lines.write(b"%d\n" % number)
            lines.flush()
            lines.readline()
            if name == "first":
                print("scored", flush=True)
                if kit.differs(number):
                    sys.stdin.readline()
                time.sleep(4.0 if number % 2 else 0.3)
            lines.close()
        print("done", flush=True)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    kit.until_there("scorer")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    first, second = (subprocess.Popen([sys.executable, __file__, name], **pipes) for name in ("first", "second"))
    for number in range(1, 10**6):
        print(number, file=first.stdin, flush=True)
        first.stdout.readline()
        print(number, file=second.stdin, flush=True)
        second.stdout.readline()
        first.stdout.readline()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] in ("first", "second"):
        write(sys.argv[1])
    else:
        main()
