"""A report for an issue or a chat: short, and with the terminal text folded below."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.render import terminal
from ray_rl_debug.render.fold import fold_labels
from ray_rl_debug.report import Report

_MAX_AWAITS = 3
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~@!])")


def render(report: Report) -> Iterator[str]:
    """The lines of a Markdown document; text from outside is escaped."""
    verdict = report.verdict
    yield f"## {verdict.state.value.upper()} ({verdict.certainty.value})"
    yield ""
    yield _safe(verdict.summary)
    for finding in report.findings:
        if not finding.root:
            continue
        yield ""
        yield f"### {finding.id} {_safe(finding.name)} ({finding.certainty.value})"
        yield ""
        yield _safe(finding.summary)
        yield ""
        yield f"- who: {_safe(fold_labels([w.label for w in finding.who])) or 'not known'}"
        if finding.victims:
            yield f"- victims: {_safe(fold_labels([w.label for w in finding.victims]))}"
        accused = {(w.node, w.pid) for w in finding.who}
        for item in [a for a in report.awaits if (a.node, a.pid) in accused and not a.is_at_rest][:_MAX_AWAITS]:
            at = item.chain[item.own if item.own is not None else -1] if item.chain else "?"
            yield f"- coroutines: {item.count}× at {_safe(at)}" + (f" for {_safe(item.awaited)}" if item.awaited else "")
        for step in finding.remedy:
            yield f"- remedy: {_safe(step)}"
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
