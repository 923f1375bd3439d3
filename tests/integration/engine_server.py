"""A server that answers like the one of an engine: recorded numbers, switches, and the list of what it was asked.

Usage: ... FOLDER, where ``metrics.txt`` is what ``/metrics`` says (``{tokens}`` rises), ``switches.json`` maps other paths to status and body.
"""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

folder = Path(sys.argv[-1])
switches = json.loads((folder / "switches.json").read_text())
tokens = 1000


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        global tokens
        with (folder / "asked.txt").open("a") as asked:
            asked.write(f"{self.path}\n")
        if self.path == "/metrics":
            tokens += 7
            status, body = 200, (folder / "metrics.txt").read_text().replace("{tokens}", str(tokens))
        else:
            status, body = switches.get(self.path, (404, '{"detail":"Not Found"}'))
        self.send_response(status)
        if status == 307:
            self.send_header("Location", body)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
child = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
child.stdout.readline()
(folder / "port.txt").write_text(f"{server.server_port} {child.pid}")
print(flush=True)
server.serve_forever()
