"""RRD241 single tokens differ

Story
    Both sides agree on almost all tokens, and are far apart wherever certain tokens are taken: the rows of these tokens in the output layer (or in a
    tied embedding) differ. Tokens were added and their rows made anew on one side, a vocabulary was resized or padded, or rows were mixed up.

Evidence
    The tokens, how often they are taken, their mean difference, and the largest difference that rounding makes anywhere.

Remedy
    Compare the rows of these tokens in lm_head and in the embedding of both sides; save the model again after adding tokens, and load that.

Not this when
    Other tokens are off as well, or the same tokens agree elsewhere: then it is what stands before them (RRD228, RRD240). Greedy answers seldom show
    it: rows that are never the best are never taken; sample with --temperature 1 --samples 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.alignment import spell
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.differences import Place
from ray_rl_debug.rollouts.view import MIN_TOKENS, ROUNDING_TIMES, View, numbers

ID = "RRD241"
NAME = "single tokens differ"
CAUSE = Cause.WEIGHTS
FAR = 5.0
"""So many times the largest difference that rounding makes anywhere,"""
FAR_NATS = 0.1
"""and at least this."""
FEW = 0.1
"""Part of the places that may be far apart; where it is more, it is no single token."""
ALWAYS = 0.8
"""Part of the places of such a token that are far apart."""
SHOWN = 4


def detect(view: View) -> Iterator[Found]:
    """Differences at certain tokens only, and there always."""
    far = _far(view.places)
    if not far:
        return
    tokens = list(dict.fromkeys(p.token for p in far if p.token is not None))
    names = ", ".join(spell(t, view.trial.pieces) for t in tokens[:SHOWN]) + (" and others" if len(tokens) > SHOWN else "")
    row = "the output row of one token differs" if len(tokens) == 1 else f"the output rows of {len(tokens)} tokens differ"
    apart = fmean(abs(p.gap) for p in far)
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.LIKELY if len(far) >= 3 else Certainty.POSSIBLE,
        summary=f"{row}: wherever {names} is taken ({len(far)} times) the log-probabilities are {apart:.2g} nats apart, at all other tokens "
        f"they agree; one of them is {view.name(far[0])}",
        evidence=tuple(numbers(view)),
        remedy=(
            "compare the rows of these tokens in lm_head, and in the embedding, of both sides: added tokens, a resized or padded vocabulary",
            "save the model again after tokens were added, and load the engine from that folder",
        ),
    )


def _far(found: Sequence[Place]) -> list[Place]:
    """The places that are far apart, where these are all places of certain tokens and no others; else nothing."""
    known = [(p, abs(p.gap), abs(p.rounded - p.reference)) for p in found if p.rounded is not None and p.token is not None]
    if len(known) < MIN_TOKENS:
        return []
    limit = max(FAR * max(noise for *_, noise in known), FAR_NATS)
    far = [p for p, gap, _ in known if gap > limit]
    tokens = {p.token for p in far}
    of_them = [p for p, *_ in known if p.token in tokens]
    if not far or len(far) > FEW * len(known) or len(far) < ALWAYS * len(of_them):
        return []
    others = [(gap, noise) for p, gap, noise in known if p.token not in tokens]
    usual = median(gap for gap, _ in others) <= ROUNDING_TIMES * median(noise for _, noise in others)
    return far if usual else []
