"""What in a log says that something ended. An error beside which nothing says so was logged: it may be a failure, and may be nothing.

A logger writes level *error* for what a program survives as well as for what ends it, and a block that was pasted alone does not show what came
behind it. So a line is told as a failure only where its words, its form, the catalogue or the rest of the logs say that somebody ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.logs.handled import LACKS
from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.logs.words import EXCEPTION, SMALL_TOOL, gives_up
from ray_rl_debug.model.snapshot.log_book import LogEvent
from ray_rl_debug.signatures import Signature
from ray_rl_debug.story.candidates import Candidate
from ray_rl_debug.story.doubts import is_doubtful

WHY = "it was logged as an error; nothing in these logs says that anything ended by it"
SETTLES = "the lines behind it in the same log (later steps: it was survived), the exit code of that process, or its stacks"
_LIVES = (
    r"(?:[Ee]ngine(?: ?[Cc]ore)?|[Ss]erver|[Ww]orker\w*|[Ss]cheduler|[Ss]hard(?: \d+)?|[Cc]ontainer|[Jj]ob|[Rr]ank(?: \d+)?|[Pp]rocess"
    r"|(?:[Rr]ollout|[Mm]ain|[Tt]rain\w*) thread"
    r"|[Tt]rain(?:er|ing)|GCS|raylet|[Nn]ode|[Aa]ctor|[Dd]river|[Pp]rogram|[Rr]un|[Ll]auncher|[Ll]oop|[Ss]cript)"
)
"""What runs, and may end."""
_ENDS = re.compile(
    rf"\b{_LIVES}\b.{{0,60}}\b(?:failed to (?:start|launch|initiali[sz]e|boot)|ended|stopped|(?:has |have )?died|is dead|is (?:gone|lost|down))\b"
    rf"|\b[Ff]ailed to (?:start|launch|initiali[sz]e|boot) (?:the |a |an )?(?:\w+ ){{0,2}}{_LIVES}\b"
    r"|(?<!\bon )\b(?:exits?|exited|quits?)(?: (?:with|because|due|after|now)\b|[:;,.]|$)|\bcrash(?:ed|es|ing)?\b|\bhit an exception\b"
    r"|\b[Uu]n(?:caught|handled) \w*(?:[Ee]xception|[Ee]rror)|\bcaught in function '(?:main|run|train)\w*'"
    r"|\b(?:[Tt]rial|[Tt]ask|[Jj]ob)(?: task)?(?: '[\w-]{1,80}')? (?:has )?failed(?: (?:for|with|after|on)\b|$)"
    r"|, (?:stopping|stopped|quitting|leaving)\b|\b[Uu]ncaught$"
    r"|\bsetting DOWN\b|\bbeing killed\b|\bTERMINATED\b|\bDUE TO (?:\S+ ){0,3}FAILURE|\b(?:[Cc]annot|[Uu]nable to) (?:go on|continue|proceed)\b"
    r"|\bfatal\b|\bFATAL\b|\barguments? (?:is|are) required|\bunrecognized arguments|\b[Nn]o such (?:option|command)\b"
    r"|\b[Mm]issing (?:option|argument|parameter|command)\b"
)
"""Words of a record that somebody ended, or refused to start: parsers of command lines end the program."""
_OF_DEVICES = ("cuda", "accelerators", "nccl")
"""Layers of the catalogue."""
_LEAVES_IT_WELL = re.compile(r"\b[Oo]ut of memory\b")
"""Of errors of a device those that a program may catch and go on from."""
_TRIED = re.compile(
    r"\b(?:[Ff]ailed|fails|[Ff]ailure|[Cc]ould not|[Cc]annot|[Uu]nable|[Nn]o permission|skipp\w+|tr(?:y|ied)|inject\w+"
    r"|possible|may|might|would|because|means?)\b"
    r"|\b[Ee]rror (?:in|at|during|while|when|on|from|\w+ing)\b"
)
"""In front of a known error in a sentence of a program: what it tried, or talks about. What came of that it says next."""
_FAILED = re.compile(r"\b(?:[Ff]ail(?:ed|ure|s)?|[Ee]rror(?!\])|[Ee]xcept(?:ion)?|[Uu]nable|[Cc]ould not|[Cc]annot|[Nn]ot found)\b")
"""In front of it and a colon."""
_RAISES = re.compile(r"\b(?:[Ee]rror|ERROR)(?: message| from server \(\w+\)| response from daemon)?: ")
"""In front of it: the line is an error's own, which tells its reasons one after the other."""
_SAYS_WHAT_IT_TRIED = re.compile(
    r"(?:\[[\w .:-]{1,40}\] )?(?:(?:[Ff]ailed|[Uu]nable) to|[Cc]ould not|[Ee]rror (?:in|at|during|while|when|on|from|\w+ing)) (?:\S+ ){1,12}?\S*: \S"
)
"""How a program begins that tells of an error which it caught: what it tried, then why it failed."""
_OF_KUBERNETES = re.compile(r"(?:\S+ +)?Warning {2,}")
"""A sort of its events, no level of a record."""
_WORD = re.compile(r"\b[A-Za-z]{2,}\b")
MIN_WORDS = 2
"""In front of a known error in a warning: a sentence that only mentions it."""
_NO_DIGITS = dict.fromkeys(b"0123456789")
_NAMELESS = re.compile(r"(?:Error|Exception|error): ")
"""What tools and JavaScript begin any complaint with; a class of an exception says that it was raised."""


