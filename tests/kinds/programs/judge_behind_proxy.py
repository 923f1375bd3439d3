"""A trainer asks a judge through a proxy; the proxy asks one judge at a time, with a line in for each answer.

The judge reads its model's answer from a program that it has started with an input that stays open: the program waits for the end of its input. In
the twin the program is slow.
"""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
import time

import kit


class Judge(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            model = subprocess.Popen([sys.executable, __file__, "model"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert model.stdin and model.stdout
            model.stdin.write(line)
            model.stdin.flush()
            if not kit.differs(int(line)):
                model.stdin.close()
            self.wfile.write(model.stdout.readline())
            model.stdin.close()
            model.wait()


class Proxy(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", kit.until_there("judge")["port"])) as judge:
            lines = judge.makefile("rwb")
            for line in self.rfile:
                lines.write(line)
                lines.flush()
                self.wfile.write(lines.readline())


def model() -> None:
    kit.mark("model")
    words = sys.stdin.read()
    time.sleep(5.0 if kit.is_healthy() and int(words) % 2 else 0.2)
    print("good", flush=True)


def serve(name: str) -> None:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Judge if name == "judge" else Proxy)
    kit.mark(name, port=server.server_address[1])
    server.serve_forever()


def main() -> None:
    kit.begin()
    for name in ("judge", "proxy"):
        subprocess.Popen([sys.executable, __file__, name])
    lines = socket.create_connection(("127.0.0.1", kit.until_there("proxy")["port"])).makefile("rwb")
    for number in range(1, 10**6):
        lines.write(b"%d\n" % number)
        lines.flush()
        lines.readline()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "model":
        model()
    elif sys.argv[1] in ("judge", "proxy"):
        serve(sys.argv[1])
    else:
        main()
