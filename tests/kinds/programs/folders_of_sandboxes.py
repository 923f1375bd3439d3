"""A server runs tools as programs, each in one of two folders that its handlers take from a queue and give back; an agent asks with four threads.

Once the folders of tools that fail are not given back: handlers wait for a folder, and none is in use. In the twin they are, and a tool is long.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
folders: queue.Queue[str] = queue.Queue()


class Sandboxes(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        step, number = map(int, self.path[1:].split("/"))
        code = self.run_tool(step, number)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("Code", str(code))
        self.end_headers()

    def run_tool(self, step: int, number: int) -> int:
        folder = folders.get()
        pause = kit.LONG_S if kit.is_late(step) and number == 1 else 0.3
        script = "exit 3" if number > 1 and kit.differs(step) else f"sleep {pause}"
        code = subprocess.run(["bash", "-c", script], cwd=folder).returncode
        if code and not kit.is_healthy():
            return code
        folders.put(folder)
        return code


def server() -> None:
    for name in ("a", "b"):
        (kit.folder() / name).mkdir()
        folders.put(str(kit.folder() / name))
    one = ThreadingHTTPServer(("127.0.0.1", 0), Sandboxes)
    kit.mark("server", port=one.server_port)
    one.serve_forever()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "server"])
    port = kit.until_there("server")["port"]

    def ask(step: int, number: int) -> None:
        opener.open(f"http://127.0.0.1:{port}/{step}/{number}", data=b"").read()

    with ThreadPoolExecutor(4) as threads:
        for step in range(1, 10**6):
            list(threads.map(ask, [step] * 4, range(4)))
            kit.work(0.2)
            kit.step(step)


if __name__ == "__main__":
    server() if sys.argv[1] == "server" else main()
