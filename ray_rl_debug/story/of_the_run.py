"""Is it told that a failure is one of the run? An error that is only shown says what failed once, and not that a run hangs by it."""

from __future__ import annotations

from ray_rl_debug.model.log_story import LogStory, StoryEntry


def is_of_the_run(entry: StoryEntry, story: LogStory | None) -> bool:
    """Does the text tell when it was or whose it is, or how far the run came? Two tracebacks that a post compares have none of it."""
    is_placed = entry.time_s is not None or any(w.pid is not None or w.rank is not None or w.actor is not None for w in entry.who)
    return is_placed or (story is not None and (story.files > 1 or bool(story.progress)))
