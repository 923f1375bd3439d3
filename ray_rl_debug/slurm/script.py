"""A job script as the lint rules see it: logical lines with their numbers, directives, variables put in."""

from __future__ import annotations

import re

import msgspec

_ASSIGN = re.compile(r"^\s*(?:export\s+|local\s+|readonly\s+)?(\w+)(\+?)=(\(.*\)|\"[^\"]*\"|'[^']*'|[^\s;&|]*)")
_USE = re.compile(r"\"?\$\{?(\w+)(?:\[[@*]\])?\}?\"?")
_LOOP = re.compile(r"(?:^|[;&|{(]|\b(?:then|do|else)\b)\s*(while|until|for)\b")
_DONE = re.compile(r"(?:^|[;&|}]|\s)done\b")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One logical line: continued lines joined, comments removed."""

    number: int
    text: str
    expanded: str
    """With the script's own constant variables and arrays put in."""
    loops: tuple[str, ...] = ()
    """Kinds of the loops around it: ``while``, ``until``, ``for``."""
    is_background: bool = False


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed job script."""

    lines: tuple[Line, ...]
    directives: dict[str, tuple[int, str]]
    """``#SBATCH`` options: long name to line number and value."""
    text: str
    """All logical lines, for questions about the whole script."""

    def has(self, pattern: str) -> bool:
        return re.search(pattern, self.text) is not None


_SHORT = {
    "-N": "nodes",
    "-n": "ntasks",
    "-c": "cpus-per-task",
    "-J": "job-name",
    "-o": "output",
    "-e": "error",
    "-t": "time",
    "-p": "partition",
    "-A": "account",
    "-q": "qos",
    "-C": "constraint",
    "-w": "nodelist",
    "-x": "exclude",
    "-G": "gpus",
}


def parse(text: str) -> Script:
    """The script of a file's text. Not a bash parser: enough for one command per line, with continuations and here-documents."""
    directives: dict[str, tuple[int, str]] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        if raw.startswith("#SBATCH"):
            for name, value in _options(raw[len("#SBATCH") :]):
                directives[name] = (number, value)
    values: dict[str, str] = {}
    lines: list[Line] = []
    loops: list[str] = []
    for number, logical in _logical(text):
        found = _ASSIGN.match(logical)
        if found and "$(" not in found[3]:
            plain = found[3].strip("()\"'")
            values[found[1]] = f"{values.get(found[1], '')} {plain}" if found[2] else plain
        loops += _LOOP.findall(logical)
        lines.append(
            Line(
                number=number,
                text=logical,
                expanded=_expand(logical, values),
                loops=tuple(loops),
                is_background=re.search(r"(?<![&>|])&\s*(?:$|;|\))", logical) is not None,
            )
        )
        for _ in _DONE.findall(logical):
            if loops:
                loops.pop()
    return Script(lines=tuple(lines), directives=directives, text="\n".join(line.text for line in lines))


def _options(text: str) -> list[tuple[str, str]]:
    words = text.split("#")[0].split()
    found = []
    for i, word in enumerate(words):
        following = words[i + 1] if i + 1 < len(words) and not words[i + 1].startswith("-") else ""
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found.append((name, value if equals else following))
        elif word[:2] in _SHORT:
            found.append((_SHORT[word[:2]], word[2:].lstrip("=") or following))
    return found


def _logical(text: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    open_number, joined, until = 0, "", ""
    for number, raw in enumerate(text.splitlines(), 1):
        if until:
            until = "" if raw.strip() == until else until
            continue
        line = _without_comment(raw)
        joined, open_number = (f"{joined} {line.strip()}", open_number) if joined else (line, number)
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip()
            continue
        heredoc = _HEREDOC.search(joined)
        if heredoc and "<<<" not in joined:
            until = heredoc[2]
        if joined.strip():
            found.append((open_number, joined))
        joined = ""
    if joined.strip():
        found.append((open_number, joined))
    return found


def _without_comment(line: str) -> str:
    quote = ""
    for i, char in enumerate(line):
        if quote:
            quote = "" if char == quote and line[i - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and (i == 0 or line[i - 1].isspace()):
            return line[:i].rstrip()
    return line.rstrip()


def _expand(text: str, values: dict[str, str], depth: int = 3) -> str:
    for _ in range(depth):
        again = _USE.sub(lambda m: values.get(m[1], m[0]), text)
        if again == text:
            break
        text = again[:20_000]
    return text
