"""How sure it is that a process blocked in a file, a child or a socket waits in vain: whom it waits for may answer yet, or was not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ray_rl_debug.analyze.await_chains import is_read_in_part
from ray_rl_debug.analyze.clocks import wakes_soon
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.handlers import waiting_thread
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.pauses import ANSWER_S, may_wake_soon, sleeps
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Certainty, Who
from ray_rl_debug.model.snapshot import AsyncTask
from ray_rl_debug.rules.answers import may_come
from ray_rl_debug.rules.blocked_io_words import SOCKETS
from ray_rl_debug.rules.scene import Judgement, Scene, judge, may_go_on, weaker

_AT_FILE = frozenset({"open", "flock", "fcntl", "read", "write"})


class Wait(NamedTuple):
    """A process that is blocked, and whom it waits for."""

    scene: Scene
    client: Seen
    server: Seen | None
    """The process at the other end; None where it has none, or was not seen."""
    who: list[Who]
    """Who is named as the cause."""
    edge: Edge | None
    """None: it is blocked in a call of its own."""
    may_answer: bool = True
    """In a ring nobody answers."""


def judged(wait: Wait) -> tuple[Judgement, Seen]:
    """Whether it hangs, and whose facts say so: its own, or those of whom it waits for."""
    scene, client, server, edge = wait.scene, wait.client, wait.server, wait.edge
    verdict, one = judge(scene, client), client
    if edge is None and client.kind is Kind.FLOCK and verdict.certainty is Certainty.LIKELY and _may_be_given(scene, client):
        verdict = _possible("for which lock it looks was not read, and somebody works who may have it")
    if server is not None and server.motion is Motion.BUSY and scene.usual_s(client) is None:
        verdict, one = judge(scene, server), server  # it works: without a history of such calls nobody knows how long that takes
    kernel = client.telling.kernel if server is None and client.kind is Kind.SOCKET and client.telling is not None else None
    fd = descriptor(kernel)
    hope = may_come(scene, client, {fd}) if fd is not None and scene.usual_s(client) is None else None
    # of two that are as unsure, this one says why
    verdict = verdict if hope is None else _surely(_possible(hope), verdict)
    if server is not None and edge is not None and edge.why is Why.CHILD and server.threads:
        verdict = _surely(verdict, of_child := judge(scene, server))
        one = server if verdict is of_child else one
    for doubt in _doubts(wait):
        verdict = _surely(verdict, doubt)
    return verdict, one


def _doubts(wait: Wait) -> Iterator[Judgement]:
    """What else may leave it open."""
    scene, client, server, edge = wait.scene, wait.client, wait.server, wait.edge
    has_no_history = scene.usual_s(client) is None
    if edge is None:
        if (has_no_history or client.kind is Kind.FILE) and _lacks_other_end(scene, client):
            yield _possible("whom it waits for was not seen")
        return
    if server is None:
        return
    if wait.may_answer and has_no_history:
        yield _judge_end(scene, client, server, edge)
    if edge.why in SOCKETS and len(wait.who) > 1 and _serves_in_coroutines(server):
        yield _possible("which of its coroutines has the request was not read")  # none of those that were read has it
    elif any(map(is_read_in_part, _which_may_send(client, server, in_ring=not wait.may_answer))):
        yield _possible("one of its coroutines was read only in part: what it waits for is not known")


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
        return _possible(goes_on)
    if edge.why is not Why.AWAITED_CHILD or end.age_s is None or any(kernel_call(t) in _AT_FILE for t in end.process.threads[:1]):
        return likely
    return _possible(f"the program that it awaits has run for {end.age_s:.0f} s and may still end")


def _possible(reason: str) -> Judgement:
    return Judgement(certainty=Certainty.POSSIBLE, reason=reason)


def _surely(one: Judgement, other: Judgement) -> Judgement:
    """The less sure of two: a wait for a child is as hung as the child."""
    if one.certainty is None or other.certainty is None:
        return one if one.certainty is None else other
    return one if weaker(one.certainty, other.certainty) is one.certainty else other


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
