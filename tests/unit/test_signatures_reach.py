"""Every alternative of every pattern holds one of the plain texts that are searched first; without one its lines are never seen."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest

from ray_rl_debug.signatures import Signature, load

parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
GAP = "\0"
"""Stands for what a pattern leaves open."""
MOST = 20_000
FEW = 8
"""Letters of a class that are tried one by one: ``[Ee]rror`` is two texts."""


def texts(tree: Iterable[Any]) -> list[str]:
    """What a pattern may match, with gaps where it leaves open what stands there."""
    found = [""]
    for op, value in tree:
        parts = list(_texts_of(str(op), value))
        found = list(dict.fromkeys(a + b for a in found for b in parts))
        assert len(found) <= MOST
    return found


def _texts_of(op: str, value: Any) -> Iterator[str]:
    if op == "LITERAL":
        yield chr(value)
    elif op == "SUBPATTERN":
        yield from texts(value[3])
    elif op == "ATOMIC_GROUP":
        yield from texts(value)
    elif op == "BRANCH":
        for branch in value[1]:
            yield from texts(branch)
    elif op == "IN":
        yield from _letters(value) or (GAP,)
    elif op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, what = value
        if least == 0:
            yield ""
        if (least, most) == (0, 1):
            yield from texts(what)
        elif least == most <= FEW:
            yield from texts([*what] * least)
        elif least:
            yield from (f"{one}{GAP}" for one in texts(what))
        else:
            yield GAP
    elif op in ("AT", "ASSERT", "ASSERT_NOT"):
        yield ""
    else:
        yield GAP


def _letters(value: Any) -> list[str]:
    """Those of a class of few letters; none where there are more."""
    ends = [(one, one) if str(kind) == "LITERAL" else one if str(kind) == "RANGE" else (0, FEW) for kind, one in value]
    found = [chr(letter) for first, last in ends for letter in range(first, last + 1)]
    return found if len(found) <= FEW else []


def unreachable(signature: Signature) -> list[str]:
    """Texts that the pattern matches and that hold none of the plain texts."""
    flags = parser.parse(signature.pattern).state.flags
    assert not flags & re.IGNORECASE, "plain texts are searched as they are written"
    return [text.replace(GAP, "…") for text in texts(parser.parse(signature.pattern)) if not any(one in text for one in signature.literals)]


@pytest.mark.parametrize("signature", load(), ids=lambda s: s.id)
def test_every_alternative_of_a_pattern_is_found(signature: Signature) -> None:
    assert unreachable(signature) == []


def test_an_alternative_without_a_plain_text_is_noticed() -> None:
    some = load()[0]
    lacking = msgspec.structs.replace(some, pattern="[Ee]rror: (?:the )?disk is full|node (?:left|gone)", literal=("disk is full", "node left"))
    assert unreachable(lacking) == ["node gone"]
