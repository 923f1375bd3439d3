"""A report for an issue or a chat: short, and with the terminal text folded below."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ray_rl_debug.model.report import Evidence, Report, State
from ray_rl_debug.render import terminal
from ray_rl_debug.render.fold import fold_labels
from ray_rl_debug.render.story import moment, place
from ray_rl_debug.render.writer import neutralise

_MAX_AWAITS = 3
_MAX_FACTS = 4
_MAX_WHO = 4
_MAX_THEN = 4
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~@!])")


def render(report: Report) -> Iterator[str]:
    """The lines of a Markdown document; text from outside is escaped."""
    verdict = report.verdict
    sure = "" if verdict.state is State.UNKNOWN else f" ({verdict.certainty.value})"
    yield f"## {verdict.state.value.upper()}{sure}"
    yield ""
    yield _safe(verdict.summary)
    for finding in report.findings:
        if not finding.root:
            continue
        yield ""
        yield f"### {finding.id} {_safe(finding.name)} ({finding.certainty.value})"
        yield ""
        if finding.summary not in verdict.summary:
            yield _safe(finding.summary)
            yield ""
        named = [terminal.place(w) for w in finding.who[:_MAX_WHO]] + [fold_labels([w.label for w in finding.who[_MAX_WHO:]])]
        yield f"- who: {_safe(', '.join(n for n in named if n)) or 'not known'}"
        if finding.victims:
            yield f"- victims: {_safe(fold_labels([w.label for w in finding.victims]))}"
        accused = {(w.node, w.pid) for w in finding.who}
        for item in [a for a in report.awaits if (a.node, a.pid) in accused and not a.is_at_rest][:_MAX_AWAITS]:
            at = item.chain[item.own if item.own is not None else -1] if item.chain else "?"
            yield f"- coroutines: {item.count}× at {_safe(at)}" + (f" for {_safe(item.awaited)}" if item.awaited else "")
        yield from _facts("For it", finding.evidence[:_MAX_FACTS] if report.assumed else ())
        yield from _facts("Against it", finding.against)
        if finding.remedy:
            yield ""
            yield "What to do:"
            yield ""
            yield from (f"{number}. {_safe(step)}" for number, step in enumerate(finding.remedy, 1))
    yield from _story(report)
    yield from _next_dumps(report)
    yield ""
    yield "<details><summary>Full report</summary>"
    yield ""
    # A fence longer than any run of backticks inside cannot be closed by the text itself.
    lines = list(terminal.render(report, width=100, colour=False, verbose=True))
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield from lines
    yield fence
    yield ""
    yield "</details>"


def _facts(title: str, facts: Sequence[Evidence]) -> Iterator[str]:
    """What speaks for or against a claim that was read from files, each with its file and line."""
    if facts:
        yield ""
        yield f"{title}:"
        yield ""
    for fact in facts:
        source = f" ({_safe(fact.source)})" if fact.source else ""
        yield f"- {_safe(fact.where)}{source}: {_safe(fact.text)}"


def _next_dumps(report: Report) -> Iterator[str]:
    if report.assumed:
        yield ""
        yield "### Assumed"
        yield ""
        yield from (f"- {_safe(text)}" for text in report.assumed)
    if report.next_dumps:
        yield ""
        yield "### Dump next"
    for number, dump in enumerate(report.next_dumps, 1):
        yield ""
        yield f"{number}. {_safe(dump.what)}: {_safe(dump.why)}"
        yield ""
        fence = "`" * max(3, max((len(run) for run in re.findall("`+", dump.command)), default=0) + 1)
        yield f"   {fence}sh"
        yield f"   {neutralise(dump.command)}"
        yield f"   {fence}"
        yield ""
        yield from (f"   - {_safe(o.seen)}: {_safe(o.means)}" for o in dump.outcomes)


def _story(report: Report) -> Iterator[str]:
    story = report.story
    if story is None or (story.first is None and not story.noted and not story.then and not story.still):
        return
    yield ""
    yield "### Logs"
    yield ""
    first = [("first failure", story.first)] if story.first is not None else [("logged as an error", e) for e in story.noted[:_MAX_THEN]]
    for head, entry in [*first, *((story.title_of_then, e) for e in story.then[:_MAX_THEN])]:
        when = moment(entry)
        yield f"- {head}: {_safe(place(entry))}{f' at {when}' if when else ''}: {_safe(entry.text)} ({_safe(entry.block_at)})"
    for still in story.still[:_MAX_THEN]:
        yield f"- {_safe(still.text)} ({_safe(f'{still.file}:{still.line}')})"
    if story.stopped:
        yield f"- last work: {_safe(story.stopped)}"


def _safe(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", neutralise(text))
