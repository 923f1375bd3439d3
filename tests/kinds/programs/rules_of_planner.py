"""An agent asks a planner, the planner's handler asks a checker, and the checker's handler asks the planner for its rules.

The planner's handler keeps the lock of the rules while it asks. Other handlers of the planner answer all the time.
"""

import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kit import begin, differs, free_port, mark, step, work

PLANNER, CHECKER = (int(port) for port in sys.argv[2:4]) if sys.argv[1] in ("planner", "checker") else (0, 0)
rules = threading.Lock()


def ask(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        return str(answer.read().decode())


class Planner(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name, _, number = self.path[1:].partition("/")
        text = getattr(self, name)(int(number or 0))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(text).encode())

    def log_message(self, *_: object) -> None:
        pass

    def ping(self, _: int) -> str:
        return "here"

    def rules(self, _: int) -> str:
        with rules:
            return "be brief"

    def plan(self, number: int) -> str:
        if differs(number):
            with rules:
                return ask(CHECKER, f"/check/{number}")
        with rules:
            work(0.2)
        return ask(CHECKER, f"/check/{number}")


class Checker(Planner):
    def check(self, number: int) -> str:
        work(0.4)
        return f"{number} follows {ask(PLANNER, '/rules')}"


def look(port: int) -> None:
    while True:
        ask(port, "/ping")
        time.sleep(0.4)


def main() -> None:
    begin()
    planner, checker = free_port(), free_port()
    for role in ("planner", "checker"):
        subprocess.Popen([sys.executable, __file__, role, str(planner), str(checker)])
    for port in (planner, checker):
        while True:
            try:
                ask(port, "/ping")
                break
            except OSError:
                time.sleep(0.1)
    threading.Thread(target=look, args=(planner,), daemon=True).start()
    for number in range(10**6):
        work(0.3)
        ask(planner, f"/plan/{number}")
        step(number)


if PLANNER:
    mark(sys.argv[1])
    which = {"planner": (PLANNER, Planner), "checker": (CHECKER, Checker)}[sys.argv[1]]
    ThreadingHTTPServer(("127.0.0.1", which[0]), which[1]).serve_forever()
else:
    main()
