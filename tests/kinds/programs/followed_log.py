"""A tool server runs commands for an agent in threads, and gives the output back when a command has ended.

An agent asks for `tail -f` of a log, which never ends. In the twin each command may take six seconds and is killed then.
"""

from __future__ import annotations

import http.server
import subprocess
import sys
import urllib.request

import kit


class Tool(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        number = int(self.path.strip("/"))
        follows = kit.differs(number) or (kit.is_healthy() and number % 2)
        log = kit.folder() / "log"
        command = ["tail", "-f", str(log)] if follows else ["head", "-c", "10", str(log)]
        tool = subprocess.Popen(command, stdout=subprocess.PIPE)
        if follows:
            kit.mark("tail", tool.pid)
        try:
            output, _ = tool.communicate(timeout=None if kit.differs(number) else 6.0)
        except subprocess.TimeoutExpired:
            tool.kill()
            output, _ = tool.communicate()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(output[:10])

    def log_message(self, *_: object) -> None:
        pass


def serve() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tool)
    kit.mark("server", port=server.server_address[1])
    server.serve_forever()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    url = f"http://127.0.0.1:{kit.until_there('server')['port']}"
    for number in range(1, 10**6):
        with urllib.request.urlopen(f"{url}/{number}") as reply:
            reply.read()
        kit.step(number)


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else main()