def only_noted(found: Sequence[Candidate]) -> bool:
    """Were errors logged that the run is not known to have survived, with nothing in all these logs that says that anything ended?"""
    serious = [c for c in found if c.survived is None]
    return bool(serious) and not any(tells_of_an_end(c) or (_is_last(c) and not c.event.is_followed) or _passed_before(c, found) for c in serious)


def tells_of_an_end(one: Candidate) -> bool:
    """Does a failure itself say that a process, or what it ran, ended?

    Known errors do, as the catalogue holds those that end what raised them; not what a function caught and a logger wrote down, but for those of a
    device, which no catching mends, nor a part that was looked for and not found. So does a traceback that no record holds: Python prints that when
    nobody catches.
    """
    event = one.event
    if is_doubtful(event) or (event.kind == "error" and event.signature is None and SMALL_TOOL.match(event.text)):
        return False
    known = one.signature if one.signature is not None and one.signature.effect != "info" else None
    is_passed = _is_passed(event, known)
    if event.kind == "death" or event.level == "F" or (known is not None and not is_passed):
        return True
    # Between the first and the last line of a traceback stand frames and code.
    said = (event.record or "", *(event.lines[:1] if event.kind == "traceback" else event.lines))
    if is_passed and known is not None and event.kind != "traceback":
        said = (*(_around_known(event, known) or ()), *said)  # an actor that died, as a reason, is no end of who says so
    elif event.caught is not True and not event.is_bare:
        said = (event.text, *said)  # what was caught has the words of whoever raised it, not of the program
    if any(gives_up(text) or _ENDS.search(text) for text in said):
        return True
    if is_passed:
        return False
    if event.kind == "traceback":
        return event.caught is False or (event.level is None and not event.is_bare)
    if _SAYS_WHAT_IT_TRIED.match(event.text):
        return False
    return event.level is None and not (EXCEPTION.match(event.text) and _NAMELESS.match(event.text))


def _is_passed(event: LogEvent, known: Signature | None) -> bool:
    """Did somebody catch, look for, or talk about what the line tells? So is it with a warning that somebody else has gone."""
    if event.caught is True and (known is None or known.layer not in _OF_DEVICES or _LEAVES_IT_WELL.search(event.text)):
        return True
    is_record = event.level in ("W", "E") and event.kind in ("error", "known")
    if event.is_own_words and LACKS.search(event.text):
        return True
    if (event.is_own_words or is_record) and known is not None and _is_reason(event, known):
        return True
    if known is not None and known.effect == "cascade" and event.kind != "traceback" and _NAMELESS.match(event.text):
        return True
    if known is not None and known.one_try is not None and event.count == 1 and re.search(known.one_try, event.text):
        return True
    return known is not None and known.effect == "cascade" and event.level in ("D", "I", "W")


def _is_reason(event: LogEvent, known: Signature) -> bool:
    """Does a sentence name a known error as the reason of something that it tells first?"""
    around = _around_known(event, known)
    if around is None or _OF_KUBERNETES.match(event.text):
        return False
    before = around[0].rpartition(". ")[2]
    is_told_first = _TRIED.search(before) is not None or (before.endswith(": ") and _FAILED.search(before) is not None)
    is_warning = event.level == "W" and len(_WORD.findall(before)) >= MIN_WORDS
    return is_warning or (is_told_first and _RAISES.search(before) is None)


def _around_known(event: LogEvent, known: Signature) -> tuple[str, str] | None:
    """What the sentence tells before and behind the known error; None where that is an error's own line."""
    text = read_head(event.text).text if event.kind == "known" else event.text
    found = re.search(known.pattern, text)
    return None if found is None or EXCEPTION.match(text) else (text[: found.start()], text[found.end() :])


def _is_last(one: Candidate) -> bool:
    """Did work stop there? Steps were counted before it, and none behind it."""
    return bool(one.book.steps) and all(s.file_line < _last_line(one.event) for s in one.book.steps)


def _passed_before(one: Candidate, found: Sequence[Candidate]) -> bool:
    """Did its writer survive the same before, and say so, and not this time?"""
    event = one.event
    own = (c.event for c in found if c.survived is not None and c.book is one.book)
    return any((e.kind, e.writer, e.signature) == (event.kind, event.writer, event.signature) and _same(e.text, event.text) for e in own)


def _same(a: str, b: str) -> bool:
    return a.translate(_NO_DIGITS) == b.translate(_NO_DIGITS)


def _last_line(event: LogEvent) -> int:
    return max(event.last_line or 0, event.text_line or 0, event.file_line)
