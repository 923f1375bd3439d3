"""RRD236 stale or impossible versions

Story
    AReaL writes beside each token which version of the weights made it. Tokens that the model made have no version, versions fall along a
    trajectory, or are further behind the newest than staleness control allows.

Evidence
    The first such trajectory, and the spread of versions in the batch.

Remedy
    Let the workflow hand on the engine's output_versions; lower max_head_offpolicyness for a trainer that cannot correct for stale tokens.

Not this when
    Prompts and tool output have the version -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks.limits import Limits

ID = "RRD236"
NAME = "stale or impossible versions"
CAUSE = Cause.BATCH


def check(batch: Batch, limits: Limits) -> Iterator[Found]:
    """Versions that cannot be, or that are older than allowed."""
    field, mask = batch.fields.get("versions"), batch.fields.get("loss_mask")
    if field is None or mask is None or len(field.rows) != len(mask.rows):
        return
    rows = [[int(v) for v, m in zip(row, flags, strict=False) if m] for row, flags in zip(field.rows, mask.rows, strict=True)]
    newest = max((v for row in rows for v in row), default=None)
    if newest is None:
        return
    told = []
    unset = [n for n, row in enumerate(rows) if any(v < 0 for v in row)]
    if unset:
        told.append(f"{len(unset)} of {len(rows)} trajectories have trained tokens without a version (-1), the first is {unset[0]}")
    falling = [n for n, row in enumerate(rows) if any(b < a for a, b in pairwise(row))]
    if falling:
        told.append(f"versions fall along {len(falling)} trajectories, the first is {falling[0]}: tokens of an older engine came after newer ones")
    behind = [newest - min(row) for row in rows if row and min(row) >= 0]
    oldest = max(behind, default=0)
    if limits.staleness is not None and oldest > limits.staleness:
        late = sum(b > limits.staleness for b in behind)
        told.append(f"{late} trajectories are up to {oldest} versions behind the newest ({newest}); {limits.staleness} are allowed")
    if told:
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN,
            summary=f"versions of the batch are wrong: {told[0]}",
            evidence=(*told, f"versions reach from {newest - oldest} to {newest}"),
            remedy=(
                "let the workflow hand on output_versions of the engine's answer",
                "staleness: lower max_head_offpolicyness, or look whether weight updates reach every engine",
            ),
        )
