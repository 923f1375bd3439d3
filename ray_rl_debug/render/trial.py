"""What a trial of an agent found, for a terminal: troubles first, then the table of stages, then what the episodes waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.model.health import Examination, Status
from ray_rl_debug.model.trial import Facts, Figures, Place, Stage, Trial
from ray_rl_debug.render import checkup
from ray_rl_debug.render.writer import neutralise

MAX_CHAIN = 8
MAX_PLACES = 3
_WORDS = {
    "ready": "could go on, and waits for its turn on the event loop",
    "running": "runs",
    "thread": "in its synchronous call, in a thread of its own",
}


def render(trial: Trial, *, width: int = 100, colour: bool, verbose: bool = False) -> Iterator[str]:
    """The lines of a trial; `verbose` gives whole chains, all that is good, and the agent's last output."""
    facts = trial.facts
    yield from checkup.render(Examination(state=trial.state, results=trial.results), width=width, colour=colour, verbose=verbose, what=_what(facts))
    if trial.figures:
        yield ""
        yield from _table(trial.figures)
        if trial.knee is not None:
            yield f"knee: from concurrency {trial.knee} on more of it brings no more throughput"
    places = facts.stuck or max(facts.stages, key=lambda s: s.concurrency, default=Stage(number=0, name="", concurrency=0, episodes=0)).places
    if places:
        yield ""
        yield "where the unfinished episodes stood" + ("" if facts.stuck else ", of the largest stage, over all looks")
        yield from _places(places, width, verbose)
    if facts.output and (verbose or facts.unusable or facts.ended):
        yield ""
        yield "last output of the agent"
        yield from (neutralise(f"  {line}")[: 4 * width] for line in facts.output[-(40 if verbose else 6) :])
    for gap in facts.gaps:
        yield neutralise(f"not seen: {gap}")
    yield ""
    yield neutralise(_next(trial))


def _what(facts: Facts) -> str:
    by = "the built-in stand-in" if facts.is_stand_in else ", ".join(facts.endpoints)
    cut = " (interrupted)" if facts.is_interrupted else " (the deadline came first)" if facts.is_cut else ""
    return f" for {facts.target}, {len(facts.episodes)} episodes against {by}{cut}"


def _table(rows: Sequence[Figures]) -> Iterator[str]:
    head = ("stage", "at once", "episodes", "ended", "raised", "per s", "p50 s", "p90 s", "p99 s", "engine had")
    table = [head, *(_row(r) for r in rows)]
    if all(r.engine_peak is None for r in rows):
        table = [row[:-1] for row in table]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        yield "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))


def _row(row: Figures) -> tuple[str, ...]:
    numbers = (row.per_s, row.p50_s, row.p90_s, row.p99_s)
    peak = "" if row.engine_peak is None else str(row.engine_peak)
    counts = (str(row.concurrency), str(row.episodes), str(row.done), str(row.failed))
    return (row.name, *counts, *("-" if n is None else f"{n:.3g}" for n in numbers), peak)


def _places(places: Sequence[Place], width: int, verbose: bool) -> Iterator[str]:
    total = sum(p.count for p in places)
    for place in places[: None if verbose else MAX_PLACES]:
        what = _WORDS.get(place.kind) or f"{place.where}: {place.kind}{f' ({place.what})' if place.what else ''}"
        yield neutralise(f"  {place.count / total:4.0%}  {what}")[: 2 * width]
        chain = place.chain if verbose else place.chain[-MAX_CHAIN:]
        yield from (neutralise(f"          {frame}")[: 2 * width] for frame in reversed(chain) if frame != place.where)


def _next(trial: Trial) -> str:
    worst = next((r for r in trial.results if r.status in (Status.FAIL, Status.WARN)), None)
    if worst is not None:
        return f"next: rayrl-debug explain {worst.id}"
    if trial.facts.is_stand_in:
        return "next: the same against your engine: --endpoint http://HOST:PORT/v1 --batch-size ... --group-size ..."
    return "next: start the training run, and beside it: rayrl-debug watch"
