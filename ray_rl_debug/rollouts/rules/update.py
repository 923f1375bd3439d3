"""RRD229 the weight update did not arrive

Story
    The trainer made new weights, and the engine still answers with the old ones, or with a mixture: an update that failed silently, a replica that
    was left out, a cache of prefixes that was not cleared.

Evidence
    How far the engine moved from the old log-probabilities towards the new ones, on the same tokens: 0 is not at all, 1 is all the way.

Remedy
    Look for errors of the weight transfer in the engine's log; reset its prefix cache; compare each replica by its own address.

Not this when
    Old and new weights hardly differ on these tokens: then nothing can be told.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.update import Arrival, measure
from ray_rl_debug.rollouts.view import View

ID = "RRD229"
NAME = "the weight update did not arrive"
CAUSE = Cause.UPDATE


def detect(view: View) -> Iterator[Found]:
    """Engines that still have the old weights, wholly or in part."""
    move = measure(view)
    if move is None or move.arrival not in (Arrival.MISSING, Arrival.PARTIAL):
        return
    what = "the weight update did not arrive" if move.arrival is Arrival.MISSING else "the weight update arrived only in part"
    apart = f"new and old weights differ by {move.step:.2g} nats per token, the engine differs from the old ones by {move.from_old:.2g}"
    where = f"the clearest token: {view.name(move.clearest)}: old {move.clearest_old:.3f}, new {move.clearest.reference:.3f}"
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.LIKELY,
        summary=f"{what}: on {move.tokens} tokens the engine moved {move.way:.0%} of the way from the old to the new weights "
        f"(standard error {move.error:.1%})",
        evidence=(f"{apart} and from the new ones by {move.from_new:.2g}", f"{where}, engine {move.clearest.engine:.3f} nats"),
        remedy=(
            "look for errors of the weight transfer in the engine's log, and whether every replica took part",
            "reset the prefix cache after an update (vLLM: POST /reset_prefix_cache), and compare each replica by its own address",
        ),
    )
