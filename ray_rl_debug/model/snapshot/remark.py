"""What people and tools say about processes beside their stacks."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class Remark(Fact, frozen=True, kw_only=True):
    """One line of a file that tells something of processes without showing their stacks. It is somebody's word, not a measurement."""

    kind: str
    """``same``: others are at the place of this process (`count` of them altogether, or `ranks`).
    ``except``: all others are at the place of this process but `ranks`, of which nothing is shown.
    ``unread``: a tool could not read the stacks of this process; `text` is what it said.
    ``failed``: this process ended, or reported, an error; `text` is its last line, such as ``RuntimeError: ...``.
    ``missing``: a collective lacks `ranks` of the group named in `text` (``torchfrtrace``), or the part or machine that `name` tells.
    ``mutual``: this process and the other one shown wait for each other, as `text` says.
    ``locks``: threads of it each hold a lock for which another one waits, as `text` says.
    ``apart``: the samples were taken `apart_s` after each other."""
    text: str
    file: str
    line: int
    """Number in the file, from 1."""
    count: int | None = None
    """How many processes it speaks of, this one included. None: it names ranks, or says "all"."""
    ranks: tuple[int, ...] = ()
    name: str | None = None
    apart_s: float | None = None
