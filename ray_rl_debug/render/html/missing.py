"""What the capture did not see: equal gaps together, each with the one thing that would close it."""

from __future__ import annotations

from collections import defaultdict

from ray_rl_debug.model import gaps as gap_names
from ray_rl_debug.model.report import Report
from ray_rl_debug.render.fold import fold_labels
from ray_rl_debug.render.html.text import count, esc, name

MAX_KINDS = 60


def draw(report: Report) -> str:
    """A list of gaps, or the statement that nothing is missing; a node that kept silent comes first."""
    silent = [n.name for n in report.nodes if not n.answered]
    parts = [f"<p class=silent><b>{count(len(silent), 'node')} did not answer:</b> {name(fold_labels(silent), 800)}</p>"] if silent else []
    if not report.gaps:
        return "".join(parts) or "<p class=none>Nothing is missing from this capture.</p>"
    groups: dict[tuple[str, str, str | None], list[tuple[str, str]]] = defaultdict(list)
    for gap in report.gaps:
        groups[(gap.id, gap.reason, gap.remedy)].append((gap.where, gap.what))
    items = []
    for (id_, reason, remedy), found in list(groups.items())[:MAX_KINDS]:
        whats = list(dict.fromkeys(what for _, what in found))
        what = whats[0] if len(whats) == 1 else f"{gap_names.NAMES.get(id_, 'missing')}: {len(whats)} things, e.g. {whats[0]}"
        where = fold_labels(dict.fromkeys(where for where, _ in found))
        help_ = f"<p class=fix>→ {esc(remedy)}</p>" if remedy else ""
        told = f"<b>{esc(what, 400)}</b> <i>{name(where, 300)}</i><p>{esc(reason, 600)}</p>{help_}"
        items.append(f"<li><span class=chip>{esc(id_, 20)}</span><div>{told}</div></li>")
    more = f"<p class=note>{count(len(groups) - MAX_KINDS, 'more kind')} in report.json.</p>" if len(groups) > MAX_KINDS else ""
    return f"{''.join(parts)}<ul class=evidence>{''.join(items)}</ul>{more}"
