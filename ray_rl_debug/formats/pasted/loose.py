"""One frame in whatever order and with whatever signs somebody wrote it: a function, a file, and mostly a line, and nothing else that has a meaning.

``a.py:12:f``, ``f, a.py, 12``, ``f(self, x) a.py:12``, ``func=f file=a.py line=12``, ``[f](https://host/a.py#L12)``, ``12.0% f a.py L12``,
``pkg.mod.f:12``. It is asked last: the forms of tools are known exactly. A line with any other word in it is no frame.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import CodePlace
from ray_rl_debug.formats.pasted.orientation import KNOWN

MAX_CHARS = 600
_EXTENSION = r"(?:pyx?|ipynb)"
_FILE = re.compile(r"(?<![\w./~-])(?P<file>(?:[A-Za-z]:)?[\w./~<>+@-]{0,300}?[\w>]\." + _EXTENSION + r")(?![\w-]|\.\w)")
_LINK = re.compile(r"\[(?P<text>[^\[\]]{1,200})\]\((?P<address>[^()\s]{1,500})\)")
_ADDRESS = re.compile(r"(?:https?://|\.{0,2}/)[^\s()]{0,400}?/(?P<file>[^\s()/#]{1,120}\." + _EXTENSION + r")(?:#L(?P<line>\d{1,7}))?(?:-L\d{1,7})?$")
_BEHIND = re.compile(r"\s?(?::{1,2}|#L|:L|~)(?P<line>\d{1,7})(?::\d{1,5})?(?!\w)|\s?\((?P<paren>\d{1,7})\)")
_WORD = re.compile(r"(?:<\w|[A-Za-z_])[\w.<>]{0,160}(?:\([^()]{0,120}\))?|\d[\w.]{0,20}%?|[^\s\w]")
_NUMBER = re.compile(r"\d{1,7}$")
_MEASURE = re.compile(r"\d{1,9}(?:\.\d{1,6})?(?:%|s|ms|us)?$")
_FUNCTION = re.compile(r"(?P<name>(?:<(?:module|lambda|listcomp|genexpr)>|[A-Za-z_]\w{0,100})(?:\.[\w<>]{1,100}){0,8})(?P<call>\([^()]{0,120}\))?$")
_DOTTED = re.compile(
    r"(?P<modules>[a-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){0,8})(?P<sign>[.:])(?P<function><?[A-Za-z_]\w{0,100}>?)(?:\(\))?"
    r"(?::| \(line |, line | line |:L|#L)(?P<line>\d{1,7})\)?$"
)
_NAME_ALONE = re.compile(
    r"^\W{0,16}(?:\d{1,3}[.:)] {1,4})?(?P<modules>[a-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){0,8})\."
    r"(?P<function><?[A-Za-z_]\w{0,100}>?)(?:\(\))?[`*]{0,3}$"
)
_ENDINGS = frozenset("py txt log out err json yaml yml toml cfg ini sh md csv com org net io local internal so pt bin gz zip".split())
"""What a name ends with that is of a file or a machine."""
_FILLERS = frozenset(
    "in at of line file filename path function func fn name lineno code frame method from l summary framesummary object async called by def no module"
    " loc location where via".split()
)
"""Words that only say what the next one is."""
_NO_FUNCTIONS = frozenset(
    "the a an and or is was are were to for on with this that it see error warning note info debug fixed fix add added test tests passed failed"
    " skipped xfail edit changed change new old deleted removed renamed modified created updated todo same also but not if when while then than"
    " as be has have had do does did can will would should could may might must"
    " here there which who what why how all any each other no yes ok done".split()
)
_LINKED = re.compile(r"(?: in |::?)[\w.<>]{1,160}(?:\(\))?$")
_SIGNS = re.compile(r"[\"']")
_NAMED = re.compile(r"[_.(]|[a-z][A-Z]")
"""What a word of a sentence has not."""
_METRIC = re.compile(r"\w\s{0,3}[:=]\s{0,3}-?\d{1,9}\.\d")
"""``loss: 0.01`` behind the place of a line of a log: a name and its value."""
_MOST_MEASURES = 2
"""Numbers beside the line's own: an index, a share. Profilers write more of them."""
_PUNCTUATION = frozenset(" ,;:|-–—=()[]{}<>@\"'`*#/→↳└├─│•·.!")


