"""The findings: who, the chain, what to do, the evidence, the victims; roots in full, the rest in a line each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ray_rl_debug.model.report import AwaitClass, Evidence, Finding, ProcessSummary, State, Who
from ray_rl_debug.render.html import chain_drawing
from ray_rl_debug.render.html.book import Book
from ray_rl_debug.render.html.text import clip, count, esc, facts, folded, name, people, stack, waiting

MAX_HEAD = 420
"""Characters of the page's headline; what is longer is told again in the finding."""
MAX_FULL = 4
"""Root findings shown in full."""
MAX_CARDS = 6
MAX_AWAITS = 8
MAX_GROUPS = 40


def draw(book: Book) -> str:
    """All findings; a healthy run has none, and then says what it was told by."""
    report = book.report
    roots = [f for f in report.findings if f.root]
    full = (roots or list(report.findings[:1]))[:MAX_FULL]
    rest = [f for f in report.findings if all(f is not shown for shown in full)]
    parts = [_finding(f, book, position) for position, f in enumerate(full)]
    if not full:
        fine = report.verdict.state in (State.HEALTHY, State.FINISHED)
        parts.append(f"<p class=none>{'No rule found anything wrong.' if fine else 'No rule could name a cause.'}</p>")
    if rest:
        items = "".join(f"<li>{folded(_line(f), _body(f, book, drawing=False))}</li>" for f in rest[:MAX_GROUPS])
        more = f"<p class=note>{count(len(rest) - MAX_GROUPS, 'more finding')} in report.json.</p>" if len(rest) > MAX_GROUPS else ""
        parts.append(f"<h3>also seen <i>consequences, or not the cause</i></h3><ul class=plain>{items}</ul>{more}")
    return "".join(parts)


def _line(finding: Finding) -> str:
    return f"<b>{esc(finding.id)}</b> {esc(finding.name)} <i>({finding.certainty.value})</i> {esc(finding.summary, 400)}"


def _finding(finding: Finding, book: Book, position: int) -> str:
    phase = finding.phase if finding.phase and finding.phase != "unknown" else None
    tags = [finding.cause.value, finding.certainty.value, f"phase {phase}" if phase else ""]
    chips = "".join(f"<span class=chip>{esc(tag)}</span>" for tag in dict.fromkeys(t for t in tags if t and t != finding.name))
    said = finding.summary in book.report.verdict.summary[:MAX_HEAD]
    head = f"<h3><b>{esc(finding.id)}</b> {esc(finding.name)} {chips}</h3>"
    told = "" if said else f"<p class=summary>{esc(finding.summary)}</p>"
    return f"<article class=finding{' id=root' if position == 0 else ''}>{head}{told}{_body(finding, book, drawing=True)}</article>"


def _body(finding: Finding, book: Book, *, drawing: bool) -> str:
    """On a wide screen the drawing stands beside the cause and what to do about it."""
    drawn = chain_drawing.draw(finding, book) if drawing else ""
    text = folded("The same as text", chain_drawing.as_list(finding.chain)) if finding.chain else ""
    left = f"<div class=left><h4>Who waits for whom</h4>{drawn}{text}</div>" if drawn else ""
    right = _cause(finding, book) + _remedy(finding)
    parts = [f"<div class=pair>{left}<div class=right>{right}</div></div>" if left else right]
    if finding.evidence:
        parts.append(f"<h4>{'What speaks for it' if finding.against else 'Evidence'}</h4>{_evidence(finding.evidence)}")
    if finding.against:
        parts.append(f"<h4>What speaks against it</h4>{_evidence(finding.against)}")
    if finding.victims:
        parts.append(f"<h4>Victims <i>{waiting(len(finding.victims))}</i></h4>{_victims(finding.victims, book)}")
    return "".join(parts)


def _cause(finding: Finding, book: Book) -> str:
    cards = [_card(w, book, is_open=i < 2) for i, w in enumerate(finding.who[:60])]
    if not cards:
        return ""
    rest = finding.who[MAX_CARDS:]
    more = folded(f"and {len(rest):,} more: {name(people(rest), 200)}", "".join(cards[MAX_CARDS:])) if rest else ""
    return f"<h4>{f'The {chain_drawing.cause_word(finding)}' if finding.root else 'Who'}</h4>{''.join(cards[:MAX_CARDS])}{more}"


def _remedy(finding: Finding) -> str:
    steps = "".join(f"<li>{esc(step)}</li>" for step in finding.remedy)
    return f"<h4>What to do</h4><ol class=remedy>{steps}</ol>" if steps else ""


