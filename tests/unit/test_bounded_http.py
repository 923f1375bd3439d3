"""Answers of servers that drip, never end, or are packed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ray_rl_debug.endpoints import bounded_http

httpx = pytest.importorskip("httpx", reason="pip install 'ray-rl-debug[rollout]'")


@contextmanager
def server(how: str) -> Iterator[str]:
    ended = threading.Event()

    class Sick(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if how == "packed":
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            try:
                while how in ("drips", "endless") and not ended.wait(0.05 if how == "drips" else 0):
                    self.wfile.write(b" " if how == "drips" else b" " * 100_000)
                self.wfile.write(b"{}")
            except OSError:
                pass  # the client has left

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Sick)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        ended.set()
        http.shutdown()
        http.server_close()


@pytest.mark.parametrize(("how", "said"), [("drips", "not whole after 0.3 s"), ("endless", "larger than 1 MiB"), ("packed", "packed")])
def test_a_sick_server_is_left(how: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "MAX_BYTES", 1 << 20)
    with server(how) as url, bounded_http.bounded_client(0.3 if how == "drips" else 30.0) as client, pytest.raises(httpx.TransportError, match=said):
        client.get(url)


def test_a_good_answer_comes_whole() -> None:
    with server("good") as url, bounded_http.bounded_client(30.0) as client:
        assert client.get(url).json() == {}
