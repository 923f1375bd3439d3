"""Stacks that somebody only tells: ``One rank sits in `ncclAllGather`; the other is in `fused_add_rms_norm` ``, bullets with a thread and its frames.

A sentence is read for who stands where: a process, some ranks or a thread, then a word such as *stuck in*, then code in backticks or with brackets.
It is asked where a text shows no stack: beside a stack, sentences speak of it. What would happen, and what did not, is no stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.formats.dump import CodePlace, DumpThread, Said
from ray_rl_debug.formats.pasted import absent, chains, labels, prose_places, said
from ray_rl_debug.formats.pasted.events import Head
from ray_rl_debug.formats.pasted.lines import read_line
from ray_rl_debug.formats.pasted.partial import Partial, set_names
from ray_rl_debug.formats.pasted.prose_clauses import clauses
from ray_rl_debug.formats.pasted.prose_words import (
    AT_ON,
    DOUBT,
    ENTERS,
    GO_IN,
    IT,
    NAMED_ENTRY,
    NUMBERED,
    PRONOUN,
    STANDING,
    STANDS,
    STUCK,
    THEY_THERE,
    WHO,
    is_spoken_of,
    with_nouns,
)

MAX_BYTES = 256 << 10
_MAX_CHARS = 2_000
_FENCE = re.compile(r"\s{0,12}(?:```|~~~)")
_BULLET = re.compile(r"\s{0,12}(?:[-*+•] |\d{1,2}[.)] )")
_HEADING = re.compile(r"\s{0,3}(?:#{1,6} |\|)")
_STUCK_IN_NAME = re.compile(r"\b(?:" + STANDING + r") (?:in|at|inside) (?:[a-z]\w{0,60}_|torch\.|dist\.)\w", re.IGNORECASE)
_STUCK_WORDS = ("stuck", "blocked", "stalled", "parked", "wedged", "frozen", "wait", "hang", "hung", "sit", "sat ", "stand", "stood", "spin", "idle")
"""One of them is in each such place: to look for them costs a twentieth of the pattern, and most logs have none."""
_REST = re.compile(
    r"(?:all |the )*(?:others|other (?:\d{1,4}|two|three|four|five|six|seven)"
    r"|(?:others?|remaining) (?:ones|ranks|processes|boxes|workers|nodes)|rest|everyone else|everybody else)"
    r"|(?:其余|其他|另外)的? ?(?:ranks?|进程|卡|worker|节点)的?",
    re.IGNORECASE,
)
"""All that are not shown."""
_REST_COUNTED = re.compile(r"\b(?:other|remaining)\b[^.;`]{0,20}(?:ranks?|process(?:es)?|workers?|gpus?|actors?)\b", re.IGNORECASE)
_COMMENT = re.compile(r"\s{0,40}(?:#|//) (?=\s{0,12}\S)")
_NEAR = 240
"""Characters behind a name in which it is said where that one stands."""
_QUOTED = re.compile(r"`[^`]{1,240}`")
_PART_OF_CLAUSE = re.compile(r"[,:(]\s|\s[—–-]{1,2}\s|\b(?:but|and|then)\s", re.IGNORECASE)
_LINKS = frozenset("from via under called below inside within while since for with and but waiting stuck blocked".split())
"""What may stand behind the code of an entry that says where somebody is."""
_PART = re.compile(r"\b(?:TP|DP|PP|EP|CP)\d{1,4}\b")
_PARTS_LISTED = re.compile(r"\b(?:TP|DP|PP|EP|CP)\d{1,4}(?:(?:, ?(?:and )?| and |/)(?:TP|DP|PP|EP|CP)\d{1,4}){1,64}\b")
_NOUNS_LISTED = re.compile(
    r"\b(?P<noun>node|host|worker|stage)s? (?P<numbers>\d{1,4}(?:(?:-|–| to |, ?| and |, and )\d{1,4}){1,16})\b", re.IGNORECASE
)
_OF_KERNEL = re.compile(r"\bwchan\b|\b[Ss]tate D\b|\bD[ -]state\b|\buninterruptible\b")
"""What is named there is the kernel function in which it sleeps."""
_FOR = re.compile(r"\bfor (?:the )?$")
_OF_RANK = re.compile(r"\b(?:on )?(?P<rank>ranks? ?\d{1,5})(?:['’]s|,)? (?:the )?main thread(?: of Python)?\b", re.IGNORECASE)
"""``Rank 5's main thread``: where the main thread is, the rank is."""
_PART_BEFORE = re.compile(r"\b(?:PP|TP|DP|EP|CP|[Pp]ipeline)\s$")
"""``PP `` before ``stage 1``"""
_ENTRY = re.compile(r"[`*\s]{0,4}(?:\([^()]{0,60}\)|, (?:all|both|every|each) [a-z]{3,12})?[`*\s]{0,4}(?::|—|–|-|→)\s")
_OF_WHOM = re.compile(
    r"\s(?:on|of|for|from) (?P<who>(?:(?:ranks?|pids?|process(?:es)?) )?\d{1,9}(?:(?:, ?| and |, and )\d{1,9}){0,16})\b", re.IGNORECASE
)
"""*py-spy on 8102 and 8103 shows ...*"""


