"""Do sequences grow, and does that explain that something takes longer?"""

from __future__ import annotations

import statistics

import msgspec

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import EDGE_NOW, NEAR, Drift, drift, short
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import rises_by


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Sequences that grow."""

    words: str
    """``seq_len 410 → 890 since step 120``"""
    factor: float = 1.0
    """Of their length, over the time in which something else rose."""

    def explains(self, rise: Drift) -> bool:
        """Attention takes time with the square of the length, everything else less."""
        return self.factor**2 >= rise.factor


def growing_length(bench: Bench, factor: float, beside: Drift | None = None) -> Growth | None:
    """How sequences grow, by `factor` at the least; None where they do not. The growth that is told is that of the time in which `beside` rose."""
    lengths = bench.one(Quantity.SEQ_LEN)
    if lengths is None or len(lengths.finite()[0]) < bench.count("min_trend"):
        return None
    found = drift(bench, lengths, up=True, is_large=rises_by(factor))
    if found is None:
        return None
    steps, values = lengths.finite()
    begin = next((i for i, step in enumerate(steps) if beside is not None and step >= beside.first_step), 0)
    before = statistics.median(values[max(0, begin - NEAR) : begin] or values[:EDGE_NOW])
    return Growth(words=f"{lengths.name} {found.text()}", factor=found.now / before if before > 0 else 1.0)


def beside_length(bench: Bench, rise: Drift) -> tuple[bool, str | None]:
    """Whether longer sequences may explain that times rise, and what to say of them; None where they do not grow."""
    growth = growing_length(bench, bench.threshold("seq_len_rise"), rise)
    if growth is None:
        return False, None
    if growth.explains(rise):
        return True, f"sequences grow as well: {growth.words}"
    return False, f"sequences grow too little to explain it, by a factor of {short(growth.factor)} meanwhile: {growth.words}"
