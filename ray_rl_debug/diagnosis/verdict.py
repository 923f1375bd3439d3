"""The report's answer in one state and one sentence. Silence is not health: what was not seen makes the answer *unknown*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ray_rl_debug import signatures
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.diagnosis.by_hand_verdict import verdict_by_hand
from ray_rl_debug.diagnosis.open_questions import LONGER, LONGER_S, LONGEST, ended, why_open
from ray_rl_debug.diagnosis.without_findings import has_victims, is_in_nobodys_way, verdict_without_findings
from ray_rl_debug.model import gaps
from ray_rl_debug.model.log_story import LogStory
from ray_rl_debug.model.report import Cause, Certainty, Finding, State, Verdict
from ray_rl_debug.model.snapshot import Gap
from ray_rl_debug.rules.first_failure import ID as FIRST_FAILURE
from ray_rl_debug.rules.scene import Scene
from ray_rl_debug.story.noted import SETTLES


def give_verdict(scene: Scene, findings: Sequence[Finding], all_gaps: Sequence[Gap], *, next_dump: str | None = None) -> Verdict:
    """State, sentence and next command from the findings, the motion of the processes and the gaps.

    Of stacks from files `next_dump` is the command of the first further look.
    """
    verdict = _verdict(scene, findings, all_gaps, next_dump)
    was_long = _window_s(scene.view.snapshot.options) >= LONGER_S
    return msgspec.structs.replace(verdict, next=LONGEST) if verdict.next == LONGER and was_long else verdict


def _window_s(options: Mapping[str, object]) -> float:
    samples, interval_s = options.get("samples"), options.get("interval_s")
    return (samples - 1) * interval_s if isinstance(samples, int) and isinstance(interval_s, float | int) else 0.0


def _verdict(scene: Scene, findings: Sequence[Finding], all_gaps: Sequence[Gap], next_dump: str | None) -> Verdict:
    if scene.story is not None and not scene.view.seen and all(e.kind == "log" for f in findings for e in f.evidence):
        return _of_story(scene.story, findings)
    if findings and not scene.view.seen and signatures.find(findings[0].id) is not None:
        summary = f"the logs hold a known error: {findings[0].summary}; they do not say whether the job still runs"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=findings[0].certainty, next=f"rayrl-debug explain {findings[0].id}")
    sure = [f for f in findings if f.certainty is not Certainty.POSSIBLE]
    silent = [g.where for g in all_gaps if g.id == gaps.NODE_SILENT]
    if sure:
        best = sure[0]
        more = f" (and {len(sure) - 1} more)" if len(sure) > 1 else ""
        if best.cause is Cause.ZERO_STEPS:
            return Verdict(state=State.FINISHED, summary=best.summary, certainty=best.certainty, next=f"rayrl-debug explain {best.id}")
        unseen = f"; not seen: {_names(silent)}" if silent else ""
        return Verdict(state=State.HANG, summary=best.summary + more + unseen, certainty=best.certainty, next=f"rayrl-debug explain {best.id}")
    if findings and not scene.view.seen and scene.view.snapshot.listed is not None:
        summary = f"{findings[0].summary}; the lists do not say since when"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=next_dump or "ray status")
    counts_alone = bool(scene.joined.flight or scene.joined.ras) and not any(s.threads for s in scene.view)
    if scene.view.by_hand and scene.view.seen and not counts_alone:
        return verdict_by_hand(scene, findings, next_dump or LONGER)
    if findings and _only_pauses(scene, findings):
        summary = f"{_why_pauses(scene, findings[0])}: {findings[0].summary}"
        return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)
    if findings and (over := ended(scene)) is not None:
        first = findings[0]
        tells_it = any(e.where == over.where for e in first.evidence)
        summary = f"no verdict: {first.summary if tells_it else f'{over.reason}; {first.summary}'}. To settle it: {over.settles}"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=over.next)
    if findings:
        told = why_open(scene)
        reason = f"{_names(silent)} did not answer, and may explain it" if silent else told.reason
        settles = f"look at {_names(silent)}" if silent else told.settles
        summary = f"slow or hung, {reason}: {findings[0].summary}. To settle it: {settles}"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=told.next)
    return verdict_without_findings(scene, all_gaps, next_dump)


def _only_pauses(scene: Scene, findings: Sequence[Finding]) -> bool:
    """Will everybody wake by itself for whom the others wait; or, where nobody is waited for, everybody who is suspected?"""
    if roots := _that_matter(scene):
        return all(r.hope is Outlook.WAKES or _is_left(scene, r) for r in roots)
    keys = [scene.view.by_node_pid.get((w.node, w.pid)) for f in findings for w in f.who if w.node is not None and w.pid is not None]
    return bool(keys) and all(key is not None and scene.graph.hope(key) is Outlook.WAKES for key in keys)


def _that_matter(scene: Scene) -> list[Root]:
    """All roots but idle workers: of those that take from one queue in turns one holds its lock, and the others wait for that one."""
    seen = scene.view.seen
    rest = (bool(r.waiters) and all(n in seen and seen[n].is_idle and not seen[n].is_stopped for n in r.nodes) for r in scene.graph.roots)
    return [r for r, rests in zip(scene.graph.roots, rest, strict=True) if not rests or has_victims(scene, r)]


def _is_left(scene: Scene, root: Root) -> bool:
    """Will everybody who waits for it go on by itself, whatever becomes of it, or is in nobody's way?"""
    seen = scene.view.seen
    rests = (w in seen and is_in_nobodys_way(scene, seen[w]) for w in root.waiters)
    return bool(root.waiters) and all(rest or scene.graph.hope(w) >= Outlook.WAKES for w, rest in zip(root.waiters, rests, strict=True))


