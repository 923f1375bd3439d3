"""One place of code in a piece of text, as tools and people write it: ``f (a.py:1)``, ``a.py:1 in f``, ``f @ a.py:1``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import CodePlace
from ray_rl_debug.formats.pasted import loose

_EXTENSION = r"(?:pyx?|pyi|dll|pyd|so(?:\.[\d.]{1,12})?|cc?|cpp|cxx|cu|cuh|hh?|hpp|inl|rs|go|S|js|ts|dylib|c\.h)"
FILE = (
    r"(?:<(?:frozen [\w.]{1,80}|string|stdin|unknown|[\w. -]{1,60})>|(?:[A-Za-z]:)?[^\s()\[\]<>:,;|`'\"]{0,300}\."
    + _EXTENSION
    + r"|python[\d.]{0,6})"
)
NUMBER = r"(?::|#L|,? line |:L|:~)(?P<line>\d{1,7}|\.{3}|…|\?{1,4})(?P<more>(?:[/,-]\d{1,7}){0,4})(?::\d{1,5})?"
NAME = r"(?:async )?(?:<\w{1,30}>|[^\W\d][\w.]{0,160}(?:<locals>\.?[\w.<>]{0,120})?(?:<(?:lambda|listcomp|genexpr|module)>)?)"

_PAREN = re.compile(r" {0,60}\((?P<file>" + FILE + r")(?:" + NUMBER + r")?(?P<second>(?:[,;/] ?| -> | → )" + FILE + r":\d{1,7})?\)")
_PAREN_ODD = re.compile(r" {1,60}\((?P<file>\[\w{1,30}\]|\?{1,3}|[^()\s]{1,200}?)(?::(?P<line>\d{1,7}))?\)")
_AT = re.compile(
    r"(?P<function>" + NAME + r")(?:\(\))?(?: {0,40}@ ?| {1,4}at | in |, | — | – | - |: | {1,60})\(?(?P<file>" + FILE + r")" + NUMBER + r"\)?"
)
_AT_PLAIN = re.compile(r"(?P<function>" + NAME + r") @ (?P<file>[^\s:]{1,300})(?::(?P<line>\d{1,7}))?")
_PLACE_FIRST = re.compile(
    r"(?P<file>" + FILE + r")(?:" + NUMBER + r"|\((?P<paren>\d{1,7})\))"
    r"(?P<link>,? {1,12}in {1,4}|: ?in |: | {1,40}\(| {1,4}[-–—] | {1,60}| → | -> |,)(?P<function>"
    + NAME
    + r")(?:\([^()]{0,120}\)|\(\)?|\))?(?P<rest>.{0,200})$"
)
_BRACKETS = re.compile(r"(?P<function>" + NAME + r")(?:\(\))? {1,40}\[(?P<file>" + FILE + r"):(?P<line>\d{1,7})\]$")
_PDB = re.compile(r"(?P<file>" + FILE + r")\((?P<line>\d{1,7})\)(?P<function>" + NAME + r")\(\)(?:->.{0,200})?$")
_LINE_FIRST = re.compile(r"(?:line |L)?(?P<line>\d{1,7})[:,]? {1,4}(?P<function>" + NAME + r")(?:\(\))? (?:in|at|@) (?P<file>" + FILE + r")$")
_AUSTIN = re.compile(r"(?P<file>" + FILE + r"):(?P<function>" + NAME + r"):(?P<line>\d{1,7})$")
ADDRESS = re.compile(r"^0x[0-9a-fA-F]{4,16}$")
_REMARK = re.compile(r"^[\s`*]{0,40}(?:$|[x×]\s?\d|[(\[<#←↑⇐⟵─━=*/`~^!?,;.:|\\{—–-]|\u2b05|\u26a0|[^\x00-\x7f])")
BULLET = re.compile(
    r"^(?:[-*+•·‣▸►▪|│├└╰╭┌─> ]{1,20}|\d{1,3}[.)] {1,4}|at |in |via |from |calls |called from |"
    r"<-{1,3} ?|-{1,3}> ?|[←→] ?|#\d{1,3}:? {1,6}|↳ ?|⮑ ?|\[\d{1,3}\] ?)"
)
_IS_STATE = re.compile(
    r"(?:waits?|waiting|stuck|blocked|blocks|idle|active|running|hangs?|hung|hanging|here|sleeping|sleeps|spinning)$", re.IGNORECASE
)
"""``all_reduce (waits)``: in brackets behind a name stands what it does, and no file."""
_IS_PID = re.compile(r"(?:pid|PID)[=: ]{1,2}\d{1,9}$")
_PYTHON_NAME = re.compile(r"[`*]{0,3}(?!(?:File|file)$)(?P<name>[\w.<>$ ]{1,300}?)[`*]{0,3}(?:\([^()]{0,300}\))?[`*]{0,3}$")
"""What can be a function of Python, with its class, and with arguments."""


def one_frame(text: str) -> list[CodePlace]:
    """The places of one frame, innermost first; empty when this is no frame."""
    if (found := _LINE_FIRST.match(text)) is not None:
        return [(found["function"], found["file"], int(found["line"]))]
    if tight := _PDB.match(text) or _AUSTIN.match(text) or _BRACKETS.match(text):
        return [(tight["function"], tight["file"], int(tight["line"]))]
    return _paren_frame(text) or _at_frame(text) or _place_first(text)


def sound(found: list[CodePlace]) -> list[CodePlace]:
    """Places whose functions are names; of Python's their arguments are left out. Where one is no name, the line was misunderstood."""
    names = [f if not p.endswith(".py") else m["name"] if (m := _PYTHON_NAME.match(f)) else "" for f, p, _ in found]
    return [(name, file, line) for name, (_, file, line) in zip(names, found, strict=True)] if all(names) else []


