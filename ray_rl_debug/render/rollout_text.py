"""A comparison of rollouts for a terminal: the verdict, why, how far apart, where the answers part."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ray_rl_debug.render.writer import neutralise
from ray_rl_debug.rollouts.answers import Found, State
from ray_rl_debug.rollouts.compare import Comparison, Ends
from ray_rl_debug.rollouts.differences import ALARM, NORMAL

_COLOURS = {State.AGREE: "32;1", State.DIFFER: "31;1", State.UNKNOWN: "33;1"}
_MAX_PARTINGS = 5
_MAX_EVIDENCE = 6


def render(found: Comparison, *, width: int = 100, colour: bool, verbose: bool = False) -> Iterator[str]:
    """The lines of a comparison; `verbose` shows every place where answers part, and all evidence."""
    verdict = found.verdict
    word = verdict.state.value.upper()
    sure = "" if verdict.state is State.UNKNOWN else f" ({verdict.certainty.value})"
    lines = wrapped(f"{word}{sure}: {verdict.summary}", width, "", "      ")
    yield (f"\x1b[{_COLOURS[verdict.state]}m{word}\x1b[0m" if colour else word) + lines[0][len(word) :]
    yield from lines[1:]
    yield from wrapped(f"{found.engine} against {found.reference}, {found.answers} answers", width, "")
    for number, one in enumerate(found.findings):
        yield from finding(one, width, colour, verbose, is_said=number == 0 and one.summary == verdict.summary)
    yield ""
    yield from _lines(table(found))
    yield from _partings(found, width, verbose)
    for gap in found.missing:
        yield from wrapped(f"not seen: {gap.what}: {gap.reason}", width, "", "  ")


def finding(one: Found, width: int, colour: bool, verbose: bool, *, is_said: bool) -> Iterator[str]:
    """The lines of one finding; its summary only if it was not said above."""
    yield ""
    head = f"{one.id} {one.name}"
    yield (f"\x1b[1m{head}\x1b[0m" if colour else head) + f"  {one.cause.value}, {one.certainty.value}" + ("" if one.is_trouble else ", no trouble")
    if not is_said:
        yield from wrapped(one.summary, width, "  ")
    for text in one.evidence if verbose else one.evidence[:_MAX_EVIDENCE]:
        yield from wrapped(text, width, "  - ", "    ")
    for text in one.remedy:
        yield from wrapped(text, width, "  do: ", "      ")


def table(found: Comparison) -> list[tuple[str, str, str]]:
    """What was measured: name, value, and what it is to be held against."""
    far = found.distance
    rows: list[tuple[str, str, str]] = []
    if found.identical is not None:
        agreed = "" if found.agreement is None else f"{found.agreement:.1%} of places have the same token"
        rows.append(("same answers", f"{found.identical} of {found.answers}", agreed))
    if found.best is not None:
        rows.append(("greedy tokens that are the reference's best", f"{found.best:.2%}", f"{found.ties} others are as good" if found.ties else ""))
    if far is not None:
        rows += [
            ("tokens with both log-probabilities", f"{far.tokens}", ""),
            ("rollout_probs_diff_mean", f"{far.probs_diff_mean:.3g}", f"normal < {NORMAL:g}, alarm > {ALARM:g} (verl's FAQ)"),
            ("rollout_probs_diff_max / std", f"{far.probs_diff_max:.3g} / {far.probs_diff_std:.3g}", ""),
            ("log-probability difference, mean", f"{far.logprob_diff_mean:.3g} nats", _noise(found)),
            ("  quantiles", " ".join(f"{v:.2g}" for _, v in far.logprob_diff_quantiles), _shares(far.logprob_diff_quantiles)),
            ("KL(engine | reference)", f"{far.kl:.2g} nats", "per token"),
        ]
        if far.pearson is not None:
            rows.append(("correlation of probabilities", f"{far.pearson:.5f}", ""))
    rows += [*_ends("engine", found.engine_ends), *_ends("reference", found.reference_ends)]
    if found.rewards_differ is not None:
        rows.append(("answers with another reward", f"{found.rewards_differ}", ""))
    return rows


def _lines(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    if not rows:
        return
    left, middle = (max(len(r[i]) for r in rows) for i in (0, 1))
    for name, value, note in rows:
        yield neutralise(f"  {name.ljust(left)}  {value.rjust(middle)}  {note}").rstrip()


def _noise(found: Comparison) -> str:
    return "" if found.noise is None else f"rounding alone makes {found.noise:.2g}"


def _shares(quantiles: Sequence[tuple[float, float]]) -> str:
    return " ".join("max" if q == 1 else f"{q:.0%}" for q, _ in quantiles)


def _ends(who: str, ends: Ends) -> list[tuple[str, str, str]]:
    if not ends.answers:
        return []
    said = ", ".join(f"{n} {reason}" for reason, n in sorted(ends.finish.items()))
    if ends.reward_mean is not None:
        said += f"; mean reward {ends.reward_mean:.3f}"
    return [(f"{who}: mean length", "" if ends.tokens_mean is None else f"{ends.tokens_mean:.1f}", said)]


def _partings(found: Comparison, width: int, verbose: bool) -> Iterator[str]:
    if not found.partings:
        return
    yield ""
    yield f"answers part ({len(found.partings)}):"
    shown = found.partings if verbose else found.partings[:_MAX_PARTINGS]
    for p in shown:
        yield from wrapped(f"prompt {p.key}, after {p.at} equal tokens, {p.context}: engine {p.engine}, reference {p.reference}", width, "  ", "    ")
    if len(shown) < len(found.partings):
        yield f"  and {len(found.partings) - len(shown)} more (-v)"


def wrapped(text: str, width: int, indent: str, hanging: str | None = None) -> list[str]:
    """`text`, neutralised, in lines of at most `width` columns where words allow."""
    return textwrap.wrap(
        neutralise(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [indent.rstrip()]
