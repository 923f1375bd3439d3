"""Edges of those who have called another member by torch's RPC and wait for the answer: which one it is the call does not tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_places import TORCH_RPC
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.model.report import Certainty

_CALL = "rpc"


def rpc_edges(view: View, worlds: Sequence[World]) -> Iterator[Edge]:
    """To all other members of its world: any of them may have been asked."""
    for one in view.at(Kind.CHANNEL):
        thread = one.followed or one.telling
        if thread is None or not any(f.file.endswith(TORCH_RPC) for f in thread.frames[:3]):
            continue
        own = [w for w in worlds if any(m.key == one.key for m in w.members)]
        if not own or any(w.may_lack_ranks for w in own):
            unseen = to_unseen(one, f"the answer to a call of pid {one.process.pid}", Why.RECEIVERS)
            yield msgspec.structs.replace(unseen, op=_CALL)
        for other in {m.key: m for w in own for m in w.members if m.key != one.key}.values():
            evidence = f"it waits for the answer to a call by torch's RPC; {other.identity.label} may have been asked: it {other.does()}"
            yield Edge(source=one.key, target=other.key, why=Why.RECEIVERS, op=_CALL, evidence=evidence, certainty=Certainty.LIKELY)
