"""Text of foreign logs as it may leave the machine: without control characters, without what looks like a secret, bounded."""

from __future__ import annotations

import re
from typing import TypeVar

from ray_rl_debug.foreign_text import as_text, map_text

MAX_CHARS = 400
T = TypeVar("T")

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NAMED = re.compile(
    r"(?i)(?P<name>(?:api[_-]?key|access[_-]?key|secret|passw(?:or)?d|credentials?|authorization|(?<!invalidauth)token)[\w-]{0,20}[\"']?\s{0,3}[=:]\s{0,3}[\"']?)"
    r"(?:bearer\s{1,3}|basic\s{1,3})?(?P<value>[^\s\"',;)]{4,})"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic) [A-Za-z0-9+/_.=-]{8,}")
_KNOWN = re.compile(r"\b(?:sk-|hf_|ghp_|gho_|github_pat_|glpat-|xox[abp]-|AKIA|AIza|eyJ)[A-Za-z0-9_.-]{8,}")
_LOGIN = re.compile(r"(://)[^/\s:@]{1,64}:[^/\s@]{1,128}@")
_BLOB = re.compile(r"[A-Za-z0-9+_-]{33,}={0,2}")
_RAY_ID_DIGITS = frozenset((32, 36, 40, 48, 56))
"""Lengths of Ray's ids in hex (actor, placement group, task, object, node, worker)."""


def made_safe(facts: T) -> T:
    """Facts with every string in them fit to leave this process: the one door for what came from outside."""
    return map_text(facts, as_text)


def redact(line: str, *, max_chars: int = MAX_CHARS) -> str:
    """One line, made safe to show and to send."""
    text = _COLOUR.sub("", line).strip()[: 4 * max_chars]
    text = _LOGIN.sub(r"\1***@", text)
    text = _NAMED.sub(_masked_value, text)
    text = _BEARER.sub(r"\1 ***", text)
    text = _KNOWN.sub("***", text)
    text = _BLOB.sub(_masked_blob, text)
    text = "".join(c if c.isprintable() else " " if c == "\t" else f"\\x{ord(c):02x}" for c in text)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _masked_value(found: re.Match[str]) -> str:
    value = found["value"]
    # A count (max_tokens=1024) and the next words of a sentence are no secrets.
    if value.replace(".", "").isdigit():
        return found[0]
    return f"{found['name']}***"


def _masked_blob(found: re.Match[str]) -> str:
    text = found[0]
    if all(c in "0123456789abcdef" for c in text):
        return text if len(text) in _RAY_ID_DIGITS else "***"
    mixed = any(c.isupper() for c in text) and any(c.islower() for c in text) and any(c.isdigit() for c in text)
    return "***" if mixed else text
