"""Ends of pipes and of Unix sockets that nobody was seen to hold.

Who made such a pipe gave its other end to a process that was not seen, or that has ended. At the end of a connection that is there lives one.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import Process

_STANDARD_ERROR = 2


def lacks_child(view: View, one: Seen, *, ended: int = 0) -> bool:
    """May a child of a process be missing? It holds an end of a pipe that it reads and an end of another that it writes, and nobody the other ends.

    So does each process that multiprocessing starts hold two pipes together with its parent: for what it is to do, and for its end; also those
    that have `ended`, and of which is known that they were there. Where all its children were seen, the lost ends were of those that have ended.
    """
    if sees_all_below(view, one):
        return False
    lost = view.once(_with_lost_ends).get(one.process_key, Counter())
    return min(lost[True], lost[False]) > ended


def sees_all_below(view: View, one: Seen) -> bool:
    """Were all collected that a process and its descendants have started and that live? A fork server or a shell may stand between."""
    children = view.once(_children)
    todo = [(one.node.name, one.process)]
    for node, process in todo:
        below = children.get((node, process.pid), ())
        if process.state not in ("Z", "X") and process.child_count != len(below):
            return False
        todo += [(node, child) for child in below]
    return True


def _children(view: View) -> dict[tuple[str, int], list[Process]]:
    """The collected children of each process."""
    found: dict[tuple[str, int], list[Process]] = defaultdict(list)
    for node in view.snapshot.nodes:
        for process in node.processes:
            if process.ppid is not None and process.ppid != process.pid:
                found[node.name, process.ppid].append(process)
    return found


def may_lack_holder(view: View, one: Seen) -> bool:
    """Does it hold an end of any pipe of which nobody holds the other end, so that whoever had that may not have been seen?

    Where all its descendants were seen, that was one who has ended.
    """
    return bool(view.once(_with_lost_ends).get(one.process_key)) and not sees_all_below(view, one)


def lacks_reader(view: View, one: Seen) -> bool:
    """Does it alone have a pipe into which it writes and that nobody reads? It gave the other end to a child that was not seen, or has ended."""
    lost = {n for n, ends in view.once(_held_ends).get(one.node.name, {}).items() if ends == {(one.process.pid, True)}}
    return bool(lost) and not sees_all_below(view, one)


def _held_ends(view: View) -> dict[str, dict[int, set[tuple[int, bool | None]]]]:
    """Who holds which ends of each pipe, by machine; empty for a machine of which not all was read."""
    found: dict[str, dict[int, set[tuple[int, bool | None]]]] = defaultdict(lambda: defaultdict(set))
    for node in view.snapshot.nodes:
        if any(p.files is None and p.state not in ("Z", "X") for p in node.processes if p.kind in MAY_HOLD):
            continue
        for process in node.processes:
            for file in process.files or ():
                if file.kind == "pipe" and file.inode is not None:
                    found[node.name][file.inode].add((process.pid, file.writable))
    return found


def _with_lost_ends(view: View) -> dict[str, Counter[bool]]:
    """By process, into how many pipes it could write of which nobody holds the other end, and from how many such pipes it could read."""
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    for node in view.snapshot.nodes:
        held = view.once(_held_ends).get(node.name, {})
        for process in node.processes if held else ():
            for file in process.files or ():
                lost = file.kind == "pipe" and file.inode is not None and (file.fd or 0) > _STANDARD_ERROR
                if lost and file.writable is not None and {writable for _, writable in held[file.inode or 0]} == {file.writable}:
                    found[f"{node.name}/{process.pid}"][file.writable] += 1
    return found


def has_unseen_peer(view: View, one: Seen) -> bool:
    """Is it connected over a Unix socket with a process that lives, and that was not seen? Those of Ray's workers lead to Ray."""
    held = view.once(_held_sockets)
    return one.process.kind != "ray-worker" and any(
        s.family == "unix" and s.peer_inode and (one.node.name, s.peer_inode) not in held for s in one.process.sockets or ()
    )


def _held_sockets(view: View) -> frozenset[tuple[str, int | None]]:
    return frozenset((n.name, s.inode) for n in view.snapshot.nodes for p in n.processes for s in p.sockets or ())


MAY_HOLD = frozenset({"child", "named", "driver", "ray-worker", "other"})
