"""Do sequences grow, and does that explain that something takes longer, or that fewer tokens come in a second?"""

from __future__ import annotations

import statistics

import msgspec

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import EDGE_NOW, NEAR, Drift, drift, short
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import rises_by
from ray_rl_debug.model.report import Certainty


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Sequences that grow."""

    words: str
    """``seq_len 410 → 890 since step 120``"""
    factor: float = 1.0
    """Of their length, over the time in which something else rose."""
    is_gradual: bool = False

    def explains(self, rise: Drift) -> bool:
        """Attention takes time with the square of the length, everything else less: a token takes longer by the growth of the length at most."""
        return self.factor**2 >= rise.factor if rise.factor > 1 else self.factor * rise.factor >= 1

    def is_course_of(self, rise: Drift) -> bool:
        """Do both go on step by step, as answers of a run that learns do, and does the one explain the other?"""
        return self.is_gradual and rise.is_gradual and self.explains(rise)


def growing_length(bench: Bench, factor: float, beside: Drift | None = None) -> Growth | None:
    """How sequences grow, by `factor` at the least; None where they do not. The growth that is told is that of the time in which `beside` rose."""
    lengths = bench.one(Quantity.SEQ_LEN)
    if lengths is None or len(lengths.finite()[0]) < bench.count("min_trend"):
        return None
    found = bench.once(f"growth of sequences by {factor}", lambda: drift(bench, lengths, up=True, is_large=rises_by(factor)))
    if found is None:
        return None
    steps, values = lengths.finite()
    begin = next((i for i, step in enumerate(steps) if beside is not None and step >= beside.first_step), 0)
    before = statistics.median(values[max(0, begin - NEAR) : begin] or values[:EDGE_NOW])
    return Growth(words=f"{lengths.name} {found.text()}", factor=found.now / before if before > 0 else 1.0, is_gradual=found.is_gradual)


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What longer sequences say of times that rise, or of a throughput that falls."""

    is_course: bool = False
    """Both go on step by step, and the one explains the other: so does a run whose answers become longer."""
    certainty: Certainty = Certainty.LIKELY
    """*possible* where they may explain it."""
    words: str | None = None
    """None where they do not grow."""


def beside_length(bench: Bench, rise: Drift) -> Beside:
    """What the length of sequences says of a drift."""
    least = min(bench.threshold("step_time_rise"), bench.threshold("phase_time_rise")) ** 0.5  # less explains no rise that is told
    growth = growing_length(bench, min(least, bench.threshold("seq_len_rise")), rise)
    if growth is None:
        return Beside()
    if growth.explains(rise):
        words = f"sequences grow as well: {growth.words}"
        return Beside(is_course=growth.is_course_of(rise), certainty=Certainty.POSSIBLE, words=words)
    return Beside(words=f"sequences grow too little to explain it, by a factor of {short(growth.factor)} meanwhile: {growth.words}")
