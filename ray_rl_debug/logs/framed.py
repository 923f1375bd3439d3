"""What another program printed, shown between lines that say so: the output of a sandbox or a tool, an answer, what a test wrote."""

from __future__ import annotations

import itertools
import re

from ray_rl_debug.logs.ends import GIVES_UP
from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.named import is_one_process
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import judge
from ray_rl_debug.model.snapshot.log_book import LogWriter

MAX_LINES = 80
"""Between the line that opens and the one that closes."""
MAX_BYTES = 12 << 10
RECORDS_BEHIND = 3
"""So many records behind an output that a record introduced tell whether its program goes on."""
_SHOWN = (
    r"(?:completions?|responses?|answers?|generations?|generated text|prompts?|samples?|rollouts?|trajector(?:y|ies)|transcripts?|observations?"
    r"|(?:tool|model|program|sandbox|agent|code|test|execution|captured|user)[ _-](?:outputs?|results?|calls?|text|logs?)|std(?:out|err)|candidates?"
    r"|solutions?|submissions?|conversations?|messages)"
)
_OF_THE_RUN = r"(?i:\b(?:ranks?|workers?|trainers?|engines?|servers?|nodes?|hosts?|actors?|jobs?|pods?|launchers?|schedulers?|learners?|replicas?)\b)"
_GUEST = r"(?i:\b(?:sandbox\w*|tools?|candidates?|submissions?|solutions?|test ?cases?|unit tests?|interpreters?|repl|agents?)\b)"
"""What one of its own processes printed is no other program's; a job of a sandbox is."""
_RULE = r"(?:[-=*#~_+]{2,}|<{2,}|>{2,}|\[)"
_BEGINS = re.compile(rf"{_RULE} ?(?i:(?:begin(?:ning)?(?: of)?|start(?: of)?) )(?:[A-Za-z]+[ _-]){{0,3}}(?i:{_SHOWN})\b")
_ENDS = re.compile(rf"{_RULE} ?(?i:end(?: of)? )(?:[A-Za-z]+[ _-]){{0,3}}(?i:{_SHOWN})?\b|</(?i:{_SHOWN})>$")
"""A pair of words closes what it opened, whatever stands in between."""
_HEADING = re.compile(rf"(?P<rule>[-=*#~_+]{{2,}}|<{{2,}}|>{{2,}}) ?(?!(?i:end)\b)[^\n]{{0,60}}?\b(?i:{_SHOWN})\b")
_CAPTURED = re.compile(r"-{3,} ?Captured (?:stdout|stderr|log)\b")
_BEHIND_CAPTURED = re.compile(r"-{3,} ?Captured |={3,} |_{3,} |\S+::\S+ +(?:PASSED|FAILED|XFAIL|XPASS|SKIPPED|ERROR)\b")
"""Where pytest shows what a test printed, and what it writes next."""
_DIFF = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|diff --git ")
_LINE = re.compile(r"[-=*#~_+<>]{3,}$")
_ROW = re.compile(r"\|.*\|$")
_INTRODUCED = re.compile(
    rf"(?:\b(?i:std(?:out|err)|output|observation|{_SHOWN})(?: (?i:follows|was|is))?(?: ?\([^()\n]{{1,40}}\))?|\[(?:std(?:out|err)|output)\]) ?:?$"
)
"""A record that says whose words come next: ``job 7: stderr follows``, ``observation (exit code 1):``."""


_OF_BYTES = (
    rb"(?:completion|response|answer|generation|generated|prompt|sample|rollout|trajector|transcript|observation|output|result|stdout|stderr|captured"
    rb"|candidate|solution|submission|conversation|messages|logs?\b|text\b|calls?\b)"
)
_MAY_OPEN = re.compile(
    rb"(?:[-=*#~_+<>]{2}|\[ ?(?:begin|start))[^\n]{0,70}"
    + _OF_BYTES
    + rb"|\|[ \t]*"
    + _OF_BYTES
    + rb"s?[ \t]*\||"
    + _OF_BYTES
    + rb"(?:text|s|ies)?(?: follows| was| is)?(?: ?\([^()\n]{1,40}\))?[\] :]{0,3}\r?$|@@ -|diff --git",
    re.IGNORECASE | re.MULTILINE,
)
"""Reading heads takes long, and most logs show nothing of this kind."""


