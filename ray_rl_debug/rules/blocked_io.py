"""RRD502 blocked in I/O

Story
    User or reward code is in a file, mount, lock, child process or socket call without end; everybody else waits for
    that rank. Or a process and its child wait for each other: for the end, for input, for room in a pipe.

Evidence
    The stack, the kernel's wait channel and system call, the process or address at the other end.

Remedy
    A time limit on the call; look at the other end.

Not this when
    Bytes move, or the process at the other end works on the answer. Only *possible* while the other end sleeps for
    a time, or while a service outside the cluster has been quiet for less than a quarter of an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.analyze.connections import has_last_word
from ray_rl_debug.analyze.coroutines import waits_inside
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.handlers import does_not_accept, handlers, has_own_reason, waiting_thread
from ray_rl_debug.analyze.kernel_calls import kernel_call, opens_named_pipe
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.main_activity import moves_data
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of
from ray_rl_debug.analyze.own_file_locks import own_lock_tried
from ray_rl_debug.analyze.pauses import starved_loops
from ray_rl_debug.analyze.pools import ends_in_vain
from ray_rl_debug.analyze.prompts import awaits_user
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.unwoken_loops import unwoken
from ray_rl_debug.analyze.waits_async import INPUT
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Who
from ray_rl_debug.rules.blocked_io_judged import Wait, judged
from ray_rl_debug.rules.blocked_io_words import SOCKETS, owes, remedy, stands, waits_in_vain
from ray_rl_debug.rules.rings import ring_found, rings, thread_at_own_lock
from ray_rl_debug.rules.scene import (
    Found,
    Judgement,
    Scene,
    make_finding,
    proc_evidence,
    stack_evidence,
)
from ray_rl_debug.rules.told_locks import told_of

ID = "RRD502"
NAME = "blocked in I/O"
CAUSE = Cause.BLOCKED_IO
_DRIVER = re.compile(r"nvidia_|_nv\d|rm_ioctl|uvm_|amdgpu_|kfd_|davinci_")
"""Functions of the drivers of cards, in a stack of the kernel's."""


_IO = frozenset({Kind.SOCKET, Kind.FILE, Kind.FLOCK, Kind.CHILD})
_PEERS = SOCKETS | {Why.FILE_LOCK}
_FEW = 2
_LOOPBACK = ("127.", "[::1]")
_MET_AT = {
    Why.CHILD: Kind.CHILD,
    Why.AWAITED_CHILD: Kind.CHILD,
    Why.SOCKET: Kind.SOCKET,
    Why.AWAITED_SOCKET: Kind.SOCKET,
    Why.FILE_LOCK: Kind.FLOCK,
}
"""What is waited for says what to do, wherever the program stands."""
_HANDOVER = frozenset({Why.FILE_LOCK, Why.AWAITED_SOCKET, Why.AWAITED_CHILD, Why.SOCKET, Why.CHILD, Why.PIPE, Why.NEWS})


