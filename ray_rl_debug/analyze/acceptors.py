"""Who has a connection, or may accept it: of those who listen at its port."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.model.snapshot import MAX_SOCKETS, Process, Socket


def accepted_by(ends: list[tuple[str, Process]], socket: Socket) -> list[tuple[str, Process]]:
    """Of those that listen at a port: who has the connection, by its addresses alone. Nodes of Ray may share a machine, and its loopback."""
    return [(key, p) for key, p in ends if any(s.local == socket.remote and s.remote == socket.local for s in p.sockets or ())]


def waited_at(ends: list[tuple[str, Process]], port: str) -> list[tuple[str, Process]]:
    """Of those that listen at a port: where a connection waits that nobody has accepted, else where that was not read."""
    queued = [(key, p) for key, p in ends if any(s.rx_queue_bytes for s in _at_port(p, port))]
    return queued or [(key, p) for key, p in ends if len(p.sockets or ()) >= MAX_SOCKETS or not is_empty(p, port)]


def is_empty(process: Process, port: str) -> bool:
    """Is nobody in its queue, and are the other ends of all its connections there known?"""
    at_port = _at_port(process, port)
    return bool(at_port) and all(s.rx_queue_bytes == 0 for s in at_port)


def _at_port(process: Process, port: str) -> list[Socket]:
    return [s for s in process.sockets or () if s.state == "LISTEN" and s.local.rpartition(":")[2] == port]


def are_copies(ends: Sequence[tuple[str, Process]], port: str) -> bool:
    """Do only children of one parent hold a connection or listen? They were forked with copies: whose it is was not read.

    Sockets of different numbers are no copies.
    """
    pids = {p.pid for _, p in ends}
    inodes = [{s.inode for s in p.sockets or () if s.local.rpartition(":")[2] == port} for _, p in ends]
    if len(ends) > 1 and not set.intersection(*inodes):
        return False
    return len(ends) > 1 and len({p.ppid for _, p in ends}) == 1 and not any(p.ppid in pids for _, p in ends)


def may_accept(ends: list[tuple[str, Process]], port: str) -> list[tuple[str, Process]]:
    """Of those at whose port a connection waits: all who have the one queue in which it stands, as a server has it and those whom it has forked.

    Where some of them have accepted others, these are meant: who was forked with a copy of the socket need not use it. Of several queues at one port
    (SO_REUSEPORT) it is not known in which it stands: none is told.
    """
    inodes = {s.inode for _, p in ends for s in _at_port(p, port)} - {None}
    if len(ends) < 2 or len(inodes) > 1:
        return []
    return [(key, p) for key, p in ends if _has_accepted(p, port)] or ends


def _has_accepted(process: Process, port: str) -> bool:
    return any(s.state in ("ESTABLISHED", "CLOSE_WAIT") and s.local.rpartition(":")[2] == port for s in process.sockets or ())
