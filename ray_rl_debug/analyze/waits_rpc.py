"""Edges of torch's RPC: of those who wait for the answer to a call, whose other member it does not tell, and of those who wait for the end of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_places import TORCH_RPC, ends_with_others
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.model.report import Certainty

_CALL = "rpc"


def rpc_edges(view: View, worlds: Sequence[World]) -> Iterator[Edge]:
    """To all other members of its world: any of them may have been asked, but those whose pool for calls is free."""
    for one in (*view.at(Kind.CHANNEL), *view.at(Kind.LOCK)):
        if not _awaits_answer(one):
            continue
        own = [w for w in worlds if any(m.key == one.key for m in w.members)]
        asked = {m.key: m for w in own for m in w.members if m.key != one.key and not _is_free(m)}
        if not asked or any(w.may_lack_ranks for w in own):
            unseen = to_unseen(one, f"the answer to a call of pid {one.process.pid}", Why.RECEIVERS)
            yield msgspec.structs.replace(unseen, op=_CALL)
        for other in asked.values():
            evidence = f"it waits for the answer to a call by torch's RPC; {other.identity.label} may have been asked: it {other.does()}"
            yield Edge(source=one.key, target=other.key, why=Why.RECEIVERS, op=_CALL, evidence=evidence, certainty=Certainty.LIKELY)


def _awaits_answer(one: Seen) -> bool:
    """Does it make a call, or wait for the future of one? Such a future waits in C, below no frame of torch's."""
    thread = one.followed or one.telling
    if thread is None or thread.place.kind is Kind.CHANNEL:
        return thread is not None and any(f.file.endswith(TORCH_RPC) for f in thread.frames[:3])
    asks = thread.place.kind is Kind.LOCK and thread.place.own == 0 and _FUTURE in (thread.frames[0].calls or ())
    return asks and any(name.startswith(_TRANSPORT) for name in _native(one))


def _is_free(one: Seen) -> bool:
    """Does a thread of its pool for calls rest, and is no other one in a call? A call to it would be answered, whatever its main thread does."""
    runs = any(f.function == _RUNS and f.file.endswith(_RPC_CALLS) for t in one.threads for f in t.frames)
    now = {t.tid for t in one.threads}
    ended = any(t.tid not in now for sample in one.process.samples for t in sample.threads)  # its answer may be on its way
    return not runs and not ended and any(name == _POOL for name in _native(one)) and any(name.startswith(_TRANSPORT) for name in _native(one))


def _native(one: Seen) -> Iterator[str]:
    """How the kernel calls its threads without Python."""
    known = {t.tid for t in one.threads}
    yield from (t.comm for t in one.process.threads if t.tid not in known)
    yield from one.process.idle_threads or ()


_FUTURE = "wait"
_TRANSPORT = "TP_"
"""How the kernel calls threads of TensorPipe, by which torch's RPC sends."""
_POOL = "pt_thread_pool"
"""The same of those that run the calls of others."""
_RUNS, _RPC_CALLS = "_run_function", "torch/distributed/rpc/internal.py"


def shutdown_edges(view: View, worlds: Sequence[World], known: Sequence[Edge]) -> Iterator[Edge]:
    """From members that are through and whose end is awaited to those that are not: all end together.

    One that may have been asked serves meanwhile; `known` are the edges found so far.
    """
    asked, awaited = {e.target for e in known if e.op == _CALL}, {e.target for e in known}
    through = {one.key: one for one in view.at(Kind.IDLE) if one.telling is not None and one.telling.stack.once(ends_with_others)}
    for key in sorted(through.keys() & awaited - asked):
        own = [w for w in worlds if any(m.key == key for m in w.members)]
        if not own or any(w.may_lack_ranks for w in own):
            yield to_unseen(through[key], f"the end of others of pid {through[key].process.pid}", Why.MESSAGE)
        for other in {m.key: m for w in own for m in w.members if m.key not in through}.values():
            evidence = f"it has left its work and waits until all members of torch's RPC have; {other.identity.label} {other.does()}"
            yield Edge(source=key, target=other.key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY)
