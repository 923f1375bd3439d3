"""Answers that may still come. Two rules ask before they say that a service gives none."""

from __future__ import annotations

from collections.abc import Set

from ray_rl_debug.analyze.connections import endpoint_key, own_hosts
from ray_rl_debug.analyze.pace import answer_s
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.rules.scene import Scene


def may_come(scene: Scene, one: Seen, descriptors: Set[int]) -> str | None:
    """Why who waits at these sockets may well get its answer, in words; None where nothing says so.

    A service outside of the nodes that were looked at works unseen, and models and sandboxes need up to a minute. Without the table of connections
    nobody knows whether bytes come in.
    """
    if one.process.sockets is None:
        return "its connections could not be read, so an answer may be on its way"
    awaited = [s for s in one.process.sockets if s.fd in descriptors and s.remote]
    hosts = own_hosts(scene.view)
    quiet = [s.quiet_s for s in awaited if s.quiet_s is not None and endpoint_key(one.node.name, s.remote or "")[0] not in hosts]
    if not awaited or len(quiet) < len(awaited) or max(quiet) >= answer_s(scene.view.snapshot):
        return None
    return f"{awaited[0].remote} is not on the captured nodes and has been quiet for {max(quiet):.0f} s; such services may need a minute"
