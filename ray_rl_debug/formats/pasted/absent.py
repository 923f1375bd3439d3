"""Ranks of which a sentence says that they have not come: ``rank 1 waits in `broadcast`, but rank 0 is not calling it``, ``rank 3 never entered``.

Or what a tool said, as somebody tells it: *torchfrtrace names it: missing ranks: {0}*, *Rank 1 has launched up to operation 9 — Rank 0 ... 8*.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.formats.dump import Said
from ray_rl_debug.formats.pasted import said
from ray_rl_debug.formats.pasted.partial import Partial

_ABSENT = re.compile(
    r"\b(?:global )?ranks? ?#?"
    + said.NUMBERS
    + r" (?:(?:is|was) the (?:only )?one (?:that|which|who) )?(?:(?:is|are|has|have|had|was|were|do|does|did) ?)?"
    r"(?:never|not|n't|n’t)(?: yet| even)? "
    r"(?:call|enter|join|reach|arriv|post|issu|launch|submitt?|show)(?:e?s|e?d|ing)?\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?P<name>(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}|(?:node|host|machine|stage|engine|replica|worker|server) ?#?\d{1,4}))\b[`*]{0,3} "
    r"(?:(?:(?:is|was) the (?:only )?one (?:that|which|who) )?(?:(?:is|are|has|have|had|was|were|do|does|did) ?)?"
    r"(?:never|not|n't|n’t)(?: yet| even)? "
    r"(?:call|enter|join|reach|arriv|post|issu|launch|submitt?|show|print|logg?|com|send|answer)(?:e?s|e?d|ing|e)?\b"
    r"|(?:has|have|shows?) no such (?:line|call|entry|frame|message)"
    r"|(?:(?:has|have|had|already|just|is|are|was|were|got|been) ){0,3}(?:died|crashed|dead|killed|evicted|preempted|OOM[- ]?killed)\b)",
    re.IGNORECASE,
)
"""The same of parts and machines, and of their end: ``DP1 never calls it``, ``node 2 has no such line``, ``stage 1 died``."""
_OF_ENTRY = re.compile(
    r"[\W\d]{0,12}(?P<name>(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}|(?:ranks?|node|host|stage|worker) ?#?\d{1,4})\b[^:\n]{0,24}:\s.{0,200}"
    r"(?:->|=>|→|⇒|,|;|—)\s?never (?:calls?|enters?|joins?|reaches|comes|gets) ",
    re.IGNORECASE,
)
"""``- DP1 / TP4-7: empty batch -> returns at once -> never calls it``: an entry of a list says so of the one that it is about."""
_ONLY = re.compile(
    r"\b(?:so |and )?only (?:the )?(?:global )?(?:rank ?#?\d{1,5}|rank zero|(?:main|master) process|one rank|rank N) "
    r"(?:hits|enters|reaches|calls|gets to|comes to|arrives at|goes into|makes) ",
    re.IGNORECASE,
)
"""``so only rank 0 hits the barrier``: the others have not come."""
OTHERS = "the other ranks"
_THREAD = re.compile(
    r"\b(?:the |its |our )?(?P<name>(?:[\w-]{3,20} )?thread|[A-Z]\w{2,40}Thread)\b[`*]{0,3} (?:(?:has|had|already|just|then|was|is) ){0,2}"
    r"(?:raised|crashed|died|exited|ended|is gone|dead|killed)\b(?! \w{1,12} ago)",
)
"""``The trainer thread raised and is gone``: another thread of the same process waits for what it should have done."""
_TAKEN_AWAY = re.compile(
    r"\b(?:drained|evicted|preempted|rebooted|powered off|shut down|took down|lost) (?:the |our )?"
    r"(?P<name>(?:ranks?|node|host|machine|worker|server) ?#?\d{1,4})\b(?! ?[-–,]? ?\d)",
    re.IGNORECASE,
)
"""What somebody did to a machine: ``we drained node7``."""
_MAY_BE_NAMED = (
    "drain",
    "preempt",
    "reboot",
    "powered",
    "shut down",
    "took down",
    "lost",
    "never",
    " not ",
    "n't",
    "n’t",
    "no such",
    "died",
    "crashed",
    "dead",
    "killed",
    "evicted",
)
"""One of them is in each of those."""
_DEAD = re.compile(
    r"\b(?:global )?ranks? ?#?" + said.NUMBERS + r" (?:(?:has|have|had|already|just|since|is|are|was|were|got|been) ){0,3}"
    r"(?:died|crashed|dead|gone|killed|lost|evicted|preempted|OOM[- ]?killed"
    r"|(?:finished and )?exited (?:with|normally|cleanly|without))\b",
    re.IGNORECASE,
)
"""Ranks of which a sentence says that they are no more."""
_OTHERWISE = re.compile(r"\b(?:if|would|could|should|might|may|unless|when|until|because)\b", re.IGNORECASE)
"""What would be so, or when it was."""
_NEAR = 120
"""Characters before it in which such a word may stand."""


_BY_TRACE = re.compile(r"\bmissing ranks?\b[\W_]{1,8}" + said.NUMBERS + r"(?![\w.]*\w/)", re.IGNORECASE)
_BY_RAS = re.compile(r"\bRanks? " + said.NUMBERS + r" ha(?:s|ve) (?:only )?launched (?:only )?up to (?:operation )?(?P<n>\d{1,12})", re.IGNORECASE)
_QUOTED = re.compile(r"`[^`]{1,80}`")
"""An `if` of a program is no doubt."""
_MOST = 64
_MAX_CHARS = 2_000
"""Of a line that may be a sentence."""


def of_line(text: str) -> Said | None:
    """The ranks of which a line says that they have not come: a tool's words (they are missing, or launched less than others), or its writer's."""
    if "issing rank" in text and (trace := _BY_TRACE.search(text)) is not None:
        return Said(kind="missing", text=_near(text, trace), ranks=said.numbers(trace["ranks"]))
    counted = list(_BY_RAS.finditer(text))[:_MOST] if "launched" in text else []
    most = max((int(c["n"]) for c in counted), default=0)
    behind = tuple(rank for c in counted if int(c["n"]) < most for rank in said.numbers(c["ranks"]))
    if behind:
        return Said(kind="missing", text=_near(text, counted[0]), ranks=behind)
    if len(text) >= _MAX_CHARS:
        return None
    if "ank" in text and (absent := _absent(text)) is not None:
        return Said(kind="missing", text=_near(text, absent), ranks=said.numbers(absent["ranks"]))
    return named_absent(text)


def named_absent(text: str) -> Said | None:
    """The part or machine of which a sentence says that it has not come."""
    if "only " in text and (alone := _ONLY.search(text)) is not None and not _is_otherwise(text, alone):
        return Said(kind="missing", text=_near(text, alone), name=OTHERS)
    if "hread" in text and (thread := _THREAD.search(text)) is not None and not _is_otherwise(text, thread):
        return Said(kind="missing", text=_near(text, thread), name=thread["name"])
    told = any(word in text for word in _MAY_BE_NAMED)
    found = (_NAMED.search(text) or _OF_ENTRY.match(text) or _TAKEN_AWAY.search(text)) if told else None
    if found is None or _is_otherwise(text, found):
        return None
    return Said(kind="missing", text=_near(text, found), name=found["name"])


def _absent(text: str) -> re.Match[str] | None:
    """Where a sentence says that a rank has not come; None where that would be, or was at some time."""
    found = _ABSENT.search(text) or _DEAD.search(text)
    return None if found is None or _is_otherwise(text, found) else found


def _is_otherwise(text: str, found: re.Match[str]) -> bool:
    before = re.split(r"[.;] |, (?:but|and|while) ", text[max(0, found.start() - _NEAR) : found.start()])[-1]
    return _OTHERWISE.search(_QUOTED.sub(" ", before)) is not None


def _near(text: str, found: re.Match[str]) -> str:
    return text[max(0, found.start() - _NEAR) : found.end() + _NEAR].strip()


def add_to_ranked(told: Sequence[tuple[int, Said]], dumps: Sequence[Partial]) -> None:
    """What a tool said of ranks without stacks, to those whose stacks are shown with their ranks."""
    ranked = [(d, {*d.ranks, *([d.rank] if d.rank is not None else [])}) for d in dumps if d.threads]
    shown = {rank for _, ranks in ranked for rank in ranks}
    _add_named([(number, one) for number, one in told if one.name is not None], [d for d in dumps if d.threads])
    for number, one in told:
        if one.name is not None:
            continue
        if not shown & set(one.ranks):
            for dump, ranks in ranked:
                if ranks and not any(s.kind == "missing" for _, s in dump.said):
                    dump.said.append((number, one))


def _add_named(told: Sequence[tuple[int, Said]], dumps: Sequence[Partial]) -> None:
    """What is said of parts and machines, to all others; one that is shown is not absent."""
    names = [_plain(name) for dump in dumps for name in (dump.label, dump.title, dump.node) if name]
    for number, one in told:
        called = re.compile(rf"(?<![a-z0-9]){re.escape(_plain(one.name or ''))}(?!\d)")
        if not any(called.search(name) for name in names):
            for dump in dumps:
                if not any(s.kind == "missing" for _, s in dump.said):
                    dump.said.append((number, one))


def _plain(name: str) -> str:
    return re.sub(r"[ _#-]", "", name.lower())


def add_to_paragraph(number: int, text: str, dumps: Sequence[Partial]) -> None:
    """The remark, to the processes that the same paragraph shows waiting; one that it shows is not absent."""
    found = _absent(text) if dumps else None
    if found is None:
        return
    ranks = said.numbers(found["ranks"])
    shown = {rank for dump in dumps for rank in dump.ranks}
    if (shown or any(dump.label for dump in dumps)) and not shown & set(ranks):
        told = Said(kind="missing", text=_near(text, found), ranks=ranks)
        for dump in dumps:
            dump.said.append((number, told))
