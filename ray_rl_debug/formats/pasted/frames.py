"""One line of a stack, as tools and people write it: one frame, or several that signs join."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted import joined, places
from ray_rl_debug.formats.pasted.events import Frames

_LEFT_OUT = re.compile(r"^(?:\[?(?:\.{2,6}|…)\]?)\s{0,8}")
_LINE_AND_NAME = re.compile(r"^[\s>→⟶←|*`=-]{0,20}[:L](?P<line>\d{1,7})[\s`(]{1,12}(?:in )?(?P<function>" + places.NAME + r")(?:\(\))?[`)\s]{0,8}$")
_QUOTED = re.compile(
    r"File:? [\"'](?P<file>[^\"']{0,400})[\"'], line (?P<line>\d{1,9}|\?\?\?)(?:, characters [\d-]{1,20})?(?P<comma>,)? in "
    r"(?P<function>.{1,300}?)\s{0,40}(?=File [\"']|$)"
)
_CUT = re.compile(r"File \"[^\"]{1,400}\", line \d{1,9},? ?i?$")
"""Somebody's form ended in the word before the function."""
_ARROW_BEHIND = re.compile(r"\s{1,8}(?:[-=]{1,2}>|<[-=]{1,2}|[<>→←⇒⇐|;,]|,? ?called (?:from|by)|,? ?from)\s{0,8}$")
_NAME_AND_CODE = re.compile(r"(?P<name>[^\W\d]\w{0,120}|<\w{1,20}>)\s{1,200}(?P<code>\S.{0,300})$")
_REMARK_BEHIND = re.compile(r"\s{2,}(?=[<←#(/=–—-])|\s(?=<--|←|# |\(/)")
"""Where somebody's remark, or pystack's library, begins behind a function."""


def read_frame(text: str) -> Frames | None:
    """The frame or frames of one line; None when the line is no frame. Only the line's own text is looked at, no state."""
    text = _LEFT_OUT.sub("", text.strip(), count=1)
    if not text or len(text) > 12_000:
        return None
    if places.ADDRESS.match(text):
        return Frames(places=((text, "", 0),), native=True)
    if '"' in text or "'" in text:
        quoted = _quoted(text)
        if quoted:
            return quoted
        if _CUT.match(text):
            return None
    if (whole := joined.read(text)) is not None:
        return whole
    bare = text.replace("`", "").replace("**", "").strip("* ")
    found = places.one_frame(bare) or places.one_frame(places.BULLET.sub("", bare, count=1).strip("`* "))
    found = places.sound(found) or places.in_any_order(text)
    if not found:
        return None
    return Frames(places=tuple(found), native=any(places.is_native(file) for _, file, _ in found))


def placed_in(file: str, text: str) -> Frames | None:
    """``-> :2009 f``: a line and a function alone, of a frame in that file."""
    found = _LINE_AND_NAME.match(text) if file.endswith((".py", ".pyx")) else None
    return Frames(places=((found["function"], file, int(found["line"])),)) if found is not None else None


def _quoted(text: str) -> Frames | None:
    """``File "a.py", line 3, in f``: several when a new line was lost between them. Tracebacks write the comma, faulthandler does not."""
    found_places, code = [], None
    order = "inner"
    for found in _QUOTED.finditer(text):
        if found["comma"]:
            order = "outer"
        function = _REMARK_BEHIND.split(_ARROW_BEHIND.sub("", found["function"]), maxsplit=1)[0].strip().removeprefix("async ")
        function, code = _apart(re.sub(r"(?:\(\))?`?\.?$", "", function))
        found_places.append((function, found["file"], int(found["line"]) if found["line"].isdecimal() else 0))
    source = "traceback" if order == "outer" else "faulthandler"
    return Frames(places=tuple(found_places), source=source, order=order, is_certain=len(found_places) > 1, code=code) if found_places else None


def _apart(told: str) -> tuple[str, str | None]:
    """The function, and the source that somebody let follow on its line: ``get_run with self.lock:``."""
    found = _NAME_AND_CODE.match(told)
    return (found["name"], found["code"].strip("│| ") or None) if found is not None else (told, None)
