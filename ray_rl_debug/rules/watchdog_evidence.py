"""What a rule says of ranks whose watchdogs, or last logged collectives, disagree. Stacks tell more: it is asked only where none was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType

import msgspec

from ray_rl_debug.model.report import Cause, Evidence
from ray_rl_debug.rules.scene import Found, Scene, make_finding
from ray_rl_debug.story.watchdog_accounts import Account, Differing, differing

EXPLAINS = frozenset(("log:RRD645", "log:RRD646"))
"""The time-outs that the ranks report follow from it."""
_FEW = 4


def found_in_accounts(scene: Scene, rule: ModuleType, kinds: Iterable[str], remedy: Iterable[str]) -> Iterator[Found]:
    """The finding of a rule about each group whose ranks differ in one of these ways."""
    wanted = frozenset(kinds)
    if any(one.threads for one in scene.view):
        return
    for one in differing(scene.view.snapshot.logs):
        if one.kind not in wanted:
            continue
        cause: Cause = rule.CAUSE
        evidence = [_evidence(a) for a in (*one.odd[:_FEW], *one.rest[:2])]
        finding = make_finding(
            rule.ID, rule.NAME, cause, one.certainty, _summary(one), who=[a.who for a in one.odd], evidence=evidence, remedy=remedy
        )
        yield Found(finding=msgspec.structs.replace(finding, victims=tuple(a.who for a in one.rest)), explains=EXPLAINS)


def _summary(one: Differing) -> str:
    odd, group = _names(one.odd), f" of group {one.group}" if one.group is not None else ""
    if one.is_tie:
        sides = " against ".join(f"{a.who.label} in {a.words()}" for a in one.odd[:_FEW])
        if not one.is_timed:
            return f"by the log the ranks went into different collectives: {sides}"
        return f"when the collectives timed out, the ranks were in different ones{group}: {sides}"
    if not one.is_timed:
        went = f"{len(one.rest)} rank{'s' if len(one.rest) > 1 else ''} went into {one.rest[0].words()}"
        return f"by the log {odd} went into {one.odd[0].words()}" + (", and into none after it; " if one.kind == "number" else "; ") + went
    at = f"{one.rest[0].words()}{group}"
    others = f"{len(one.rest)} rank{'s' if len(one.rest) > 1 else ''} waited in {at}"
    if one.kind == "missing":
        its = "their last was" if len(one.odd) > 1 else "its last was"
        last = ", ".join(dict.fromkeys(str(a.told.enqueued) for a in one.odd[:_FEW]))
        return f"{odd} had not enqueued number {one.rest[0].told.seq}{group}, {its} {last}; {others}"
    if one.kind == "number":
        return f"{odd} timed out in an earlier collective, {one.odd[0].words()}; {others}"
    return f"{odd} timed out in {one.odd[0].words()}; {others}: the ranks took different paths"


def _names(accounts: Iterable[Account]) -> str:
    labels = [a.who.label for a in accounts]
    return ", ".join(labels[:_FEW]) + (f" and {len(labels) - _FEW} more" if len(labels) > _FEW else "")


def _evidence(one: Account) -> Evidence:
    status = f"; last enqueued {one.told.enqueued}, last completed {one.told.completed}" if one.told.enqueued is not None else ""
    return Evidence(kind="log", where=f"{one.file}:{one.line}", text=f"{one.who.label}: {one.words()}{status}")
