"""The catalogue: every id the tool can print, with its story."""

from __future__ import annotations

import inspect

from ray_rl_debug import signatures
from ray_rl_debug.doctor import CHECKS, STORE_CHECKS
from ray_rl_debug.metrics.rules import METRIC_RULES
from ray_rl_debug.model import errors, gaps
from ray_rl_debug.rollouts.checks import CHECKS as BATCH_CHECKS
from ray_rl_debug.rollouts.rules import RULES as ROLLOUT_RULES
from ray_rl_debug.rules import RULES
from ray_rl_debug.signatures import Signature
from ray_rl_debug.slurm import lint, lint_rules
from ray_rl_debug.trial import judge

_GAP = "The tool tried to read something and could not. The report says where, why, and what would help."


def list_ids() -> tuple[tuple[str, str], ...]:
    """All ids with their names, sorted: rules, known errors in logs, gaps, errors."""
    found = {rule.ID: rule.NAME for rule in RULES}
    found.update({rule.ID: rule.NAME for rule in (*ROLLOUT_RULES, *BATCH_CHECKS)})
    found.update({s.id: s.title for s in signatures.load()})
    found.update({rule.ID: rule.NAME for rule in METRIC_RULES})
    found.update(gaps.NAMES)
    found.update({check.id: check.name for check in (*CHECKS, *STORE_CHECKS)})
    found.update({check.id: check.name for check in judge.CHECKS})
    found.update({rule.id: rule.name for rule in lint_rules.RULES})
    found.update({kind.id: _first_sentence(kind) for kind in _errors()})
    return tuple(sorted(found.items()))


def explain(rule_id: str) -> str | None:
    """What an id means, as text; None for an unknown id."""
    wanted = rule_id.strip().upper()
    for rule in RULES:
        if wanted == rule.ID:
            return f"{inspect.getdoc(rule) or ''}\n\nCause\n    {rule.CAUSE.value}\n"
    for metric_rule in METRIC_RULES:
        if wanted == metric_rule.ID:
            return f"{inspect.getdoc(metric_rule) or ''}\n\nJudged by\n    rayrl-debug metrics\n"
    for found in (*ROLLOUT_RULES, *BATCH_CHECKS):
        if wanted == found.ID:
            return f"{inspect.getdoc(found) or ''}\n\nWhat it is about\n    {found.CAUSE.value}\n"
    signature = signatures.find(wanted)
    if signature is not None:
        return _explain_line(signature)
    if wanted in gaps.NAMES:
        return f"{wanted} {gaps.NAMES[wanted]}\n\nGap\n    {_GAP}\n"
    check = next((c for c in (*CHECKS, *STORE_CHECKS) if wanted == c.id), None)
    if check is not None:
        return f"{check.explanation()}\nCheck of the doctor\n    {check.key}\n"
    trial = next((c for c in judge.CHECKS if wanted == c.id), None)
    if trial is not None:
        return f"{trial.explanation()}\nCheck of rollout try\n    {trial.key}\n"
    fault = lint.explain(wanted)
    if fault is not None:
        return fault
    for kind in _errors():
        if wanted == kind.id:
            return f"{wanted} {_first_sentence(kind)}\n\nHint\n    {kind.hint}\n"
    return None


def _explain_line(signature: Signature) -> str:
    parts = {
        f"Known error line ({signature.layer}, {signature.effect})": signature.matches[0],
        "Cause": signature.cause.strip(),
        "Remedy": signature.remedy.strip(),
        "Source": signature.source,
    }
    return f"{signature.id} {signature.title}\n" + "".join(f"\n{head}\n    {text}\n" for head, text in parts.items())


def _errors() -> tuple[type[errors.RayRlDebugError], ...]:
    return tuple(value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.RayRlDebugError))


def _first_sentence(kind: type[errors.RayRlDebugError]) -> str:
    return (inspect.getdoc(kind) or kind.__name__).split(".")[0].split("\n")[0]
