"""Edges from those who have the kernel tell them of new files (inotify)."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import NEWS
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Certainty

WATCHED = "the files that pid "
"""How the name of whoever writes what somebody watches begins."""


def news_edges(one: Seen, thread: SeenThread) -> Iterator[Edge]:
    """To whoever writes the files that it watches: anybody may. To nobody where the kernel watches none for it: what it watched was removed."""
    kernel = thread.kernel
    if kernel is None or kernel.wchan != NEWS:
        return
    fds = kernel.waits_on_fds or (kernel.syscall_arg0,)
    count = sum(f.watches or 0 for f in one.process.files or () if f.kind == "inotify" and f.fd in fds)
    evidence = f"it watches {count} {'file' if count == 1 else 'files'} or folders; who writes there is not recorded"
    target = node_of(NodeKind.UNSEEN, f"{one.node.name}/{WATCHED}{one.process.pid} watches")
    yield Edge(source=one.key, target=target, why=Why.NEWS, evidence=evidence, certainty=Certainty.PROVEN)
