"""A report for a terminal: the verdict first, then the cause, then what supports it, what was not seen, and what to type next.

Pure: no clock, no environment, no file. Whatever came from outside (titles, actor names, log lines) is neutralised here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from ray_rl_debug.model import gaps as gap_names
from ray_rl_debug.model.report import AwaitClass, Evidence, Finding, Link, NextDump, ProcessSummary, Report, StackClass, State, Who, WorldSummary
from ray_rl_debug.render.fold import fold_labels
from ray_rl_debug.render.story import lines as story_lines
from ray_rl_debug.render.symptoms import tell_symptoms
from ray_rl_debug.render.wrappers import without_wrappers
from ray_rl_debug.render.writer import Writer, neutralise

_STATE_STYLE = {State.HANG: "red", State.SLOW: "yellow", State.HEALTHY: "green", State.FINISHED: "green", State.UNKNOWN: "yellow"}
_MAX_FINDINGS = 3
_MAX_EVIDENCE = 6
_MAX_AGAINST = 3
_MAX_DUMPS = 2
_MAX_CHAIN = 8
_MAX_CLASSES = 4
_MAX_FRAMES = 6
_MAX_GAPS = 5
_MAX_AWAITS = 3
_MAX_AWAITING = 2
_MAX_WORLDS = 4


def render(report: Report, *, width: int = 100, colour: bool, verbose: bool = False) -> Iterator[str]:
    """The lines of `report`, at most `width` columns where words allow; `verbose` shows everything unfolded."""
    out = Writer(width, colour, verbose)
    yield from _verdict(report, out)
    yield from _story(report, out)
    roots = [f for f in report.findings if f.root]
    others = [f for f in report.findings if not f.root]
    first = roots if verbose else roots[:2]
    for finding in first:
        yield from _finding(finding, out, full=verbose or finding is roots[0], said=finding.summary in report.verdict.summary)
    yield from _other_findings([f for f in [*roots, *others] if f not in first], out)
    yield from _next_dumps(report.next_dumps, out)
    yield from _assumed(report.assumed, out)
    if report.symptoms:
        yield ""
        yield from out.wrap(tell_symptoms(report.symptoms), "symptoms  ", "          ")
    yield from _classes(report.classes, {w.label for f in roots for w in f.who}, out)
    yield from _stackless(report.processes, out)
    yield from _awaits(report.awaits, {(w.node, w.pid) for f in roots for w in f.who}, out)
    yield from _worlds(report.worlds, out)
    yield from _gaps(report, out)
    yield from _nodes(report, out)
    yield ""
    yield out.style("bold", "next: ") + neutralise(report.verdict.next or _next(report))


def _verdict(report: Report, out: Writer) -> Iterator[str]:
    verdict = report.verdict
    word = verdict.state.value.upper()
    certainty = "" if verdict.state is State.UNKNOWN else f" ({verdict.certainty.value})"
    lines = list(out.wrap(f"{word}{certainty}: {verdict.summary}", "", "      "))
    yield out.style(_STATE_STYLE[verdict.state], lines[0][: len(word)]) + lines[0][len(word) :]
    yield from lines[1:]


def _story(report: Report, out: Writer) -> Iterator[str]:
    if report.story is None:
        return
    yield ""
    for line in story_lines(report.story, verbose=out.verbose):
        hanging = line.indent + "  "
        wrapped = _short(out, line.text, line.indent, hanging, lines=2) if line.is_short else out.wrap(line.text, line.indent, hanging)
        yield from (out.style(line.style, one) if line.style else one for one in wrapped)


def _finding(finding: Finding, out: Writer, *, full: bool, said: bool) -> Iterator[str]:
    yield ""
    phase = f", in phase {finding.phase}" if finding.phase and finding.phase != "unknown" else ""
    yield out.head(out.cut(f"{finding.id} {finding.name}")) + out.cut(f"  {finding.cause.value}, {finding.certainty.value}{phase}")
    if not said:
        yield from out.wrap(finding.summary, "  ")
    yield from _people(finding, out)
    if full:
        yield from _chain(finding.chain, out)
        shown = out.limit(_MAX_EVIDENCE, len(finding.evidence))
        if shown:
            yield "  " + out.head("evidence")
        for item in finding.evidence[:shown]:
            yield from _short(out, _fact(item), "    ", "      ", lines=3)
        if shown < len(finding.evidence):
            yield out.style("dim", f"    … {len(finding.evidence) - shown} more (-v)")
        if finding.against:
            yield "  " + out.head("against")
        for item in finding.against[: out.limit(_MAX_AGAINST, len(finding.against))]:
            yield from _short(out, _fact(item), "    ", "      ", lines=3)
    if finding.remedy:
        yield "  " + out.head("remedy")
        for step in finding.remedy if full else finding.remedy[:1]:
            yield from out.wrap(step, "    - ", "      ")


def _fact(item: Evidence) -> str:
    """What was seen, with the file and line it was read from first: a long text is cut at its end."""
    return f"{item.kind}  {f'[{item.source}] ' if item.source else ''}{item.where}: {item.text}"


def _next_dumps(dumps: tuple[NextDump, ...], out: Writer) -> Iterator[str]:
    """Further looks, with what each outcome would mean."""
    if not dumps:
        return
    yield ""
    yield out.head("dump next") + "  what would settle it, the most telling first"
    shown = out.limit(_MAX_DUMPS, len(dumps))
    for number, dump in enumerate(dumps[:shown], 1):
        yield from out.wrap(f"{number}. {dump.what}: {dump.why}", "  ", "     ")
        yield "       " + out.style("cyan", neutralise(dump.command))
        for outcome in dump.outcomes:
            yield from out.wrap(f"{outcome.seen}: {outcome.means}", "     - ", "       ")
    if shown < len(dumps):
        yield out.style("dim", f"  … {_count(len(dumps) - shown, 'more look')} (-v)")


def _assumed(assumed: tuple[str, ...], out: Writer) -> Iterator[str]:
    if not assumed:
        return
    yield ""
    yield out.head("assumed")
    for text in assumed:
        yield from out.wrap(text, "  - ", "    ")


def _people(finding: Finding, out: Writer) -> Iterator[str]:
    shown = out.limit(4, len(finding.who))
    for who in finding.who[:shown]:
        lines = list(_short(out, _full(who), " " * 10, " " * 10, lines=2))
        yield "  " + out.head("who") + "     " + out.style("red", lines[0].lstrip())
        yield from (" " * 10 + out.style("red", line.lstrip()) for line in lines[1:])
    if shown < len(finding.who):
        rest = _labels(finding.who[shown:])
        yield from _short(out, f"and {len(finding.who) - shown} more: {rest}", "          ", "          ", lines=2)
    if finding.victims:
        text = f"{_labels(finding.victims)}  ({len(finding.victims)} only {'waits' if len(finding.victims) == 1 else 'wait'})"
        yield from _short(out, f"victims {text}", "  ", "          ", lines=2)


def _chain(chain: tuple[Link, ...], out: Writer) -> Iterator[str]:
    if not chain:
        return
    yield "  " + out.head("chain")
    yield "    " + out.cut(place(chain[0].waiter), out.width - 4)
    shown: Iterable[Link | None] = chain
    if not out.verbose and len(chain) > _MAX_CHAIN:
        shown = [*chain[: _MAX_CHAIN // 2], None, *chain[-_MAX_CHAIN // 2 :]]
    for link in shown:
        if link is None:
            yield out.style("dim", f"      … {len(chain) - _MAX_CHAIN} more links (-v)")
            continue
        doubt = "" if link.certainty.value == "proven" else f", {link.certainty.value}"
        reason = f"   ({link.evidence}{doubt})" if link.evidence else (f"   ({link.certainty.value})" if doubt else "")
        yield from _short(out, f"└─ {link.why} → {place(link.target)}{reason}", "      ", "           ", lines=2)


def _other_findings(findings: list[Finding], out: Writer) -> Iterator[str]:
    if not findings:
        return
    yield ""
    yield out.head("also seen")
    shown = out.limit(_MAX_FINDINGS, len(findings))
    for finding in findings[:shown]:
        yield from _short(out, f"{finding.id} {finding.name} ({finding.certainty.value}): {finding.summary}", "  ", "      ", lines=2)
    if shown < len(findings):
        ids = sorted({f.id for f in findings[shown:]})
        yield out.style("dim", out.cut(f"  … {len(findings) - shown} more: {', '.join(ids)} (-v)"))


def _classes(classes: tuple[StackClass, ...], suspects: set[str], out: Writer) -> Iterator[str]:
    busy = [c for c in classes if out.verbose or "idle" not in c.kind]
    idle = sum(len(c.members) for c in classes) - sum(len(c.members) for c in busy)
    if not classes:
        return
    yield ""
    yield out.head("stacks") + "  processes in the same place, the fewest first"
    # A process in ray.get is a waiter by definition, and there is often just one of each: after the others.
    ordered = sorted(busy, key=lambda c: (suspects.isdisjoint(c.members), c.kind == "ray.get" or "idle" in c.kind, len(c.members)))
    shown = out.limit(_MAX_CLASSES, len(ordered))
    for position, item in enumerate(ordered[:shown]):
        yield from _short(out, f"{len(item.members)}× {fold_labels(item.members)}  [{item.kind}]", "  ", "      ", lines=2)
        lines = item.frames if out.verbose else without_wrappers(item.frames)
        frames = out.limit(_MAX_FRAMES if position < 2 else 2, len(lines))
        for frame in lines[:frames]:
            yield "      " + out.style("cyan", out.cut(frame.removesuffix(" ()").removesuffix(" ([unknown])"), out.width - 6))
        if frames < len(item.frames):
            yield out.style("dim", f"      … {_count(len(item.frames) - frames, 'more frame')} (-v)")
    rest = [_count(len(ordered) - shown, "more place")] * (shown < len(ordered)) + [_count(idle, "idle process")] * bool(idle)
    if rest:
        yield out.style("dim", f"  … {', '.join(rest)} (-v)")


def _stackless(processes: tuple[ProcessSummary, ...], out: Writer) -> Iterator[str]:
    """What titles, states, CPU times and Ray's tables say of processes whose stack could not be read."""
    groups: dict[tuple[str, str], list[ProcessSummary]] = defaultdict(list)
    for process in processes:
        if not process.stack and process.kind in ("ray-worker", "driver", "named", "child"):
            groups[(process.doing or "unknown", process.state or "?")].append(process)
    if not groups:
        return
    yield ""
    yield out.head("without a stack") + "  by title, state and CPU time"
    ordered = sorted(groups.items(), key=lambda g: (g[0][0] == "idle", len(g[1])))
    shown = out.limit(_MAX_CLASSES * 2, len(ordered))
    for (doing, state), members in ordered[:shown]:
        loads = [m.cpu_percent for m in members if m.cpu_percent is not None]
        load = f", {min(loads):.0f} to {max(loads):.0f} % CPU" if len(loads) > 1 else f", {loads[0]:.0f} % CPU" if loads else ""
        yield from _short(out, f"{len(members)}× {_labels(m.who for m in members)}  {doing}, state {state}{load}", "  ", "      ", lines=2)
    if shown < len(ordered):
        yield out.style("dim", f"  … {_count(len(ordered) - shown, 'more group')} (-v)")


