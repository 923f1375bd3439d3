"""What people say of processes that they do not show, and what dumping tools say when they fail."""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.formats.dump import Said

_BETWEEN = r"(?:,|-|–|~|\.{2,3}|…|to|and|&|\+|/|à|al?|bis|et|und|[ey]|至|到|和|、)"
"""What stands between numbers of ranks, in the languages that people write."""
NUMBERS = r"(?P<ranks>\d{1,6}(?:(?:\s?" + _BETWEEN + r"\s?){1,2}\d{1,6}){0,64})"
_COUNT = re.compile(
    r"(?:~|≈|about |all |other |the |x|×|\+)?\s?(?P<count>(?<![.\d])\d{1,6}|one|two|three|four|five|six|seven|eight|both)(?:x|×)?\s(?:other "
    r"|more |of (?:the )?(?P<all>\d{1,6}) |remaining |identical |local )?"
    r"(?:ranks?|process(?:es)?|workers?|(?P<cards>gpus?)|actors?|schedulers?|stacks?|procs?|pids|peers|trainers?)\b",
    re.IGNORECASE,
)
_PLACED = re.compile(
    r"\b(?:same|identical|all|these|here|like this|stuck|blocked|wait(?:s|ing)?|hang(?:s|ing)?|hung|sit(?:s|ting)?|in|at)\b", re.IGNORECASE
)
"""Cards are counted to describe a machine, unless the line says where they are."""
_SETTING = re.compile(
    r"\([^()]{0,80}(?:,[^()]{0,80}\b[a-z]{2,20} ?\d{1,3}\.\d|\b[a-z]{2,20} ?\d{1,3}\.\d{1,3}[^()]{0,80},)[^()]{0,80}\)", re.IGNORECASE
)
"""``(FSDP2, 4 ranks, torch 2.8)`` describes a run: a list with a version in it."""
_COUNT_ALONE = re.compile(
    r"^\W{0,8}(?P<count>\d{1,6}) (?:of (?:them |\d{1,6} )?)?(?:are |is )?(?:in|at|here|stuck|like this|with this)\b.{0,40}:\W{0,6}$"
)
_OF_RUN = re.compile(
    r"\b(?:with|using|across|over|past|beyond|above|below|than|up to|at least|at most"
    r"|my|our|(?:on|of|for|from) (?:the|my|our|these)|(?:dumps?|traces?|runs?|jobs?) (?:on|of|from))\s$",
    re.IGNORECASE,
)
"""Before the number of all processes that somebody has or has looked at: ``py-spy on the three processes:``."""
_SAME = re.compile(
    r"\b(?:same|identical|ditto|likewise|also (?:stuck|here|blocked|waiting)|similar|alike|equal|idem)\b|\bas (?:rank|PID|pid)\b|≡|identisch"
    r"|同上|(?<!不)(?<!不太)(?:相同|一样|一致|同样)(?!的)|同じ|동일"
    r"|\blooks? (?:just |exactly )?like (?:rank|PID|pid|process|worker)\b",
    re.IGNORECASE,
)
_SAME_OTHER = re.compile(
    r"\b(?:the )?(?:same|identical|similar) (?:`(?!\w{1,60}\.py)"
    r"|(?:[\w-]{1,20} )?(?:time|hash|config\w{0,10}|version|setup|env\w{0,10}|model|data|machine|host|node|box|gpus?|server|rack|switch)\b)"
)
"""``at the same time``, ``the same `Operation```: what is the same there is no place."""
_RANKS = re.compile(r"\b(?:ranks?|TP|DP|PP|EP|workers?|gpus?)[ #:_=]{0,2}\[?" + NUMBERS, re.IGNORECASE)
_AS_OTHER = re.compile(
    r"\b(?:same|identical|equal|similar) (?:stack |trace )?(?:as|to|with)\b|\blooks? (?:just |exactly )?like\b"
    r"|\b(?:is|are|stands?|sits?|looks?) (?:just |exactly )?as(?= (?:the )?rank)",
    re.IGNORECASE,
)
_AS_OTHER_CJK = re.compile(r"(?:和|与|跟|同) ?rank ?(?P<rank>\d{1,6}) ?(?:的栈|的堆栈|都)? ?(?:完全)?(?:一样|相同|一致)", re.IGNORECASE)
_ONE_RANK = re.compile(r" ?(?:the one of )?rank[ #:_]?(?P<rank>\d{1,6})\b(?! ?(?:,|and|-|–|to|/) ?\d)", re.IGNORECASE)
_CLOCK = re.compile(r"(?<![\d:.])(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?(?![\d:])")
NO_STACK = re.compile(r"\b(?:if|would|could|should|might|order|instead|fix(?:ed|es)?|flow|used to)\b|n't\b", re.IGNORECASE)
"""Words of a sentence whose arrows are no stack: it tells what should be, or what follows what."""
HEADING_CHARS = 100
"""A heading has no more characters."""
RANGE = re.compile(r"\b(ranks?[ _#:]?\d{1,6})\s?(?:\.{2,3}|…|-|–|to|through|bis|à|至|到)\s?rank[ _#:]?(\d{1,6})\b", re.IGNORECASE)
"""``rank0 .. rank6``: both ends with the word."""
_EXCEPT = re.compile(
    r"\b(?:except|excluding|but|apart from|other than|besides)\b(?: for| on)? (?:global )?(?:rank)?[s ]{0,2}#?" + NUMBERS, re.IGNORECASE
)
_ONE_OF = re.compile(
    r"\b(?:one|1|un|uno|eine[rmns]?) (?:of|de|von) (?:them|these|those|the|ellos|eux|ihnen)\b|\b(?:only|just) (?:one|a single)\b"
    r"|\b\d{1,4} ?[xX] ?(?:NVIDIA |AMD )?(?:A|H|L|B|V|MI|RTX|GB)\d{2,4}\b",
    re.IGNORECASE,
)
"""How people speak of one process out of many, or of the cards that they have."""
_ALL = re.compile(
    r"其余|其他|其它|剩下|所有|全部|\b(?:all|every|each|both|others|rest|remaining|other (?:\w{1,20} )?"
    r"(?:ranks?|process(?:es)?|workers?|gpus?|actors?|nodes?|hosts?|machines?|pods?|ones?))\b"
    r"|\b(?:the )?other(?=\W{0,3}$)",
    re.IGNORECASE,
)
"""Who is meant by "the same"; "another model" is nobody."""
_APART = re.compile(
    r"(?:(?P<n>\d{1,3})\s?[x×]\s?)?(?P<s>\d{1,5}(?:\.\d{1,3})?)\s?(?P<unit>ms|sec(?:onds?)?|s|min(?:utes?)?|m|h(?:ours?)?)\b\.? "
    r"(?:apart|later|after|between|interval|afterwards?|each)",
    re.IGNORECASE,
)
_AGAIN = re.compile(
    r"\b(?:second|2nd|third|3rd|next|another|later|repeated|again|once more|one more|after(?:wards)?)\b.{0,80}"
    r"\b(?:same|identical|unchanged|no change|not changed|nothing (?:has )?changed|equal)\b"
    r"|\b(?:same|identical|unchanged|no change|not changed|nothing (?:has )?changed)\b.{0,80}\b(?:later|again|afterwards?|second time|after)\b",
    re.IGNORECASE,
)
_TWO_TIMES = re.compile(r"\b(\d{1,2}):(\d\d)(?::(\d\d))?\b.{0,12}(?:\band\b|&|\bto\b|\bvs\b|,|/).{0,12}\b(\d{1,2}):(\d\d)(?::(\d\d))?\b")
"""``the dumps of 14:02 and 14:09 are the same``"""
_LOOKED = re.compile(r"\b(?:re-?)?(?:dump(?:s|ed)?|stacks?|traces?|backtraces?|py-?spy|looked|snapshots?)\b", re.IGNORECASE)
_SEEN = re.compile(r"\b(?:pictures?|situation|state|positions?|places?|spots?|frames?|lines?|functions?)\b", re.IGNORECASE)
"""What a later look may be said to show. A run that hangs anew does so at the same place too: only with a time is it a look."""
_FILLS = re.compile(
    r"\b(?:later|again|after(?:wards)?|same|identical|unchanged|nothing|no|not|changed?|has|it|is|was|are|were|still|exactly|the|and|all|of|them)\b|\W",
    re.IGNORECASE,
)
"""What a line consists of beside a time that says no more than that nothing has changed."""
_RAN_ANEW = re.compile(r"\bre-?(?:start|run|launch|produc|tr[iy])|\bnew (?:run|job|attempt)\b|\bran (?:it )?again\b", re.IGNORECASE)
"""Another run that hangs at the same place is no second look at this one."""
_TIME_IN_WORDS = re.compile(
    r"\b(?P<n>\d{1,5}(?:\.\d)?|an?|one|two|three|five|ten|fifteen|twenty|thirty|half an)\s?"
    r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\b",
    re.IGNORECASE,
)
_NUMBERS_IN_WORDS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "five": 5, "ten": 10, "fifteen": 15, "twenty": 20, "thirty": 30, "half an": 0.5}
_UNREAD = re.compile(
    r"UNW_E\w{1,20}|\bEPERM\b|Operation not permitted|Permission [Dd]enied|os error [123]\b|\bESRCH\b|No such process|[Ff]ailed to "
    r"(?:suspend|get (?:stack|process|python|os threadid)|find|copy|lock|attach|read)"
    r"|[Pp]y-?spy (?:dump )?(?:failed|attempts failed|could not|hangs|hung|timed out|got stuck)|pystack (?:failed|could not)"
    r"|Unable to (?:attach|get|find)|[Cc]ould not attach|ptrace: "
    r"|[Ff]ailed to (?:attach|trace)|(?:is|has) no[ t]{0,2} ?(?:a )?[Pp]ython|no Python (?:interpreter|threads?|process)"
    r"|Timed out waiting for process \d{1,9} to|Device or resource busy|dump (?:timed out|hangs|hung|failed)"
    r"|Found argument '[-\w]{1,30}' which wasn't expected|unexpected argument '[-\w]{1,30}' found|unrecognized subcommand"
    r"|Couldn't (?:determine|find|get) .{0,40}(?:python|stack)|Invalid (?:frame|thread) |engine.*not a python process",
)
_TOOL = re.compile(
    r"py-?spy|pystack|\bgdb\b|ptrace|UNW_E|\(os error|Timed out waiting for process"
    r"|[Ff]ailed to (?:suspend|get (?:stack|os threadid)|find python|copy .{1,40} symbol)|^\W{0,4}Reason: E[A-Z]+"
)
_PID = re.compile(r"(?:\bpid\b[ =:#]{0,3}|--pid[ =]|-p |PID[:= ]{1,2}|[Pp]rocess (?:id )?#?)(\d{1,9})\b")
_PIDS = re.compile(r"(?<![\w.:])\d{3,9}(?![\w.:])")
COUNTS = dict(zip("one two three four five six seven eight both".split(), (1, 2, 3, 4, 5, 6, 7, 8, 2), strict=True))
"""How many of them a word says that there are."""
_NAMES_IT = re.compile(
    r"\b(?:nodes?|hosts?|machines?|pods?|ranks?|workers?|gpus?|cards?|stages?|steps?|processe?s?|parts?|dumps?|looks?|replicas?|servers?|engines?"
    r"|instances?|jobs?|tasks?|actors?|attempts?|iterations?|epochs?|cases?)[ _-]?#?$",
    re.IGNORECASE,
)
"""Behind these a number is a name: ``node 2 stack trace``."""
_TELLING = "rank 一样 相同 一致 same identical ditto others process worker stacks gpus scheduler apart later similar changed".split()
"""A line without any of these is no remark; looked for first, because logs are long."""
_MAX_RANKS = 4096


