"""Where the token of Ray's authentication lies on this machine."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path


def find_token(env: MutableMapping[str, str], home: Path | None = None) -> str | None:
    """Where the user's token lies, in Ray's own order; None when there is none. The token itself is not read."""
    if env.get("RAY_AUTH_TOKEN"):
        return "RAY_AUTH_TOKEN"
    if env.get("RAY_AUTH_TOKEN_PATH"):
        return env["RAY_AUTH_TOKEN_PATH"]
    default = (home or Path(os.path.expanduser("~"))) / ".ray" / "auth_token"  # Path.home() raises where there is none
    return "~/.ray/auth_token" if default.is_file() else None
