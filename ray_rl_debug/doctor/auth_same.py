"""RRD821 nodes would use different tokens

Story
    Since Ray 2.59 the head asks for a token where its user has one. A node or container with another home has none, answers InvalidAuthToken and
    is missing.

Evidence
    Mode, place and digest of the token on each node.

Remedy
    One token file that all nodes see, named by RAY_AUTH_TOKEN_PATH, with RAY_AUTH_MODE=token.

Not this when
    RAY_AUTH_MODE=disabled on every node.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.model.health import Health, NodeHealth, Result

ID = "RRD821"
NAME = "nodes would use different tokens"
CHECK = "auth.same"
_REMEDY = "export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=FILE (mode 600, seen by all nodes) before ray start"


def examine(health: Health) -> Iterator[Result]:
    known = [n for n in health.nodes if n.auth is not None]
    for node in health.nodes:
        if node.auth is None:
            yield unknown(node.name, "authentication was not read")
        elif node.auth.mode == "token" and node.auth.digest is None:
            place = f" at {node.auth.source}" if node.auth.source else ""
            yield fail(node.name, f"RAY_AUTH_MODE=token and no readable token{place}", "a token", "every call to the cluster is refused", _REMEDY)
    if not known:
        return
    modes = {n.auth.mode for n in known if n.auth}
    used = {n.name: _token(n) for n in known}
    text = ", ".join(f"{name}: {token or 'no token'}" for name, token in sorted(used.items())[:6])
    if len(modes) > 1:
        yield fail(
            None,
            f"RAY_AUTH_MODE differs: {', '.join(str(m) for m in sorted(modes, key=str))}",
            "equal",
            "nodes cannot join: InvalidAuthToken",
            _REMEDY,
        )
    elif modes == {"disabled"}:
        yield ok(None, "disabled on all nodes")
    elif len(set(used.values())) > 1:
        yield fail(None, text, "the same token", "nodes cannot join: InvalidAuthToken", _REMEDY)
    elif modes == {None} and len(known) > 1 and any(used.values()) and _is_new(known[0]):
        consequence = "the head turns authentication on by itself, other nodes do not"
        yield warn(None, f"RAY_AUTH_MODE is not set, and there is a token ({text})", "token or disabled", consequence, _REMEDY)
    else:
        yield ok(None, f"mode {next(iter(modes)) or 'not set'}, {text}", "the same token")


def _token(node: NodeHealth) -> str | None:
    return node.auth.digest if node.auth and node.auth.mode != "disabled" else None


def _is_new(node: NodeHealth) -> bool:
    words = node.versions.get("ray", "0.0").split(".")
    return tuple(int(w) for w in words[:2] if w.isdigit()) >= (2, 59)
