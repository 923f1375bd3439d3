"""Heads that programs write over the stacks of their own threads (``sys._current_frames``): every program in its own words.

``~~~ Stack of MainThread (139812751046464) ~~~`` (pytest-timeout), ``---- Thread 140012 "MainThread" hangs ----`` (hanging-threads),
``Thread: worker_1 (daemon: False)``, ``Name: MainThread Ident: 1401234``, ``Thread <_MainThread(MainThread, started 140123)>:``.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Head

_MAX_CHARS = 200
_PYFLAME = re.compile(r"^(?P<number>\d{12,17})(?P<gil>\*)?:$")
"""``140302382565184*:``, the thread that had the interpreter with a star."""
_SIGN = re.compile(r"thread|stack|\btid\b|\bident\b", re.IGNORECASE)
_TOKEN = re.compile(r"\"[^\"]{1,100}\"|'[^']{1,100}'|<unknown>|0x[0-9a-fA-F]{1,16}|[\w.-]+")
_RULED = re.compile(r"^[=~*#-]{3,}[^=~*#].{0,160}[=~*#-]{3,}$")
_STACK_OF = re.compile(r"^\W{0,80}Stack of (?P<name>[\w<].{0,120}?) \((?P<number>\d{3,20})\)\W{0,80}$")
"""pytest-timeout names a thread as its program does, in as many words as it likes."""
_BY_HAND = re.compile(
    r"^[^\w\n]{0,12}(?:(?:the|its|a|an|another) )?(?P<name>(?:[A-Za-z][\w-]{1,30} ){1,3})threads?[`*]{0,3}(?: \([^()]{1,60}\))?[^\w(]{0,4}$",
    re.IGNORECASE,
)
"""``main thread:``, ``**data loader thread**``: what somebody writes over the stacks of one process."""
_HOLDS = re.compile(
    r"^[^\w\n]{0,12}(?:the )?thread (?P<key>[A-Z]\b|#?\d{1,9}\b|[`\"]?[A-Za-z][\w-]{1,60}[`\"]?)(?: \([^()\n]{1,80}\))?,? (?:which |that )?"
    r"(?:(?:holds|owns|has|took|waits|wants|blocks|blocked|stuck|is (?:blocked|waiting|stuck|holding))\b[^:\n]{2,160}):[`*]{0,3}\s{0,4}$",
    re.IGNORECASE,
)
_LOCKED = re.compile(r"lock|mutex|\bGIL\b|semaphore", re.IGNORECASE)
"""``Thread A (update_weights) holds `engine_lock` and waits for `cache_lock`:``: whose stack comes, and what it does with the locks."""
_FILLERS = frozenset(
    "thread threads threadid thread_id thread_name name id ident identifier tid native_id native lwp stack stacks stacktrace trace traceback of for"
    " dump dumping python the current daemon alive started true false hangs hung is in state status running waiting blocked _mainthread thr"
    " dummythread _dummythread frames".split()
)
"""Words that say nothing but that a thread comes."""
_OF_KERNEL = frozenset({"tid", "native_id", "lwp", "native"})
_NAME = re.compile(r"(?=.*(?:[\d_-]|Thread))[A-Za-z][\w.-]{0,99}$")
"""How threads are called; a word of a sentence has neither a digit nor a sign in it."""
_PTHREAD_DIGITS = 6
"""Addresses of threads are long numbers; a short number may count anything."""


def read(text: str) -> Head | None:
    """The head of a thread; None for a line with any other word in it."""
    if (of_pyflame := _PYFLAME.match(text)) is not None:
        return Head(level="thread", source="text", key=of_pyflame["number"], owns_gil=of_pyflame["gil"] is not None or None)
    if len(text) > _MAX_CHARS or "(LWP" in text or not _SIGN.search(text):
        return None
    if (by_hand := _BY_HAND.match(text)) is not None and text.rstrip().endswith((":", "*", "`")):
        name = by_hand["name"].strip()
        return Head(level="thread", source="text", key=name, name="MainThread" if name.lower() == "main" else f"{name} thread")
    if "tack of " in text and (found := _STACK_OF.match(text)) is not None and (_is_ruled(text) or len(found["number"]) >= _PTHREAD_DIGITS):
        name = found["name"] if found["name"] != "<unknown>" else None
        return Head(level="thread", source="traceback", order=None, key=found["number"], name=name)
    if (holds := _HOLDS.match(text)) is not None and _LOCKED.search(text) is not None:
        key = holds["key"].strip('`"#')
        return Head(level="thread", source="text", key=key, name="MainThread" if key.lower() in ("main", "mainthread") else key)
    number = name = None
    is_quoted = says_kernel = False
    words: set[str] = set()
    for token in _TOKEN.findall(text):
        lowered = token.strip("-.").lower()
        if not lowered or lowered == "<unknown>":
            continue
        if lowered in _FILLERS:
            words.add(lowered)
            says_kernel = says_kernel or (lowered in _OF_KERNEL and number is None)
        elif token.isdecimal() or token.startswith("0x"):
            number = number or token
        elif name is None:
            name, is_quoted = token.strip("\"'"), token[0] in "\"'"
        else:
            return None
    if not _tells(words, number, name, is_quoted=is_quoted or _is_ruled(text)):
        return None
    tid = int(number) if number is not None and says_kernel and number.isdecimal() and len(number) < 9 else None
    return Head(level="thread", source="traceback", order=None, key=number or name, name=name, tid=tid)


def _tells(words: set[str], number: str | None, name: str | None, *, is_quoted: bool) -> bool:
    """Is it a thread that these words name? A name alone must look like one, or stand between rules."""
    is_thread = bool(words & {"thread", "threadid", "thread_id", "thread_name", "tid", "native_id", "_mainthread", "ident"})
    is_long = number is not None and (number.startswith("0x") or len(number) >= _PTHREAD_DIGITS)
    is_name = name is not None and (_NAME.match(name) is not None or is_quoted)
    if not is_thread:
        return (is_long and {"stack", "of"} <= words) or (name is not None and name.endswith("Thread") and bool(words & {"stack", "stacktrace"}))
    if name is None:
        return is_long
    return is_name or (is_long and len(words) <= 4)


def _is_ruled(text: str) -> bool:
    """Do signs stand on both sides of it, as over a section?"""
    return _RULED.match(text.strip()) is not None
