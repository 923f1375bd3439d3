"""gRPC channels with Ray's own TLS and token interceptors."""

from __future__ import annotations

import socket
from typing import Any

MAX_MESSAGE_BYTES = 512 << 20
"""50,000 task events are 27 MB; gRPC's default limit is 4 MB."""


OUR_NAMESPACE = "rayrl_debug"
"""Our agents and our own driver live here; they are left out of what we store."""
SILENCE = ("DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED")
"""How `describe_failure` begins for somebody who does not answer."""


def has_grpc() -> bool:
    """Is grpcio there? Plain ``ray`` does not bring it."""
    try:
        import grpc  # noqa: F401
    except ImportError:
        return False
    return True


def open_channel(address: str) -> Any:
    """A channel to a GCS, raylet or core worker at ``host:port``.

    Raises:
        ImportError: grpcio is not installed (plain ``ray`` does not bring it, ``ray[default]`` does).
    """
    try:
        from ray._private.grpc_utils import init_grpc_channel  # Ray 2.52 and later
    except ImportError:
        from ray._private.utils import init_grpc_channel
    from ray._private import ray_constants

    options = [*ray_constants.GLOBAL_GRPC_OPTIONS, ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES), ("grpc.enable_http_proxy", 0)]
    return init_grpc_channel(address, options)


def describe_failure(error: Exception) -> str:
    """One line for a failed call: gRPC's status and the first line of its details, never a trace."""
    code = getattr(error, "code", None)
    details = getattr(error, "details", None)
    if callable(code) and callable(details):
        first = str(details() or "").split("\n", 1)[0]
        return f"{getattr(code(), 'name', code())}: {first[:160]}"
    return f"{type(error).__name__}: {str(error).split(chr(10), 1)[0][:160]}"


def why_unreachable(address: str, error: Exception, *, probe_s: float = 2.0) -> str:
    """One sentence on a GCS that gave no answer: gRPC's own words do not tell a wrong port from a stopped cluster, a plain connection does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=probe_s).close()
    except socket.gaierror:
        return f"there is no machine called {host}"
    except ConnectionRefusedError:
        return f"nothing listens at {address}"
    except OSError as e:
        return f"{address} cannot be reached ({e.strerror or 'no answer'})"
    if _status(error) == "DEADLINE_EXCEEDED":
        return f"{address} accepts connections but does not answer: the Ray cluster is stopped, or this is another program"
    return f"what listens at {address} is not the GCS of a Ray cluster ({describe_failure(error)})"


def _status(error: Exception) -> str | None:
    code = getattr(error, "code", None)
    return getattr(code(), "name", None) if callable(code) else None


def is_refused(error: Exception) -> bool:
    """Did the cluster refuse our authentication?"""
    return _status(error) in ("UNAUTHENTICATED", "PERMISSION_DENIED")