def _awaits(awaits: tuple[AwaitClass, ...], suspects: set[tuple[str | None, int | None]], out: Writer) -> Iterator[str]:
    """Classes of await chains by process: those of the accused first, else as they come, the most telling first."""
    by_process: dict[str, list[AwaitClass]] = defaultdict(list)
    for item in awaits:
        by_process[item.process].append(item)
    if not by_process:
        return
    yield ""
    yield out.head("asyncio tasks") + "  equal chains merged, the most important first"
    ordered = sorted(by_process.items(), key=lambda g: (g[1][0].node, g[1][0].pid) not in suspects)
    shown = out.limit(_MAX_AWAITING, len(ordered))
    for position, (process, items) in enumerate(ordered[:shown]):
        total = items[0].of if items[0].of is not None else sum(i.count for i in items)
        yield out.cut(f"  {process}: {_count(total, 'task')}")
        few = out.limit(_MAX_AWAITS if position == 0 else 1, len(items))
        for number, item in enumerate(items[:few]):
            yield from _await_class(item, out, frames=3 if number == position == 0 else 1)
        if few < len(items):
            yield out.style("dim", f"    … {_count(sum(i.count for i in items[few:]), 'task')} in {_count(len(items) - few, 'more place')} (-v)")
    if shown < len(ordered):
        rest = sum(item.count for _, items in ordered[shown:] for item in items)
        yield out.style("dim", f"  … {_count(rest, 'task')} of {_count(len(ordered) - shown, 'more process')} (-v)")


