"""What makes a failure doubtful that stands alone: words of its own line by which it did not happen to the run, or by which the run went on.

An error that ends a program is its last word. So whatever a line tells behind the error of what was done then, whatever says that it was made on
purpose or foreseen, and whatever ended a guest that the run can do without, is doubt enough not to accuse. It excuses nobody: beside a failure that
shows an end such a line is told as before.
"""

from __future__ import annotations

import re

from ray_rl_debug.logs.words import EXCEPTION, HANDLED, gives_up
from ray_rl_debug.model.snapshot.log_book import LogEvent

_OF_AN_END = (
    r"(?:stop|shut|abort|exit|quit|terminat|kill|end|die|dead|los[st]|gone|fail|cancel|giv|tear|tak(?:es?|ing) (?:it )?down|leav|refus|reject"
    r"|unreachable|down|crash|block|evict|preempt|fatal|broken|hang|hung|stuck|remov|drain|relaunch|wait|exhaust|unexpect)"
)
"""Beginnings of words by which a second clause tells of an end."""
_OF_WHY = (
    r"(?:expect|miss|unable|cannot|not|no|never|see|check|pleas|possib|like|may|might|would|must|should|due|caus|because|consider|try|mak|set"
    r"|us(?:e|ing) |got |requir|need|invalid|unknown|unsupported)"
)
"""Of those that give a reason or advice."""
_PASSIVE = (
    r"(?!(?:error )?code|(?:\w+ )?information)(?:[\w'-]+ ){0,4}?(?:was|were|is|are|will be|has been|have been|gets?) (?:\w+ly )?"
    r"(?!(?:in|on|at|of|the|an?)\b)[a-z]{2,}\b"
)
_ING = r"(?!during|including|according|using)[a-z]{3,}ing\b(?! (?:is|was|error|fail))"
_BETWEEN = r"(?:[,;]|->|=>| - |\.(?= (?:The|It|They|A) (?:\w+ )?(?:was|were|has been|have been) )) ?(?:(?:The|It|They|A) )?"
_WENT_ON = re.compile(
    rf"{_BETWEEN}(?:(?:so|and|then|but|now|it|they|slot|which) )*(?!(?:\w+ ){{0,4}}(?:{_OF_AN_END}|{_OF_WHY}))(?:{_PASSIVE}|{_ING})"
)
"""A second clause that tells what was done: ``, slot was refilled``, ``, halving to 32``."""
_RENEWED = re.compile(r"[,;] (?:[\w'-]+ ){0,3}(?:replaced|respawned|recreated|requeued|re-queued|refilled)(?: (?:by|with|from|in) [^,;]{1,60})?\W*$")
"""A last clause that tells what came in its place: ``, container replaced``."""
_REMARK = re.compile(
    r"\((?:(?:was |were |is |this is |it is )?(?:ignored|expected(?= ?[),;:])|harmless|handled|caught|skipped|known|optional|recovered"
    r"|not (?:fatal|needed))\b"
    r"|(?:during|at|on|while|in) (?:the )?(?:close|closing|shut ?down|exit|tear ?down|clean-?up|end)\b"
    r"|[^()]{0,40}\b(?:[Rr]etry|[Aa]ttempt|[Tt]ry) #?\d|[^()]{0,40}\bsleeping (?:for )?\d"
    r"|[^()]{0,60}\b(?:as it should|on purpose|will be retried|(?:stopped|ended|killed) by (?:you|us|hand|request)))"
)
"""What the program adds to an error, behind it and in brackets."""
_HARMED_NONE = re.compile(r"\bno (?:process|worker|rank|actor|job|step|sample)s? (?:was|were|is|has been) (?:killed|lost|harmed|affected|hurt)\b")
_ON_PURPOSE = re.compile(
    r"(?i:\b(?:inject(?:s|ed|ing)?|simulat(?:es?|ed|ing)|chaos|drill|self-?test|dry.?run|smoke test|fault test|mock(?:ed)?|on purpose|as it should"
    r"|as intended|as planned|deliberately)\b)"
)
_ROW = re.compile(r"\|(?:[^|]*\|){2,}$")
"""Of a table, which tells of many programs or of none."""
_ELSEWHERE = re.compile(
    r"(?i:\b(?:last (?:week|month|year|night|run)|yesterday|(?:an)?other (?:user|job|run|tenant)|fixed (?:in|by)|(?:was|is) fixed|closed as"
    r"|resolved in|archived|historical|in the past|no longer|formerly)\b)"
)
"""Of another time, or of another run."""
_GUEST = re.compile(
    r"(?i:\b(?:agent|sandbox|env(?:ironment)?|simulator|sim|game|emulator|browser|chrom(?:e|ium)|firefox|stress(?:-ng)?|tool|candidate|submission|solution|snippet|probe"
    r"|exporter|monitor|sidecar|notebook|player|bot|prefetch\w*|uploader|downloader|profiler|visuali[sz]er|renderer|linter|formatter|test"
    r"|compil(?:er|ation)|ffmpeg|nvidia-smi|dcgmi|git|rsync|curl|wget|tensorboard|wandb|tmux)\b)"
)
"""What a run starts beside itself, or for one sample."""
_OF_KERNEL = re.compile(r"(?:Killed|reaped) process \d+ \([^)\n]{1,64}\)|[\w.:+-]{1,64}\[\d+\]:? (?:segfault at|general protection|trap )")
"""The kernel's words on the program that it ended."""
_ENDED = re.compile(r"\b(?:died|crash(?:ed|es)|was killed|is dead|[Ee]xit(?:ed)?\b|exit ?code)")


def is_doubtful(event: LogEvent) -> bool:
    """Is there doubt that what the line tells ended anything of the run?"""
    text = event.text
    if event.level == "F":
        return False
    if event.is_followed or event.kind == "traceback":
        return event.is_followed
    if event.is_bare or _ROW.match(text) or _REMARK.search(text) or _HARMED_NONE.search(text):
        return True
    if gives_up(text):
        return False
    if EXCEPTION.match(text):
        return any(found[0] != "expected" for found in HANDLED.finditer(text))  # ``(expected 3, got 2)``
    return any(words.search(text) for words in (_ON_PURPOSE, _ELSEWHERE, _WENT_ON, _RENEWED)) or _is_of_a_guest(event)


def _is_of_a_guest(event: LogEvent) -> bool:
    if (named := _OF_KERNEL.search(event.text)) is not None:
        return _GUEST.search(named[0]) is not None
    said = _ENDED.search(event.text) if event.kind == "death" and event.signature is None else None
    return said is not None and _GUEST.search(event.text, 0, said.start()) is not None
