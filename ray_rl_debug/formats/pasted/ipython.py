"""Frames of IPython's and Jupyter's tracebacks: ``File ~/a.py:12, in run(self, n)``, ``File /w/a.py:12``, ``Cell In[3], line 5``, ``a.py in f(x)``.

The outermost call comes first; source code with an arrow at the line stands between.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Frames

_NEW = re.compile(
    r"^File (?P<file>(?:~|/|\.{1,2}/|[A-Za-z]:\\|<|[\w.-]{1,80}/)[^\n]{0,400}?)(?::(?P<line>\d{1,7}))"
    r"(?:, in (?P<function>[^\s(][^(]{0,300}?)(?:\(.{0,4000}\))?)?$"
)
_ALONE = re.compile(r"^File (?P<file>(?:~|/)[^\s:\"',]{1,400}\.py)$")
"""The program's own file: its line stands behind the arrow below."""
_CELL = re.compile(
    r"^(?:Cell|Input) In ?\[(?P<cell>\d{1,6})\],? (?:line (?P<line>\d{1,7})|in <cell line: (?P<old>\d{1,7})>)"
    r"(?:, in (?P<function>\S{1,200}?)\(.{0,4000}\)|\(\))?$"
)
_OLD = re.compile(r"^(?P<file>(?:~|/|<ipython-input-)[^\s:()]{0,400}(?:\.py|>)) in (?P<function>[\w.<>]{1,200})(?:\(.{0,4000}\))?$")


def read(text: str) -> Frames | None:
    """The frame in this line."""
    if text.startswith("File "):
        found = _NEW.match(text)
        if found is None and (alone := _ALONE.match(text)):
            return _frames(alone["file"], 0, None)
        return _frames(found["file"], int(found["line"]), found["function"]) if found else None
    if text.startswith(("Cell In", "Input In")):
        found = _CELL.match(text)
        return _frames(f"<cell {found['cell']}>", int(found["line"] or found["old"]), found["function"]) if found else None
    if text.startswith(("~", "/", "<ipython")) and (found := _OLD.match(text)):
        return _frames(found["file"], 0, found["function"])
    return None


def _frames(file: str, line: int, qualified: str | None) -> Frames:
    """A function is named with its class; other tools name it alone."""
    function = qualified.rsplit(".", 1)[-1] if qualified and not qualified.startswith("<cell") else "<module>"
    return Frames(places=((function, file, line),), source="traceback", order="outer")
