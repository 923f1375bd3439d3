"""What was going on over time: calls that still run, the samples of the capture, the GPUs; and the history a companion kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from ray_rl_debug.analyze.phase import phase_of_name, phase_of_stack
from ray_rl_debug.model.report import PHASES, Who
from ray_rl_debug.model.snapshot import RayTask, Snapshot
from ray_rl_debug.render.html import gpus
from ray_rl_debug.render.html.book import Book
from ray_rl_debug.render.html.text import clip, count, esc, is_own, name, people, seconds
from ray_rl_debug.render.samples import frames_of, line_of, telling_samples

KINDS = (*PHASES, "queued", "moved", "stood")
"""What a stretch of time can be; `queued` is a call that had not begun, `moved` and `stood` are what a companion saw."""
MAX_LANES = 24
_NARROWEST = 12.0
"""Of 1,000 units: a short call beside a long one is still seen."""


class Band(msgspec.Struct, frozen=True):
    """One stretch of a strip."""

    start_s: float
    end_s: float
    value: str | float
    """A phase, or a percentage."""
    text: str = ""


class Strip(msgspec.Struct, frozen=True):
    """One lane over time. What a companion remembers of a role or a GPU is one too; times are Unix seconds."""

    label: str
    bands: tuple[Band, ...]
    note: str = ""
    is_bad: bool = False


def draw(book: Book, history: Sequence[Strip] = ()) -> str:
    """All strips that there is something for."""
    parts = []
    if history:
        parts.append("<h3>before the capture</h3>" + lanes(history))
    snapshot = book.snapshot
    if snapshot is None:
        parts.append("<p class=none>Only the report was given; times and GPUs are in the snapshot.</p>")
        return "".join(parts)
    calls = _calls(book, snapshot)
    if calls:
        parts.append("<h3>calls that still run <i>until the capture</i></h3>" + lanes(calls))
    looks = _looks(book, snapshot)
    if looks:
        parts.append("<h3>samples of the capture <i>one stretch each; a gap is where the stack changed</i></h3>" + lanes(looks))
    parts.append(gpus.draw(snapshot))
    return "".join(parts)


def lanes(strips: Sequence[Strip]) -> str:
    """Strips over one common axis of time, with what the colours mean."""
    shown = strips[:MAX_LANES]
    start = min(b.start_s for s in shown for b in s.bands)
    end = max(b.end_s for s in shown for b in s.bands)
    length = max(end - start, 1e-6)
    used = [p for p in KINDS if any(b.value == p for s in shown for b in s.bands)]
    rows = "".join(_lane(s, start, length) for s in shown)
    more = f"<p class=note>{count(len(strips) - len(shown), 'more lane')} not drawn.</p>" if len(strips) > len(shown) else ""
    legend = "".join(f'<li><span class="swatch ph-{p}"></span> {p}</li>' for p in used)
    ticks = "".join(f"<span>{'now' if i == 4 else '−' + _tick(length * (4 - i) / 4, length)}</span>" for i in range(5))
    return f'<ul class=legend>{legend}</ul><div class=lanes>{rows}<div class="lane axis"><div></div><div class=ticks>{ticks}</div></div></div>{more}'


def _tick(value: float, length: float) -> str:
    return f"{value:.1f} s" if 2 <= length < 60 else seconds(value)


def _lane(strip: Strip, start: float, length: float) -> str:
    bars = []
    for band in strip.bands:
        x = 1000 * (band.start_s - start) / length
        width = max(1000 * (band.end_s - band.start_s) / length, _NARROWEST)
        x = max(0.0, min(x, 1000 - width))
        tip = f"<title>{esc(band.text, 300)}</title>" if band.text else ""
        if isinstance(band.value, str):
            kind = band.value if band.value in KINDS else "unknown"
            bars.append(f'<rect class="ph-{kind}" x="{x:.1f}" y="0" width="{width:.1f}" height="20">{tip}</rect>')
        else:
            height = max(1.0, 20 * min(100.0, max(0.0, band.value)) / 100)
            bars.append(f'<rect class="level" x="{x:.1f}" y="{20 - height:.1f}" width="{width:.1f}" height="{height:.1f}">{tip}</rect>')
    drawing = f'<svg viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">{"".join(bars)}</svg>'
    words = f"<div class=words>{name(strip.label, 120)} <i>{esc(strip.note, 200)}</i></div>"
    return f'<div class="lane{" bad" if strip.is_bad else ""}">{words}<div class=bar>{drawing}</div></div>'


def _calls(book: Book, snapshot: Snapshot) -> list[Strip]:
    """Ray calls that have begun and not ended, equal ones together, the accused first."""
    if snapshot.ray is None:
        return []
    nodes = {n.node_id: n.name for n in snapshot.nodes if n.node_id}
    groups: dict[tuple[str, str | None, bool], list[tuple[RayTask, Who | None]]] = defaultdict(list)
    for task in snapshot.ray.tasks:
        if task.state_times_s and task.state != "FAILED" and (task.name or task.pid):
            node = nodes.get(task.node_id or "")
            position = book.index.get((node, task.pid)) if task.pid is not None else None
            who = book.report.processes[position].who if position is not None else None
            groups[(task.name, who.world if who else None, who is not None and book.is_accused(who))].append((task, who))
    longest = {h.name: h.longest_s for h in snapshot.ray.history}
    strips = []
    for (title, _, bad), members in groups.items():
        bands = _bands([t for t, _ in members], snapshot.taken_time_s)
        if not bands:
            continue
        folk = people(w for _, w in members if w is not None)
        usual = f"; the longest so far took {seconds(longest[title])}" if title in longest else ""
        age = seconds(max(0.0, snapshot.taken_time_s - bands[0].start_s))
        label = f"{title} ×{len(members)}" if len(members) > 1 else title
        strips.append(Strip(label=label, bands=bands, note=f"{clip(folk, 90)}{': ' if folk else ''}for {age}{usual}", is_bad=bad))
    return sorted(strips, key=lambda s: (not s.is_bad, s.bands[0].start_s))


def _bands(tasks: Sequence[RayTask], now: float) -> tuple[Band, ...]:
    """From the earliest submission to now: first waiting to run, then running."""
    begun = [t.state_times_s["RUNNING"] for t in tasks if "RUNNING" in t.state_times_s]
    asked = [min(t.state_times_s.values()) for t in tasks]
    first, run = min(asked), min(begun, default=now)
    found = []
    if run - first > 0.05 * max(now - first, 1e-6):
        found.append(Band(first, max(run, first), "queued", f"waited {seconds(run - first)} before it ran"))
    if begun:
        phase = phase_of_name(tasks[0].name) or "unknown"
        found.append(Band(run, max(now, run), phase, f"{tasks[0].name} runs for {seconds(max(0.0, now - run))}, phase {phase}"))
    return tuple(found)


def _looks(book: Book, snapshot: Snapshot) -> list[Strip]:
    """One lane for each group of processes that showed the same stacks in the same order."""
    groups: dict[tuple[tuple[str, ...], ...], list[Who]] = defaultdict(list)
    times: dict[tuple[tuple[str, ...], ...], tuple[float, ...]] = {}
    phases: dict[tuple[tuple[str, ...], ...], str] = {}
    for process in book.report.processes:
        if book.group(process) in ("idle", "blind") and not book.is_accused(process.who):
            continue
        raw = book.raw.get((process.who.node, process.who.pid))
        if raw is None:
            continue
        seen = telling_samples(*raw, process)
        key = tuple(tuple(line_of(f) for f in frames_of(raw[0], t.stack)) for _, t in seen)
        if seen:
            groups[key].append(process.who)
            times.setdefault(key, tuple(s.at_s for s, _ in seen))
            phases.setdefault(key, process.phase or "unknown")
    strips = []
    for key, members in groups.items():
        bad = any(book.is_accused(w) for w in members)
        changes = sum(1 for a, b in pairwise(key) if a != b)
        note = f"stack changed {changes} of {len(key) - 1} times" if changes else f"the same stack in {count(len(key), 'sample')}"
        label = people(members) + (f" ({len(members)})" if len(members) > 1 else "")
        strips.append(Strip(label=label, bands=tuple(_stretches(key, times[key], phases[key])), note=note, is_bad=bad))
    return sorted(strips, key=lambda s: not s.is_bad)


def _stretches(stacks: Sequence[Sequence[str]], times: Sequence[float], usual: str) -> Iterable[Band]:
    step = max((times[-1] - times[0]) / max(1, len(times) - 1), 0.1)
    for position, (lines, at) in enumerate(zip(stacks, times, strict=True)):
        end = times[position + 1] if position + 1 < len(times) else at + step
        changes = position + 1 < len(stacks) and stacks[position + 1] != lines
        phase = phase_of_stack(line.split(" (")[0] for line in lines if is_own(line)) or usual
        yield Band(at, max(at, end - (0.12 * step if changes else 0)), phase, f"{at:.1f} s: {' ‹ '.join(lines[:4])}")
