"""Ranks that a line names: ``Rank 3``, ``ranks 0-2,5``, ``DP0_TP3``, ``0号卡``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted import paired_numbers, said
from ray_rl_debug.formats.pasted.events import PIDS

_RANK = re.compile(
    r"(?<![A-Za-z0-9_])(?:(?P<part>(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}[ _,/]{0,2}){1,5})|(?:global[ _-]?)?"
    r"(?:ranks?|processes(?= ?\d{1,3}(?:, ?| and )\d{1,3}\b)|procs?(?= ?[#\[{(]?\d{1,3}(?!\d))"
    r"|rangs?|rangos?|ранг(?:и|а|ов)?|ランク|랭크|卡|进程(?! ?\d{4})|第(?= ?\d{1,5} ?(?:卡|个?进程|ランク))|r(?=\d))"
    r"(?:[ _#:=]{0,3}[\[{]?|\(| \((?=[\d ,–-]{3,200}\)))" + said.NUMBERS + r")(?![A-Za-z0-9_]|\.\w)",
    re.IGNORECASE,
)
_NUMBER_FIRST = re.compile(
    r"第?(\d{1,5}(?:(?: ?[-–~,、到至] ?)\d{1,5}){0,32}) ?(?:号|張|张|块|番)(?:目の)? ?(?:卡|进程|rank|GPU|ランク)|^\W{0,6}(\d{1,5})卡(?=\W*$)",
    re.IGNORECASE,
)
"""``0号卡``, ``第0张卡``"""
_NUMBERS_ALONE = re.compile(
    r"^[^\w(\[]{0,8}(?:(?:and|the|all|both|others?|rest|ranks?|of|them|cards|are|in|here)[ ,]{1,2}){0,4}"
    r"\(?(?P<ranks>\d{1,4}(?:(?:, ?| and |-|–|/| ?& ?)\d{1,4}){1,64})\)?"
    r"(?: (?:are|all|both|the|do|is|look|show|have|on|at|in|stack|place|here|stuck|hang|like|this|same|identical|alike|equal|thing|one))"
    r"{0,9}\W{0,6}$",
    re.IGNORECASE,
)
"""``0,1,3 all the same:``, ``all the others (0-3,5-7):``"""
_PIDS = re.compile(
    r"\b(?:pids?[ :=#]{1,3}(?=\d)|(?:processes|procs|children|workers) (?=\d{4}))\(?"
    r"(?P<pids>\d{1,9}(?:(?: ?[,/&] ?(?:and )?| and | )\d{1,9}){1,64})(?![\w.]*\w)",
    re.IGNORECASE,
)
"""``pids 11 12 13 14``, ``processes 8102 and 8103``"""
_RANK_AGAIN = re.compile(r"(?<=\d)(?P<between>\s?(?:,|/|&|\+|and|和|、)\s?(?:and )?)(?:global )?rank[ _#:=]?(?=\d)", re.IGNORECASE)
"""``rank0 / rank1``: the word before each number."""
_SIDE_RANK = re.compile(r"(?<![A-Za-z0-9])([TDPEC]P)[ _-]rank(?=[ _#:=-]{0,3}\d)[ _#:=-]{0,3}", re.IGNORECASE)
"""``tp_rank=3``"""
_EQUALS = re.compile(r"^(?!\s{0,40}(?:if|elif|while|assert|return|and|or|not)\b)(?P<before>.{0,200}[a-z] )\(rank == (?P<rank>\d{1,6})\)")
"""``On the master process (rank == 0)``; not ``if (rank == 0):``, which is a program."""
_MAX_OF_RANGE = 4096
_LEAST_PID = 1000
"""Numbers without a word are ranks below it, and else process ids."""
_PART_RANGE = re.compile(
    r"\b(?P<first>(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}[ _,/]{0,2}){1,5}?)\s?(?:\.{2,3}|…|–|~|-|to|through|bis|à|至|到)\s?"
    r"(?P<last>(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}[ _,/]{0,2}){1,5})(?![\w.])"
)
"""``DP0 TP0 .. DP0 TP6``: names of parts that differ in their last number."""
_PART_LIST = re.compile(
    r"(?P<more>(?:(?:-|–|~|\.\.| ?, ?| and | to |, and )\d{1,4}){1,64})(?![\w.%]| ?[x×]\b| ?(?:gpus?|nodes?|cards?|layers?|ms|s)\b)", re.IGNORECASE
)
"""Behind the number of a part: ``TP1-3``, ``TP0, 1 and 3``."""
_SAME_PARTS = re.compile(
    r"(?<![A-Za-z0-9_])(?P<kind>DP|TP|PP|EP|CP)[ _-]?(?P<first>\d{1,4}(?:[-–]\d{1,4})?)"
    r"(?P<more>(?:(?:, ?| ?[/&+] ?|,? and |、|和)(?P=kind)[ _-]?\d{1,4}(?:[-–]\d{1,4})?(?![\w.]*\w)){1,64})",
    re.IGNORECASE,
)
"""``TP0, TP2-5``: one kind of part, its name before each number."""
_OF_ROLE = re.compile(
    r"(?<![\w/-])(?P<role>actor|critic|ref|reference|reward|rollout|teacher|student)(?: model| group)?[ _/-](?:worker )?ranks?[ _#:=]{0,2}"
    + said.NUMBERS
    + r"(?![A-Za-z0-9_]|\.\w)",
    re.IGNORECASE,
)
"""``critic rank 0``: an RL job has several ranks 0."""
_SIDE = re.compile(
    r"\b(?P<side>prefill|decode|draft|target)(?:er)?(?: (?:server|worker|engine|scheduler|instance|node))?[ :,/*`-]{1,4}$", re.IGNORECASE
)
"""``Prefill TP0``, ``decode worker TP0``: two engines have a part of that name."""
_LOCAL = re.compile(r"\b(?:local|node)[ _-]?rank", re.IGNORECASE)


def is_named(text: str) -> bool:
    """Does the text name a rank?"""
    return _RANK.search(text) is not None


def read(text: str) -> tuple[tuple[int, ...], str | None]:
    """The ranks that a line names and the label of their kind, which may be a part's name, or `PIDS`."""
    if (paired := paired_numbers.read(text)) is not None:
        return paired
    if (of_role := _OF_ROLE.search(text)) is not None:
        return said.numbers(of_role["ranks"]), f"{of_role['role'].lower()}/"
    if between := _PART_RANGE.search(text):
        first, last = (re.findall(r"([A-Z]+)[ _-]?(\d+)", between[k]) for k in ("first", "last"))
        name, low = first[-1]
        if first[:-1] == last[:-1] and name == last[-1][0] and 0 < int(last[-1][1]) - int(low) < _MAX_OF_RANGE:
            return tuple(range(int(low), int(last[-1][1]) + 1)), "_".join([*map("".join, first[:-1]), name])
    if (of_kind := _SAME_PARTS.search(text)) is not None:
        kind = of_kind["kind"]
        return said.numbers(re.sub(rf"{kind}[ _-]?", "", of_kind["first"] + of_kind["more"], flags=re.IGNORECASE)), kind.upper()
    text = _EQUALS.sub(r"\g<before>(rank \g<rank>)", text) if "==" in text else text
    if _LOCAL.search(text):
        text = _LOCAL.sub("local", text)
    text = _SIDE_RANK.sub(r"\1", _NUMBER_FIRST.sub(lambda n: f"rank {n[1] or n[2]} ", text))
    if (pids := _PIDS.search(text)) is not None and not is_named(text):
        return tuple(int(n) for n in re.findall(r"\d+", pids["pids"])), PIDS
    if ":" in text[-6:] and (alone := _NUMBERS_ALONE.match(text)) is not None:
        numbers = said.numbers(alone["ranks"])
        return numbers, PIDS if min(numbers) >= _LEAST_PID and "rank" not in text.lower() else None
    found = _RANK.search(_RANK_AGAIN.sub(_comma, said.RANGE.sub(r"\1-\2", said.without_excepted(text))))
    if found is None:
        return (), None
    if found["part"]:
        name = found["part"].strip(" _,/").replace(" ", "_").upper()
        if (side := _SIDE.search(found.string, 0, found.start("part"))) is not None:
            name = f"{side['side'].lower()} {name}"
        more = _PART_LIST.match(found.string, found.start("part") + len(found["part"].rstrip(" _,/")))
        digits = len(name) - len(name.rstrip("0123456789"))
        several = said.numbers(name[-digits:] + more["more"]) if more else ()
        return (several, name[:-digits].rstrip("_-")) if 1 < len(several) <= _MAX_OF_RANGE else ((), name)
    return said.numbers(found["ranks"]), None


def _comma(found: re.Match[str]) -> str:
    """A comma in place of the word before the second rank; the number before it may be of something else: ``gpu0 / rank 0``."""
    return ", " if "rank" in found.string[: found.start()].lower() else found[0]
