"""A store of Agent-Lightning that answers from a recorded file, which a test may change."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

RECORDED = Path(__file__).parents[1] / "data" / "agent_lightning" / "hang.json"
"""Of a real run of version 0.3.0: two runners, four rollouts, one whose tool never answers."""


def recorded() -> dict[str, Any]:
    return dict(json.loads(RECORDED.read_text()))


@contextlib.contextmanager
def serving(answers: dict[str, Any]) -> Iterator[str]:
    """The URL of a server with these answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            asked = parse_qs(url.query)
            key = f"{url.path}?rollout_id={asked['rollout_id'][0]}" if "rollout_id" in asked else url.path
            body = answers.get(key)
            if isinstance(body, dict) and "status_in" in asked:
                body = {**body, "items": [i for i in body["items"] if i["status"] in asked["status_in"]]}
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
