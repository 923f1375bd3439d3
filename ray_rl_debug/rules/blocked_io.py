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
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.await_chains import is_read_in_part
from ray_rl_debug.analyze.clocks import wakes_soon
from ray_rl_debug.analyze.connections import has_last_word
from ray_rl_debug.analyze.coroutines import waits_inside
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.handlers import does_not_accept, handlers, has_own_reason, waiting_thread
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call, opens_named_pipe
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.main_activity import moves_data
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of
from ray_rl_debug.analyze.own_file_locks import own_lock_tried
from ray_rl_debug.analyze.pauses import ANSWER_S, may_wake_soon, sleeps, starved_loops
from ray_rl_debug.analyze.pools import ends_in_vain
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.prompts import awaits_user
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.unwoken_loops import unwoken
from ray_rl_debug.analyze.waits_async import INPUT
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Who
from ray_rl_debug.model.snapshot import AsyncTask
from ray_rl_debug.rules.answers import may_come
from ray_rl_debug.rules.blocked_io_words import SOCKETS, owes, remedy, stands, waits_in_vain
from ray_rl_debug.rules.rings import ring_found, rings, thread_at_own_lock
from ray_rl_debug.rules.scene import (
    Found,
    Judgement,
    Scene,
    judge,
    make_finding,
    may_go_on,
    proc_evidence,
    stack_evidence,
    weaker,
)
from ray_rl_debug.rules.told_locks import told_of

ID = "RRD502"
NAME = "blocked in I/O"
CAUSE = Cause.BLOCKED_IO
_DRIVER = re.compile(r"nvidia_|_nv\d|rm_ioctl|uvm_|amdgpu_|kfd_|davinci_")
"""Functions of the drivers of cards, in a stack of the kernel's."""


_IO = frozenset({Kind.SOCKET, Kind.FILE, Kind.FLOCK, Kind.CHILD})
_PEERS = SOCKETS | {Why.FILE_LOCK}
_AT_FILE = frozenset({"open", "flock", "fcntl", "read", "write"})
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


def _serves_in_coroutines(one: Seen) -> bool:
    """Is it an idle server with coroutines that wait for others than the clock? One that was not read may have the request."""
    return one.is_idle and any(t.awaited is not None and t.awaited.kind != "sleep" for t in _tasks(one))


def _tasks(one: Seen) -> Sequence[AsyncTask]:
    return one.process.async_tasks or ()


def _which_may_send(client: Seen, server: Seen, *, in_ring: bool) -> Sequence[AsyncTask]:
    """Coroutines one of which may send what is waited for: of an idle server; where each waits for the other, of both."""
    return [*(_tasks(server) if server.is_idle else ()), *(_tasks(client) if in_ring and client.is_idle else ())]


def _lacks_other_end(scene: Scene, one: Seen) -> bool:
    """Does it wait for a child, at a socket or a pipe, where no child of it, no connection and nobody at the other end was seen?"""
    if one.kind is Kind.FILE:  # of which the end may be nobody's, or that of a child that has ended, whose parent was not read
        return any(s.has_ended and s.process.ppid is None for s in scene.view if s.node is one.node)
    if one.kind is Kind.CHILD:
        return not scene.view.children(one)
    return one.kind is Kind.SOCKET and not any(s.state == "ESTABLISHED" for s in one.process.sockets or ())