def _why_pauses(scene: Scene, finding: Finding) -> str:
    if roots := _that_matter(scene):
        root = roots[0]
        node = root.nodes[0] if root.hope is Outlook.WAKES else root.waiters[0]
        return f"{scene.who(node).label} may go on by itself ({_what_wakes(scene, node)})"
    key = next(key for w in finding.who if (key := scene.view.by_node_pid.get((w.node or "", w.pid or 0))) is not None)
    return f"it may go on by itself ({_what_wakes(scene, key)})"


def _what_wakes(scene: Scene, key: str) -> str:
    """Why it may go on: its own reason, or that of the first on its way who does not stand."""
    met, at = {key}, key
    while scene.graph.solution.activities[at].outlook < Outlook.WAKES:
        ahead = (e.target for e in scene.graph.out(at) if e.target not in met and scene.graph.hope(e.target) >= Outlook.WAKES)
        further = next(ahead, None)
        if further is None:
            return "nobody waits for it, and its clock or news of files wake it" if at == key else "those for whom it waits may go on"
        met.add(at := further)
    reason = scene.graph.solution.activities[at].reason
    return reason if at == key else f"it waits for {scene.who(at).label}: {reason}"


def _names(machines: Sequence[str]) -> str:
    more = f" and {len(machines) - 3} more" if len(machines) > 3 else ""
    return f"{', '.join(machines[:3])}{more}"


def _of_story(story: LogStory, findings: Sequence[Finding]) -> Verdict:
    """Of logs alone: they tell what failed first, not whether the job still runs."""
    if findings:
        what = f"explain {findings[0].id}"
        is_told = signatures.find(findings[0].id) is not None or findings[0].id == FIRST_FAILURE
        return Verdict(
            state=State.UNKNOWN,
            summary=f"{story.summary if is_told else findings[0].summary}; logs do not say whether the job still runs",
            certainty=findings[0].certainty,
            next=f"rayrl-debug {what}",
        )
    if story.still and not story.noted:
        best = next((s for s in story.still if s.is_likely), story.still[0])
        certainty = Certainty.LIKELY if best.is_likely else Certainty.POSSIBLE
        told = f"{best.text}: it is stuck, if the job still runs; take stacks of that server and of its engine processes"
        return Verdict(state=State.UNKNOWN, summary=told, certainty=certainty, next="rayrl-debug snapshot -o hang")
    settles = f"to settle it: {SETTLES}" if story.noted else "take stacks of the processes to see more"
    summary = f"{story.summary}; {settles}"
    return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next="rayrl-debug snapshot -o hang")
