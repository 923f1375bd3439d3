"""RRD820 versions differ between nodes

Story
    Ray refuses nodes whose Python or Ray is of another version; other packages that differ fail later and stranger.

Evidence
    Versions of Python, Ray and the frameworks as each node would import them.

Remedy
    One image or environment for all nodes.

Not this when
    The nodes have different roles and never share objects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, warn
from ray_rl_debug.model.health import Health, NodeHealth, Result

ID = "RRD820"
NAME = "versions differ between nodes"
CHECK = "ver.same"
_FATAL = ("python", "ray")


def examine(health: Health) -> Iterator[Result]:
    nodes = [n for n in health.nodes if n.versions]
    if len(nodes) < 2:
        return
    names = sorted({k for n in nodes for k in n.versions} - {"executable"})
    differing = [name for name in names if len({n.versions.get(name) for n in nodes}) > 1]
    if not differing:
        yield ok(None, ", ".join(f"{n} {nodes[0].versions[n]}" for n in ("python", "ray", "torch") if n in nodes[0].versions), "equal on all nodes")
    for name in differing:
        text = f"{name}: {_groups(name, nodes)}"
        if name in _FATAL:
            yield fail(
                None, text, "equal on all nodes", "Ray refuses to join nodes of another version", f"run one image on all nodes: {_paths(nodes)}"
            )
        else:
            yield warn(None, text, "equal on all nodes", "objects and messages may not be understood on the other node", "pip list on both nodes")


def _groups(name: str, nodes: list[NodeHealth]) -> str:
    by_version: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        by_version[node.versions.get(name, "missing")].append(node.name)
    return "; ".join(f"{version} on {', '.join(hosts[:3])}{' ...' if len(hosts) > 3 else ''}" for version, hosts in sorted(by_version.items()))


def _paths(nodes: list[NodeHealth]) -> str:
    return ", ".join(sorted({n.versions.get("executable", "?") for n in nodes})[:3])