def _await_class(item: AwaitClass, out: Writer, *, frames: int) -> Iterator[str]:
    s = "s" if item.count == 1 else ""
    does = {"running": f"run{s} now", "ready": f"wait{s} for {'its' if s else 'their'} turn on the loop"}.get(item.kind or "")
    text = f"{item.count}× " + (does or f"wait{s}" + (f" for {item.awaited}" if item.awaited else ""))
    text += f"; {item.behind} behind {'it' if s else 'them'}" if item.behind else ""
    yield from _short(out, text + (", at rest" if item.is_at_rest else ""), "    ", "        ", lines=2)
    chain = item.chain if out.verbose or item.own is None else without_wrappers(item.chain[: item.own + 1])
    for frame in chain[::-1][: out.limit(frames, len(chain))]:
        yield "        " + out.style("cyan", out.cut(frame, out.width - 8))
    if out.verbose and item.tasks:
        yield from out.wrap("tasks " + ", ".join(item.tasks) + (", ..." if item.count > len(item.tasks) else ""), "        ")


def _worlds(worlds: tuple[WorldSummary, ...], out: Writer) -> Iterator[str]:
    if not worlds:
        return
    yield ""
    yield out.head("worlds")
    # those with missing ranks first, they may be the news
    ordered = sorted(worlds, key=lambda w: not w.missing)
    shown = out.limit(_MAX_WORLDS, len(ordered))
    for world in ordered[:shown]:
        size = f" of {world.size}" if world.size is not None else ""
        seen = (
            f"{len(world.ranks)}{size} rank{'' if len(world.ranks) == 1 and not size else 's'} seen"
            if world.ranks or world.size is not None
            else "ranks not known"
        )
        missing = f", not seen: {fold_labels([str(r) for r in world.missing])}" if world.missing else ""
        yield from _short(out, f"{world.name}: {seen}{missing}", "  ", "      ", lines=2)
    if shown < len(ordered):
        yield out.style("dim", f"  … {len(ordered) - shown} more (-v)")