def is_shown(window: Window, writer: LogWriter, start: int, end: int) -> bool:
    """Does a line stand between two others, the first of which opens what another program printed, and the second closes it?"""
    if _MAY_OPEN.search(window.text, max(0, start - MAX_BYTES), start) is None:
        return False
    heads = [
        [head for row in rows if is_one_process((head := window.head(row[:400].decode("utf-8", "replace"))).writer, writer)]
        for rows in (
            window.text[max(0, start - MAX_BYTES) : start].split(b"\n")[-2 : -2 - MAX_LINES : -1],
            window.text[end + 1 : end + 1 + MAX_BYTES].split(b"\n")[:MAX_LINES],
        )
    ]
    before, after = heads
    own = window.head(window.text[start : min(end, start + 400)].decode("utf-8", "replace"))
    return (
        _is_in_diff(window, start)
        or _between_words(before, after)
        or _is_captured(before, after)
        or _between_rules(before, after)
        or _is_introduced(before, own, after)
        or _is_in_table(before, own)
    )


def _is_in_diff(window: Window, start: int) -> bool:
    """Do all lines from a diff's own mark down to this one look like lines of a diff?"""
    for raw in window.text[max(0, start - MAX_BYTES) : window.text.find(b"\n", start)].split(b"\n")[: -2 - MAX_LINES : -1]:
        head = window.head(raw[:400].decode("utf-8", "replace"))
        if _DIFF.match(head.text):
            return True
        if head.text and not head.indent and head.text[0] not in "+-":
            return False
    return False


def _between_words(before: list[Head], after: list[Head]) -> bool:
    """The nearest such word above opens, the nearest below closes."""
    return _nearest(before, _BEGINS, _ENDS) and _nearest(after, _ENDS, _BEGINS)


def _nearest(heads: list[Head], wanted: re.Pattern[str], other: re.Pattern[str]) -> bool:
    for head in heads:
        if wanted.match(head.text):
            return True
        if other.match(head.text):
            return False
    return False


def _is_captured(before: list[Head], after: list[Head]) -> bool:
    return _nearest(before, _CAPTURED, _BEHIND_CAPTURED) and any(_BEHIND_CAPTURED.match(head.text) for head in after)


def _between_rules(before: list[Head], after: list[Head]) -> bool:
    """A heading between rules opens; the next rule closes. A record in between is the program's own."""
    for head in before:
        if _is_record(head) or _LINE.match(head.text):
            return False
        if (found := _HEADING.match(head.text)) is not None:
            if _is_of_the_run(head):
                return False
            rule = found["rule"][:2]
            for below in after:
                if _is_record(below):
                    return False
                if below.text.startswith(rule):
                    return True
            return False
    return False


def _is_introduced(before: list[Head], own: Head, after: list[Head]) -> bool:
    """A record opens, and the next record of its kind closes, where that and those behind it tell of no end."""
    opening = next((head for head in before if _is_record(head)), None)
    if opening is None or _is_record(own) or not _INTRODUCED.search(opening.text) or _is_of_the_run(opening):
        return False
    records = [head for head in after if _is_record(head)][:RECORDS_BEHIND]
    like = bool(records) and (records[0].is_stamped, records[0].level is None) == (opening.is_stamped, opening.level is None)
    return like and all(judge(head.text, head.level) is None and not GIVES_UP.search(head.text) for head in records)


def _is_in_table(before: list[Head], own: Head) -> bool:
    """Is it a row of a table of samples, whose heading names what was asked or said?"""
    if not _ROW.match(own.text):
        return False
    rows = [head.text for head in itertools.takewhile(lambda head: _ROW.match(head.text) is not None, before)]
    return bool(rows) and re.search(rf"\|\s*(?i:{_SHOWN})\s*\|", rows[-1]) is not None


def _is_of_the_run(head: Head) -> bool:
    return re.search(_OF_THE_RUN, head.text) is not None and re.search(_GUEST, head.text) is None


def _is_record(head: Head) -> bool:
    return head.level is not None or head.is_stamped
