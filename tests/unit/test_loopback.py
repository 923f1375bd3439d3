"""Whether somebody takes a connection at an address that people gave."""

from __future__ import annotations

import socket

import pytest
from ports import free_port

from ray_rl_debug.endpoints.loopback import why_silent
from ray_rl_debug.model.errors import UsageError


def test_an_address_at_which_somebody_listens_and_one_at_which_nobody_does() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        assert why_silent(f"http://127.0.0.1:{server.getsockname()[1]}/v1") is None
    assert why_silent(f"http://127.0.0.1:{free_port()}/v1") == "connection refused"


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "ftp://x", "http://", "http://x:port/v1", "http://[::1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is no address"):
        why_silent(address)
