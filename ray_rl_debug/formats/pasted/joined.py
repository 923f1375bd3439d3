"""A stack on one line: pieces that signs or words join, each a function, a place, or both.

``main (a.py:9) → f (a.py:1)``, ``f (a.py:1)|g (b.py:2)``, ``main;f (a.py:1) 42``, ``f (a.py:1) <- step <- main``, ``f:2810<step:9<main:30``.
Signs stand outside of brackets. What is a stack by its places, `read` tells; `names` reads one of names alone, where the text says that it is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.formats.dump import CodePlace
from ray_rl_debug.formats.pasted import places
from ray_rl_debug.formats.pasted.events import Frames
from ray_rl_debug.formats.pasted.orientation import KNOWN, is_outermost_first

_OUTWARD, _INWARD = "\1", "\2"
"""Every arrow becomes one of these, so that all forms of it are one sign."""
_ARROWS = (
    (re.compile(r" {0,4}[→⟶⇒➜➔▸»] {0,4}|(?<=[ )`\d]) {0,4}(?:-{1,3}|={1,3}|[─━]{1,3})> {0,4}(?=\S)"), _INWARD),
    (re.compile(r" {0,4}[←⟵⇐«] {0,4}|(?<=[ )`\d]) {0,4}<(?:-{1,3}|={1,3}|[─━]{1,3}) {0,4}(?=\S)"), _OUTWARD),
)
_SIGNS = (
    ("|", None),
    (_INWARD, "outer"),
    (" > ", "outer"),
    (_OUTWARD, "inner"),
    (" < ", "inner"),
    (";", "outer"),
    (" / ", "inner"),
    (", called from ", "inner"),
    (" called from ", "inner"),
    (", called by ", "inner"),
    (" called by ", "inner"),
    (", appelé par ", "inner"),
    (" appelé par ", "inner"),
    (", aufgerufen von ", "inner"),
    (" aufgerufen von ", "inner"),
    (", llamado por ", "inner"),
    (" llamado por ", "inner"),
    (", chamado por ", "inner"),
    (", from ", "inner"),
    (" from ", "inner"),
    (", in ", "inner"),
    (" in ", "inner"),
    (" inside ", "inner"),
    (" within ", "inner"),
    (" under ", "inner"),
    (" via ", "inner"),
    (", ", "inner"),
)
"""What joins frames, and which way they usually run then."""
_IN_WORDS = frozenset(sign for sign, _ in _SIGNS if sign[-1] == " " and (sign[0] == "," or sign[1].isalpha() or sign == " / "))
"""Between these each part must be a frame: sentences have them as well."""
_OF_NAMES = (_INWARD, _OUTWARD, " > ", " < ", ";")
"""What joins names alone."""
_TIGHT = re.compile(r"[A-Za-z_][\w.]{0,80}:\d{1,7}(?:(?P<sign>[<>])[A-Za-z_][\w.]{0,80}:\d{1,7}){1,200}$")
_OF_PROFILE = re.compile(
    r"^(?:P\d{1,9}|T(?:[\d]{1,9}:)?(?P<austin>\d{1,9})|[Pp]rocess .{1,400}|[Tt]hread \(?(?P<tid>0x[0-9a-f]{1,16}|\d{1,9})\)?(?:: ?"
    r"(?P<name>.{1,120}))?)$"
)
_LIBRARY_WORD = re.compile(r"(?P<library>[a-z]\w{1,30}) (?=[A-Za-z_]\w{0,80} \((?P=library)/)")
"""``zmq recv_pyobj (zmq/sugar/socket.py:990)``: whose function it is."""
_COUNTED = re.compile(r"\d{1,9} ")
"""How often a stack was met stands before its first frame."""
_ONLY_NAME = re.compile(r"(?P<name>[A-Za-z_][\w.]{0,100}|<module>)(?:\([^()]{0,80}\))?(?::(?P<line>\d{1,7}))?$")
_CALLED_BY = re.compile(r" {0,4}(?:-{1,2}>|→|⇒) {0,4}called (?:by|from) ")
"""An arrow before these words points to nobody inside."""
_ASIDE = re.compile(r"(?: \([^()]{0,200}(?:\([^()]{0,80}\)[^()]{0,80})?\)| [x×] ?\d{1,5})$")
"""``f x4``, ``f (the loop)``"""
_PATH = re.compile(
    r"(?:[A-Za-z_]\w{1,60} (?:as )?)?(?P<name>(?:[A-Za-z_]\w{0,60}(?:\(\))?(?:\.|::)){0,8}(?:<module>|[A-Za-z_]\w{1,80}))(?:\([\w, .=*]{0,60}\))?"
    r"(?::(?P<line>\d{1,7}))?$"
)
_FILES = (".py", ".pyx", ".so", ".cc", ".cpp", ".c", ".cu", ".h")
_LEFT_OUT = frozenset(("...", "…", "....", "..", "[...]", "(...)"))
_CODE = re.compile(r"[_.<]|::|[a-z][A-Z]|\(\)")
"""What tells the name of a function from a word."""
_MOST = 400
"""Frames on a line."""
_REMARK = re.compile(r"(?<=\)) {2,200}(?:←|⟵|<-{1,3}) ?(?P<told>\S)")
"""An arrow far behind a frame: somebody writes there what the frame is."""


def read(text: str, *, is_named: bool = False) -> Frames | None:
    """The frames of a line that is a whole stack; its places tell that it is one.

    Args:
        is_named: The text says whose it is. Then one place and names of functions are enough, also between words.
    """
    remark = _REMARK.search(text)
    if remark is not None and not places.one_frame(text[remark.start("told") :]):
        return None
    text = marked(text)
    for sign, order in _SIGNS:
        if sign not in text:
            continue
        parts = _parts(text, sign)
        if len(parts) < 2:
            if sign == "|" and len(parts) == 1 and text.endswith("|") and (only := places.one_frame(parts[0])):
                return Frames(places=tuple(only), is_whole=True)
            continue
        if len(parts) > _MOST:
            continue
        weight, tid, name = 0, None, None
        if sign == ";":
            while len(parts) > 2 and (told := _OF_PROFILE.match(parts[0])):
                number = told["austin"] or told["tid"] or ""
                tid, name = (int(number) if number.isdecimal() else tid), (told["name"] or name)
                del parts[0]
            counted = re.search(r" (\d{1,9})$", parts[-1])
            if counted:
                parts[-1], weight = parts[-1][: counted.start()], int(counted[1])
        found = _pieces(parts)
        if found is None or not _is_stack(sign, found, [is_code(part) for part in parts], is_named=is_named):
            continue
        frames = tuple(place for one in found for place in (one if order != "outer" else list(reversed(one))))
        source = "py-spy raw" if weight else "text"
        return Frames(places=frames, source=source, order=order, is_whole=True, is_certain=True, weight=weight, tid=tid, name=name)
    return None


def names(text: str, *, least: int = 2, code: int = 0) -> Frames | None:
    """The frames of a chain of names without files; remarks behind them and what was left out are none.

    Args:
        least: Names in it.
        code: Names in it that no word of a sentence looks like.
    """
    text = marked(text)
    for sign in _OF_NAMES:
        if sign not in text:
            continue
        parts = [_ASIDE.sub("", part).strip() for part in _parts(_quoted_alone(text, sign), sign)]
        found = [_PATH.match(part) for part in parts]
        if len(found) < least or not all(found) or len(found) > _MOST or sum(is_code(part) for part in parts) < code:
            continue
        told = tuple((one["name"].replace("()", ""), "", int(one["line"] or 0)) for one in found if one is not None)
        order = "inner" if sign in (_OUTWARD, " < ") or is_outermost_first(told) is False else "outer"
        return Frames(places=told, order=order, is_whole=True, is_certain=True)
    return None


def _quoted_alone(text: str, sign: str) -> str:
    """A chain in which some parts are quoted as code, without those in plain words: ``has tokens → enters `f` → blocks``."""
    parts = text.split(sign)
    quoted = [part for part in parts if "`" in part or is_code(part)]
    return sign.join(quoted) if "`" in text and 0 < len(quoted) < len(parts) and all(part.count("`") != 1 for part in parts) else text


def name_alone(text: str) -> CodePlace | None:
    """The name in a line that holds nothing else."""
    found = _PATH.match(_ASIDE.sub("", text.strip(" `*")))
    return (found["name"].replace("()", ""), "", int(found["line"] or 0)) if found is not None and " " not in found[0] else None


def is_code(name: str) -> bool:
    """Is it the name of a function, and no word of a sentence?"""
    return _CODE.search(name) is not None or name.rsplit(".", 1)[-1] in KNOWN


def marked(text: str) -> str:
    """The text with one sign for all arrows to the right, and one for all to the left."""
    text = _CALLED_BY.sub(" called by ", text) if "called" in text else text
    if _TIGHT.match(text.strip()):
        return text.replace("<", _OUTWARD).replace(">", _INWARD)
    for arrow, sign in _ARROWS:
        text = arrow.sub(sign, text)
    back = text.find(_OUTWARD, text.rfind(_INWARD)) if _INWARD in text else -1
    return text[:back] if back >= 0 else text  # a chain runs one way: an arrow back at its end points to where it stands


def _parts(text: str, sign: str) -> list[str]:
    """The pieces between the signs that stand outside of round brackets, without the signs of a form around them."""
    found: list[str] = []
    held = ""
    for part in text.split(sign):
        held = f"{held}{sign}{part}" if held else part
        if held.count("(") <= held.count(")"):
            found.append(held)
            held = ""
        elif len(held) > 2_000:
            return []
    found += [held] if held else []
    plain = (part.replace("`", "").strip(" *") for part in found)
    return [part for part in plain if part and part not in _LEFT_OUT]


def _pieces(parts: Sequence[str]) -> list[list[CodePlace]] | None:
    """The places of each piece; None where one is no frame, and is not the last, which may be a remark."""
    found: list[list[CodePlace]] = []
    for at, part in enumerate(parts):
        places_of = _piece(part)
        if not places_of and at < len(parts) - 1:
            return None
        found.append(places_of)
    return found


def _piece(text: str) -> list[CodePlace]:
    """The places of one piece, or its name; empty for a piece that is none."""
    text = _LIBRARY_WORD.sub("", text, count=1) if _LIBRARY_WORD.match(text) else text
    found = places.sound(places.one_frame(text)) or ([] if _COUNTED.match(text) else places.in_any_order(text))
    if not found and (name := _ONLY_NAME.match(_ASIDE.sub("", text))) is not None and not name["name"].endswith(_FILES):
        return [(name["name"], "", int(name["line"] or 0))]
    return found


def _is_stack(sign: str, found: Sequence[list[CodePlace]], is_code_each: Sequence[bool], *, is_named: bool) -> bool:
    """Do the places tell a stack? Behind the last frame a remark may stand."""
    known = [one for one in found if one and one[0][1]]
    all_code = all(one and (one[0][1] or code) for one, code in zip(found, is_code_each, strict=True))
    if sign in _IN_WORDS:
        return len(known) == len(found) or (is_named and bool(known) and all_code)
    if sign in "|;" and len(known) < 2:
        return bool(known) and len(found) > 2 and all_code
    if len(known) != 1:
        return len(known) > 1 or all(one and one[0][2] for one in found)
    # A word beside the only place in the line is a remark: "f (a.py:7) ← here".
    alone = [one[0][0] for one in found if one and not one[0][1]]
    return len(alone) + 1 == len(found) and (len(alone) > 1 or is_code(alone[0]) or bool(found[-1][0][1] and sign != _INWARD))
