"""What ``kubectl describe`` lists of a container: how it ended last is no failure of today where it was started again and is ready."""

from __future__ import annotations

import re

from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.window import LOOK_BACK_BYTES, Window

FIELDS = ("Reason:", "Exit Code:", "Message:")
LINES_AROUND = 20
_HEADS_FIELDS = re.compile(r"(?:Name:\s+| {2,4})(?P<name>[a-z0-9][\w.-]{0,80}):?\s*$")
"""A pod's name, or that of one of its containers, as they stand above their fields."""
_STATE = re.compile(r"\s*(?P<last>Last )?State:\s")
_READY = re.compile(r"\s*Ready:\s+True\s*$")


def is_field(one: Spotted) -> bool:
    """Is the line a field of how something ended?"""
    return one.head.text.startswith(FIELDS)


def described(window: Window, one: Spotted) -> str:
    """The pod or container of which the line is a field."""
    return next((found["name"] for row in reversed(rows_before(window, one)) if (found := _HEADS_FIELDS.match(row)) is not None), "")


def is_ready_again(window: Window, one: Spotted) -> bool:
    """Is it how a container ended the last time, which is ready now?"""
    states = (found for row in reversed(rows_before(window, one)) if (found := _STATE.match(row)) is not None)
    if (state := next(states, None)) is None or state["last"] is None:
        return False
    for row in rows_behind(window, one):
        if _READY.match(row):
            return True
        if _STATE.match(row) or _HEADS_FIELDS.match(row):
            return False
    return False


def rows_before(window: Window, one: Spotted) -> list[str]:
    """Some lines before a failure."""
    rows = window.text[max(0, one.start - LOOK_BACK_BYTES) : one.start].split(b"\n")[-LINES_AROUND:]
    return [row.decode("utf-8", "replace") for row in rows]


def rows_behind(window: Window, one: Spotted) -> list[str]:
    """Some lines behind it."""
    rows = window.text[one.end : one.end + LOOK_BACK_BYTES].split(b"\n")[:LINES_AROUND]
    return [row.decode("utf-8", "replace") for row in rows]
