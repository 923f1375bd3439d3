"""A tool server that takes every request and never answers: its handler waits for a free sandbox that does not come."""

from __future__ import annotations

import http.server
import threading

free_sandbox = threading.Semaphore(0)


class ToolHandler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        free_sandbox.acquire()


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ToolHandler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
