"""Is what looks like a failure only quoted: a prompt, words of another program, or a value that is printed?"""

from __future__ import annotations

import re

from ray_rl_debug.logs.json_lines import plain_behind_marks
from ray_rl_debug.logs.tracebacks import START
from ray_rl_debug.logs.values import holds_as_data, is_printed_value
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import HOLDS_A_SAMPLE, SAID_OF_ANOTHER
from ray_rl_debug.signatures.match import Hit, Matcher

_QUOTED_START = re.compile(rb"[:=,(\[{] ?b?[\"'](?:\\\\n|\\n)*" + re.escape(START.encode()))
"""What a program quotes of another's output, as a value: ``"stderr": "Traceback``."""


def is_in_prompt(hit: Hit) -> bool:
    found = HOLDS_A_SAMPLE.search(hit.text)
    return found is not None and found.end() <= hit.at


def is_quoted(text: str, matcher: Matcher) -> bool:
    """Does a sentence only quote what it matches?"""
    plain, quotes = SAID_OF_ANOTHER.sub(" ", text), "\n".join(found[0] for found in SAID_OF_ANOTHER.finditer(text))
    return bool(quotes) and not _knows(plain, matcher) and _knows(quotes, matcher)


def _knows(text: str, matcher: Matcher) -> bool:
    return any(True for _ in matcher.match_block(text.encode("utf-8", "replace")))


def plain_record(raw: bytes) -> bytes:
    """Of a record that is an object the plain line that it stands for; else the line itself."""
    plain = plain_behind_marks(raw.decode("utf-8", "replace").rstrip()) if raw.startswith(b"{") else None
    return raw if plain is None else plain.encode()


def quotes_output(window: Window, start: int, end: int) -> bool:
    """Is the traceback in a line the output of another program, a value among others? An object that is a record itself quotes nobody."""
    raw = plain_record(window.text[start:end])
    if _QUOTED_START.search(raw) is None:
        return False
    head = window.head(raw.decode("utf-8", "replace"))
    return head.level not in ("E", "F") and (not raw.startswith(b"{") or is_printed_value(head.text, lambda _: iter(())) or holds_as_data(head.text))
