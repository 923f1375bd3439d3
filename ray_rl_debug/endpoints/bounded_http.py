"""An HTTP client for servers that may be sick: a whole answer within the time limit, and of a size that an answer has.

httpx limits the time between two pieces of an answer, not the whole: a server that sends a byte now and then would be waited for without an end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

MAX_BYTES = 64 << 20
"""Of one answer: the log-probabilities of a hundred thousand tokens."""


def bounded_client(timeout_s: float) -> Any:
    """An `httpx.Client`, as OpenAI's own client takes it. Its answers come uncompressed: a small packed one could fill the memory.

    Args:
        timeout_s: For the connection, and for a whole answer after its first line.
    """
    import httpx

    class Bounded(httpx.SyncByteStream):  # type: ignore[misc,unused-ignore]
        """The bytes of one answer as they come."""

        def __init__(self, response: httpx.Response) -> None:
            self._inner, self._request = response.stream, response.request
            self._until = time.monotonic() + timeout_s

        def __iter__(self) -> Iterator[bytes]:
            total = 0
            assert isinstance(self._inner, httpx.SyncByteStream)
            for piece in self._inner:
                total += len(piece)
                if total > MAX_BYTES:
                    raise httpx.ReadError(f"the answer is larger than {MAX_BYTES >> 20} MiB", request=self._request)
                if time.monotonic() > self._until:
                    raise httpx.ReadTimeout(f"the answer was not whole after {timeout_s:g} s", request=self._request)
                yield piece

        def close(self) -> None:
            assert isinstance(self._inner, httpx.SyncByteStream)
            self._inner.close()

    def bind(response: httpx.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx.ReadError("the answer is packed, though we take none", request=response.request)
        response.stream = Bounded(response)

    return httpx.Client(timeout=timeout_s, follow_redirects=True, headers={"Accept-Encoding": "identity"}, event_hooks={"response": [bind]})
