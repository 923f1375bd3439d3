"""Modules that a thread ran to their end: Python runs the body of each only once, so who left one came further, however alike its stacks are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ray_rl_debug.analyze.main_activity import Looks, SeenThread
from ray_rl_debug.model.snapshot import Frame

_BODY = "<module>"
_IMPORTS = "<frozen importlib._bootstrap>"


def ran_module(looks: Looks, thread: SeenThread) -> bool:
    """Was the body of an imported module on its stack at one look, and no longer at a later one?"""
    met = [stack.once(_imported) for stack in looks.stacks_of(thread)]
    return any(earlier - later for earlier, later in itertools.pairwise(met))


def _imported(frames: Sequence[Frame]) -> frozenset[str]:
    """The files whose body it runs because somebody imports them."""
    found, is_imported = set(), False
    for frame in reversed(frames):  # from the outermost one: the program itself is imported by nobody
        if frame.function == _BODY and is_imported:
            found.add(frame.file)
        is_imported = is_imported or frame.file == _IMPORTS
    return frozenset(found)
