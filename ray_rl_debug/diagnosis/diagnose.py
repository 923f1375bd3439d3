"""Snapshot → Report: build the view, solve the waits, ask the rules, give the verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug import signatures
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.rank_counters import with_launches
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.analyze.waits_assumed import distance
from ray_rl_debug.bounded.garbage import no_collections
from ray_rl_debug.diagnosis.alike import fold_alike
from ray_rl_debug.diagnosis.coroutine_summaries import await_classes, coroutine_links
from ray_rl_debug.diagnosis.doubts import assumptions, with_doubts
from ray_rl_debug.diagnosis.next_dumps import next_dumps
from ray_rl_debug.diagnosis.rollouts_held import find_held, with_rollouts
from ray_rl_debug.diagnosis.summaries import node_summaries, process_summaries, stack_classes, world_summaries
from ray_rl_debug.diagnosis.symptoms import find_symptoms
from ray_rl_debug.diagnosis.verdict import give_verdict
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding, Report, Who
from ray_rl_debug.model.snapshot import Gap, Snapshot
from ray_rl_debug.rules import RULES, first_failure
from ray_rl_debug.rules.known_error import critical_lines, pid_of_log
from ray_rl_debug.rules.scene import Found, Scene
from ray_rl_debug.story.candidates import waited_in_vain
from ray_rl_debug.story.tell import tell

MAX_LINKS = 2000
"""Edges written into a report; a mismatch in a world of 1,000 ranks has a million."""


def diagnose(snapshot: Snapshot) -> Report:
    """The report on a snapshot. The same snapshot always gives the same report."""
    with no_collections():
        return _diagnose(snapshot)


def _diagnose(snapshot: Snapshot) -> Report:
    view = with_launches(build_view(snapshot))
    waits = find_waits(view)
    story = tell(snapshot.logs, unread=[g.where for g in snapshot.gaps if g.id == gaps.FILE_UNREAD and g.where.endswith((".gz", ".zst"))])
    scene = Scene(view=view, graph=waits.graph, worlds=waits.worlds, joined=waits.joined, story=story)
    found, raised = _ask(scene)
    first = [(order, f) for order, f in found if not _is_last_resort(order)]
    findings = _choose(scene, first)
    if len(first) < len(found) and all(f.certainty is Certainty.POSSIBLE for f in findings):
        findings = _choose(scene, found)
    held = find_held(view)
    findings = tuple(with_rollouts(f, held) for f in findings)
    all_gaps = (*snapshot.gaps, *(g for n in snapshot.nodes for g in n.gaps), *raised, *_own_gaps(view))
    findings = tuple(with_doubts(scene, f) for f in findings)
    findings = findings if view.by_hand else fold_alike(findings)
    dumps = next_dumps(scene, findings)
    verdict = give_verdict(scene, findings, all_gaps, next_dump=dumps[0].command if dumps else None)
    return Report(
        tool_version=snapshot.tool_version,
        taken_time_s=snapshot.taken_time_s,
        verdict=verdict,
        findings=findings,
        symptoms=find_symptoms(view, verdict, findings),
        gaps=all_gaps,
        nodes=node_summaries(snapshot),
        processes=process_summaries(view, held),
        worlds=world_summaries(waits.worlds),
        classes=stack_classes(view),
        awaits=await_classes(view),
        links=(*(scene.link(e) for e in waits.graph.edges[:MAX_LINKS]), *coroutine_links(view)),
        assumed=assumptions(scene),
        next_dumps=dumps,
        timing=snapshot.timing,
        story=story,
    )


def _ask(scene: Scene) -> tuple[list[tuple[int, Found]], list[Gap]]:
    """Every rule's findings with the rule's place in the order of preference; a rule that raises becomes a gap."""
    found: list[tuple[int, Found]] = []
    raised: list[Gap] = []
    for order, rule in enumerate(RULES):
        try:
            found += [(order, lawful) for one in rule.detect(scene) if (lawful := _under_law(scene, one)) is not None]
        except Exception as e:  # noqa: BLE001 a faulty rule must not cost the report
            reason = f"{type(e).__name__}: {e}"
            raised.append(Gap(id=gaps.RULE_RAISED, where="analysis", what=f"rule {rule.ID} ({rule.NAME})", reason=reason[:300]))
    return found, raised


def _under_law(scene: Scene, found: Found) -> Found | None:
    """A claim as sure as the law allows: who goes on is accused of nothing, and who may go on only *possibly*."""
    known = [n for n in found.explains if n in scene.graph.solution.hope]
    if not known:
        return found
    hope = max([min(scene.graph.hope(n) for n in known), *(scene.graph.hope(n) for n in found.rests_on)])
    if hope is Outlook.MOVES:
        return None
    if found.finding.certainty is Certainty.POSSIBLE:
        return found
    if found.by_own_facts:
        hope = min(scene.graph.solution.activities[n].outlook for n in known)
    sure = min((r.certainty for r in scene.graph.roots if found.explains.intersection(r.nodes)), key=_rank, default=Certainty.LIKELY)
    # who does nothing, or has ended, is to blame only as surely as somebody is known to wait for it; who is blocked needs no witness
    seen = [scene.view.seen[n] for n in known if n in scene.view.seen]
    needs_witness = scene.view.by_hand or all(one.is_idle or one.has_ended for one in seen)
    doubtful = (sure is Certainty.POSSIBLE and needs_witness) or _rests_on_one_look(scene, known) or _keeps_nobody(scene, known)
    if hope is not Outlook.STANDS or doubtful or _accuses_unseen(scene, found.finding):
        return msgspec.structs.replace(found, finding=msgspec.structs.replace(found.finding, certainty=Certainty.POSSIBLE))
    return found


def _accuses_unseen(scene: Scene, finding: Finding) -> bool:
    """Is somebody named of whom nothing was seen that would tell whether it stands?"""
    keys = (scene.view.by_node_pid.get((w.node, w.pid)) for w in finding.who if len(finding.who) > 1 and w.node is not None and w.pid is not None)
    return any(scene.graph.hope(key) is Outlook.UNSEEN for key in keys if key is not None)


def _keeps_nobody(scene: Scene, explained: Sequence[str]) -> bool:
    """Do all go on who wait for these, as somebody else may do for them what they wait for? Then nobody shows that anything hangs.

    Who has ended or is stopped needs no such witness.
    """
    waiting = [e.source for e in scene.graph.into(explained)]
    seen = [scene.view.seen.get(n) for n in explained]
    alive = all(one is not None and not one.has_ended and not one.is_stopped and ended(one) is None for one in seen)
    return alive and bool(waiting) and all(scene.graph.hope(w) is Outlook.MOVES for w in waiting)


def _rests_on_one_look(scene: Scene, explained: Sequence[str]) -> bool:
    """Was somebody seen once only of those who are explained, or all of those who wait for them? Then it holds if the run hangs."""
    if not scene.view.by_hand:
        return False
    seen = scene.view.seen
    waiting = [seen[e.source] for e in scene.graph.into(explained) if e.source in seen]
    return any(seen[n].is_assumed for n in explained if n in seen) or (bool(waiting) and all(w.is_assumed for w in waiting))


def _is_last_resort(order: int) -> bool:
    return getattr(RULES[order], "LAST_RESORT", False) is True


def _choose(scene: Scene, found: list[tuple[int, Found]]) -> tuple[Finding, ...]:
    """One finding per root (the preferred rule's), with victims and chain; then findings about what nobody waits for."""
    taken: set[int] = set()
    chosen: list[tuple[int, int, tuple[str, int], Finding]] = []
    covered: set[str] = set()
    has_end = scene.view.by_hand and any(_tells_end(scene, f.finding) for _, f in found)
    for root in scene.graph.roots:
        if set(root.nodes) <= covered:
            continue
        options = [(order, i, f) for i, (order, f) in enumerate(found) if f.explains & set(root.nodes)]
        if not options:
            continue
        _, index, best = min(options, key=lambda o: (o[0], _rank(o[2].finding.certainty)))
        if index not in taken:
            taken.add(index)
            is_behind = has_end and _names_nobody(root, best.finding)
            place = _BEHIND_AN_END if is_behind else _place_of_root(scene, root, best.finding)
            chosen.append((_rank(best.finding.certainty), place, (best.finding.id, 0), _complete(scene, best, root)))
        covered |= best.explains
    for _, one in sorted(((o, f) for i, (o, f) in enumerate(found) if i not in taken), key=lambda x: x[0]):
        if one.explains & covered:
            continue
        covered |= one.explains
        # errors of logs stay in the order in which they came
        tie = (_LOGGED, len(chosen)) if signatures.find(one.finding.id) is not None else (one.finding.id, 0)
        place = _BEHIND_AN_END if has_end and _names_nobody(None, one.finding) else _place_of_other(scene, one.finding)
        chosen.append((_rank(one.finding.certainty), place, tie, _complete(scene, one, None)))
    chosen.sort(key=lambda c: c[:3])
    return tuple(c[3] for c in chosen)


_LOGGED = "RRD6"
"""How the ids of known errors begin."""


def _place_of_root(scene: Scene, root: Root, finding: Finding) -> int:
    """More waiters first. In files, who waits at the other end of a connection that nobody knows comes behind what a log says of somebody's end."""
    waits_outside = scene.view.by_hand and all(n in scene.view.seen and distance(scene.view.seen[n]) for n in root.nodes)
    return 1 if waits_outside and not root.waiters else -len(root.waiters)


_DEATHS = (Cause.RANK_DIED, Cause.ENGINE_DIED)
_BEHIND_AN_END = 2
"""In files, the place of ranks of which nobody is seen to be missing, and of a ring of ranks that do not tell their peers, when a log says that
somebody ended."""


def _names_nobody(root: Root | None, finding: Finding) -> bool:
    """Does a finding rest on this alone, that of those who wait nobody else was shown?"""
    return finding.cause is Cause.COLLECTIVE_STALLED or (finding.cause is Cause.P2P_MISMATCH and root is not None and root.is_cycle)


def _tells_end(scene: Scene, finding: Finding) -> bool:
    """Does a log say that somebody died: in known words, or as the first failure of all, of one that no stack shows?"""
    known = signatures.find(finding.id)
    if known is not None:
        return known.effect == "critical" and finding.cause in _DEATHS
    if finding.id != first_failure.ID or waited_in_vain(finding.evidence[0].text):
        return False
    shown = {n for one in scene.view if one.threads for n in (one.identity.rank, one.process.pid) if n is not None}
    named = {n for who in finding.who for n in (who.rank, who.pid) if n is not None}
    return bool(named) and not named & shown


def _place_of_other(scene: Scene, finding: Finding) -> int:
    known = signatures.find(finding.id)
    is_end = known is not None and known.effect == "critical" and (not known.late or finding.cause in _DEATHS)
    return 0 if is_end or not scene.view.by_hand else 1


def _rank(certainty: Certainty) -> int:
    return (Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE).index(certainty)


def _named(who: Who) -> tuple[str | None, int | str]:
    """A process by its number, where files tell it; else by what they call it."""
    return who.node, who.pid if who.pid is not None else who.label


def _complete(scene: Scene, found: Found, root: Root | None) -> Finding:
    """The finding with root, victims and chain from the graph."""
    finding = found.finding
    accused = {_named(w) for w in finding.who}
    waiting: dict[str, None] = {}
    chain = scene.graph.chain(root) if root is not None else ()
    for node in sorted(found.explains):
        for edge in scene.graph.by_target.get(node, ()):
            if edge.source not in found.explains:
                waiting[edge.source] = None
    if root is not None:
        waiting = {**{w: None for w in root.waiters if w not in waiting}, **waiting}
        if root.is_cycle:
            waiting |= {n: None for n in root.nodes if n not in waiting}
    # those that the rule itself names come from logs, where no graph is
    victims = [*finding.victims, *(scene.who(n) for n in waiting)]
    victims = [v for v in victims if _named(v) not in accused]
    logs = tuple(e for e in _critical_lines(scene, finding) if e not in finding.evidence)
    links = tuple(scene.link(e) for e in chain)
    return msgspec.structs.replace(finding, root=True, victims=tuple(victims), chain=links, evidence=(*finding.evidence, *logs))


def _critical_lines(scene: Scene, finding: Finding) -> Iterator[Evidence]:
    """What the accused printed, also those that are dead: their logs are known by the pid in the file's name."""
    for who in finding.who:
        node = next((n for n in scene.view.snapshot.nodes if n.name == who.node), None)
        if node is None or who.pid is None:
            continue
        alive = next((p for p in node.processes if p.pid == who.pid), None)
        yield from critical_lines(alive.log_lines if alive is not None else (x for x in node.log_lines if pid_of_log(x.file) == who.pid))


STARVED_S = 0.5
"""So late the machine may wake us before the report says so: a look that comes half a second late still means what it shows."""


def _own_gaps(view: View) -> list[Gap]:
    return [*_starved(view), *_no_tables(view)]


def _starved(view: View) -> list[Gap]:
    found = []
    for node in view.snapshot.nodes:
        if node.longest_late_s is not None and node.longest_late_s >= STARVED_S:
            reason = f"the machine woke us up to {node.longest_late_s:.1f} s late: another program keeps its cores busy"
            remedy = "look for a program that spins: top -H"
            found.append(Gap(id=gaps.STARVED, where=node.name, what="looks at the planned times", reason=reason, remedy=remedy))
    return found


def _no_tables(view: View) -> list[Gap]:
    if view.ray is None and not any(g.id == gaps.NO_RAY_TABLES_IN_FILE for g in view.snapshot.gaps):
        reason = "taken without Ray, or Ray did not answer"
        return [Gap(id=gaps.NO_RAY_TABLES_IN_FILE, where="cluster", what="Ray's tables of actors and tasks", reason=reason)]
    return []
