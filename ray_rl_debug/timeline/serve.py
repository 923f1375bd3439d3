"""Opening a trace in the Perfetto UI: the trace stays on this machine, the browser fetches it from the loopback address."""

from __future__ import annotations

import http.server
import re
import secrets
import shlex
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray_rl_debug.model.errors import UsageError

UI = "https://ui.perfetto.dev"
PORT = 9001
"""The only loopback port from which the UI's content security policy lets it fetch."""


def how_to_open(path: Path) -> tuple[str, ...]:
    """What to do with a trace, in words."""
    command = f"rayrl-debug timeline --open {shlex.quote(str(path))}"
    return (f"open {UI} and drop {path} on it (the file stays in your browser)", f"or let the tool open it: {command}")


@contextmanager
def served(path: Path, *, port: int = PORT) -> Iterator[tuple[str, threading.Event]]:
    """Serve one file on 127.0.0.1, and nothing else; the address to open, and an event that is set when it was fetched.

    Raises:
        UsageError: the port is taken.
    """
    fetched = threading.Event()
    # Any page the browser has open can ask this port: the name must not be guessed.
    # Its end is only shown; it stands in an address in an address, where signs would be taken for others.
    name = f"/{secrets.token_urlsafe(9)}/{re.sub(r'[^A-Za-z0-9._-]', '_', path.name)}"

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != name:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", UI)
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(path.stat().st_size))
            self.end_headers()
            with path.open("rb") as f:
                shutil.copyfileobj(f, self.wfile)
            fetched.set()

        def do_OPTIONS(self) -> None:
            """Browsers ask first when a public page wants something of a loopback address."""
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", UI)
            self.send_header("Access-Control-Allow-Methods", "GET")
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: stderr is for progress."""

    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as e:
        raise UsageError(f"cannot listen on 127.0.0.1:{port}: {e.strerror}", hint=f"free the port, or open {UI} and drop the file on it") from e
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{UI}/#!/?url=http://127.0.0.1:{server.server_address[1]}{name}", fetched
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