def remark(text: str) -> Said | None:
    """How many others are where, if the line says so."""
    if len(text) > 400:
        return None
    lowered = text.lower()
    if not any(word in lowered for word in _TELLING):
        return None
    told = text.strip("`*-_#>•| \t")
    if excepted := _EXCEPT.search(told):
        return Said(kind="except", text=told, ranks=numbers(excepted["ranks"]))
    apart_s = _between(told) if (times := _TWO_TIMES.search(told)) is not None else _seconds_in(told)
    looked = _LOOKED.search(told) is not None or (apart_s is not None and (_SEEN.search(told) is not None or _says_no_more(told)))
    again = _AGAIN.search(told) is not None or (times is not None and _SAME.search(told) is not None)
    if again and looked and not _RAN_ANEW.search(told) and not _RANKS.search(told):
        return Said(kind="again", text=told, apart_s=apart_s)
    same = _SAME.search(_SAME_OTHER.sub("", told)) is not None
    ranks = _ranks_in(_AS_OTHER_CJK.sub("", told)) if same else ()
    if ranks and (other := _AS_OTHER.search(told)) is not None:  # "rank 1 the same as rank 0" speaks of rank 1
        ranks = _ranks_in(told[: other.start()]) or ranks
    count = _count(told)
    if same and count is None and not ranks and (pids := _PIDS.findall(told)):
        count = len(pids) + 1
    if same and (ranks or count is not None or _ALL.search(told)):
        return Said(kind="same", text=told, ranks=ranks, count=count if not ranks else None)
    if apart := _APART.search(told):
        unit = apart["unit"].lower()
        scale = 0.001 if unit == "ms" else 60.0 if unit.startswith("m") else 3600.0 if unit.startswith("h") else 1.0
        return Said(kind="apart", text=told, apart_s=float(apart["s"]) * scale, count=int(apart["n"]) if apart["n"] else None)
    return None


