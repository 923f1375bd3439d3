"""Tracebacks whose line breaks a form has lost: ``Traceback (most recent call last): File "a.py", line 3, in f g() File "b.py", line 9, in g ...``.

Each frame is a line again, and what stands behind the function's name is its source. A name in angle brackets is gone as well: a form takes it
for a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SIGN = '", line '
_LEAST = 2
"""Frames in a line; two files in a sentence are no traceback where no head stands before them and no source between."""
_RANK = re.compile(r"\s{1,4}(?=\[(?:rank|default)\d{1,6}\]: )")
"""Before each line that had torch's name of its writer."""
_HEAD = re.compile(r"\s{0,4}(?=Traceback \(most recent call last\):)")
_FRAME = re.compile(r'\s{0,4}(?=File "[^"\n]{1,400}", line \d{1,7}(?:, in\b|\s))')
_PLACE = re.compile(
    r'(?P<place>File "[^"\n]{1,400}", line \d{1,7}), in(?:\s{1,4}(?P<name>[A-Za-z_<][\w.<>]{0,120})(?![\w.(\[]))?(?P<rest>.{0,4000})$'
)
_ERROR = re.compile(r"\s{1,4}(?=(?:[A-Za-z_]\w{0,40}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit)(?::\s|\s{0,4}$))")
"""Before the error that ends it."""
_BY_RANK = re.compile(r"\[(?:rank|default)\d{1,6}\]: ")
MAX_CHARS = 64_000


def apart(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, each with a whole traceback in it as the lines that it was."""
    for number, line in lines:
        if line.count(_SIGN) < _LEAST or len(line) > MAX_CHARS or "most recent call last" not in line:
            yield number, line
        else:
            for part in _RANK.split(line) if _BY_RANK.search(line) else (line,):
                owner = _BY_RANK.match(part)
                lead = owner[0] if owner is not None else ""
                yield from ((number, f"{lead}{told}") for told in _lines_of(part[len(lead) :]))


def _lines_of(text: str) -> Iterator[str]:
    """What stands before the traceback, its head, each frame and its source, and the error."""
    for whole in _HEAD.split(text):
        for part in _FRAME.split(whole):
            place = _PLACE.match(part)
            if place is None:
                if part.strip():
                    yield part if part.startswith("Traceback") else f"    {part.strip()}"
                continue
            yield f"  {place['place']}, in {place['name'] or '<module>'}"
            source, *error = _ERROR.split(place["rest"].strip(), maxsplit=1)
            if source:
                yield f"    {source}"
            yield from error
