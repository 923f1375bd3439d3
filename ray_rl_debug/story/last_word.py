"""An error at its level that is the last record of its log: of a program that wrote notes before, and none since, it may be what ended it."""

from __future__ import annotations

import re

from ray_rl_debug.story.candidates import Candidate
from ray_rl_debug.story.doubts import is_doubtful

_OF_A_PART = re.compile(
    r"(?i:\b(?:engines?|server|(?!workers? \d{1,6}:)workers?|scheduler|router|ranks?|process(?: group)?|raylet|gcs|actors?|driver"
    r"|launcher|replica|trainer|executor|learner|(?:main|event) loop|runtime env\w*|placement group|communicator|nccl|weights)\b)"
)
"""Parts that a run lives from."""
_FAILS = re.compile(
    r"(?i:\b(?:not|never|didn't|doesn't) (?:answer|respond|come|start|join|finish|return|arrive|register)|\b(?:unresponsive|unreachable|unhealthy)\b"
    r"|\bfail(?:ed|ure|s)?\b|\bcrashed\b|\b(?:died|ended|exited|finished) unexpectedly\b"
    r"|\b(?:timed out|time-?out|lost|stuck|hung|hangs)\b"
    r"|\b(?:could not|couldn't|cannot|can't|unable to) (?:start|reach|connect|join|create|load|save|write|send|receive|open|allocate|continue)\b)"
)
"""What such a part does that fails."""
_OF_A_HELPER = re.compile(
    r"(?i:\b(?:sandbox|metrics|tools?|search|browser|judge|grader|dashboard|tracker|tensorboard|profiler|exporter|proxy|viewer|notebook|mock|demo|tests?)\b)"
)
"""What a run goes on without, or asks again."""
_ADDS = re.compile(r"[,;] ")
"""Behind it, more often than not, stands what was done then."""


def is_last_word(one: Candidate) -> bool:
    """Did a program that wrote notes write no more behind it? Words of the line by which the run went on leave doubt.

    A sentence alone may be of anything: it has to say that a part of the run fails, and nothing else.
    """
    event = one.event
    known = one.signature if one.signature is not None and one.signature.effect != "info" else None
    if not event.is_last_word or is_doubtful(event, known):
        return False
    if event.kind == "traceback" or known is not None:
        return True
    if _ADDS.search(event.text) or _OF_A_HELPER.search(event.text):
        return False
    return _OF_A_PART.search(event.text) is not None and _FAILS.search(event.text) is not None