def _says_no_more(told: str) -> bool:
    """``5 minutes later: still the same.``"""
    return not _FILLS.sub("", _TIME_IN_WORDS.sub("", told))


def of_others(told: Said, ranks: tuple[int, ...]) -> Said | None:
    """``rank 0 (ranks 1 and 2 are identical):`` speaks of 1 and 2; ``ranks 0-2 (identical):`` of nobody but those that it names."""
    if told.kind != "same":
        return told
    others = tuple(r for r in told.ranks if r not in ranks)
    return None if len(ranks) > 1 and not others and told.count is None else msgspec.structs.replace(told, ranks=others)


def as_rank(text: str) -> int | None:
    """``ranks 1 and 3 look like rank 0`` → 0: the rank at whose place others are said to be."""
    if (as_rank_cjk := _AS_OTHER_CJK.search(text)) is not None:
        return int(as_rank_cjk["rank"])
    other = _AS_OTHER.search(text)
    named = _ONE_RANK.match(text, other.end()) if other is not None else None
    return int(named["rank"]) if named is not None else None


def clock_s(text: str) -> float | None:
    """``second dump at 14:30`` → 52200: when somebody looked."""
    found = _CLOCK.search(text) if len(text) <= HEADING_CHARS and ":" in text and _LOOKED.search(text) else None
    if found is None or _TWO_TIMES.search(text):
        return None
    return 3600.0 * int(found["h"]) + 60.0 * int(found["m"]) + int(found["s"] or 0)


