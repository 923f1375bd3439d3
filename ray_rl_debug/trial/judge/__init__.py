"""What a trial says: a table of checks over its facts, as the doctor's. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.doctor.answers import explain_check
from ray_rl_debug.model.health import Result, Status
from ray_rl_debug.model.trial import Facts, Trial
from ray_rl_debug.trial.judge import episodes, gate, leaks, loop, values
from ray_rl_debug.trial.judge.figures import figures, knee, rewards


class Check(NamedTuple):
    """One thing that a trial looks for."""

    id: str
    key: str
    name: str
    of: Callable[[Facts], Iterable[Result]]

    def explanation(self) -> str:
        """What ``rayrl-debug explain`` prints."""
        return explain_check(self.id, self.name, self.of)


CHECKS: tuple[Check, ...] = (
    Check("RRD250", "try.load", "an agent that cannot be called", episodes.load),
    Check("RRD252", "try.loop", "an agent that blocks its event loop", loop.blocked),
    Check("RRD251", "try.stuck", "an episode that never ends", episodes.stuck),
    Check("RRD253", "try.limit", "a limit inside the agent's process", loop.limits),
    Check("RRD254", "try.errors", "exceptions of an agent", episodes.errors),
    Check("RRD255", "try.return", "a return value that the framework refuses", episodes.returns),
    Check("RRD256", "try.leak", "an agent that leaks", leaks.leaks),
    Check("RRD257", "try.memory", "an agent whose memory grows", leaks.memory),
    Check("RRD258", "try.cancel", "an episode that cannot be cancelled", episodes.cancel),
    Check("RRD259", "try.reward", "rewards that teach nothing", values.distribution),
    Check("RRD260", "try.scale", "throughput against concurrency", loop.scale),
    Check("RRD261", "try.gate", "a batch that the staleness control does not let through", gate.staleness),
)
_ORDER = {Status.FAIL: 0, Status.WARN: 1, Status.UNKNOWN: 2, Status.OK: 3}


def judge(facts: Facts) -> Trial:
    """The document of a trial; failures first."""
    results = [msgspec.structs.replace(r, id=c.id, check=c.key, name=c.name) for c in CHECKS for r in _run(c, facts)]
    rows = figures(facts)
    measured = [r.status for r in results if r.status is not Status.UNKNOWN]
    state = min(measured, default=Status.UNKNOWN, key=_ORDER.__getitem__)
    if state in (Status.OK, Status.WARN) and not any(r.done for r in rows):
        state = Status.UNKNOWN
    return Trial(
        tool_version=__version__,
        state=state,
        facts=facts,
        results=tuple(sorted(results, key=lambda r: _ORDER[r.status])),
        figures=rows,
        rewards=rewards([e for e in facts.episodes if e.error is None]),
        knee=knee(rows),
    )


def _run(check: Check, facts: Facts) -> Iterator[Result]:
    try:
        yield from check.of(facts)
    except Exception as e:  # noqa: BLE001 a check that fails says so, and costs no other
        yield Result(status=Status.UNKNOWN, measured=f"this check failed: {type(e).__name__}: {str(e)[:160]}")