def detect(scene: Scene) -> Iterator[Found]:
    """Roots blocked in a file, socket or child; and those whose I/O waits for a process or address where the waiting ends."""
    for root in scene.graph.roots:
        if root.is_cycle:
            yield from _in_cycle(scene, root)
            continue
        node = root.nodes[0]
        handed = [e for e in scene.graph.into([node]) if e.why in _HANDOVER and e.source in scene.view.seen]
        sink = scene.view.seen.get(node)
        if sink is None:
            handed = [e for e in handed if e.why is not Why.AWAITED_SOCKET]  # a service outside: the coroutines are all there is to see
        elif sink.kind in THREAD_WAITS or sink.kind in WAITS_FOR_RANKS:
            handed = [e for e in handed if e.why not in (Why.CHILD, Why.AWAITED_CHILD)]  # it waits for something of its own
        if sink is not None and (_waits_for_lock(sink) or _is_deaf(sink) or own_lock_tried(sink) is not None or ends_in_vain(sink)):
            handed = []  # another rule's
        if sink is not None and told_of(sink) is not None:
            continue  # whoever wrote this says that it is a lock
        if sink is not None and (unwoken(sink) is not None or (sink.is_idle and waits_inside(sink.ends))):
            continue  # its own coroutines say what it waits for: another rule's
        if sink is not None and does_not_accept(sink):
            handed.sort(key=lambda e: e.why not in SOCKETS)  # those in its queue tell most
        if handed:
            client = scene.view.seen[handed[0].source]
            kept = any(scene.graph.hope(e.source) is not Outlook.MOVES for e in scene.graph.into([client.key]))
            if kind_of(node) is NodeKind.UNSEEN and client.process.kind != "named" and not kept:
                continue  # it reads what somebody may type, or rests while all go on that wait for it
            # a launcher that only joins its processes is in nobody's way
            launches = client.process.kind in ("driver", "named") and handed[0].why is Why.CHILD and sink is not None and bool(sink.threads)
            is_peer = sink is not None and (handed[0].why in _PEERS or (handed[0].why is Why.PIPE and sink.process.ppid != client.process.pid))
            alone = launches or (sink is not None and is_peer and (has_own_reason(sink) or _leaves_pipe_full(client, handed[0])))
            who = [scene.who(node)] if alone else [client.who(), scene.who(node)]
            if kind_of(node) is NodeKind.UNSEEN:
                who = [client.who()]
            elif kind_of(node) is NodeKind.ADDRESS and name_of(node).startswith(_LOOPBACK) and scene.graph.hope(node) is Outlook.STANDS:
                who = [scene.who(node)]  # a process of this machine that was not seen, and that does not read
            yield from _found(scene, client, sink, who, handed[0], frozenset([node, client.key]))
        elif sink is not None and _is_io(sink) and not sink.is_stopped and scene.graph.into([node]):
            yield from _found(scene, sink, None, [sink.who()], None, frozenset([node]))
    for ring in rings(scene):
        if ring.is_of_pipes:
            advice = ["read the output of a child while it runs (communicate), and close the pipe ends that a process does not use"]
            yield ring_found(scene, ring, ID, NAME, CAUSE, [*advice, *remedy(Kind.CHILD, None)])
    yield from _in_its_thread(scene)
    for _, one in (*scene.lonely("named"), *scene.lonely("driver")):
        if _is_io(one) and not one.is_stopped and told_of(one) is None and unwoken(one) is None and not awaits_user(one):
            yield from _found(scene, one, None, [one.who()], None, frozenset([one.key]))


def _in_its_thread(scene: Scene) -> Iterator[Found]:
    """Of files: a process that joins a thread of its own, which reads or writes in a call of C, as the name of its function says."""
    for root, one in scene.process_roots() if scene.view.by_hand else ():
        thread = one.followed
        if thread is None or one.is_stopped or not moves_data(thread) or one.telling is None:
            continue
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.POSSIBLE,
            f"{one.where()} {one.does()}; its thread {thread.called} is {describe_place(thread.place)}: by its name it reads or writes, "
            "and nobody answers",
            who=[one.who(thread=thread.name)],
            evidence=[stack_evidence(one, thread=thread), proc_evidence(one, scene.reason(one))],
            remedy=remedy(Kind.FILE, None),
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _waits_for_lock(one: Seen) -> bool:
    return any(t is not None and t.place.kind is Kind.LOCK for t in (one.telling, waiting_thread(one)))


def _leaves_pipe_full(writer: Seen, edge: Edge) -> bool:
    """Does somebody wait for room in a pipe? Who writes has done its part, whatever the other end stands in."""
    thread = waiting_thread(writer)
    return edge.why is Why.PIPE and thread is not None and kernel_call(thread.kernel) == "write"


def _is_deaf(one: Seen) -> bool:
    """Do all its threads wait for each other, and none listens to anybody? Then it answers nobody, whoever asks."""
    thread, threads = waiting_thread(one), one.process.threads
    in_thread = thread is not None and bool(thread.place.path) and thread.place.kind in THREAD_WAITS
    return in_thread and bool(threads) and all(kernel_call(t) == "futex" or t.tid in starved_loops(one) for t in threads)


def _is_io(one: Seen) -> bool:
    thread = waiting_thread(one)
    if thread is None:
        return one.process.state == "D"
    return (thread.place.kind in _IO and not thread.listens) or one.process.state == "D"


