"""Stacks that somebody only tells: ``One rank sits in `ncclAllGather`; the other is in `fused_add_rms_norm` ``, bullets with a thread and its frames.

A sentence is read for who stands where: a process, some ranks or a thread, then a word such as *stuck in*, then code in backticks or with brackets.
It is asked where a text shows no stack: beside a stack, sentences speak of it. What would happen, and what did not, is no stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ray_rl_debug.formats.dump import CodePlace, DumpThread, Said
from ray_rl_debug.formats.pasted import absent, chains, joined, labels, said
from ray_rl_debug.formats.pasted.events import Head
from ray_rl_debug.formats.pasted.frames import read_frame
from ray_rl_debug.formats.pasted.lines import read_line
from ray_rl_debug.formats.pasted.partial import Partial, set_names

MAX_BYTES = 256 << 10
_MAX_CHARS = 2_000
_FENCE = re.compile(r"\s{0,12}(?:```|~~~)")
_BULLET = re.compile(r"\s{0,12}(?:[-*+•] |\d{1,2}[.)] )")
_HEADING = re.compile(r"\s{0,3}(?:#{1,6} |\|)")
_CLAUSES = re.compile(
    r"(?<=[.;!?])\*{0,2}\s{1,4}(?=\S)|,?\s(?:while(?! \w{3,12}ing\b)|whereas|meanwhile|though|versus|vs\.?)\s"
    r"|(?<=[`)]),\s(?=(?:the )?(?:global )?(?:ranks? ?#?(?:\d|N\b)|[TDPE]P\d|(?:others?|rest|remaining)\b))"
    r"|(?<=[a-z]),\s(?=ranks? ?#?\d{1,5} (?:is |are )?(?:stuck|blocked|waiting|waits?|hangs?|parked)\b)"
    r"|,\s(?:and|but)\s(?=(?:exactly|only|the|one|rank|all|both|its|\d)\b)"
    r"|\s(?:e|et|und|y|mas|aber|mais|pero)\s(?=(?:(?:o|a|le|el|der|die) )?(?:ranks?|rang|rango|worker|gpu) ?#?\d{1,9}\b)"
    r"|\s(?:and|but)\s(?=(?:the )?(?:rank|node|worker|host|stage|pid|process|gpu) ?#?\d{1,9}\b"
    r"|one (?:rank|process|thread|worker|gpu|node) (?:is|was|sits|waits|hangs)\b)",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:if|would|could|should|might|may|must|can|will|when|whenever|until|never|not|no longer|instead of|unless|previously|used to"
    r"|likely|probably|possibly|perhaps|maybe|presumably|supposedly|apparently|guess|suspect(?:ed)?"
    r"|fix(?:es|ed)?)\b|n't\b|\?\s*$",
    re.IGNORECASE,
)
_NUMBERED = r"(?:\d{1,4}|one|two|three|four|five|six|seven|eight|both|all|every|each)"
_WHO = re.compile(
    r"(?P<thread>`?\b(?:(?:the )?main thread|(?:thread|hilo|fil) principal|Hauptthread|MainThread|(?:thread|hilo) (?:do|del|du|de la) \w{3,40}|"
    r"Thread-\d{1,5}|[A-Za-z]\w{0,40}(?:Thread|Executor)(?:[-_]\d{1,5}){1,2}"
    r"|(?:background|watchdog|loader|pin[- ]memory|heartbeat|writer|reader) thread|(?<=\ban )(?:[\w-]{2,20} ){1,3}thread"
    r"|(?<=\ba )(?:[\w-]{2,20} ){1,3}thread|(?<=\bthe )(?:[\w-]{2,20} ){1,2}thread)\b`?)"
    r"|(?P<part>`?\b(?:EngineCore|APIServer|(?:VLLM|ray|sglang)::[\w:.]{2,80}|Worker_[A-Z]{2}\d{1,4}(?:_[A-Z]{2}\d{1,4}){0,3}"
    r"|(?<=`)[^`]{0,80}\bpython3? [^`\s][^`]{0,80}(?=`)"
    r"|(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}[ _]?){1,4}(?:(?<=\d)-\d{1,4}\b)?|"
    r"(?:the )?(?:driver|trainer|scheduler|detokenizer|launcher|router|controller|orchestrator)(?![.(_])"
    r"|the (?:(?:main |master |root )?process|program|server|client|engine|worker)(?![.(_]))\b`?)"
    r"|(?P<ranks>\b(?:global )?ranks? ?#?\d{1,5}(?:(?:-|–|/|\+|, ?| and )\d{1,5}){0,32}\b|\b(?:node|host|worker|task|stage|pid|process) ?#?\d{1,9}\b)"
    r"|(?P<some>\b(?:exactly |only |the )?(?:(?P<count>"
    + _NUMBERED
    + r")(?: of (?:the |them )?(?:\d{1,4} )?)?(?: (?:other|remaining|local|[A-Z]{2}|scheduler|trainer|training|actor|rollout|engine))? ?"
    r"(?:ranks?|process(?:es)?|threads?|workers?|tasks|gpus?|nodes?|actors?|hosts?|boxe?s?|peers?"
    r"|child(?:ren)?(?: process(?:es)?)?)(?:'s?|s')?(?: hosts?)?"
    r"|every(?:one|body) else|(?:its|the|a|each) (?:forked )?child(?:ren)?(?: process(?:es)?)?(?: \d{3,9}\b)?"
    r"|others?(?: ones?| ranks?| process(?:es)?| box(?:es)?| workers?| nodes?)?"
    r"|odd (?:one|rank)|peer|rest|ranks? N)\b\+?)"
    r"|(?P<cjk>(?:全部|所有|其余|其他|另外)的? ?(?:(?P<many>\d{1,4}) ?[个张] ?)?(?:ranks?|进程|卡|worker|节点)的?)"
    r"|(?P<tool>\b(?:py-?spy(?: dump)?|pystack|gdb|(?:stack|thread) ?(?:dump|trace))\b`?[^.`]{0,60}"
    r"\b(?:shows?|showed|says|said|points? (?:at|to)|caught|finds|found)\b(?: the (?:call )?stack)?(?=[\s:(]{0,4}`))",
    re.IGNORECASE,
)
_STUCK = re.compile(r"\b(?:stuck|blocked|stalled|parked|wedged|frozen|hangs?|hanging|hung|spinning|waiting|never returns)\b", re.IGNORECASE)
"""What a sentence says of a place that a tool shows, where it names no process."""
_STUCK_IN_NAME = re.compile(r"\b(?:stuck|blocked|wait(?:s|ing)|hang(?:s|ing)|hung|parked|sits) (?:in|at|inside) [a-z]\w{0,60}_\w", re.IGNORECASE)
_COMMENT = re.compile(r"\s{0,40}(?:#|//) (?=\s{0,12}\S)")
_STANDS = re.compile(
    r"\b(?:stuck|blocked|blocks|stalled|parked|wedged|frozen|waits?|waiting|hangs?|hanging|hung|sits?|sitting|sat|stands?|spins?|spinning|idles?|idle|loops?"
    r"|remain(?:s|ed)?|stays?|stayed"
    r"|launching|already|still|is|are|was|were)\b[^`.;]{0,60}?\b(?:in|at|inside|on|within|launching|for|while \w{3,12}ing)\b"
    r"|\b(?:has|have|had) (?:all |both |already |since |long ){0,3}(?:entered|reached|arrived (?:at|in)|gone into|got(?:ten)? to)\b"
    r"|\b(?:está|estão|están|esperam?|esperan?|attend(?:ent)?|est|sont|hängt|hängen|wartet|warten|steht|stehen)"
    r"(?: (?:parad|bloquead|atascad|detenid|bloqué|pres)\w{0,3})? (?:em|en|na|no|dans|sur|in|auf|bei)\b"
    r"|(?:卡|阻塞|停|挂)(?:住|死)?在|等在|在等",
    re.IGNORECASE,
)
_AT_ON = re.compile(
    r"\b(?:hangs?|hanging|hung|stuck|blocks|blocked|waits?|waiting|stalls|stalled)(?: for ever)? (?:in|at|inside|on) "
    r"(?P<where>`[^`]{2,200}`(?:[^`.;]{0,12}`[^`]{2,200}`){0,4})[^`.;]{0,12} (?:on|for) (?:the )?$",
    re.IGNORECASE,
)
"""``it hangs in `get_state_dict()` on `` before a rank."""
_NEAR, _LINKED = 240, 16
_PART_OF_CLAUSE = re.compile(r"[,:(]\s|\s[—–-]{1,2}\s|\b(?:but|and|then)\s", re.IGNORECASE)
_LINKS = frozenset("from via under called below inside within while since for with and but waiting stuck blocked".split())
"""What may stand behind the code of an entry that says where somebody is."""
_IT = re.compile(
    r"\s{1,2}(?:it|there|(?:this|that)(?! (?:ranks?|process|workers?|nodes?|actor|thread|gpu|card|machine|host|one)\b))\b(?! \w{0,20}`)",
    re.IGNORECASE,
)
_THEY_THERE = re.compile(
    r"\W{0,6}(?:and )?(?:they|it|these|those|(?:all|both) of them)\b[^`.;]{0,30}?\b(?:stuck|blocked|blocks?|stops?|stopped|waits?|waiting|hangs?|hung"
    r"|hanging|parked|sits?|sitting|stays?|stayed|remains?|remained|never returns?)\b[^`.;]{0,12}\b(?:there|in it|inside)\b",
    re.IGNORECASE,
)
"""*Ranks 0-2 enter `all_reduce`. They block there.*: who and where the sentence before says."""
_ENTERS = re.compile(
    r"[`*\s]{0,4}(?:all |both |have |has |had |then )?(?:enter|reach|call|start|hit|get to|got to|join|post)(?:e?s|e?d|ing)?\b", re.IGNORECASE
)
_GO_IN = re.compile(
    r"[`*\s]{0,4}(?:all |both |then )?(?:enter|reach|post)(?:e?s|e?d)?\b(?!.{0,80}\b(?:then|before|after|first|once)\b)", re.IGNORECASE
)
_CODE = re.compile(
    r"`(?P<quoted>[^`\n]{2,240})`"
    r"|(?P<place>(?<![\w/.-])[\w./-]{0,120}\w\.(?:pyx?|cc?|cpp|cu|rs|h):\d{1,7}\b)"
    r"|(?P<call>(?<![\w.:])\.?(?:[A-Za-z_]\w{0,60}(?:\.|::)){0,6}[A-Za-z_]\w{1,80}\(\))"
    r"|(?P<bare>(?<![\w.:/-])(?:[A-Za-z]\w{0,60}(?:\.|::)){0,5}[A-Za-z]\w{0,60}_\w{1,60}(?![\w/-]|\.\w))"
)
_NAME = re.compile(
    r"(?!(?=[a-f]{0,39}\d)[0-9a-f]{7,40}$)(?P<name>\.?(?:[A-Za-z_]\w{0,80}(?:\.|::)){0,8}[A-Za-z_~]\w{0,100})(?:<[^<>]{0,100}>)?(?:\([^()]{0,120}\))?$"
)
_LINE_BEHIND = re.compile(r"(?<=\w):\d{1,7}$")
_PLACE = re.compile(r"(?P<file>[\w./-]{1,200}\.(?:pyx?|cc?|cpp|cu|rs|h))(?::(?P<line>\d{1,7}))?$")
_BESIDE = re.compile(r"^[`*\s]{0,3}(?:\(|at|in|@|,|—|-|line|of)?[`*\s(]{0,4}$")
_OUTWARD = re.compile(r"\b(?:from|via|called (?:by|from)|under|below|inside|within|in|of|by)\b|←|<-", re.IGNORECASE)
_INWARD = re.compile(r"→|->|=>|⟶|▸")
_ASIDE = re.compile(r"\s(?:\w{2,20}\s)?\($")
"""*inside the `Store()` constructor (`create_store`, ...)*: in brackets behind a place is what it lies in."""
_CHOICE = re.compile(r"^\s?/\s?$|\bor\b")
_MOST_FRAMES = 24
_LEAST_OF_CHAIN = 3
"""Names in a chain that a tool shows, as a stack and no more is written."""
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "both": 2}


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


def _may_tell(text: str) -> bool:
    """Is there code in it, marked as such, or a name with an underscore in which somebody is stuck?"""
    return "`" in text or "()" in text or _STUCK_IN_NAME.search(text) is not None


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
    for clause in _CLAUSES.split(text[:_MAX_CHARS]):
        who, told = _who_and_where(clause, above)
        above = clause
        if who is None or told is None:
            entered.append(clause)
            continue
        frames = _frames(told)
        if frames:
            _add(number, clause.strip(), who, frames, dumps)
            _name_each(dumps, chains.several(clause))
    for clause in entered if len(dumps) > before else ():
        who, told = _who_entered(clause, _GO_IN)
        if who is not None and told is not None and who["ranks"] and (frames := _frames(told)):
            _add(number, clause.strip(), who, frames, dumps)  # what one does, where the same sentence says of others that they stand
    absent.add(number, text, dumps[before:])


def _name_each(dumps: list[Partial], heads: list[Head]) -> None:
    """*Both workers (`Worker_TP0`, `Worker_TP1`): ...* are two processes at one place."""
    if not heads or dumps[-1].ranks or dumps[-1].title:
        return
    whole = dumps.pop()
    for head in heads:
        one = Partial(threads=list(whole.threads), source="text", line=whole.line, is_headless=True)
        set_names(one, head)
        dumps.append(one)


def _who_and_where(clause: str, before_it: str) -> tuple[re.Match[str] | None, str | None]:
    """Who is meant, and the words that say where; *stuck on it* is the last code before, also of the clause before."""
    if _THEY_THERE.match(clause) and not _DOUBT.search(clause):
        return _who_entered(before_it)
    who = _WHO.search(clause[:400])
    if who is None:
        return None, None
    before, behind = clause[: who.start()], clause[who.end() :]
    if who["tool"]:
        shown = _CODE.match(behind.lstrip(" :("))
        is_told = shown is not None and (_STUCK.search(behind[:_NEAR]) is not None or _is_chain(shown["quoted"]))
        return (who, behind) if is_told and not _DOUBT.search(clause) else (None, None)
    if who["ranks"] and (where := _AT_ON.search(before)) is not None:
        if _DOUBT.search(_PART_OF_CLAUSE.split(before[: where.start()])[-1] + where[0]):
            return None, None
        return who, where["where"]
    is_entry = not before.strip(" -*+•`0123456789.)") and re.match(r"[`*\s]{0,4}(?:\([^()]{0,60}\))?[`*\s]{0,4}(?::|—|–|-|→)\s", behind) is not None
    stands = _STANDS.search(behind[:_NEAR])
    if stands is None and not is_entry:
        return None, None
    if stands is not None and not who["tool"] and (last := next(reversed(list(_WHO.finditer(behind, 0, stands.end()))), None)) is not None:
        # "... on rank 3, and since then the other 7 ranks hang in ..." tells where the seven are
        who, before, behind = last, f"{before}{who[0]}{behind[: last.start()]}", behind[last.end() :]
        stands = _STANDS.search(behind[:_NEAR])
        if stands is None:
            return None, None
    said_of = _PART_OF_CLAUSE.split(f"{before}{who[0]}{behind[: stands.start() if stands is not None else 0]}")[-1]
    told = behind[stands.end() if stands is not None else 0 :]
    code = _CODE.search(told)
    if _DOUBT.search(said_of) or (stands is not None and _DOUBT.search(stands[0])):
        return None, None
    if stands is not None and _IT.match(told):
        if stands[0].lower().endswith("for") and _WHO.search(before_it):
            return None, None  # "the others wait for it" means somebody
        above = _last_code(f"{before_it} {before}{behind[: stands.start()]}")
        return (who, above) if above else (None, None)
    if code is None or _DOUBT.search(told[: code.start()]):
        return None, None
    if stands is None and (noun := re.match(r"`? ([a-z]{3,20})\b", told[code.end() - 1 :])) is not None and noun[1] not in _LINKS:
        return None, None  # "rank 0: `save` barrier → `close` barrier" tells what it does, one after the other
    return who, told


def _who_entered(clause: str, entering: re.Pattern[str] | None = None) -> tuple[re.Match[str] | None, str | None]:
    """Who goes into a call, as a clause tells it, and the words from that call on."""
    who = _WHO.search(clause[:400])
    enters = (entering or _ENTERS).match(clause, who.end()) if who is not None and not who["tool"] else None
    if enters is None or _DOUBT.search(clause):
        return None, None
    return who, clause[enters.end() :]


def _is_chain(quoted: str | None) -> bool:
    """Is it a whole chain of calls? A single name may be shown for many reasons."""
    return quoted is not None and joined.names(quoted, least=_LEAST_OF_CHAIN, code=2) is not None


def _last_code(text: str) -> str:
    """The last names of code in a text, with those in which they stand: *`all_reduce` in `step`*."""
    codes = list(_CODE.finditer(text))
    at = len(codes) - 1
    while at > 0 and len(between := text[codes[at - 1].end() : codes[at].start()]) < _LINKED and _OUTWARD.search(between):
        at -= 1
    return text[codes[at].start() :] if codes else ""


def _frames(text: str) -> list[CodePlace]:
    """The frames that a part of a sentence names, innermost first."""
    found: list[CodePlace] = []
    end, inward = 0, False
    for code in _CODE.finditer(text):
        between, told = text[end : code.start()], code["quoted"] or code["place"] or code["call"] or code["bare"]
        if found and (re.search(r"[.;]\s|,\s+and\b|\bthat\b|\bwhich\b|\bthey\b|\bit\b", between) or len(between) > 80 or _DOUBT.search(between)):
            break
        end = code.end()
        place = _PLACE.match(told)
        if place is not None:
            line = int(place["line"]) if place["line"] else 0
            if found and not found[-1][1] and _BESIDE.match(between):
                found[-1] = (found[-1][0], place["file"], line)
            elif not found and (behind := _function_behind(text[end:])) is not None:
                found.append((behind, place["file"], line))
            continue
        if not found and code["quoted"] and (chain := joined.names(told)) is not None:
            return list(chain.places) if chain.order == "inner" else list(reversed(chain.places))
        if found and told.startswith("."):
            continue  # a part of what is told of the place
        whole = read_frame(told) if " " in told or ":" in told else None
        name = _NAME.match(_LINE_BEHIND.sub("", told.strip()))
        if whole is not None and not whole.is_whole:
            new = list(whole.places)
        elif name is not None and (code["quoted"] is None or len(name["name"]) > 2):
            new = [(name["name"], "", 0)]
        else:
            continue
        if not found:
            found = new
        elif found[-1][0] == new[0][0] or _CHOICE.search(between):
            continue
        elif _ASIDE.match(between):
            found = [*found, *new]
        elif re.match(r"['’]s\s|`? ?的 ?", between):
            found = [*new, *found]
        elif _INWARD.search(between):
            inward = True
            found = [*found, *new]
        elif _OUTWARD.search(between):
            found = [*found, *new]
        if len(found) >= _MOST_FRAMES:
            break
    return found[::-1] if inward else found


def _function_behind(text: str) -> str | None:
    """``instance.c:576` in init_common()``: the function of a place that stands before it."""
    found = re.match(r"[`*\s]{0,3}(?:in|,|\()?[`*\s(]{0,4}(?P<name>(?:\w{1,60}(?:\.|::)){0,4}\w{2,80})(?:\(\))?(?=[`*\s,.;)]|$)", text)
    return found["name"] if found is not None and ("_" in found["name"] or found[0].rstrip("`").endswith("()")) else None


