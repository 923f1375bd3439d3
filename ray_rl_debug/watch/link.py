"""One TCP connection that never blocks its user: bytes out wait in a queue, bytes in are taken as they come; with TLS where Ray has it."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable

READ_BYTES = 1 << 18
_LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Connection:
    """May be written to by any thread; one thread reads."""

    def __init__(self, connection: socket.socket, tls: ssl.SSLContext | None = None, *, is_server: bool) -> None:
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._shakes = tls is not None
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=is_server, do_handshake_on_connect=False)
        self.socket = connection
        self._lock = threading.Lock()  # TLS allows one call at a time, in whichever direction
        self._out = bytearray()
        self.moved_at = time.monotonic()
        """When bytes last left, or there were none to leave."""

    @property
    def waiting_bytes(self) -> int:
        """Not yet taken by the other side."""
        return len(self._out)

    def write(self, data: bytes) -> None:
        """Send now what can be sent now; the rest waits for `flush`.

        Raises:
            OSError: the other side is gone.
        """
        self.send_sealed(bytes, data)

    def send_sealed(self, seal: Callable[[bytes], bytes], body: bytes) -> None:
        """Seal and write as one step: seals count. Raises as `write`."""
        with self._lock:
            if not self._out:
                self.moved_at = time.monotonic()
            self._out += seal(body)
            self._flush()

    def flush(self) -> None:
        """Raises as `write`."""
        with self._lock:
            self._flush()

    def read(self) -> bytes | None:
        """What has come; nothing when nothing has; None when no more will come.

        Raises:
            OSError: the connection broke, or is none of TLS.
        """
        with self._lock:
            if not self._shake():
                return b""
            self._flush()
            try:
                data = self.socket.recv(READ_BYTES)
                while data and isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                    data += self.socket.recv(READ_BYTES)
            except _LATER:
                return b""
            return data or None

    def wait(self, wake: socket.socket, timeout_s: float) -> None:
        """Until there may be something to read, room to write, or a byte at `wake`."""
        writes = [self.socket] if self._out else []
        select.select([self.socket, wake], writes, [], max(0.0, timeout_s))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()

    def _shake(self) -> bool:
        if self._shakes and isinstance(self.socket, ssl.SSLSocket):
            try:
                self.socket.do_handshake()
            except _LATER:
                return False
            self._shakes = False
        return True

    def _flush(self) -> None:
        if not self._out or not self._shake():
            return
        sent = 0
        view = memoryview(self._out)
        try:
            while sent < len(view):
                sent += self.socket.send(view[sent : sent + READ_BYTES])
        except _LATER:
            pass
        finally:
            view.release()
            if sent:
                self.moved_at = time.monotonic()
                del self._out[:sent]