def _ranks_in(text: str) -> tuple[int, ...]:
    return tuple(sorted({r for m in _RANKS.finditer(RANGE.sub(r"\1-\2", text)) for r in numbers(m["ranks"])}))


def _between(text: str) -> float | None:
    """``at 14:02 and 14:09`` → 420; None where the second is not later."""
    found = _TWO_TIMES.search(text)
    if found is None:
        return None
    hours, minutes, seconds, *later = (int(n or 0) for n in found.groups())
    apart = 3600 * (later[0] - hours) + 60 * (later[1] - minutes) + later[2] - seconds
    return float(apart) if apart > 0 else None


def _seconds_in(text: str) -> float | None:
    """``ten minutes later`` → 600."""
    found = _TIME_IN_WORDS.search(text)
    if found is None:
        return None
    number = found["n"].lower()
    amount = _NUMBERS_IN_WORDS.get(number)
    return (amount if amount is not None else float(number)) * {"s": 1.0, "m": 60.0, "h": 3600.0}[found["unit"][0].lower()]


def without_excepted(text: str) -> str:
    """The line without the ranks of which it says that they are not meant: ``same on every rank except rank 3``."""
    return _EXCEPT.sub("", text)


def count_in(text: str) -> int | None:
    """``~181 ranks blocked in ...`` → 181: how many are in the place that the next stack shows. "16 GPUs, here is one of them" shows one."""
    if len(text) > 400 or _ONE_OF.search(text):
        return None
    text = _SETTING.sub(" ", text)
    # what one sentence counts is not where the next one says that somebody stands
    text = next((sentence for sentence in re.split(r"(?<=[a-z)])\. (?=[A-Z])", text) if _COUNT.search(sentence)), text)
    counted = _COUNT.search(text)
    if counted is not None and ((counted["cards"] and not _PLACED.search(text)) or _OF_RUN.search(text[: counted.start("count")])):
        return None
    return _count(text)


def unread(text: str, *, expected: bool) -> Said | None:
    """What a tool said that could not read a process. Words that anybody may say count only where such a tool was just called (`expected`)."""
    if len(text) > 2_000:
        return None
    found = _UNREAD.search(text)
    if found is None or not (expected or _TOOL.search(text)):
        return None
    pid = _PID.search(text)
    return Said(kind="unread", text=text.strip()[:300], pid=int(pid[1]) if pid else None)


def numbers(text: str) -> tuple[int, ...]:
    """``1-3,5`` → (1, 2, 3, 5). More ranks than any job has is a number that means something else."""
    found: dict[int, None] = {}
    for part in re.split(r"\s?(?:,|and|&|\+|/|et|und|[ey]|和|、)\s?", text):
        ends = [int(n) for n in re.findall(r"\d{1,6}", part)]
        if len(ends) == 2 and ends[0] <= ends[1]:
            found.update(dict.fromkeys(range(ends[0], min(ends[1], ends[0] + _MAX_RANKS) + 1)))
        else:
            found.update(dict.fromkeys(ends))
    return tuple(found)[:_MAX_RANKS]


def _count(text: str) -> int | None:
    found = next((m for m in _COUNT.finditer(text) if not _NAMES_IT.search(text[: m.start("count")])), None) or _COUNT_ALONE.match(text)
    if found is None:
        return None
    word = found["count"].lower()
    count = COUNTS.get(word) or (int(word) if word.isdecimal() else None)
    return count if count is not None and 0 < count <= 1_000_000 else None
