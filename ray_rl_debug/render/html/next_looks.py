"""What would settle an answer that is not sure: further looks with their outcomes, and what is assumed until then."""

from __future__ import annotations

from ray_rl_debug.model.report import NextDump, Report
from ray_rl_debug.render.html.text import esc


def draw(report: Report) -> str:
    """Nothing for a report on what was measured."""
    looks = "".join(f"<li>{_look(dump, number)}</li>" for number, dump in enumerate(report.next_dumps))
    parts = [f"<ol class=looks>{looks}</ol>"] if looks else []
    if report.assumed:
        items = "".join(f"<li>{esc(text)}</li>" for text in report.assumed)
        parts.append(f"<h3>Assumed until then</h3><ul class=assumed>{items}</ul>")
    return "".join(parts)


def _look(dump: NextDump, number: int) -> str:
    outcomes = "".join(f"<tr><td>{esc(o.seen)}</td><td>{esc(o.means)}</td></tr>" for o in dump.outcomes)
    table = f"<table class=outcomes><thead><tr><th>If you see</th><th>it means</th></tr></thead><tbody>{outcomes}</tbody></table>" if outcomes else ""
    command = f"<p class=next><code id=look{number}>{esc(dump.command)}</code><button data-copy=look{number} hidden>copy</button></p>"
    return f"<p><b>{esc(dump.what)}</b>: {esc(dump.why)}</p>{command}{table}"
