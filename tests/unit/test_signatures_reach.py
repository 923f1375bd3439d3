"""A pattern is tried only on lines that hold one of its plain texts: each way to fulfil it has to lead through one of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from ray_rl_debug import signatures

MAX_WAYS = 400
NOT_LED_TO = frozenset(
    f"RRD{number}"
    for number in (
        *(638, 677, 678, 6117, 6120, 6124, 6129, 6130, 6137, 6140, 6150, 6155, 6170, 6171, 6176, 6177, 6180, 6181, 6183, 6189, 6192, 6205),
        *(6210, 6213, 6215, 6225, 6226, 6237, 6241, 6245, 6247, 6250, 6282, 6284),
    )
)
"""Some way of these has no text that is rare enough, or is a spelling that no program is known to use."""
parse = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse").parse


def joined(ways: list[list[str]], more: list[list[str]]) -> list[list[str]]:
    return [[*way[:-1], way[-1] + other[0], *other[1:]] for other in more for way in ways][:MAX_WAYS]


def ways(items: Iterable[Any]) -> list[list[str]]:
    """Each way as the texts that it surely holds, in their order."""
    found = [[""]]
    for operation, value in items:
        name = str(operation)
        if name == "LITERAL":
            found = joined(found, [[chr(value)]])
        elif name == "BRANCH":
            found = joined(found, [way for branch in value[1] for way in ways(branch)])
        elif name == "SUBPATTERN":
            found = joined(found, ways(value[3]))
        elif name in ("MAX_REPEAT", "MIN_REPEAT") and value[:2] == (0, 1):
            found = [*joined(found, ways(value[2])), *found][:MAX_WAYS]
        elif name == "IN" and len(value) <= 3 and all(str(one) == "LITERAL" for one, _ in value):
            found = joined(found, [[chr(code)] for _, code in value])
        elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
            found = joined(found, [["", ""]])
    return found


@pytest.mark.parametrize("signature", [s for s in signatures.load() if s.id not in NOT_LED_TO], ids=lambda s: s.id)
def test_each_way_holds_a_plain_text(signature: signatures.Signature) -> None:
    for way in ways(parse(signature.pattern)):
        assert any(text in part for part in way for text in signature.literals), way