def _card(who: Who, book: Book, *, is_open: bool) -> str:
    """One accused: names, what it does, its stack, the coroutines it holds."""
    process = book.process(who)
    thread, frames = book.stack(who)
    lines = stack(frames) if frames else ""
    waits = _awaits(book.awaits(who))
    if process is not None and not lines and who.pid is not None:
        lines = "<p class=none>Its stack was not read.</p>"
    telling = is_open and not (waits and book.is_idle(who))
    folds = folded(f"stack{_of(thread)}, innermost first", lines, is_open=telling) if lines else ""
    body = facts(_facts(who, process, book.doing(who))) + (waits + folds if waits else folds)
    return f"<div class=card><p class=title>{name(who.label)}</p>{body}</div>"


def _of(thread: str | None) -> str:
    return f" of thread {name(thread, 80)}" if thread and thread != "MainThread" else ""


def _facts(who: Who, process: ProcessSummary | None, doing: str | None) -> Iterable[tuple[str, str | None]]:
    task = who.task if who.task and "." in who.task else ".".join(x for x in (who.class_, who.task) if x)
    other = process is not None and who.thread is not None and process.thread is not None and process.thread != who.thread
    yield "main thread" if other else "does", esc(doing, 400) if doing else None
    yield "where", " · ".join(x for x in (name(who.node, 80) if who.node else None, f"pid {who.pid}" if who.pid is not None else None) if x)
    yield "actor", name(who.actor) if who.actor and who.actor != who.label else None
    yield "call", name(task) if task and task != who.label else None
    yield "rank", f"{who.rank} of {name(who.world)}" if who.rank is not None and who.world else None
    yield "role", name(who.role) if who.role else None
    yield "thread", name(who.thread) if who.thread and who.thread != "MainThread" else None
    if process is not None:
        yield "phase", esc(process.phase) if process.phase and process.phase != "unknown" else None
        yield "CPU", f"{process.cpu_percent:.0f} %" if process.cpu_percent is not None else None
        yield "moved", None if process.moving is None else "yes, during the capture" if process.moving else "no, not during the capture"
        yield "state", esc(process.state, 40) if process.state and process.state not in "SR" else None


def _awaits(waits: Sequence[AwaitClass]) -> str:
    items = []
    for item in waits[:MAX_AWAITS]:
        s = "" if item.count > 1 else "s"
        goal = f" for <b>{name(item.awaited, 200)}</b>" if item.awaited else ""
        does = {"running": f"run{s} now", "ready": f"wait{s} for {'its' if s else 'their'} turn on the loop"}.get(item.kind or "")
        tasks = f"<p class=note>{name(', '.join(item.tasks), 400)}</p>" if item.tasks else ""
        steps = stack(tuple(reversed(item.chain)))
        items.append(f"<li><b>{item.count:,}×</b> {does or f'wait{s}{goal}'}{steps}{tasks}</li>")
    if not items:
        return ""
    more = f"<li>{count(len(waits) - MAX_AWAITS, 'more group')} in the raw facts</li>" if len(waits) > MAX_AWAITS else ""
    head = "<p class=sub>asyncio tasks, innermost coroutine first</p>"
    return f"<div class=awaits>{head}<ul class=plain>{''.join(items)}{more}</ul></div>"


def _evidence(evidence: Sequence[Evidence]) -> str:
    rows = "".join(
        f"<li><span class=chip>{esc(e.kind, 40)}</span><div><b>{name(clip(e.where, 200))}</b> <span class=text>{esc(e.text)}</span>"
        f"{_source(e)}</div></li>"
        for e in evidence[:60]
    )
    more = f"<p class=note>{count(len(evidence) - 60, 'more fact')} in report.json.</p>" if len(evidence) > 60 else ""
    return f"<ul class=evidence>{rows}</ul>{more}"


def _source(item: Evidence) -> str:
    """The file and line that a fact was read from."""
    return f" <i class=source>{esc(item.source, 200)}</i>" if item.source else ""


def _victims(victims: Sequence[Who], book: Book) -> str:
    """Victims that stand in the same place together, the largest group first."""
    groups: dict[tuple[str, ...] | str, list[Who]] = defaultdict(list)
    for who in victims:
        process = book.process(who)
        groups[process.stack or (process.doing or "") if process is not None else ""].append(who)
    items = []
    for key, members in sorted(groups.items(), key=lambda g: -len(g[1]))[:MAX_GROUPS]:
        known = book.process(members[0])
        told = known.doing if known is not None and known.doing else ""
        doing = f" <i>{esc(f'wait {told[6:]}' if len(members) > 1 and told.startswith('waits ') else told, 240)}</i>" if told else ""
        head = f"<b>{len(members):,}×</b> {name(people(members), 300)}{doing}"
        waits = "".join(_awaits(book.awaits(w)) for w in members[:3])
        items.append(folded(head, stack(key) + waits) if isinstance(key, tuple) and key else f"<p class=flat>{head}</p>{waits}")
    more = f"<p class=note>{count(len(groups) - MAX_GROUPS, 'more group')} in the raw facts.</p>" if len(groups) > MAX_GROUPS else ""
    return "".join(items) + more
