"""Lines that print a value, ``patterns: ["CUDA error"]``, ``Generated: '…'``, ``{'code': 1, 'stderr': '…'}``: nobody says what stands in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ray_rl_debug.logs.tracebacks import START
from ray_rl_debug.logs.words import judge

_LITERAL = re.compile(r"b?'(?:[^'\\\n]|\\.)*'|b?\"(?:[^\"\\\n]|\\.)*\"")
_NAMED = re.compile(r"(?P<name>[A-Za-z_][\w .\[\]-]{0,40}?)(?:\[\d+\])? ?[:=] ?[\[({]{0,3}b?[\"']")
_TELLS = re.compile(
    r"(?i:err|exception|exc_|reason|cause|msg|message|detail|fatal|fail|stderr|panic|assert|signal|status|said|warn|trace|stack|abort|exit|crash|kill)"
)
"""In the name of a value: it says what went wrong."""
_QUOTES = re.compile(r"(?:\[[^\[\]\n]{1,40}\] ?|- )?[\"']\w[^\"'\n]{0,300}[\"']")
"""A line that begins with the words of another: a title, a passage."""
_LISTED = re.compile(r"(?P<name>[A-Za-z_][\w .-]{0,40}?) ?[:=] ?\[[\w.-]{1,60}(?:, ?[\w.-]{1,60}){0,40}\],?$")
"""A list of words without quotes, as YAML has them: ``signals: [SIGSEGV, SIGBUS]``."""
_SETS = re.compile(r"(?:patterns?|keywords?|regex\w*|strings?|types?|names?|codes?|signals?|markers?|words?|classes)$")
"""At the end of its name: it says what to look for."""
_CALL = re.compile(
    r"(?:[\w./-]{1,200}\.\w{1,4}[:-]\d{1,7}[:-])?(?:[+-]?\s{1,40})?"
    r"(?:raise \w|(?:\w{1,40}\.){0,4}(?!\w*(?:Error|Exception|Interrupt|Exit)\()\w{1,40}\()[^\n]*\)[,;:)]{0,3}$"
)
"""A line of code that calls something, also as a difference or grep shows it."""
_OF_A_RUN = re.compile(r"[\"'](?:std(?:out|err)|run_result|execution_(?:time|result)|test_?cases?|observation|completion|generated_text)[\"']: ?\S")
"""A key of what a sandbox or a tool gave back."""


_HELD = re.compile(r"[\"'](?P<key>\w{1,40})[\"']: ?b?[\"'](?:\\\\n|\\n)*" + re.escape(START))


def holds_as_data(text: str) -> bool:
    """Does an object hold a traceback under a key that does not say what went wrong, ``"obs": "Traceback …"``?"""
    found = _HELD.search(text)
    return found is not None and _TELLS.search(found["key"]) is None


def is_printed_value(text: str, known: Callable[[bytes], Iterator[object]]) -> bool:
    """Does a line only print a value, which holds all its words of failure?

    Args:
        known: Finds known errors in some bytes.
    """
    if text.startswith(("{", "[{")):
        return _OF_A_RUN.search(text) is not None
    listed = _LISTED.match(text)
    if listed is not None and _SETS.search(listed["name"]):
        return _is_plain(listed["name"], known)
    named = _NAMED.match(text)
    if named is None and (_CALL.match(text) or _QUOTES.match(text)):
        return _is_plain(_LITERAL.sub("", text), known)
    if named is None or (_TELLS.search(named["name"]) and not _SETS.search(named["name"])):
        return False
    return _is_plain(_LITERAL.sub("", text), known)


def _is_plain(rest: str, known: Callable[[bytes], Iterator[object]]) -> bool:
    return judge(rest, None) is None and not any(True for _ in known(rest.encode("utf-8", "replace")))
