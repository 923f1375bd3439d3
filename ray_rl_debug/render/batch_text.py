"""A checked batch for a terminal: what is wrong, what is in it, what was not judged."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.render.rollout_text import finding, wrapped
from ray_rl_debug.render.writer import neutralise
from ray_rl_debug.rollouts.answers import State
from ray_rl_debug.rollouts.checks import Checked

_WORDS = {State.AGREE: ("OK", "32;1"), State.DIFFER: ("WRONG", "31;1"), State.UNKNOWN: ("UNKNOWN", "33;1")}


def render(found: Checked, *, width: int = 100, colour: bool, verbose: bool = False) -> Iterator[str]:
    """The lines of one file."""
    word, code = _WORDS[found.state]
    said = found.findings[0].summary if found.findings else "nothing wrong was found" if found.fields else "no tensors in it"
    size = "no trajectories" if found.size is None else f"{found.size} trajectories"
    lines = wrapped(f"{word}: {said}", width, "", "      ")
    yield (f"\x1b[{code}m{word}\x1b[0m" if colour else word) + lines[0][len(word) :]
    yield from lines[1:]
    yield neutralise(f"{found.file}: a batch of {found.kind}, {size}")
    for number, one in enumerate(found.findings):
        yield from finding(one, width, colour, verbose, is_said=number == 0)
    yield ""
    name_width = max((len(f.name) for f in found.fields), default=0)
    for field in found.fields:
        shape = "x".join(map(str, field.shape))
        values = "" if field.low is None else f"{field.low:.6g} to {field.high:.6g}"
        yield neutralise(f"  {field.name.ljust(name_width)}  {shape.rjust(12)}  {field.dtype.ljust(9)} {values}").rstrip()
    for text in (*found.notes, *(f"not checked: {n}" for n in found.not_checked)):
        yield from wrapped(text, width, "", "  ")
