"""One frame in a line, as tools and people write it: ``f (a.py:1)``, ``a.py:1 in f``, ``f @ a.py:1``, ``main -> f (a.py:1)``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import CodePlace
from ray_rl_debug.formats.pasted import loose
from ray_rl_debug.formats.pasted.events import Frames

_EXTENSION = r"(?:pyx?|pyi|dll|pyd|so(?:\.[\d.]{1,12})?|cc?|cpp|cxx|cu|cuh|hh?|hpp|inl|rs|go|S|js|ts|dylib|c\.h)"
_FILE = (
    r"(?:<(?:frozen [\w.]{1,80}|string|stdin|unknown|[\w. -]{1,60})>|(?:[A-Za-z]:)?[^\s()\[\]<>:,;|`'\"]{0,300}\."
    + _EXTENSION
    + r"|python[\d.]{0,6})"
)
_NUMBER = r"(?::|#L|,? line |:L|:~)(?P<line>\d{1,7}|\.{3}|…|\?{1,4})(?P<more>(?:[/,-]\d{1,7}){0,4})(?::\d{1,5})?"
_NAME = r"(?:async )?(?:<\w{1,30}>|[^\W\d][\w.]{0,160}(?:<locals>\.?[\w.<>]{0,120})?(?:<(?:lambda|listcomp|genexpr|module)>)?)"

_PAREN = re.compile(r" {0,60}\((?P<file>" + _FILE + r")(?:" + _NUMBER + r")?(?P<second>(?:[,;/] ?| -> | → )" + _FILE + r":\d{1,7})?\)")
_PAREN_ODD = re.compile(r" {1,60}\((?P<file>\[\w{1,30}\]|\?{1,3}|[^()\s]{1,200})(?::(?P<line>\d{1,7}))?\)")
_AT = re.compile(
    r"(?P<function>" + _NAME + r")(?:\(\))?(?: {0,40}@ ?| {1,4}at | in |, | — | – | - |: | {1,60})\(?(?P<file>" + _FILE + r")" + _NUMBER + r"\)?"
)
_AT_PLAIN = re.compile(r"(?P<function>" + _NAME + r") @ (?P<file>[^\s:]{1,300})(?::(?P<line>\d{1,7}))?")
_PLACE_FIRST = re.compile(
    r"(?P<file>" + _FILE + r")(?:" + _NUMBER + r"|\((?P<paren>\d{1,7})\))"
    r"(?P<link>,? {1,12}in {1,4}|: ?in |: | {1,40}\(| {1,4}[-–—] | {1,60}| → | -> |,)(?P<function>"
    + _NAME
    + r")(?:\([^()]{0,120}\)|\(\)?|\))?(?P<rest>.{0,200})$"
)
_LEFT_OUT = re.compile(r"^(?:\[?(?:\.{2,6}|…)\]?)\s{0,8}")
_BRACKETS = re.compile(r"(?P<function>" + _NAME + r")(?:\(\))? {1,40}\[(?P<file>" + _FILE + r"):(?P<line>\d{1,7})\]$")
_PDB = re.compile(r"(?P<file>" + _FILE + r")\((?P<line>\d{1,7})\)(?P<function>" + _NAME + r")\(\)(?:->.{0,200})?$")
_AUSTIN = re.compile(r"(?P<file>" + _FILE + r"):(?P<function>" + _NAME + r"):(?P<line>\d{1,7})$")
_OF_PROFILE = re.compile(
    r"^(?:P\d{1,9}|T(?:[\d]{1,9}:)?(?P<austin>\d{1,9})|[Pp]rocess .{1,400}|[Tt]hread \(?(?P<tid>0x[0-9a-f]{1,16}|\d{1,9})\)?(?:: ?"
    r"(?P<name>.{1,120}))?)$"
)
_LINE_AND_NAME = re.compile(r"^[\s>→⟶←|*`=-]{0,20}[:L](?P<line>\d{1,7})[\s`(]{1,12}(?:in )?(?P<function>" + _NAME + r")(?:\(\))?[`)\s]{0,8}$")
_QUOTED = re.compile(
    r"File:? [\"'](?P<file>[^\"']{0,400})[\"'], line (?P<line>\d{1,9}|\?\?\?)(?:, characters [\d-]{1,20})?(?P<comma>,)? in "
    r"(?P<function>.{1,300}?)\s{0,40}(?=File [\"']|$)"
)
_CUT = re.compile(r"File \"[^\"]{1,400}\", line \d{1,9},? ?i?$")
"""Somebody's form ended in the word before the function."""
_ARROW_BEHIND = re.compile(r"\s{1,8}(?:[-=]{1,2}>|<[-=]{1,2}|[<>→←⇒⇐|;,]|,? ?called (?:from|by)|,? ?from)\s{0,8}$")
_REMARK_BEHIND = re.compile(r"\s{2,}(?=[<←#(/=–—-])|\s(?=<--|←|# |\(/)")
"""Where somebody's remark, or pystack's library, begins behind a function."""
_ADDRESS = re.compile(r"^0x[0-9a-fA-F]{4,16}$")
_REMARK = re.compile(r"^[\s`*]{0,40}(?:$|[x×]\s?\d|[(\[<#←↑⇐⟵─━=*/`~^!?,;.:|\\{—–-]|\u2b05|\u26a0|[^\x00-\x7f])")
_BULLET = re.compile(
    r"^(?:[-*+•·‣▸►▪|│├└╰╭┌─> ]{1,20}|\d{1,3}[.)] {1,4}|at |in |via |from |calls |called from |"
    r"<-{1,3} ?|-{1,3}> ?|[←→] ?|#\d{1,3}:? {1,6}|↳ ?|⮑ ?|\[\d{1,3}\] ?)"
)
_JOINS = (
    ("|", None),
    (" → ", "outer"),
    (" -> ", "outer"),
    (" => ", "outer"),
    (" > ", "outer"),
    (" ← ", "inner"),
    (" <- ", "inner"),
    (" < ", "inner"),
    (";", "outer"),
    (" / ", "inner"),
    (", called from ", "inner"),
    (" called from ", "inner"),
    (", called by ", "inner"),
    (" called by ", "inner"),
    (", from ", "inner"),
    (" from ", "inner"),
    (", ", "inner"),
)
"""What joins frames, and which way they usually run then."""
_IN_WORDS = frozenset(sign for sign, _ in _JOINS if sign[-1] == " " and (sign[0] == "," or sign[1].isalpha() or sign == " / "))
"""Between these each part must be a frame: sentences have them as well."""
_COUNTED = re.compile(r"\d{1,9} ")
"""How often a stack was met stands before its first frame."""
_IS_PID = re.compile(r"(?:pid|PID)[=: ]{1,2}\d{1,9}$")
_ONLY_NAME = re.compile(r"^[A-Za-z_][\w.]{0,100}(?:\(\))?$")
_MAX_JOINED = 400
_PYTHON_NAME = re.compile(r"[`*]{0,3}(?!(?:File|file)$)(?P<name>[\w.<>$ ]{1,300}?)[`*]{0,3}(?:\([^()]{0,300}\))?[`*]{0,3}$")
"""What can be a function of Python, with its class, and with arguments."""


