"""What a report says of a process that is blocked in a file, a child or a socket: who stands where, who waits in vain, and what to do."""

from __future__ import annotations

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.handlers import handlers
from ray_rl_debug.analyze.kernel_calls import NO_NEWS
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.places import OF_KERNEL, RETRIED
from ray_rl_debug.analyze.seen import Seen, as_verb, describe_place

SOCKETS = frozenset({Why.AWAITED_SOCKET, Why.SOCKET})


def stands(server: Seen) -> str:
    """Who stands where; of a server that listens, the thread that may have the request."""
    for thread in handlers(server)[:1]:
        return f"thread {thread.called} of {server.where()} {as_verb(describe_place(thread.place))}"
    return f"{server.where()} {server.does()}"


def waits_in_vain(client: Seen, edge: Edge | None, at: str, kind: Kind | None) -> str:
    """What a process waits for, after its name, and that it does not come."""
    doing = client.does()
    if client.followed is not None:
        doing += f", its thread {client.followed.called} in {client.followed.place.op},"
    if edge is not None and edge.why is Why.FILE_LOCK:
        return f"{doing}, held by{at.removeprefix(' for')}"
    if edge is not None and edge.why is Why.NEWS:
        return f"{doing}, and {'none' if 'news' in doing else 'no news of the files that it watches'} comes"
    if edge is not None and doing.partition(" ")[0] not in ("waits", "joins"):
        doing = f"{doing.rstrip(',')}, and waits"
    if edge is not None and edge.why in (Why.CHILD, Why.PIPE):
        after = "," if edge.why is Why.CHILD and not doing.endswith((",", ", and waits")) else ""
        return f"{doing}{after}{at}{', which has not ended' if edge.why is Why.CHILD else ' and gets nothing'}"
    return f"{doing}{at} and gets no answer" if edge is not None or kind is Kind.SOCKET else f"{doing.rstrip(',')}, and the call does not return"


def owes(why: Why) -> str:
    """What a process that stands does not do for the one that waits for it."""
    if why in SOCKETS:
        return "does not answer"
    return "keeps the file lock from" if why is Why.FILE_LOCK else "holds up"


def remedy(kind: Kind | None, edge: Edge | None, *, op: str = "", is_named_pipe: bool = False, is_driver: bool = False) -> list[str]:
    """What to do about a wait of this kind, the likeliest first."""
    if op == OF_KERNEL[NO_NEWS]:
        return ["watch the folder again once it was removed and made anew (the kernel tells of that: IN_IGNORED)", "keep the folder, and empty it"]
    if edge is not None and edge.why is Why.NEWS:
        return [
            "look who should write there, and whether it writes in the way that is watched: a file that is moved there is not written there",
            "look into the folder once more after a time-out, whatever the news",
        ]
    if edge is not None and edge.why is Why.PIPE:
        return [
            "look at the process at the other end: what should it write or read?",
            "let each process close the ends of pipes that it does not use",
        ]
    if op == RETRIED:
        return [
            "try from this machine whether the service answers (curl -v its address), and with which proxy",
            "run without it: WANDB_MODE=offline, HF_HUB_OFFLINE=1, or no logger on this run",
        ]
    if kind is Kind.SOCKET:
        return ["give the call a time limit (requests: timeout=, urllib: timeout=, sockets: settimeout)", "look at the server at the other end"]
    if kind is Kind.FLOCK:
        return [
            "end or wait for the process that holds the lock; use a lock with a time limit (filelock timeout=)",
            "remove a lock file that a killed process has left behind (torch_extensions/*/lock)",
        ]
    if kind is Kind.CHILD:
        return ["look at the child process; give subprocess calls timeout="]
    if is_named_pipe:
        return [
            "start what should write to the named pipe or read from it: opening one end waits until the other is open",
            "open it with O_NONBLOCK, or use a file",
        ]
    if is_driver:
        return [
            "look at the driver of the card on that node: dmesg (Xid, NVRM), nvidia-smi -q; such a call may end only when the node is reset",
            "read /proc/PID/stack once more: the same names mean that it still stands there",
        ]
    return [
        "check the mount: df, stat and dmesg on that node (a hung NFS or FUSE server blocks open, read, write)",
        "write to local disk first, then move",
    ]
