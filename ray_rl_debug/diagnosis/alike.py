"""Findings that say the same of several processes are one: eight workers of a pool that stand at one line are one trouble."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from ray_rl_debug.model.report import Finding, Who

MOST_NAMED = 3
"""Processes that the sentence names beside the first; all stand in `who`."""


def fold_alike(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings in their order; those that differ in nothing but the process become one, with the evidence of the first."""
    if len(findings) < 2:
        return tuple(findings)
    groups: dict[Hashable, list[Finding]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(_says(finding) or number, []).append(finding)
    return tuple(group[0] if len(group) == 1 else _one(group) for group in groups.values())


def _says(finding: Finding) -> Hashable | None:
    """What it says, whoever it is said of; None where it names nobody, or several."""
    if len(finding.who) != 1 or finding.who[0].pid is None:
        return None
    (who,) = finding.who
    text = finding.summary
    for part in sorted((who.label, who.node or "", str(who.pid)), key=len, reverse=True):
        text = text.replace(part, "\0") if part else text
    return finding.id, finding.cause, finding.certainty, finding.phase, finding.root, finding.victims, finding.remedy, text


def _one(group: Sequence[Finding]) -> Finding:
    first, others = group[0], [f.who[0] for f in group[1:]]
    named = [_named(w) for w in others[:MOST_NAMED]]
    names = [*named, f"{len(others) - MOST_NAMED} more"] if len(others) > MOST_NAMED else named
    same = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return msgspec.structs.replace(first, summary=f"{first.summary}; the same holds for {same}", who=tuple(w for f in group for w in f.who))


def _named(who: Who) -> str:
    return who.label if f"pid {who.pid}" in who.label else f"{who.label} (pid {who.pid})"
