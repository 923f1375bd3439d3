"""A trainer tells an engine over HTTP to make a group of torch with it, and sends its weights there; the engine's answer comes when it has them.

Usually the call is made in a thread, while the trainer goes into the group itself. Once it waits for the answer first: the engine waits in the
meeting for rank 0, which has not begun. In the twin the trainer computes for long while the engine already waits.
"""

from __future__ import annotations

import datetime
import http.server
import json
import subprocess
import sys
import threading
import time
import urllib.request

import kit
import torch
import torch.distributed as dist

LONG = datetime.timedelta(days=1)


def take(rank: int, port: int) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2, timeout=LONG)
    dist.broadcast(torch.ones(1000), 0)
    dist.destroy_process_group()


def serve() -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kit.mark("engine", port=server.server_address[1])
            take(1, asked["port"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kit.mark("engine", port=server.server_address[1])
    server.serve_forever()


def main() -> None:
    subprocess.Popen([sys.executable, __file__, "serve"])
    url = f"http://127.0.0.1:{kit.until_there('engine')['port']}/init_group"
    for step in range(1, 10**6):
        kit.work(0.5)
        port = kit.free_port()

        def tell(port: int = port) -> None:
            urllib.request.urlopen(urllib.request.Request(url, json.dumps({"port": port}).encode())).read()

        if kit.differs(step):
            tell()
            take(0, port)
        else:
            telling = threading.Thread(target=tell)
            telling.start()
            if kit.is_late(step) and step % 2 == 0:
                for _ in range(4):
                    kit.in_c(5)
                    time.sleep(1)
            take(0, port)
            telling.join()
        kit.mark("main")
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        main()
