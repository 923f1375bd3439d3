"""Engines that hold requests and give no token, as a story tells them."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.model.log_story import StoryStill
from ray_rl_debug.model.snapshot.log_book import LogBook
from ray_rl_debug.story.people import person

LASTS_S = 300.0
"""Longer than an engine pauses for new weights, or compiles; then it is *likely* stuck, where requests wait behind those that run."""


def stills(books: Sequence[LogBook]) -> tuple[StoryStill, ...]:
    """All of them, who lasts longest first."""
    told = []
    for book in books:
        for one in book.stills:
            for_s = one.until_s - one.since_s if one.until_s is not None and one.since_s is not None else None
            told.append(
                StoryStill(
                    who=person(one.writer, book),
                    engine=one.engine,
                    running=one.running,
                    waiting=one.waiting,
                    lines=one.lines,
                    for_s=for_s,
                    file=book.file,
                    line=one.file_line,
                    is_likely=for_s is not None and for_s >= LASTS_S and one.waiting > 0,
                )
            )
    return tuple(sorted(told, key=lambda s: (-(s.for_s or 0.0), -s.lines, s.who.label)))
