"""Coroutines score answers in threads, each thread runs a script, the script asks a service.

One handler of the service opens a pipe that nobody writes.
"""

import asyncio
import socket
import socketserver
import subprocess
import sys
import time

from kit import begin, differs, fifo, folder, free_port, mark, step, until_there, work


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        number, answer = (int(word) for word in self.rfile.readline().split())
        work(0.3)
        if answer == 1 and differs(number):
            with open(fifo("references")) as file:
                file.read()
        self.wfile.write(b"0.5\n")


class Service(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def script(port: str, number: str, answer: str) -> None:
    mark(f"script{answer}")
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(f"{number} {answer}\n".encode())
        print(connection.makefile().readline())


def score(port: int, number: int, answer: int) -> float:
    done = subprocess.run([sys.executable, __file__, "script", str(port), str(number), str(answer)], stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


async def tell() -> None:
    while True:
        (folder() / "alive").write_text(str(time.time()))
        await asyncio.sleep(0.3)


async def run(port: int) -> None:
    telling = asyncio.create_task(tell())
    loop = asyncio.get_running_loop()
    for number in range(10**6):
        await asyncio.gather(*(loop.run_in_executor(None, score, port, number, answer) for answer in range(2)))
        step(number)
    telling.cancel()


def main() -> None:
    begin()
    port = free_port()
    subprocess.Popen([sys.executable, __file__, "service", str(port)])
    until_there("service")
    asyncio.run(run(port))


if sys.argv[1] == "service":
    with Service(("127.0.0.1", int(sys.argv[2])), Handler) as service:
        mark("service")
        service.serve_forever()
elif sys.argv[1] == "script":
    script(*sys.argv[2:5])
else:
    main()