def _gaps(report: Report, out: Writer) -> Iterator[str]:
    yield ""
    if not report.gaps:
        yield out.head("not seen") + "  nothing is missing from this capture"
        return
    yield out.head("not seen")
    groups: dict[tuple[str, str, str | None], list[tuple[str, str]]] = defaultdict(list)
    for gap in report.gaps:
        groups[(gap.id, gap.reason, gap.remedy)].append((gap.where, gap.what))
    shown = out.limit(_MAX_GAPS, len(groups))
    for (id_, reason, remedy), found in list(groups.items())[:shown]:
        whats = list(dict.fromkeys(what for _, what in found))
        wheres = list(dict.fromkeys(where for where, _ in found))
        what = whats[0] if len(whats) == 1 else f"{gap_names.NAMES.get(id_, 'missing')}, {len(whats)} things, e.g. {whats[0]}"
        where = fold_labels(wheres) if out.verbose or len(wheres) <= 8 else f"{len(wheres)} places, e.g. {fold_labels(wheres[:4])}"
        yield from _short(out, f"{id_} {where}: {what} ({reason})", "  ", "      ", lines=2)
        if remedy:
            yield from _short(out, f"→ {remedy}", "      ", "        ", lines=1)
    if shown < len(groups):
        # Gaps may be folded, never hidden: what is not written out is counted by name.
        rest = list(groups)[shown:]
        names = dict.fromkeys(f"{g[0]} {gap_names.NAMES.get(g[0], '')}".strip() for g in rest)
        yield from out.wrap(f"… and {len(rest)} more kinds: {'; '.join(names)} (-v)", "  ", "      ")