def _add(number: int, text: str, who: re.Match[str], frames: list[CodePlace], dumps: list[Partial]) -> None:
    thread = DumpThread(frames=frames)
    if who["thread"]:
        name = who["thread"].strip("` ")
        thread.name = "MainThread" if name.lower().endswith("main thread") else name
        last = dumps[-1] if dumps and dumps[-1].source == "text" else None
        if last is None or any(t.name in (None, thread.name) for t in last.threads):
            last = Partial(threads=[], source="text", line=number, is_headless=True)
            dumps.append(last)
        last.threads.append(thread)
        return
    dump = Partial(threads=[thread], source="text", line=number, is_headless=True)
    if who["tool"]:
        dumps.append(dump)
        return
    told = who[0].strip("` ")
    head = labels.read(f"{told}:")
    count = _count(who)
    if head is not None and (head.ranks or head.pid or head.title or (head.label and not count)):
        set_names(dump, head)
    elif count is None or count == 1:
        dump.label = re.sub(r"^(?:exactly|only) ", "", told.lower())
    if count is not None and count > 1:
        dump.label = dump.label or _without_count(told.lower())
        dump.said.append((number, Said(kind="same", text=text[:300], count=count)))
    if not any(d.line == number and (d.label, d.ranks, d.pid) == (dump.label, dump.ranks, dump.pid) for d in dumps):
        dumps.append(dump)  # whom a paragraph names twice it has shown already


def _without_count(told: str) -> str | None:
    """Whom the words name, without how many: *three ranks' hosts* are ranks' hosts."""
    rest = re.sub(r"^(?:(?:exactly|only|the|other|remaining|of|them|" + _NUMBERED + r")\s)+", "", told).strip()
    return None if rest in ("ranks", "workers", "processes", "of them") else rest or None


def _count(who: re.Match[str]) -> int | None:
    told = (who["count"] or who["many"] or "").lower()
    if told.isdecimal():
        return int(told)
    return _WORDS.get(told) or said.count_in(who[0])
