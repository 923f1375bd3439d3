"""A look at the job, and a longer one where the first says itself that it was too short: one command should end with one answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.report import Report, State
from ray_rl_debug.model.snapshot import Snapshot

if TYPE_CHECKING:
    from ray_rl_debug.collect.options import CollectOptions


def look(
    capture: Callable[[CollectOptions], Snapshot],
    options: CollectOptions,
    *,
    once: bool,
    keep: Callable[[Snapshot], None],
    show: Callable[..., None],
    stop: threading.Event,
) -> tuple[Snapshot, Report]:
    """What was seen, and what it means.

    Args:
        capture: Takes a snapshot.
        once: Leave the second look out.
        keep: Is given each snapshot before it is judged.
        show: Says what goes on.
        stop: Set when somebody wants to end it: a second look that was cut short counts for nothing.
    """
    from ray_rl_debug.diagnosis.diagnose import diagnose
    from ray_rl_debug.diagnosis.open_questions import LONGER_INTERVAL_S, LONGER_S, LONGER_SAMPLES

    taken = capture(options)
    keep(taken)
    report = diagnose(taken)
    longer = msgspec.structs.replace(options, samples=LONGER_SAMPLES, interval_s=LONGER_INTERVAL_S, native_at_device=True)
    if once or stop.is_set() or (options.samples - 1) * options.interval_s >= LONGER_S or not is_open(report):
        return taken, report
    show(f"not sure yet ({report.verdict.state.value}); looking again for {LONGER_S:.0f} s (Ctrl-C keeps the first look, --once leaves this out)")
    try:
        again = capture(longer)
    except (RayRlDebugError, OSError) as e:
        show(f"the second look failed: {e}; this is the first")
        return taken, report
    if stop.is_set():
        return taken, report
    keep(again)
    return again, diagnose(again)


def is_open(report: Report) -> bool:
    """Would a longer look tell more?"""
    from ray_rl_debug.diagnosis.open_questions import LONGER

    return report.verdict.next == LONGER and report.verdict.state in (State.UNKNOWN, State.SLOW)
