"""Do all nodes answer, with the same versions, tokens and time?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, listed, ok, unknown, warn
from ray_rl_debug.model.health import Health, NodeHealth, Result

CLOCK_WARN_S, CLOCK_FAIL_S = 1.0, 30.0
_FATAL = ("python", "ray")
_ONE_TOKEN = "export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=FILE (mode 600, seen by all nodes) before ray start"


def seen(health: Health) -> Iterator[Result]:
    """A node that cannot be looked at may be the one that is sick.

    Evidence: Why nothing came from it.
    Remedy: Run the doctor on the node itself.
    Not this when: The node left the cluster on purpose.
    """
    for name, reason in health.silent:
        remedy = f"ssh {name} rayrl-debug doctor --here"
        if name.startswith("cluster "):
            remedy = "on the head node: rayrl-debug doctor --logs /tmp/ray/session_latest, and rayrl-debug snapshot --here"
        yield fail(reason, "an answer", "nothing is known about this node", remedy, node=name)
    if not health.silent:
        yield ok(f"{len(health.nodes)} node{'s' if len(health.nodes) != 1 else ''} answered")


def versions(health: Health) -> Iterator[Result]:
    """Ray refuses nodes whose Python or Ray has another version. Other packages that differ fail later, in ways that are harder to understand.

    Evidence: Versions of Python, Ray and the frameworks as each node would import them.
    Remedy: Use one image or environment on all nodes.
    Not this when: The nodes have different roles and never share objects.
    """
    nodes = [n for n in health.nodes if n.versions]
    if len(nodes) < 2:
        return
    names = sorted({k for n in nodes for k in n.versions} - {"executable"})
    differing = [name for name in names if len({n.versions.get(name) for n in nodes}) > 1]
    if not differing:
        yield ok(", ".join(f"{n} {nodes[0].versions[n]}" for n in ("python", "ray", "torch") if n in nodes[0].versions), "equal on all nodes")
    for name in differing:
        text = f"{name}: {_holders(name, nodes)}"
        if name in _FATAL:
            paths = ", ".join(sorted({n.versions.get("executable", "?") for n in nodes})[:3])
            yield fail(text, "equal on all nodes", "Ray refuses to join nodes of another version", f"run one image on all nodes: {paths}")
        else:
            yield warn(text, "equal on all nodes", "another node may not understand objects and messages", "pip list on both nodes")


def _holders(name: str, nodes: list[NodeHealth]) -> str:
    by_version: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        by_version[node.versions.get(name, "missing")].append(node.name)
    return "; ".join(f"{version} on {', '.join(hosts[:3])}{' ...' if len(hosts) > 3 else ''}" for version, hosts in sorted(by_version.items()))


def token(node: NodeHealth) -> Iterator[Result]:
    """Since Ray 2.59 the head asks for a token if its user has one. A node or container with another home has none, says InvalidAuthToken and
    is missing.

    Evidence: Mode, place and digest of the token on each node.
    Remedy: Use one token file that all nodes see, named by RAY_AUTH_TOKEN_PATH, with RAY_AUTH_MODE=token.
    Not this when: RAY_AUTH_MODE=disabled on every node.
    """
    if node.auth is None:
        yield unknown("authentication was not read")
    elif node.auth.mode == "token" and node.auth.digest is None:
        place = f" at {node.auth.source}" if node.auth.source else ""
        yield fail(f"RAY_AUTH_MODE=token, and no token can be read{place}", "a token", "every call to the cluster is refused", _ONE_TOKEN)


def tokens(health: Health) -> Iterator[Result]:
    """Would all nodes use the same one?"""
    known = [(n, n.auth) for n in health.nodes if n.auth is not None]
    if not known:
        return
    modes = {auth.mode for _, auth in known}
    used = {node.name: auth.digest if auth.mode != "disabled" else None for node, auth in known}
    text = listed({name: digest or "no token" for name, digest in used.items()})
    refused = "nodes cannot join: InvalidAuthToken"
    if len(modes) > 1:
        yield fail(f"RAY_AUTH_MODE differs: {', '.join(str(m) for m in sorted(modes, key=str))}", "equal", refused, _ONE_TOKEN)
    elif modes == {"disabled"}:
        yield ok("disabled on all nodes")
    elif len(set(used.values())) > 1:
        yield fail(text, "the same token", refused, _ONE_TOKEN)
    elif modes == {None} and len(known) > 1 and any(used.values()) and _is_new(known[0][0]):
        consequence = "the head turns authentication on by itself, the other nodes do not"
        yield warn(f"RAY_AUTH_MODE is not set, and there is a token ({text})", "token or disabled", consequence, _ONE_TOKEN)
    else:
        yield ok(f"mode {next(iter(modes)) or 'not set'}, {text}", "the same token")


def _is_new(node: NodeHealth) -> bool:
    words = node.versions.get("ray", "0.0").split(".")
    return tuple(int(w) for w in words[:2] if w.isdigit()) >= (2, 59)


def clock(node: NodeHealth) -> Iterator[Result]:
    """Clocks put the logs and timelines of several nodes in order. Tokens and certificates fail when clocks are far apart.

    Evidence: This node's clock against the first node's over a TCP connection, or against a shared file system's time stamps.
    Remedy: Let the nodes keep time with chrony or ntpd.
    Not this when: The difference is smaller than the time that the measurement took.
    """
    measured = [(c.clock_ahead_s, c.bound_s or 0.0, c.peer) for c in node.contacts or () if c.clock_ahead_s is not None]
    if node.logs is not None and node.logs.clock_ahead_s is not None:
        measured.append((node.logs.clock_ahead_s, 0.1, "the log folder's file system"))
    for ahead_s, bound_s, against in measured[:1]:
        text, apart_s = f"{abs(ahead_s):.3f} s {'ahead of' if ahead_s > 0 else 'behind'} {against}", abs(ahead_s) - bound_s
        if apart_s > CLOCK_FAIL_S:
            consequence = "logs of several nodes cannot be put in order; tokens may be refused"
            yield fail(text, f"{CLOCK_FAIL_S:g} s", consequence, "chronyc makestep")
        elif apart_s > CLOCK_WARN_S:
            yield warn(text, f"{CLOCK_WARN_S:g} s", "logs of several nodes are in the wrong order", "chronyc makestep")
        else:
            yield ok(text, f"{CLOCK_WARN_S:g} s")