def read_frame(text: str) -> Frames | None:
    """The frame or frames of one line; None when the line is no frame. Only the line's own text is looked at, no state."""
    text = _LEFT_OUT.sub("", text.strip(), count=1)
    if not text or len(text) > 12_000:
        return None
    if _ADDRESS.match(text):
        return Frames(places=((text, "", 0),), native=True)
    if '"' in text or "'" in text:
        quoted = _quoted(text)
        if quoted:
            return quoted
        if _CUT.match(text):
            return None
    joined = _joined(text)
    if joined is not None:
        return joined
    bare = text.replace("`", "").replace("**", "").strip("* ")
    found = one_frame(bare) or one_frame(_BULLET.sub("", bare, count=1).strip("`* "))
    found = _sound(found) or _loose(text)
    if not found:
        return None
    return Frames(places=tuple(found), native=any(is_native(file) for _, file, _ in found))


def placed_in(file: str, text: str) -> Frames | None:
    """``-> :2009 f``: a line and a function alone, of a frame in that file."""
    found = _LINE_AND_NAME.match(text) if file.endswith((".py", ".pyx")) else None
    return Frames(places=((found["function"], file, int(found["line"])),)) if found is not None else None


def one_frame(text: str) -> list[CodePlace]:
    """The places of one frame, innermost first; empty when this is no frame."""
    if tight := _PDB.match(text) or _AUSTIN.match(text) or _BRACKETS.match(text):
        return [(tight["function"], tight["file"], int(tight["line"]))]
    return _paren_frame(text) or _at_frame(text) or _place_first(text)


