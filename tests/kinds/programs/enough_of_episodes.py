"""A driver collects until all of its four samplers have answered, and looks every two seconds; one asks a server that never answers.

The server of environments is a program of its own. In the twin one sample is very long.
"""

import socketserver
import subprocess
import sys
import time

import kit


class Episode(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            number, n = map(int, line.split())
            kit.work(0.3)
            if n == 3 and kit.differs(number):
                kit.mark("server")
                with open(kit.fifo("scene")) as scene:
                    scene.read()
            if n == 3 and kit.is_healthy() and number % 3 == 0:
                time.sleep(8)
            self.wfile.write(b"done\n")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def serve():
    with Server(("127.0.0.1", 0), Episode) as server:
        kit.mark("server", port=server.server_address[1])
        server.serve_forever()


def main():
    import ray

    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    kit.until_there("server")
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)

    @ray.remote
    class Sampler:
        def __init__(self, n):
            import socket

            self.n = n
            self.peer = socket.create_connection(("127.0.0.1", kit.until_there("server")["port"]))
            self.lines = self.peer.makefile("rwb")
            kit.mark(f"sampler{n}")

        def sample(self, number):
            kit.mark(f"sampler{self.n}")
            self.lines.write(f"{number} {self.n}\n".encode())
            self.lines.flush()
            return self.lines.readline()

    samplers = [Sampler.remote(n) for n in range(4)]
    for number in range(1, 100000):
        waiting = [sampler.sample.remote(number) for sampler in samplers]
        while True:
            done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=2.0)
            if len(done) == len(waiting):
                break
        ray.get(done)
        kit.step(number)


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else main()
