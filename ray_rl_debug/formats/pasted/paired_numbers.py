"""Lists of processes with two numbers each, or some: ``pid 11 (rank 0), 12, 13``, ``rank 0 (pid 11), 1 (12)``, ``11 (rank 0), 12 (rank 1)``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import PIDS

_BETWEEN = r"(?: ?[,/;] ?(?:and )?| and )"
_OF_RANKS = re.compile(
    r"\branks? ?#?\d{1,6} ?\((?:pid[ =:#]{0,2})?\d{2,9}\)(?:" + _BETWEEN + r"(?:rank ?#?)?\d{1,6} ?\((?:pid[ =:#]{0,2})?\d{2,9}\)){1,64}(?![\w.]*\w)",
    re.IGNORECASE,
)
_OF_PIDS = re.compile(
    r"\b(?:pids?[ =:#]{0,2})?\d{1,9} ?\(rank ?#?\d{1,6}\)(?:" + _BETWEEN + r"(?:pid[ =:#]{0,2})?\d{1,9}(?: ?\(rank ?#?\d{1,6}\))?){1,64}(?![\w.]*\w)",
    re.IGNORECASE,
)
_RANK_FIRST = re.compile(r"(\d{1,6}) ?\((?:pid[ =:#]{0,2})?\d{2,9}\)", re.IGNORECASE)
_PID_FIRST = re.compile(r"(?P<pid>\d{1,9})(?: ?\(rank ?#?(?P<rank>\d{1,6})\))?", re.IGNORECASE)


def read(text: str) -> tuple[tuple[int, ...], str | None] | None:
    """The ranks of the list, or its process ids with the label `PIDS`; None for a line without such a list.

    Of numbers alone behind ``pid 11 (rank 0)`` those that are all above 11 are process ids; where they are not, nobody can tell.
    """
    if "(" not in text:
        return None
    if (of_ranks := _OF_RANKS.search(text)) is not None:
        return tuple(int(rank) for rank in _RANK_FIRST.findall(of_ranks[0])), None
    of_pids = _OF_PIDS.search(text)
    if of_pids is None:
        return None
    pairs = [(int(one["pid"]), one["rank"]) for one in _PID_FIRST.finditer(of_pids[0])]
    if all(rank is not None for _, rank in pairs):
        return tuple(int(rank) for _, rank in pairs), None
    pids = tuple(pid for pid, _ in pairs)
    return (pids, PIDS) if all(pid > pids[0] for pid in pids[1:]) else None