def read(text: bytes) -> list[Partial]:
    """The processes of which the sentences of a text tell where they stand."""
    if len(text) > MAX_BYTES:
        return []
    plain = text.decode("utf-8", "replace")
    if not _may_tell(plain):
        return []
    dumps: list[Partial] = []
    lines = _without_comment_signs(plain.split("\n"))
    for number, paragraph in _paragraphs(lines):
        _read_paragraph(number, paragraph, dumps)
    for number, head, chain in chains.fenced(lines):
        frames = list(chain.places) if chain.order == "inner" else list(reversed(chain.places))
        dumps.append(Partial(threads=[DumpThread(frames=frames)], source="text", line=number, is_headless=True))
        if head is not None:
            set_names(dumps[-1], head)
    return dumps


def is_rest(dump: Partial) -> bool:
    """Does a sentence tell of all others but those that are shown, with or without their number?"""
    if dump.label is not None or dump.title is not None or dump.pid is not None:
        return dump.label is not None and _REST.fullmatch(dump.label) is not None
    return any(told.kind == "same" and told.count and _REST_COUNTED.search(told.text) for _, told in dump.said)


def _may_tell(text: str) -> bool:
    """Is there code in it, marked as such, or a name with an underscore in which somebody is stuck?"""
    if "`" in text or "()" in text:
        return True
    lower = text.lower()
    return (any(word in lower for word in _STUCK_WORDS) and _STUCK_IN_NAME.search(text) is not None) or is_spoken_of(text, lower)


def _without_comment_signs(lines: list[str]) -> list[str]:
    """A comment of several lines in a program, as the sentences that it is; one such line alone is a heading."""
    is_comment = [_COMMENT.match(line) for line in lines]
    near = zip(is_comment, [None, *is_comment[:-1]], [*is_comment[1:], None], strict=True)
    return [line[sign.end() :] if sign and (before or behind) else line for line, (sign, before, behind) in zip(lines, near, strict=True)]


