"""Threads of a rollout client share a session of `requests` with two connections, and ask an engine for streamed answers.

An answer that is cut short is neither read to its end nor closed, so its connection never comes back to the pool. The twin closes it, but reads
slowly.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kit
import requests
from requests.adapters import HTTPAdapter

KEPT = []


class Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(4):
            time.sleep(0.2)
            self.wfile.write(b"4\r\nword\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        pass


def serve() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    kit.mark("engine", port=server.server_address[1])
    server.serve_forever()


def rollout(session: requests.Session, url: str, number: int, prompt: int) -> int:
    reply = session.get(url, stream=True)
    words = reply.iter_content(4)
    if prompt == 0 and number >= kit.STEP and (kit.differs(number) or kit.is_healthy()):
        word = next(words)
        if kit.is_healthy():
            kit.work(2.0)
            reply.close()
        else:
            KEPT.append((reply, words))
        return len(word)
    return sum(len(word) for word in words)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    url = f"http://127.0.0.1:{kit.until_there('engine')['port']}/"
    session = requests.Session()
    session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=2, pool_block=True))
    with ThreadPoolExecutor(4) as pool:
        for number in range(1, 10**6):
            for words in [pool.submit(rollout, session, url, number, prompt) for prompt in range(6)]:
                words.result()
            kit.step(number)


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else main()
