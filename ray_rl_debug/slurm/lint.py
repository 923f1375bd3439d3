"""Faults of one job script."""

from __future__ import annotations

import msgspec

from ray_rl_debug.slurm.lint_rules import RULES
from ray_rl_debug.slurm.script import parse


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One place in one script."""

    id: str
    name: str
    severity: str
    file: str
    line: int
    text: str
    reason: str
    repair: str


def lint_script(text: str, file: str) -> list[Fault]:
    """All faults, in the order of lines."""
    script = parse(text)
    found = {}
    for rule in RULES:
        for line in rule.find(script):
            found[line.number, rule.id] = Fault(
                id=rule.id,
                name=rule.name,
                severity=rule.severity,
                file=file,
                line=line.number,
                text=" ".join(line.text.split())[:160],
                reason=rule.reason,
                repair=rule.repair,
            )
    return [found[key] for key in sorted(found)]


def explain(rule_id: str) -> str | None:
    """A rule as text; None for an unknown id."""
    rule = next((r for r in RULES if r.id == rule_id), None)
    if rule is None:
        return None
    reason = rule.reason[0].upper() + rule.reason[1:]
    return f"{rule.id} {rule.name}\n\nFault of a job script ({rule.severity})\n    {reason}.\n\nRepair\n    {rule.repair}\n"
