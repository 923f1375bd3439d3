"""What the companion shows: in a terminal a few lines that renew themselves, in a log a line when something changes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

import msgspec

from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.watch.beats import Census
from ray_rl_debug.watch.decide import Progress

LOG_EVERY_S = 300.0
"""A sign of life in a log."""


class RoleLine(msgspec.Struct, frozen=True, kw_only=True):
    """One role of one job now."""

    role: str
    ranks: int
    working: int
    phase: str
    age_s: float


def role_lines(census: Census, job: str, progress: Progress, now: float) -> list[RoleLine]:
    """Roles with actors, the largest first."""
    by_role: dict[str, list[tuple[str | None, bool]]] = {}
    for seen in census.seen.values():
        if seen.role not in ("spare", "child") and census.job_of(seen) == job:
            by_role.setdefault(seen.role, []).append((seen.method, seen.works))
    lines = []
    for role, members in by_role.items():
        calls = sorted({m for m, _ in members if m})
        phase = " ".join(dict.fromkeys(phase_of_name(c) or c for c in calls[:3])) or ("runs" if role == "driver" else "idle")
        since = progress.roles.get(role)
        age = now - since if since is not None and calls else progress.age_s(now)
        lines.append(RoleLine(role=role, ranks=len(members), working=sum(w for _, w in members), phase=phase, age_s=age))
    return sorted(lines, key=lambda r: (-r.ranks, r.role))


def table(jobs: Mapping[str, tuple[Progress, Iterable[RoleLine]]], nodes: int, lost: int, gpus: str | None) -> Iterator[str]:
    """The quiet view: one line per role."""
    head = f"watching {len(jobs)} job{'s' if len(jobs) != 1 else ''} on {nodes} node{'s' if nodes != 1 else ''}"
    yield head + (f", {lost} silent" if lost else "") + (f"; GPUs {gpus}" if gpus else "")
    for job, (progress, roles) in jobs.items():
        step = progress.learned.step
        pace = progress.learned.steps.recent
        usual = f", {sorted(pace)[len(pace) // 2]:.1f} s a step" if pace else ""
        yield f"job {job}" + (f"  step {step}{usual}" if step is not None else "")
        for line in roles:
            ranks = f"{line.ranks} rank{'s' if line.ranks != 1 else ''}"
            yield f"  {line.role[:28]:28} {ranks:>10} {line.working:4} working  {line.phase[:24]:24} {line.age_s:6.0f} s"


class Live:
    """Writes to a terminal or a log."""

    def __init__(self, out: TextIO, *, is_terminal: bool, is_quiet: bool = False) -> None:
        self._out = out
        self._is_quiet = is_quiet
        self._is_terminal = is_terminal
        self._shown = 0
        self._logged_at = float("-inf")

    def say(self, text: str, now_s: float) -> None:
        """An event: stays visible in both."""
        self._wipe()
        stamp = time.strftime(
            "%H:%M:%S" if self._is_terminal else "%Y-%m-%dT%H:%M:%SZ", time.localtime(now_s) if self._is_terminal else time.gmtime(now_s)
        )
        self._write(f"{stamp} {_clean(text)}\n")

    def show(self, lines: Iterable[str], now: float, now_s: float) -> None:
        """The state: renewed in place, or in a log once in five minutes."""
        if self._is_quiet:
            return
        if self._is_terminal:
            rows = [_clean(line)[:150] for line in lines]
            self._wipe()
            self._write("".join(f"{row}\n" for row in rows))
            self._shown = len(rows)
        elif now - self._logged_at >= LOG_EVERY_S:
            self._logged_at = now
            for line in lines:
                self.say(line, now_s)

    def _wipe(self) -> None:
        if self._shown:
            self._write(f"\x1b[{self._shown}A\x1b[J")
            self._shown = 0

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):
            pass  # a log on a full disk, a terminal that was closed: the watch goes on


def _clean(text: str) -> str:
    """Without control characters: titles and log lines come from elsewhere."""
    return "".join(c if c.isprintable() else "?" for c in text)
