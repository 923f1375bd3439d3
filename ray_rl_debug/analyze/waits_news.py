"""Edges from those who have the kernel tell them of new files (inotify)."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import NEWS
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View, program_of
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Thread

WATCHED = "the files that pid "
"""How the name of whoever writes what somebody watches begins."""

_FOLLOWERS = frozenset({"tail", "journalctl"})
"""Programs that have the kernel tell them of news only where they follow a file for ever, with ``-f``."""


def news_edges(view: View, one: Seen, kernel: Thread | None) -> Iterator[Edge]:
    """To whoever holds a file open for writing that it watches; else to whoever writes there: anybody may.

    To nobody where the kernel watches none for it, as what it watched was removed, or where its end is awaited, which no news brings.
    """
    if kernel is None or kernel.wchan != NEWS or _follows_in_vain(view, one):
        return
    fds = kernel.waits_on_fds or (kernel.syscall_arg0,)
    watched = {name for f in one.process.files or () if f.kind == "inotify" and f.fd in fds for name in f.watched}
    writers = [o for o in view if o.node is one.node and o.process is not one.process and not o.has_ended and _writes(o, watched)] if watched else []
    for writer in writers:
        evidence = f"it watches a file that pid {writer.process.pid} holds open for writing"
        yield Edge(source=one.key, target=writer.key, why=Why.NEWS, evidence=evidence, certainty=Certainty.LIKELY)
    if writers:
        return
    count = sum(f.watches or 0 for f in one.process.files or () if f.kind == "inotify" and f.fd in fds)
    evidence = f"it watches {count} {'file' if count == 1 else 'files'} or folders; who writes there is not recorded"
    target = node_of(NodeKind.UNSEEN, f"{one.node.name}/{WATCHED}{one.process.pid} watches")
    yield Edge(source=one.key, target=target, why=Why.NEWS, evidence=evidence, certainty=Certainty.PROVEN)


def _follows_in_vain(view: View, one: Seen) -> bool:
    """Does it follow a file for ever, while a thread of its parent waits for its end? Where its parent was not read, anybody may be who does so."""
    if program_of(one.process) not in _FOLLOWERS:
        return False
    ppid = one.process.ppid
    parents = [o for o in view if o.node is one.node and (o.process.pid == ppid or (ppid is None and o.process is not one.process))]
    return any(t.place.kind is Kind.CHILD for parent in parents for t in parent.threads)


def _writes(one: Seen, watched: set[str]) -> bool:
    return any(f.writable and f"{f.device} {f.inode}" in watched for f in one.process.files or ())
