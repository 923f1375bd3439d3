"""Ray's token authentication (on by default since 2.59): use the user's own token where Ray itself documents it, never print it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

from ray_rl_debug.collect.ray_token import find_token
from ray_rl_debug.model.errors import AuthenticationRefusedError

T = TypeVar("T")


def with_token(read: Callable[[], T], told: Callable[[str], object], env: MutableMapping[str, str] = os.environ) -> T:
    """What `read` gives; when the cluster refuses us, once more with the user's token, which is `told`.

    Raises:
        AuthenticationRefusedError: one sentence on what was tried; or whatever `read` raises.
    """
    try:
        return read()
    except AuthenticationRefusedError as e:
        said, place = switch_to_token(env), find_token(env)
        if said is None:
            if place is None or env.get("RAY_AUTH_MODE") != "token":
                raise
            raise AuthenticationRefusedError(f"the Ray cluster refused the token of {place}: it is not the one it was started with") from e
    told(said)
    try:
        return read()
    except AuthenticationRefusedError as e:
        raise AuthenticationRefusedError(f"the Ray cluster refused the token of {place}: it is not the one it was started with") from e


def switch_to_token(env: MutableMapping[str, str] = os.environ) -> str | None:
    """Turn token authentication on in this process, after a cluster refused us with ``RAY_AUTH_MODE`` unset.

    Returns:
        One sentence for the user; None when the mode was set by the user or no token is there.
    """
    if env.get("RAY_AUTH_MODE"):
        return None
    place = find_token(env)
    if place is None:
        return None
    try:
        refresh: Any = importlib.import_module("ray._raylet").Config.initialize  # compiled, without types
    except (ImportError, AttributeError):
        return None
    env["RAY_AUTH_MODE"] = "token"
    refresh("")  # Ray caches its settings in C++ at import; this is how Ray itself refreshes them
    return f"the cluster asks for a token: using the one of {place}"
