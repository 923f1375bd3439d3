"""Words of who waits for whom: *they wait for each other*, *A holds the mutex and waits for the GIL, B holds the GIL and waits for the mutex*.

It is the word of whoever wrote the text, beside stacks that do not show for whom somebody waits.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import Said
from ray_rl_debug.formats.pasted.partial import Partial

_MAX_CHARS = 2_000
_MOST = 4
"""Processes of one text of which such a sentence may speak."""
_EACH_OTHER = re.compile(
    r"\b(?:wait(?:s|ing)?|blocked|blocking)\b[^.;`]{0,40} (?:for|on)?\s?[^.;`]{0,30}\b(?:each other|one another)\b"
    r"|\b(?:each|both)(?: of (?:them|these))?(?: sides?| ones?)? (?:is |are )?wait(?:s|ing)?\b[^.;]{0,60}\b(?:of|from|for|on) (?:the )?other\b",
    re.IGNORECASE,
)
_INVERSION = re.compile(
    r"\block(?:ing)?[- ](?:order(?:ing)?[- ])?inversion\b|\bABBA\b|\b(?:opposite|reversed?) (?:acquisition |lock(?:ing)? )?orders?\b[^.;]{0,40}\block"
    r"|\block(?:s|ing)?\b[^.;]{0,40}\b(?:in )?(?:the )?(?:opposite|reversed?) orders?\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(r"\b(?:if|would|could|might|may|maybe|perhaps|possibly|not|no|fix(?:es|ed)?|never|suspect|wonder)\b|n't\b|\?", re.IGNORECASE)
_NAME = r"[`*]{0,3}(?:the |its |a )?[`*]{0,3}(?:self\.)?(?P<%s>[A-Za-z_]\w{1,40}(?:\.\w{1,40})?)"
_HELD = re.compile(
    r"\b(?:holds?|holding|has|having|owns?|owning|keeps?|took|taken) "
    + _NAME % "held"
    + r"[^.;:]{0,80}?\b(?:waits?|waiting|blocks?|blocked|wants?|needs?|tries) (?:for |on |to (?:get|take|acquire) )?"
    + _NAME % "wanted",
    re.IGNORECASE,
)


def of_line(text: str) -> Said | None:
    """What a line says of processes or threads that wait for each other."""
    if len(text) > _MAX_CHARS or not ("wait" in text or "lock" in text):
        return None
    pairs = {(found["held"].lower(), found["wanted"].lower()) for found in _HELD.finditer(text)}
    if any((wanted, held) in pairs and held != wanted for held, wanted in pairs):
        return Said(kind="locks", text=text.strip()[:300])
    for sentence in re.split(r"(?<=[.;!?])\s", text):
        if _INVERSION.search(sentence) and not _DOUBT.search(sentence):
            return Said(kind="locks", text=sentence.strip(" *#-")[:300])
        if _EACH_OTHER.search(sentence) and not _DOUBT.search(sentence):
            return Said(kind="mutual", text=sentence.strip(" *#-")[:300])
    return None


def add(told: list[tuple[int, Said]], dumps: list[Partial]) -> None:
    """The remarks, to the few processes that a text shows: of locks to the first one, whose threads are meant."""
    shown = [d for d in dumps if any(t.frames for t in d.threads)]
    for number, one in told if 0 < len(shown) <= _MOST else ():
        for dump in shown[:1] if one.kind == "locks" else shown:
            if not any(s.kind == one.kind for _, s in dump.said):
                dump.said.append((number, one))
