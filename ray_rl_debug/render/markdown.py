"""A report for an issue or a chat: short, and with the terminal text folded below."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.model.report import Report, State
from ray_rl_debug.render import terminal
from ray_rl_debug.render.fold import fold_labels

_MAX_AWAITS = 3
_MAX_WHO = 4
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
        if finding.remedy:
            yield ""
            yield "What to do:"
            yield ""
            yield from (f"{number}. {_safe(step)}" for number, step in enumerate(finding.remedy, 1))
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


def _safe(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", terminal.neutralise(text))