def _nodes(report: Report, out: Writer) -> Iterator[str]:
    if not report.nodes:
        return
    answered = [n for n in report.nodes if n.answered]
    silent = [n.name for n in report.nodes if not n.answered]
    processes = [n.processes for n in answered if n.processes is not None]
    stacks = [n.stacks for n in answered if n.stacks is not None]
    gpus = [n.gpus for n in answered if n.gpus is not None]
    parts = [f"{len(answered)} of {len(report.nodes)} answered"]
    parts.append(f"{sum(processes)} processes" if processes else "processes not seen")
    parts.append(f"stacks of {sum(stacks)}" if stacks else "stacks not seen")
    parts.append(f"{sum(gpus)} GPUs" if gpus else "GPUs not seen")
    yield ""
    yield out.head("nodes") + out.cut(f"  {', '.join(parts)}: {fold_labels([n.name for n in answered])}", out.width - 5)
    if silent:
        yield from out.wrap(f"silent: {fold_labels(silent)}", "  ")


def _next(report: Report) -> str:
    roots = [f.id for f in report.findings if f.root]
    return f"rayrl-debug explain {roots[0]}" if roots else "rayrl-debug snapshot -o hang --samples 5"


def _full(who: Who) -> str:
    """Label, node, pid, actor, class, task, thread: whatever is known."""
    place = "/".join(x for x in (who.node, str(who.pid) if who.pid else None) if x)
    actor = ".".join(x for x in (who.class_, who.task) if x) if who.task is None or "." not in who.task else who.task
    rank = f"rank {who.rank} of {who.world}" if who.rank is not None and who.world and who.label != f"{who.world}/{who.rank}" else ""
    known = [
        f"on {who.node}, pid {who.pid}" if who.node and who.pid else place,
        f"actor {who.actor}" if who.actor and who.actor != who.label else "",
        actor if actor != who.label else "",
        rank,
        f"thread {who.thread}" if who.thread and who.thread != "MainThread" else "",
    ]
    return "  ".join([who.label.removesuffix(f" (pid {who.pid})") if who.node else who.label, *(k for k in known if k)])


def place(who: Who) -> str:
    """``actor/3 (node7, pid 4211)``."""
    return f"{who.label.removesuffix(f' (pid {who.pid})')} ({who.node}, pid {who.pid})" if who.node and who.pid else who.label


def _short(out: Writer, text: str, indent: str, hanging: str, *, lines: int) -> Iterator[str]:
    """Wrapped text of at most `lines` lines; all of it with ``-v``."""
    wrapped = list(out.wrap(text, indent, hanging))
    if out.verbose or len(wrapped) <= lines:
        yield from wrapped
        return
    yield from wrapped[: lines - 1]
    yield (wrapped[lines - 1][: out.width - 2] + " …") if wrapped[lines - 1] else "…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def _labels(people: Iterable[Who]) -> str:
    """Folded labels; equal ones are told apart by their pids, and where these are equal too, as in containers, by their nodes."""
    people = list(people)
    times, places = Counter(w.label for w in people), Counter((w.label, w.pid) for w in people)

    def told(who: Who) -> str:
        if times[who.label] == 1 or not who.pid:
            return who.label
        if places[who.label, who.pid] > 1:
            return f"{who.label} on {who.node}"
        return f"{who.label} pid {who.pid}"

    return fold_labels([told(w) for w in people])
