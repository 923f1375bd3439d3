"""The companion's history as strips for the report's page: when the run moved and when it stood, how many of its processes
worked, and the GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ray_rl_debug.render.html.strips import Band, Strip
from ray_rl_debug.watch.history import Event

MAX_BANDS = 240
"""Rectangles a strip has room for; neighbours are joined beyond."""
STOOD = 4.0
"""Times the usual distance between two signs of progress that count as standing."""


def strips_of(events: Sequence[Event], *, until_s: float) -> tuple[Strip, ...]:
    """Strips up to the capture at `until_s` (Unix time); none where the companion has just begun to watch."""
    seen = [e for e in events if e.kind == "progress" and e.age_s is not None and e.time_s <= until_s]
    if len(seen) < 2:
        return ()
    return tuple(strip for strip in (_progress(seen, until_s), _working(seen, until_s), _gpus(seen, until_s)) if strip.bands)


def _progress(seen: Sequence[Event], until_s: float) -> Strip:
    """From each sign of progress to the next; the last one reaches to the capture."""
    signs: list[tuple[float, float | None]] = []
    for event in seen:
        at = event.time_s - (event.age_s or 0.0)
        if not signs or at > signs[-1][0] + 0.5:
            signs.append((at, event.numbers.get("step")))
    bounds = [*signs, (max(until_s, signs[-1][0]), None)]
    usual = median(b[0] - a[0] for a, b in pairwise(bounds))
    bands = []
    for (start, step), (end, _) in pairwise(bounds):
        stood = end - start > STOOD * max(usual, 1.0)
        at_step = f", step {step:.0f}" if step is not None else ""
        bands.append(Band(start, end, "stood" if stood else "moved", f"{'no progress' if stood else 'progress'} for {end - start:.0f} s{at_step}"))
    steps = [step for _, step in signs if step is not None]
    note = f"last progress {until_s - signs[-1][0]:.0f} s before the capture" + (f", at step {steps[-1]:.0f}" if steps else "")
    return Strip(label="progress of the run", bands=_joined(bands), note=note, is_bad=bands[-1].value == "stood")


def _working(seen: Sequence[Event], until_s: float) -> Strip:
    """Share of the processes that used the processor."""
    bands = []
    for event, end in _stretches([e for e in seen if e.numbers.get("processes") and "working" in e.numbers], until_s):
        count, working = event.numbers["processes"], event.numbers["working"]
        bands.append(Band(event.time_s, end, 100 * working / count, f"{working:.0f} of {count:.0f} processes work"))
    return Strip(label="processes that work", bands=tuple(bands), note="share of those that were watched")


def _gpus(seen: Sequence[Event], until_s: float) -> Strip:
    """Share of time in which the GPUs ran a kernel; a collective that waits is one, so the power is told as well."""
    bands = []
    for event, end in _stretches([e for e in seen if "gpu_utilization" in e.numbers], until_s):
        numbers = event.numbers
        watts = f", {numbers['gpu_power_watts']:.0f} W" if "gpu_power_watts" in numbers else ""
        idle = f", {numbers['gpus_idle']:.0f} of {numbers['gpus']:.0f} idle" if numbers.get("gpus_idle") and "gpus" in numbers else ""
        percent = 100 * numbers["gpu_utilization"]
        bands.append(Band(event.time_s, end, percent, f"{percent:.0f} % of the time with a kernel{watts}{idle}"))
    return Strip(label="GPUs of the cluster", bands=tuple(bands), note="a waiting collective counts as busy, but takes little power")


def _stretches(known: Sequence[Event], until_s: float) -> list[tuple[Event, float]]:
    """Events, and when the next one came; only as many as a strip has room for."""
    kept = known[:: max(1, -(-len(known) // MAX_BANDS))]
    ends = [*(e.time_s for e in kept[1:]), until_s] if kept else []
    return [(e, max(end, e.time_s)) for e, end in zip(kept, ends, strict=True)]


def _joined(bands: Sequence[Band]) -> tuple[Band, ...]:
    """Equal neighbours as one while there are too many."""
    if len(bands) <= MAX_BANDS:
        return tuple(bands)
    joined: list[Band] = []
    for band in bands:
        if joined and joined[-1].value == band.value:
            joined[-1] = Band(joined[-1].start_s, band.end_s, band.value, joined[-1].text)
        else:
            joined.append(band)
    return tuple(joined[-MAX_BANDS:])