def in_any_order(text: str) -> list[CodePlace]:
    if len(text) > loose.MAX_CHARS or not ("." in text or ":" in text):
        return []
    told = loose.place(BULLET.sub("", text, count=1))
    return [told] if told is not None else []


def is_native(file: str) -> bool:
    """Is this a shared library or a source file of a compiled language?"""
    return ".so" in file or file.endswith((".dll", ".pyd", ".c", ".cc", ".cpp", ".h", ".cu", ".rs", ".dylib", ".S"))


def _paren_frame(text: str) -> list[CodePlace]:
    found = None
    for candidate in _PAREN.finditer(text):
        if candidate["line"] is None and "python" in candidate["file"][:6] and not text.endswith(")"):
            continue
        found = candidate
        break
    if found is None:
        each = list(_PAREN_ODD.finditer(text))
        if not each:
            return []
        odd = next((one for one in each if one["line"] is not None), each[0])
        before = text[: odd.start()]
        is_address = ADDRESS.match(before.strip()) is not None
        if odd["line"] is None and not is_address and (odd.end() != len(text) or not _is_function(before)):
            return []
        found = odd
    if found["line"] is None and _IS_STATE.match(found["file"]):
        return []
    if _IS_PID.match(found["file"]):
        return []  # "ray::Actor.step (pid=3311)" is whose stack comes next
    function = text[: found.start()].strip(" `*")
    rest = text[found.end() :]
    if not _is_function(function) or not _REMARK.match(rest):
        return []
    file, line = found["file"], _number(found["line"])
    if function.endswith("()") and "::" not in function and function != "operator()":
        function = function[:-2]
    if found["line"] is None and not is_native(file) and not _names_code(function):
        return []
    groups = found.groupdict()
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
    # "INFO scripts.py:1084 -- ..." is a line of a log; "at a.py:3 (f)" names the function behind.
    if found["function"] in ("at", "in", "from", "via") or (found["function"].isupper() and text[found.end("function")] == " "):
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
    if not text or len(text) > 8_000 or text.isdecimal():
        return False
    if " " not in text:
        return text[0] not in "\"'([{=#/\\" or text.startswith(("(anonymous", "(unknown"))
    if text.startswith("async ") and " " not in text[6:]:
        return True
    if ": " in text or " | " in text or "`" in text or not (text[0].isalnum() or text[0] in "_(<~"):
        return False
    return "::" in text or ("<" in text and ">" in text) or "(anonymous" in text or text.startswith(("operator", "void ", "static "))


def _names_code(function: str) -> bool:
    return "::" in function or re.fullmatch(r"[\w.<>$~@]{1,200}|0x[0-9a-f.]{3,16}", function) is not None
