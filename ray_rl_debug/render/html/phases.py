"""The timeline's tables on the page: which phase took how long in the last steps, who waited for whom, what queued."""

from __future__ import annotations

from ray_rl_debug.model.timeline_tables import PhaseRow, Tables
from ray_rl_debug.render.html.text import esc, seconds, table

SHOWN_STEPS = 3
SHOWN_ROWS = 12


def draw(tables: Tables) -> str:
    """The tables that hold something; empty when none does."""
    parts = []
    if tables.since_progress_s is not None:
        what = f" ({esc(tables.last_progress, 120)} ended)" if tables.last_progress else ""
        parts.append(f"<p class=note>Last progress {seconds(tables.since_progress_s)} before the capture{what}.</p>")
    steps = sorted({r.step for r in tables.phases})[-SHOWN_STEPS:]
    shown = [r for r in tables.phases if r.step in steps]
    if shown:
        head = ("step", "phase", "ranks", "median", "longest", "straggler", "lost rank time")
        parts.append(f"<h3>Phases by step <i>the last {len(steps)}</i></h3>" + table(head, [_phase(r) for r in shown]))
    idle = sorted(tables.idle, key=lambda r: -r.idle_ratio)[:SHOWN_ROWS]
    if idle:
        rows = [(esc(r.rank, 120), seconds(r.window_s), _percent(r.idle_ratio), _percent(r.bubble_ratio)) for r in idle]
        parts.append("<h3>Idle <i>most first</i></h3>" + table(("rank", "seen for", "in no phase", "and its GPU empty"), rows))
    if tables.rollout:
        ended = [
            (esc(r.name, 120), str(r.count), _seconds(r.p50_s), _seconds(r.p99_s), str(r.unfinished or "–")) for r in tables.rollout[:SHOWN_ROWS]
        ]
        parts.append("<h3>Rollouts</h3>" + table(("what", "count", "p50", "p99", "unfinished"), ended))
    if tables.queues:
        waits = [(esc(r.task, 120), str(r.count), seconds(r.p50_s), seconds(r.p99_s), seconds(r.max_s)) for r in tables.queues[:SHOWN_ROWS]]
        parts.append("<h3>Queued before they ran <i>longest first</i></h3>" + table(("Ray task", "count", "p50", "p99", "longest"), waits))
    return "".join(parts)


def _phase(row: PhaseRow) -> tuple[str, ...]:
    unfinished = f" ({row.unfinished} unfinished)" if row.unfinished else ""
    straggler = esc(row.straggler, 120) if row.ranks > 1 else "–"
    return (
        str(row.step),
        esc(row.phase),
        str(row.ranks),
        seconds(row.median_s),
        seconds(row.max_s) + unfinished,
        straggler,
        seconds(row.lost_rank_s),
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else seconds(value)


def _percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{100 * ratio:.0f} %"