def place(text: str) -> CodePlace | None:
    """The place in a text that names one and says nothing else."""
    if len(text) > MAX_CHARS:
        return None
    text = _LINK.sub(_of_link, text)
    if text.startswith("{"):
        text = re.sub(r"[{}\"']", " ", text)
    text = _SIGNS.sub(" ", text.replace("`", "").replace("**", "")).strip(" |,;*")
    if text.startswith(("<frame ", "<Frame")):
        text = text.strip("<>")
    found = _FILE.search(text)
    if found is None:
        return _dotted(text)
    before, after, line = text[: found.start()], text[found.end() :], None
    if behind := _BEHIND.match(after):
        line, after = int(behind["line"] or behind["paren"]), after[behind.end() :]
    if "://" in before or _FILE.search(after) is not None or _METRIC.search(after):
        return None
    return _with_function(before, found["file"], line, after)


def dotted_name(text: str) -> CodePlace | None:
    """``torch.distributed.all_reduce`` alone in a line: with no file, only below somebody's name is it a frame."""
    found = _NAME_ALONE.match(text) if len(text) <= MAX_CHARS else None
    if found is None or found["function"] in _ENDINGS:
        return None
    modules = found["modules"].split(".")
    if modules[0] == "self":
        return None  # a line of source code
    function = found["function"]
    return (
        (function, "/".join(m for m in modules if not m[0].isupper()) + ".py", 0)
        if len(modules) > 1 or "_" in function or function in KNOWN
        else None
    )


def is_of_file(name: str) -> bool:
    """Is it the name of a file or a machine, and of no function?"""
    return name.rsplit(".", 1)[-1] in _ENDINGS and "." in name


def _with_function(before: str, file: str, line: int | None, after: str) -> CodePlace | None:
    """The only word beside a file is its function."""
    function: re.Match[str] | None = None
    measures = 0
    words = [*_WORD.findall(before), *_WORD.findall(after)]
    for position, word in enumerate(words):
        lowered = word.lower()
        if lowered in _FILLERS or word in _PUNCTUATION or lowered.startswith("0x"):
            continue
        if _MEASURE.match(word):
            told = words[position - 1].lower() if position else ""
            if (
                line is None
                and _NUMBER.match(word)
                and (told in ("line", "lineno", "l", ":", ",", "=", ")", "#", "|") or position == len(words) - 1 or len(before) == 0)
            ):
                line = int(word)
            else:
                measures += 1
            continue
        if line is None and lowered[0] == "l" and _NUMBER.match(lowered[1:]):
            line = int(lowered[1:])
            continue
        if function is not None or lowered in _NO_FUNCTIONS or (function := _FUNCTION.match(word)) is None:
            return None
    if function is None or measures > _MOST_MEASURES or (function["name"].isupper() and function["call"] is None):
        return None
    is_plain = _NAMED.search(function[0]) is None and function[0][0] != "<"
    if is_plain and (function["name"][0].isupper() or (line is None and (words != [*words[:-1], function[0]] or not _LINKED.match(after)))):
        return None
    return (function["name"], file, line or 0)


def _dotted(text: str) -> CodePlace | None:
    """``pkg.mod.f:12``: modules are folders and a file; a class is none."""
    found = _DOTTED.match(text)
    if found is None:
        return None
    modules = found["modules"].split(".")
    of_class = next((i for i, name in enumerate(modules) if name[:1].isupper()), len(modules))
    function = found["function"]
    if not of_class or not ("_" in found[0] or function in KNOWN or of_class < len(modules)):
        return None  # "node1.cluster:29500" is a machine and its port
    return (function, "/".join(modules[:of_class]) + ".py", int(found["line"]))


def _of_link(found: re.Match[str]) -> str:
    """A link's words; where they name no file, the file to which it leads."""
    text = found["text"]
    if _FILE.search(text.replace("`", "")) is not None:
        return text
    address = _ADDRESS.match(found["address"])
    if address is None:
        return text
    return f"{text} {address['file']}" + (f":{address['line']}" if address["line"] else "")
