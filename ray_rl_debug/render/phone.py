"""A verdict for a telephone: a line for a subject or a notification, and a text of three short lines.

A lock screen shows some 40 characters of a subject and 150 of a text: what happens and who is the cause come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.model.report import Finding, Report, State, Who
from ray_rl_debug.render.writer import neutralise

HEADLINE_CHARS = 100
TEXT_CHARS = 320
"""Two short messages of 160."""
_NAMES = 2
_LABEL_CHARS = 32


def headline(report: Report, *, has_recovered: bool = False) -> str:
    """``HANG: actor/3, blocked in I/O; 12 wait``: one line of at most `HEADLINE_CHARS`."""
    best, state = best_finding(report), report.verdict.state
    if has_recovered:
        return "RUNS AGAIN" + (f": was {best.name}, {_names(best.who)}"[: HEADLINE_CHARS - 10] if best is not None else "")
    word = state.value.upper()
    if best is None:
        return clipped(f"{word}: {report.verdict.summary}", HEADLINE_CHARS)
    names = _names(best.who)
    waiting = f"; {len(best.victims)} wait" if best.victims and state is State.HANG else ""
    return clipped(f"{word}: {names}, {best.name}" if names else f"{word}: {best.name}", HEADLINE_CHARS - len(waiting)) + waiting


def phone_text(report: Report, *, job_id: str, age_s: float, has_recovered: bool = False) -> str:
    """The headline, the job with how sure and how long, and the first thing to do; at most `TEXT_CHARS` in all."""
    first = headline(report, has_recovered=has_recovered)
    if has_recovered:
        return f"{first}\njob {neutralise(job_id)[:48]}"
    best = best_finding(report)
    since = "" if report.verdict.state is State.FINISHED else f", no progress for {duration(age_s)}"
    lines = [first, f"job {neutralise(job_id)[:48]}, {report.verdict.certainty.value}{since}"]
    room = TEXT_CHARS - sum(len(line) + 1 for line in lines) - 2
    if best is not None and best.remedy:
        lines.append("> " + clipped(best.remedy[0], room))
    return "\n".join(lines)


def best_finding(report: Report) -> Finding | None:
    """The first cause at a root of the graph of waits."""
    return next((f for f in report.findings if f.root), None)


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3 h 5 min``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def clipped(text: str, room: int) -> str:
    """`text` on one line of at most `room` characters, cut at a word where there is one."""
    line = " ".join(neutralise(text.replace("\n", " ")).split())
    if len(line) <= room:
        return line
    kept = line[: room - 1]
    at_word = kept.rpartition(" ")[0]
    return (at_word if len(at_word) > room // 2 else kept).rstrip(" ,;:") + "…"


def _names(who: Sequence[Who]) -> str:
    labels = list(dict.fromkeys(clipped(w.label, _LABEL_CHARS) for w in who))
    more = f" +{len(labels) - _NAMES}" if len(labels) > _NAMES else ""
    return " ".join(labels[:_NAMES]) + more