def _sound(found: list[CodePlace]) -> list[CodePlace]:
    """Places whose functions are names; of Python's their arguments are left out. Where one is no name, the line was misunderstood."""
    names = [f if not p.endswith(".py") else m["name"] if (m := _PYTHON_NAME.match(f)) else "" for f, p, _ in found]
    return [(name, file, line) for name, (_, file, line) in zip(names, found, strict=True)] if all(names) else []


def _loose(text: str) -> list[CodePlace]:
    if len(text) > loose.MAX_CHARS or not ("." in text or ":" in text):
        return []
    told = loose.place(_BULLET.sub("", text, count=1))
    return [told] if told is not None else []


def is_native(file: str) -> bool:
    """Is this a shared library or a source file of a compiled language?"""
    return ".so" in file or file.endswith((".dll", ".pyd", ".c", ".cc", ".cpp", ".h", ".cu", ".rs", ".dylib", ".S"))


def _quoted(text: str) -> Frames | None:
    """``File "a.py", line 3, in f``: several when a new line was lost between them. Tracebacks write the comma, faulthandler does not."""
    places = []
    order = "inner"
    for found in _QUOTED.finditer(text):
        if found["comma"]:
            order = "outer"
        function = _REMARK_BEHIND.split(_ARROW_BEHIND.sub("", found["function"]), maxsplit=1)[0].strip().removeprefix("async ")
        function = re.sub(r"(?:\(\))?`?\.?$", "", function)
        places.append((function, found["file"], int(found["line"]) if found["line"].isdecimal() else 0))
    source = "traceback" if order == "outer" else "faulthandler"
    return Frames(places=tuple(places), source=source, order=order, is_certain=len(places) > 1) if places else None


def _paren_frame(text: str) -> list[CodePlace]:
    found = None
    for candidate in _PAREN.finditer(text):
        if candidate["line"] is None and "python" in candidate["file"][:6] and not text.endswith(")"):
            continue
        found = candidate
        break
    if found is None:
        odd = None
        for odd in _PAREN_ODD.finditer(text):
            if odd["line"] is not None:
                break
        if odd is None:
            return []
        before = text[: odd.start()]
        is_address = _ADDRESS.match(before.strip()) is not None
        if odd["line"] is None and not is_address and (odd.end() != len(text) or not _is_function(before)):
            return []
        found = odd
    if _IS_PID.match(found["file"]):
        return []  # "ray::Actor.step (pid=3311)" is whose stack comes next
    function = text[: found.start()].strip(" `*")
    rest = text[found.end() :]
    if not _is_function(function) or not _REMARK.match(rest):
        return []
    file, line = found["file"], _number(found["line"])
    if function.endswith("()") and "::" not in function and function != "operator()":
        function = function[:-2]
    is_chain = " -> " in function or " → " in function
    if found["line"] is None and not is_native(file) and not is_chain and not _names_code(function):
        return []
    groups = found.groupdict()
    if is_chain:
        names = [n.strip() for n in re.split(r" -> | → ", function)]
        return [(names[-1], file, line), *((name, "", 0) for name in reversed(names[:-1]) if name)]
    places = [(function, file, line)]
    places += [(function, file, int(n)) for n in re.findall(r"[/,](\d{1,7})", groups.get("more") or "")]
    if groups.get("second"):
        other = re.split(r"^(?:[,;/] ?| -> | → )", groups["second"])[-1]
        other_file, _, other_line = other.rpartition(":")
        places.append((function, other_file, int(other_line)))
    return places