def _in_cycle(scene: Scene, root: Root) -> Iterator[Found]:
    """A ring that closes over I/O: the server's process waits for the job that waits for the server."""
    inside = set(root.nodes)
    through_locks, handed = (
        [e for e in scene.graph.of(*whys) if e.source in inside and e.target in inside and e.source in scene.view.seen]
        for whys in ((Why.SEMAPHORE, Why.GIVERS), _HANDOVER)
    )
    if through_locks:
        return  # another rule's
    if len(handed) == 1 and thread_at_own_lock(scene, handed[0]) is None:
        client, server = scene.view.seen[handed[0].source], scene.view.seen.get(handed[0].target)
        if server is not None and waits_inside(client.ends) and has_last_word(client, server):
            return  # its thread has read what came, and its coroutines say what they wait for: another rule's
        # what goes on in a ring only looks again and again for what the ring does not give
        rests = client.is_idle and handed[0].why is Why.PIPE  # a worker between two tasks
        one = server if rests and server is not None and not server.is_idle else client
        yield from _found(scene, client, server, [one.who()], handed[0], frozenset(inside), may_answer=False)


def _found(
    scene: Scene, client: Seen, server: Seen | None, who: list[Who], edge: Edge | None, explains: frozenset[str], *, may_answer: bool = True
) -> Iterator[Found]:
    wait = Wait(scene, client, server, who, edge, may_answer)
    verdict, one = judged(wait)
    if verdict.certainty is None:
        return
    thread = waiting_thread(client)
    kind = thread.place.kind if thread is not None else None
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        verdict.certainty,
        _summary(wait, kind),
        who=who,
        evidence=_evidence(wait, verdict, one),
        remedy=remedy(
            kind if edge is None else _MET_AT.get(edge.why, kind),
            edge,
            op=thread.place.op if thread is not None else "",
            is_named_pipe=thread is not None and opens_named_pipe(thread.kernel),
            is_driver=client.telling is not None and any(_DRIVER.match(f.function) for f in client.telling.frames if f.file == "kernel"),
        ),
        phase=client.phase,
    )
    yield Found(finding=finding, explains=explains)


def _is_async(wait: Wait) -> bool:
    return wait.edge is not None and wait.edge.why in (Why.AWAITED_SOCKET, Why.AWAITED_CHILD)


def _names_server(wait: Wait) -> bool:
    return wait.server is not None and wait.edge is not None and [w.pid for w in wait.who] == [wait.server.process.pid]


def _summary(wait: Wait, kind: Kind | None) -> str:
    client, server, edge, is_async = wait.client, wait.server, wait.edge, _is_async(wait)
    wanted = "the end or the output" if edge is not None and edge.why is Why.AWAITED_CHILD else "an answer"
    wanted = "room in the input" if edge is not None and edge.op == INPUT else wanted
    if server is not None and edge is not None and _names_server(wait):
        waits = f"its coroutines await {wanted}" if is_async else client.at()
        return f"{stands(server)}, and {owes(edge.why)} {client.name} (pid {client.process.pid}: {waits})"
    at = ""
    if edge is not None:
        answerer = f"{server.name} (pid {server.process.pid}: {server.at()})" if server else wait.scene.who(edge.target).label
        at = f" {'of' if is_async else 'for'} {answerer}"
    return f"{client.where()} {f'awaits {wanted}{at} and gets none' if is_async else waits_in_vain(client, edge, at, kind)}"


def _evidence(wait: Wait, verdict: Judgement, one: Seen) -> list[Evidence]:
    """The stacks of both ends, what joins them, and the kernel's side; `one` is whose facts tell that it hangs."""
    client, server, edge, is_async = wait.client, wait.server, wait.edge, _is_async(wait)
    found = [stack_evidence(server)] if server is not None and (is_async or _names_server(wait)) else []
    if server is None or not is_async:
        found.append(stack_evidence(client))
    if server is not None and edge is not None and edge.why in SOCKETS:
        found += [stack_evidence(server, thread=t) for t in handlers(server)[:_FEW]]
    if edge is not None:
        found.append(Evidence(kind="socket" if edge.why in SOCKETS else "lock", where=client.where(), text=edge.evidence))
    thread, reason = waiting_thread(client), verdict.reason if one is client else client.motion_reason
    if thread is not None and thread.kernel is not None:
        call = kernel_call(thread.kernel) or thread.kernel.call
        state = f"state {thread.kernel.state}, " if thread.kernel.state != "?" else ""
        opens = ": it opens a named pipe, and nobody has its other end open" if opens_named_pipe(thread.kernel) else ""
        found.append(proc_evidence(client, f"{state}wchan {thread.kernel.wchan or 'unread'}, call {call}{opens}; {reason}"))
    else:
        found.append(proc_evidence(client, reason))
    return found if one is client else [*found, proc_evidence(one, verdict.reason)]
