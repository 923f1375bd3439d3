"""A timeline's tables for the terminal and as one JSON document (schema ``rayrl-debug/timeline/1``). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ray_rl_debug.model.timeline_tables import Tables
from ray_rl_debug.render.writer import neutralise
from ray_rl_debug.timeline.build import dropped_text
from ray_rl_debug.timeline.clocks import ONLY_NODE
from ray_rl_debug.timeline.compose import Timeline

SCHEMA = "rayrl-debug/timeline/1"
SHOWN_STEPS = 3
SHOWN_ROWS = 12


def document(timeline: Timeline) -> dict[str, Any]:
    """The JSON document; what is not known is null."""
    plan = timeline.plan
    clocks = {t.clock for t in plan.tracks}
    return {
        "schema": SCHEMA,
        "trace": {
            "path": str(timeline.path) if timeline.path is not None else None,
            "bytes": timeline.size_bytes,
            "tracks": len(plan.tracks),
            "slices": plan.slices,
            "arrows": plan.arrows,
            "counts": plan.counts,
            "instants": plan.instants,
            "dropped": plan.dropped,
        },
        "sources": list(plan.sources),
        "clocks": [
            {
                "clock": k,
                "aligned": a.is_aligned,
                "offset_s": a.offset_ns / 1e9,
                "bound_s": None if a.bound_ns is None else a.bound_ns / 1e9,
                "method": a.method,
            }
            for k, a in sorted(plan.alignments.items())
            if k in clocks
        ],
        "tables": msgspec.to_builtins(timeline.tables),
        "gaps": [msgspec.to_builtins(g) for g in timeline.gaps],
    }


def lines(timeline: Timeline, *, verbose: bool = False) -> Iterator[str]:
    """The tables as text."""
    tables = timeline.tables
    if tables.since_progress_s is not None:
        yield f"last progress  {_seconds(tables.since_progress_s)} before the run was last seen ({neutralise(tables.last_progress or '')})"
        yield ""
    yield from _phases(tables, verbose)
    yield from _table(
        "idle time of ranks" + ("" if any(r.gpu for r in tables.idle) else " (no GPU samples)"),
        ("rank", "window", "idle", "gpu", "samples", "bubble"),
        [
            (r.rank, _seconds(r.window_s), _percent(r.idle_ratio), r.gpu or "-", str(r.gpu_samples or "-"), _percent(r.bubble_ratio))
            for r in tables.idle
        ],
        verbose,
    )
    yield from _table(
        "rollout: how long one takes",
        ("what", "count", "p50", "p99", "tail", "unfinished"),
        [(r.name, str(r.count), _seconds(r.p50_s), _seconds(r.p99_s), _seconds(r.tail_s), str(r.unfinished or "-")) for r in tables.rollout],
        verbose,
    )
    yield from _table(
        "staleness of consumed samples, in weight versions",
        ("step", "mean", "max"),
        [(str(r.step), f"{r.mean:g}", f"{r.most:g}") for r in tables.staleness[-SHOWN_ROWS:]],
        verbose,
    )
    yield from _table(
        "queue time of Ray tasks",
        ("task", "count", "p50", "p99", "max"),
        [(r.task, str(r.count), _seconds(r.p50_s), _seconds(r.p99_s), _seconds(r.max_s)) for r in tables.queues],
        verbose,
    )
    yield from _clocks(timeline)
    plan = timeline.plan
    for gap in timeline.gaps if verbose else timeline.gaps[:SHOWN_ROWS]:
        yield neutralise(f"not seen  {gap.where}: {gap.what}: {gap.reason}" + (f" ({gap.remedy})" if gap.remedy else ""))
    if not verbose and len(timeline.gaps) > SHOWN_ROWS:
        yield f"          and {len(timeline.gaps) - SHOWN_ROWS} more (-v shows all)"
    if timeline.path is not None:
        size = f"{(timeline.size_bytes or 0) / 1e6:.1f} MB"
        held = f"{plan.slices:,} slices, {plan.arrows:,} arrows, {plan.counts:,} counter samples, {len(plan.tracks):,} tracks"
        yield f"trace     {timeline.path}  {size}, {held}"
        if plan.dropped:
            yield f"          {dropped_text(plan)}"


def _phases(tables: Tables, verbose: bool) -> Iterator[str]:
    steps = sorted({r.step for r in tables.phases})
    shown = steps if verbose else steps[-SHOWN_STEPS:]
    title = "phases by step" + (f", the last {len(shown)} of {len(steps)} steps" if len(shown) < len(steps) else "")
    if tables.steps_left_out:
        title += f"; {tables.steps_left_out} older steps are not kept"
    rows = [
        (
            str(r.step),
            r.phase,
            str(r.ranks),
            _seconds(r.median_s),
            _seconds(r.max_s) + ("+" if r.unfinished else ""),
            r.straggler if r.ranks > 1 else "-",
            _seconds(r.lost_rank_s),
            f"{r.unfinished} unfinished" if r.unfinished else "",
        )
        for r in tables.phases
        if r.step in shown
    ]
    yield from _table(title, ("step", "phase", "ranks", "median", "max", "straggler", "lost rank-s", ""), rows, True)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], verbose: bool) -> Iterator[str]:
    if not rows:
        return
    shown = rows if verbose else rows[:SHOWN_ROWS]
    cleaned = [[neutralise(c)[:48] for c in row] for row in shown]
    widths = [max(len(r[i]) for r in [list(head), *cleaned]) for i in range(len(head))]
    numeric = [all(_is_figure(r[i]) for r in cleaned) for i in range(len(head))]
    yield title
    for row in [list(head), *cleaned]:
        cells = [c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, numeric, strict=True)]
        yield ("  " + "  ".join(cells)).rstrip()
    if len(shown) < len(rows):
        yield f"  and {len(rows) - len(shown)} more (-v shows all)"
    yield ""


def _clocks(timeline: Timeline) -> Iterator[str]:
    used = {t.clock for t in timeline.plan.tracks}
    shown = [a for k, a in sorted(timeline.plan.alignments.items()) if k in used and a.method != ONLY_NODE]
    if shown:
        yield "clocks"
        for a in shown[:SHOWN_ROWS]:
            yield f"  {neutralise(a.clock)}: {neutralise(a.describe())}"
        if len(shown) > SHOWN_ROWS:
            yield f"  and {len(shown) - SHOWN_ROWS} more (--json lists all)"
        yield ""


def _is_figure(text: str) -> bool:
    return text[:1].isdigit() or text in ("-", "")


def _seconds(s: float | None) -> str:
    if s is None:
        return "-"
    if s >= 100:
        return f"{s:.0f} s"
    return f"{s:.1f} s" if s >= 10 else f"{s:.3f} s"


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.0f} %"
