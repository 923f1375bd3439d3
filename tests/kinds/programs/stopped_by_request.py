"""A trainer tells its verifier over HTTP to end, and waits for the answer before it starts the next one.

The handler calls `shutdown`, which waits for the serving loop to stop; but this handler runs inside of the loop. In the twin another thread calls it
and the verifier's last grades take their time.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import kit


class Verifier(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        _, what, number = self.path.split("/")
        kit.work(0.3)
        if what == "end":
            if kit.differs(int(number)):
                self.server.shutdown()
            threading.Thread(target=self.server.shutdown).start()
            kit.work(3.0)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


def serve(number: str) -> None:
    server = HTTPServer(("127.0.0.1", 0), Verifier)
    kit.mark("verifier")
    kit.mark(f"verifier_{number}", port=server.server_address[1])
    server.serve_forever()


def main() -> None:
    kit.begin()
    for number in range(1, 10**6):
        verifier = subprocess.Popen([sys.executable, __file__, "serve", str(number)])
        address = f"http://127.0.0.1:{kit.until_there(f'verifier_{number}')['port']}"
        for what in ("grade", "grade", "end"):
            urllib.request.urlopen(f"{address}/{what}/{number}").read()
        verifier.wait()
        (kit.folder() / f"verifier_{number}.json").unlink()
        kit.step(number)


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1] == "serve" else main()