def _at_frame(text: str) -> list[CodePlace]:
    found = _AT.match(text) or _AT_PLAIN.match(text)
    if found is None or not _REMARK.match(text[found.end() :]):
        return []
    # "INFO scripts.py:1084 -- ..." is a line of a log.
    if found["function"].isupper() and text[found.end("function")] == " ":
        return []
    return [(found["function"].removeprefix("async "), found["file"], _number(found["line"]))]


def _place_first(text: str) -> list[CodePlace]:
    start = text.find(": ") if text.startswith("(") else -1  # "(autograd engine: torch/autograd/graph.py:913 f)"
    if 0 < start < 60:
        text = text[start + 2 :].rstrip(")")
    found = _PLACE_FIRST.match(text)
    if found is None or not _REMARK.match(found["rest"]):
        return []
    # "x.py:3: word" is how compilers and warnings speak; only a call or a whole line makes it a frame.
    if found["link"].strip() in (":", "-", "–", "—", ",") and found["rest"].strip(" `*()"):
        return []
    return [(found["function"].removeprefix("async "), found["file"], _number(found["line"] or found["paren"]))]


def _number(text: str | None) -> int:
    """The number of a line; 0 where somebody wrote dots in its place."""
    return int(text) if text is not None and text.isdecimal() else 0


def _is_function(text: str) -> bool:
    """Can this be the name of a function? Prose is not: it has blanks outside of brackets."""
    if not text or len(text) > 8_000:
        return False
    if " -> " in text or " → " in text:
        return all(_is_function(part.strip()) for part in re.split(r" -> | → ", text))
    if " " not in text:
        return text[0] not in "\"'([{=#/\\" or text.startswith(("(anonymous", "(unknown"))
    if text.startswith("async ") and " " not in text[6:]:
        return True
    if ": " in text or " | " in text or "`" in text or not (text[0].isalnum() or text[0] in "_(<~"):
        return False
    return "::" in text or ("<" in text and ">" in text) or "(anonymous" in text or text.startswith(("operator", "void ", "static "))


def _names_code(function: str) -> bool:
    return "::" in function or re.fullmatch(r"[\w.<>$~@]{1,200}|0x[0-9a-f.]{3,16}", function) is not None


def _joined(text: str) -> Frames | None:
    """A whole stack on one line: ``f (a.py:1)|g (b.py:2)|``, ``main (a.py:9) → f (a.py:1)``, ``main (a.py:9);f (a.py:1) 42``."""
    for sign, order in _JOINS:
        if text.count(sign) < 1 or text.count(sign) > _MAX_JOINED:
            continue
        parts = [p for p in (q.replace("`", "").strip(" *") for q in text.split(sign)) if p and p not in ("...", "…")]
        if len(parts) < 2:
            if sign == "|" and len(parts) == 1 and text.endswith("|") and (only := one_frame(parts[0])):
                return Frames(places=tuple(only), is_whole=True)
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
        read = [
            _sound(one_frame(p)) or ([] if _COUNTED.match(p) else _loose(p)) or ([(p.removesuffix("()"), "", 0)] if _ONLY_NAME.match(p) else [])
            for p in parts
        ]
        known = sum(any(file for _, file, _ in one) for one in read)
        if sign in _IN_WORDS and known < len(parts):
            continue
        # A word behind the only place in the line is a remark: "f (a.py:7) ← here".
        if not all(read[:-1]) or known < (2 if sign in "|;" else 1) or (known == 1 and (sign == " -> " or not (read[-1] and read[-1][0][1]))):
            continue
        places = tuple(place for one in read for place in (one if order != "outer" else list(reversed(one))))
        source = "py-spy raw" if weight else "text"
        return Frames(places=places, source=source, order=order, is_whole=True, is_certain=True, weight=weight, tid=tid, name=name)
    return None
