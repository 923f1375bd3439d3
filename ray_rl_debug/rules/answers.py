"""Answers that may still come. Two rules ask before they say that a service gives none."""

from __future__ import annotations

from collections.abc import Set

from ray_rl_debug.analyze.connections import endpoint_key, own_hosts
from ray_rl_debug.analyze.pace import still_in_time
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.rules.scene import Scene


def may_come(scene: Scene, one: Seen, descriptors: Set[int]) -> str | None:
    """Why who waits at these sockets may well get its answer, in words; None where nothing says so.

    A service outside of the nodes that were looked at works unseen. Its outlook is judged by the connection that spoke last, of all its clients
    (`analyze.waiting`); here every connection that this one waits at must be in time. Without the table of connections nobody knows whether bytes
    come in.
    """
    if one.process.sockets is None:
        return "its connections could not be read, so an answer may be on its way"
    awaited = [s for s in one.process.sockets if s.fd in descriptors and s.remote]
    hosts = own_hosts(scene.view)
    quiet = [s.quiet_s for s in awaited if s.quiet_s is not None and endpoint_key(one.node.name, s.remote or "")[0] not in hosts]
    said = still_in_time(scene.view.snapshot, max(quiet)) if awaited and len(quiet) == len(awaited) else None
    return f"{awaited[0].remote} is not on the captured nodes; it has been {said}" if said is not None else None
