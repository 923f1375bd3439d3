"""A trainer tells an engine over HTTP to take new weights, in a thread, and broadcasts them meanwhile. Nobody reads what the engine answers.

The engine refuses, as it believes an update to be under way, and goes back to its requests. In the twin it first ends a long generation.
"""

from __future__ import annotations

import http.server
import os
import random
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import kit

generating = threading.Lock()


class Engine(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        import torch
        import torch.distributed as dist

        number = int(self.path.rpartition("/")[2])
        if "generate" in self.path:
            with generating:
                kit.work(0.5)
        elif kit.differs(number):
            self.send_error(409, "an update is under way")
            return
        else:
            with generating:
                if number % 2:
                    time.sleep(random.uniform(4, 9))
            dist.broadcast(torch.zeros(1024), src=0)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def ask(path: str) -> None:
    try:
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{os.environ['ENGINE']}{path}", data=b"")).read()
    except urllib.error.HTTPError:
        pass


def rank() -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    if dist.get_rank():
        kit.mark("engine")
        http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["ENGINE"])), Engine).serve_forever()
    kit.mark("trainer")
    time.sleep(2)
    for number in range(1, 10**6):
        ask(f"/generate/{number}")
        kit.work(0.5)
        telling = threading.Thread(target=ask, args=(f"/update/{number}",))
        telling.start()
        dist.broadcast(torch.ones(1024), src=0)
        telling.join()
        kit.step(number)


def judge() -> None:
    kit.mark("judge")
    http.server.HTTPServer(("127.0.0.1", kit.free_port()), Engine).serve_forever()


if __name__ == "__main__":
    if "RANK" in os.environ:
        rank()
    elif "judge" in sys.argv:
        judge()
    else:
        kit.begin()
        os.environ["ENGINE"] = str(kit.free_port())
        subprocess.Popen([sys.executable, __file__, "judge"])
        for child in kit.ranks_as_programs(__file__, 2):
            child.wait()