def _may_be_given(scene: Scene, one: Seen) -> bool:
    """Does it look again and again for a lock, and not wait for one in the kernel, while somebody on its machine works who may have it?"""
    thread = waiting_thread(one)
    looks = thread is not None and kernel_call(thread.kernel) not in ("flock", "fcntl")
    return looks and any(other.is_at_work for other in scene.view if other.node is one.node and other is not one)


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
    verdict, judged = judge(scene, client), client
    if edge is None and client.kind is Kind.FLOCK and verdict.certainty is Certainty.LIKELY and _may_be_given(scene, client):
        verdict = Judgement(certainty=Certainty.POSSIBLE, reason="for which lock it looks was not read, and somebody works who may have it")
    if server is not None and server.motion is Motion.BUSY and scene.usual_s(client) is None:
        verdict, judged = judge(scene, server), server  # it works: without a history of such calls nobody knows how long that takes
    kernel = client.telling.kernel if server is None and client.kind is Kind.SOCKET and client.telling is not None else None
    fd = descriptor(kernel)
    if fd is not None and scene.usual_s(client) is None:
        hope = may_come(scene, client, {fd})
        # of two that are as unsure, this one says why
        verdict = verdict if hope is None else _surely(Judgement(certainty=Certainty.POSSIBLE, reason=hope), verdict)
    if server is not None and edge is not None and edge.why is Why.CHILD and server.threads:
        verdict = _surely(verdict, of_child := judge(scene, server))
        judged = server if verdict is of_child else judged
    if server is not None and edge is not None and may_answer and scene.usual_s(client) is None:
        verdict = _surely(verdict, _judge_end(scene, client, server, edge))
    if server is not None and edge is not None and edge.why in SOCKETS and len(who) > 1 and _serves_in_coroutines(server):
        # none of those that were read has the request
        verdict = _surely(verdict, Judgement(certainty=Certainty.POSSIBLE, reason="which of its coroutines has the request was not read"))
    elif server is not None and edge is not None and any(map(is_read_in_part, _which_may_send(client, server, in_ring=not may_answer))):
        verdict = _surely(
            verdict, Judgement(certainty=Certainty.POSSIBLE, reason="one of its coroutines was read only in part: what it waits for is not known")
        )
    if edge is None and (scene.usual_s(client) is None or client.kind is Kind.FILE) and _lacks_other_end(scene, client):
        verdict = _surely(verdict, Judgement(certainty=Certainty.POSSIBLE, reason="whom it waits for was not seen"))
    if verdict.certainty is None:
        return
    waiting = waiting_thread(client)
    kind = waiting.place.kind if waiting else None
    is_async = edge is not None and edge.why in (Why.AWAITED_SOCKET, Why.AWAITED_CHILD)
    wanted = "the end or the output" if edge is not None and edge.why is Why.AWAITED_CHILD else "an answer"
    wanted = "room in the input" if edge is not None and edge.op == INPUT else wanted
    is_server_named = server is not None and edge is not None and [w.pid for w in who] == [server.process.pid]
    evidence = [stack_evidence(server)] if server is not None and (is_async or is_server_named) else []
    if server is None or not is_async:
        evidence.append(stack_evidence(client))
    if server is not None and edge is not None and edge.why in SOCKETS:
        evidence += [stack_evidence(server, thread=t) for t in handlers(server)[:_FEW]]
    at = ""
    if edge is not None:
        evidence.append(Evidence(kind="socket" if edge.why in SOCKETS else "lock", where=client.where(), text=edge.evidence))
        answerer = f"{server.name} (pid {server.process.pid}: {server.at()})" if server else scene.who(edge.target).label
        at = f" {'of' if is_async else 'for'} {answerer}"
    thread, reason = waiting_thread(client), verdict.reason if judged is client else client.motion_reason
    is_named_pipe = thread is not None and opens_named_pipe(thread.kernel)
    if thread is not None and thread.kernel is not None:
        call = kernel_call(thread.kernel) or thread.kernel.call
        state = f"state {thread.kernel.state}, " if thread.kernel.state != "?" else ""
        opens = ": it opens a named pipe, and nobody has its other end open" if is_named_pipe else ""
        evidence.append(proc_evidence(client, f"{state}wchan {thread.kernel.wchan or 'unread'}, call {call}{opens}; {reason}"))
    else:
        evidence.append(proc_evidence(client, reason))
    if judged is not client:
        evidence.append(proc_evidence(judged, verdict.reason))
    summary = f"{client.where()} {f'awaits {wanted}{at} and gets none' if is_async else waits_in_vain(client, edge, at, kind)}"
    if is_server_named and server is not None and edge is not None:
        waits = f"its coroutines await {wanted}" if is_async else client.at()
        summary = f"{stands(server)}, and {owes(edge.why)} {client.name} (pid {client.process.pid}: {waits})"
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        verdict.certainty,
        summary,
        who=who,
        evidence=evidence,
        remedy=remedy(
            kind if edge is None else _MET_AT.get(edge.why, kind),
            edge,
            op=waiting.place.op if waiting is not None else "",
            is_named_pipe=is_named_pipe,
            is_driver=client.telling is not None and any(_DRIVER.match(f.function) for f in client.telling.frames if f.file == "kernel"),
        ),
        phase=client.phase,
    )
    yield Found(finding=finding, explains=explains)


def _judge_end(scene: Scene, client: Seen, end: Seen, edge: Edge) -> Judgement:
    """May what is waited for still come? Agents await programs all the time, and most end: a young one may well end too.

    Not one that stands at a file or pipe; and a pipe that is full shows that its reader sleeps too long.
    """
    likely = Judgement(certainty=Certainty.LIKELY, reason=end.motion_reason)
    is_old = end.process.kind == "child" and end.age_s is not None and end.age_s >= ANSWER_S
    waiting = waiting_thread(client)
    if is_old or (edge.why is Why.PIPE and waiting is not None and kernel_call(waiting.kernel) == "write"):
        return likely
    goes_on = may_go_on(scene, end)
    kernel = end.telling.kernel if end.telling is not None and sleeps(end) else None
    wakes = sleeps(end) and (kernel is None or may_wake_soon(kernel))
    if goes_on is None and edge.why not in SOCKETS and wakes:  # which thread of a server has the request is not known
        goes_on = "the process at the other end sleeps and will wake by itself"
    if goes_on is None and kernel is not None and kernel.run_slices is None and wakes_soon(kernel):
        goes_on = "how often the process at the other end woke up was not read"  # who looks again and again is the one that does not answer
    if goes_on is not None:
        return Judgement(certainty=Certainty.POSSIBLE, reason=goes_on)
    if edge.why is not Why.AWAITED_CHILD or end.age_s is None or any(kernel_call(t) in _AT_FILE for t in end.process.threads[:1]):
        return likely
    return Judgement(certainty=Certainty.POSSIBLE, reason=f"the program that it awaits has run for {end.age_s:.0f} s and may still end")


def _surely(one: Judgement, other: Judgement) -> Judgement:
    """The less sure of two: a wait for a child is as hung as the child."""
    if one.certainty is None or other.certainty is None:
        return one if one.certainty is None else other
    return one if weaker(one.certainty, other.certainty) is one.certainty else other