def _paragraphs(raw: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Sentences as their writer meant them, each entry of a list alone: what a form or an editor broke is one line again."""
    held, begun, in_fence = "", 1, False
    for number, one in enumerate(raw, 1):
        line = read_line(one[:_MAX_CHARS])
        text = "" if line.stamped or line.owner else line.text
        text = one if text and "`" in one and text.strip() == one.replace("`", "").strip() else text  # a chain of quoted names
        is_fence = _FENCE.match(text) is not None
        starts = not text.strip() or is_fence or in_fence or _BULLET.match(text) is not None or _HEADING.match(text) is not None
        if starts or len(held) + len(text) > _MAX_CHARS:
            if held:
                yield begun, held
            held = ""
        if is_fence:
            in_fence = not in_fence
        elif text.strip() and not in_fence and not text.lstrip().startswith("|"):
            held, begun = (f"{held} {text.strip()}", begun) if held else (text.strip(), number)
    if held:
        yield begun, held


def _read_paragraph(number: int, text: str, dumps: list[Partial]) -> None:
    if text.count("`") < 2 and not _may_tell(text.replace("`", "")):
        return
    above, before, entered = "", len(dumps), list[str]()
    for part in clauses(with_nouns(_OF_RANK.sub(r"\g<rank>", text[:_MAX_CHARS]))):
        clause = _with_subject(part.text, above)
        who, told = _who_and_where(clause, above, is_short=part.is_short)
        above = clause
        if who is None or told is None:
            entered.append(clause)
            continue
        frames = prose_places.read(told)
        if frames:
            _add(number, clause.strip(), who, frames, dumps)
            _name_each(dumps, chains.several(clause) or _listed(clause))
    for clause in entered if len(dumps) > before else ():
        who, told = _who_entered(clause, GO_IN)
        if who is not None and told is not None and who["ranks"] and (frames := prose_places.read(told)):
            _add(number, clause.strip(), who, frames, dumps)  # what one does, where the same sentence says of others that they stand
    absent.add_to_paragraph(number, text, dumps[before:])


def _with_subject(clause: str, above: str) -> str:
    """*It is still in ...* of the one rank of which the clause before speaks."""
    pronoun = PRONOUN.match(clause)
    named = [who for who in WHO.finditer(above[:400]) if who["ranks"] or who["part"]] if pronoun is not None else []
    return f"{named[0][0]}{clause[pronoun.end() :]}" if pronoun is not None and len({who[0].lower() for who in named}) == 1 else clause


def _listed(clause: str) -> list[Head]:
    """*TP0, TP1 and TP5 wait in* names three, and so does *stages 0-2*."""
    if (nouns := _NOUNS_LISTED.search(_QUOTED.sub("", clause))) is not None:
        return [Head(level="label", label=f"{nouns['noun'].lower()} {number}") for number in said.numbers(nouns["numbers"])]
    found = _PARTS_LISTED.search(_QUOTED.sub("", clause))
    heads = [labels.read(f"{name}:") for name in _PART.findall(found[0])] if found is not None else []
    return [head for head in heads if head is not None]


def _name_each(dumps: list[Partial], heads: list[Head]) -> None:
    """*Both workers (`Worker_TP0`, `Worker_TP1`): ...* are two processes at one place."""
    if not heads or dumps[-1].ranks or dumps[-1].title:
        return
    whole = dumps.pop()
    for head in heads:
        one = Partial(threads=list(whole.threads), source="text", line=whole.line, is_headless=True)
        set_names(one, head)
        dumps.append(one)


def _who_and_where(clause: str, before_it: str, *, is_short: bool = False) -> tuple[re.Match[str] | None, str | None]:
    """Who is meant, and the words that say where; *stuck on it* is the last code before, also of the clause before."""
    if THEY_THERE.match(clause) and not DOUBT.search(clause):
        return _who_entered(before_it)
    who = WHO.search(clause[:400]) or NAMED_ENTRY.match(clause[:400])
    if who is None:
        return None, None
    before, behind = clause[: who.start()], clause[who.end() :]
    if who["tool"]:
        shown = prose_places.CODE.match(behind.lstrip(" :("))
        is_told = shown is not None and (STUCK.search(behind[:_NEAR]) is not None or prose_places.is_chain(shown["quoted"]))
        return (who, behind) if is_told and not DOUBT.search(clause) else (None, None)
    if who["ranks"] and (where := AT_ON.search(before)) is not None:
        if DOUBT.search(_PART_OF_CLAUSE.split(before[: where.start()])[-1] + where[0]):
            return None, None
        return who, where["where"]
    is_entry = not _PART_BEFORE.sub("", before).strip(" -*+•`0123456789.)") and _ENTRY.match(behind) is not None
    stands = _stands(behind)
    if is_entry and stands is not None and (first := prose_places.CODE.search(behind)) is not None and first.end() <= stands.start():
        stands = None  # "stage 1: `recv` -> `wait`, waiting on stage 0" tells where it is before it tells for whom it waits
    if stands is None and not is_entry and not is_short:
        return None, None
    if stands is not None and not who["tool"] and (last := _last_subject(who, behind, stands.end())) is not None:
        # "... on rank 3, and since then the other 7 ranks hang in ..." tells where the seven are
        who, before, behind = last, f"{before}{who[0]}{behind[: last.start()]}", behind[last.end() :]
        stands = _stands(behind)
        if stands is None:
            return None, None
    said_of = _PART_OF_CLAUSE.split(f"{before}{who[0]}{behind[: stands.start() if stands is not None else 0]}")[-1]
    told = behind[stands.end() if stands is not None else 0 :]
    code = prose_places.CODE.search(told)
    if DOUBT.search(said_of) or (stands is not None and DOUBT.search(stands[0].removeprefix("never "))):
        return None, None
    if stands is not None and IT.match(told):
        if stands[0].lower().endswith("for") and WHO.search(before_it):
            return None, None  # "the others wait for it" means somebody
        above = prose_places.last_code(f"{before_it} {before}{behind[: stands.start()]}")
        return (who, above) if above else (None, None)
    if code is None or DOUBT.search(told[: code.start()]):
        return None, None
    if stands is None and (noun := re.match(r"`? ([a-z]{3,20})\b", told[code.end() - 1 :])) is not None and noun[1] not in _LINKS:
        return None, None  # "rank 0: `save` barrier → `close` barrier" tells what it does, one after the other
    return who, told


def _last_subject(first: re.Match[str], behind: str, end: int) -> re.Match[str] | None:
    """The last name before a place that is no object, as in *waits for rank 1 in*; and none in brackets, where the first one is a number."""
    names = list(WHO.finditer(behind, 0, end))
    if first["ranks"]:
        names = [who for who in names if behind.count("(", 0, who.start()) <= behind.count(")", 0, who.start())]
    return next((who for who in reversed(names) if not _FOR.search(behind, 0, who.start())), None)


def _stands(behind: str) -> re.Match[str] | None:
    """Where it is said that one stands; what is quoted, such as a line that one logs, says nothing of it."""
    return STANDS.search(_QUOTED.sub(lambda quoted: "`" * len(quoted[0]), behind[:_NEAR]))


def _who_entered(clause: str, entering: re.Pattern[str] | None = None) -> tuple[re.Match[str] | None, str | None]:
    """Who goes into a call, as a clause tells it, and the words from that call on."""
    who = WHO.search(clause[:400])
    enters = (entering or ENTERS).match(clause, who.end()) if who is not None and not who["tool"] else None
    if enters is None or DOUBT.search(clause):
        return None, None
    return who, clause[enters.end() :]


def _add(number: int, text: str, who: re.Match[str], frames: list[CodePlace], dumps: list[Partial]) -> None:
    thread = DumpThread(frames=frames)
    if len(frames) == 1 and who[0].lower().startswith("pid") and _OF_KERNEL.search(text) is not None:
        thread = DumpThread(frames=[], wchan=frames[0][0])
    if who["thread"]:
        name = who["thread"].strip("` ")
        thread.name = "MainThread" if name.lower().endswith("main thread") else name
        last = dumps[-1] if dumps and dumps[-1].source == "text" else None
        if last is None or any(t.name in (None, thread.name) for t in last.threads):
            last = Partial(threads=[], source="text", line=number, is_headless=True)
            dumps.append(last)
        last.threads.append(thread)
        return
    dump = Partial(threads=[thread], source="text", line=number, is_headless=True, state="D" if thread.wchan else None)
    if who["tool"]:
        if (of := _OF_WHOM.search(who[0])) is not None and (named := labels.read(f"{of['who']}:")) is not None:
            set_names(dump, named)
        dumps.append(dump)
        return
    told = (who["part"] or who[0]).strip("`* ")
    head = labels.read(f"{told}:")
    count = _count(who)
    if head is not None and (head.ranks or head.pid or head.title or (head.label and not count)):
        set_names(dump, head)
    elif count is None or count == 1:
        dump.label = re.sub(r"^(?:exactly|only) ", "", told.lower())
    if count is not None and count > 1:
        dump.label = dump.label or _without_count(told.lower())
        dump.said.append((number, Said(kind="same", text=text[:300], count=count)))
    if who["some"] and (excepted := said.remark(told)) is not None and excepted.kind == "except":
        dump.said.append((number, msgspec.structs.replace(excepted, text=text[:300])))
    if not any(d.line == number and _whom(d) == _whom(dump) for d in dumps):
        dumps.append(dump)  # whom a paragraph names twice it has shown already


def _whom(dump: Partial) -> tuple[object, ...]:
    return dump.label, dump.title, dump.ranks, dump.pid


def _without_count(told: str) -> str | None:
    """Whom the words name, without how many: *three ranks' hosts* are ranks' hosts."""
    rest = re.sub(r"^(?:(?:exactly|only|the|other|remaining|of|them|" + NUMBERED + r")\s)+", "", told).strip()
    return None if rest in ("ranks", "workers", "processes", "of them") else rest or None


def _count(who: re.Match[str]) -> int | None:
    told = (who["count"] or who["many"] or "").lower()
    if told.isdecimal():
        return int(told)
    return said.COUNTS.get(told) or said.count_in(who[0])
