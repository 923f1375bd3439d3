"""A line that says whose stack it is, and then the stack: ``Rank 3 (pid 12): f (a.py:1) <- g (b.py:2)``, ``[rank0] MainThread: main -> f (a.py:1)``.

Three layers, each with one grammar: the lead, in which somebody is named (`labels`); words that only qualify (a tool, a thread, *stuck in*); and a
frame or a stack on one line (`frames`, `joined`). A line is cut where the lead may end, and each cut is tried until all three are understood.
"""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.formats.pasted import joined, labels, said
from ray_rl_debug.formats.pasted.events import Event, Frames, Head
from ray_rl_debug.formats.pasted.frames import read_frame
from ray_rl_debug.formats.pasted.orientation import KNOWN

MAX_CHARS = 8_000
_MAX_LEAD = 120
_MAX_CUTS = 12
_CLASS = r"[A-Z][A-Za-z]{1,40}(?:Runner|Worker|Actor|Manager|Server|Engine|Trainer|Controller)"
_SUBJECT = re.compile(r"\d|(?i:EngineCore|APIServer|::|\b(?:driver|all|both|others?|rest|main thread)\b)|其余|其他|其它|剩下|\b" + _CLASS + r"\b")
"""Without any of these nobody is named."""
_MAY_TELL = re.compile(r"\.(?:pyx?|so|cc?|cpp|cxx|cu|h|hpp|rs|go|S)\b|[→←⟶⟵⇒⇐➜➔▸»«<>;|]|\w:\d")
"""Without any of these there is no frame; asked first, because logs are long."""
_CUT = re.compile(
    r"(?<=[\])}>]):?\s{1,12}|:\s{1,12}|:(?=[`A-Za-z<])(?!:)(?<!::)|\s[-–—=|@/]{1,2}\s{1,12}|\s?(?P<arrow>={1,3}>|-{1,3}>|[─━]{1,3}>|→|⇒|⟶)\s?|\s{2,12}|;\s?|(?<=[\d)])\s|="
    r"|,\s(?=(?:调用|堆栈|call |stack|chain))"
    r"|,?\s(?=(?:is|are|was|were|stuck|blocked|waits?|waiting|sits?|sitting|parked|hangs?|hung|stopped|idle|still|now|in|at|inside)\s)"
    r"|(?=(?:一直|都|正)?(?:卡在|卡住在|停在|阻塞在|等在|在等|挂在|位于|在(?=[\s`A-Za-z_])))"
)
"""Where a lead may end."""
_QUALIFIERS = re.compile(
    r"\W{0,3}(?:"
    r"(?:the )?(?P<thread>main[ _]?thread|主线程|[A-Z]\w{0,40}Thread(?:-\d{1,5})?|Thread-\d{1,5}(?: \([^()]{1,60}\))?)(?=\W)\W{0,3}"
    r"|(?:py-?spy(?: dump| top)?|pystack|(?:cuda-)?gdb|faulthandler|(?:its |the )?(?:py(?:thon)? |call |innermost |top |last |user )?"
    r"(?:call)?(?:stack(?: ?trace)?|back ?trace|trace|frames?|where|location|place|pos(?:ition)?)|call chain|chain|调用链|调用栈|堆栈|栈顶|栈)"
    r"(?: (?:says|shows))?\W{0,2}(?:[:=]|\s(?:is|was)\s|(?<=\s))\W{0,2}"
    r"|(?:(?:is|are|was|were|all|both|still|now|also|always|currently)(?=\s)|一直|都|正)\s?"
    r"|(?P<state>(?:stopped|stuck|blocked|waiting|waits?|sits?|sitting|parked|hung|hangs?|hanging|idle|spinning)(?![\w(]|\s?\()"
    r"|(?:bloqu|block|hängt|steht|wartet|atascad|bloquead|parad|detenid|espera|attend|fermo)\w{0,6} (?:dans|in|en|em|sur|auf|na|no)(?=\W)"
    r"|卡在|卡住在|停在|阻塞在|等在|在等待?|等待|挂在|位于)\W{0,3}"
    r"|(?:(?:in|at|inside|on|here|within)(?![\w(])|在|于)\W{0,3}"
    r")"
)
"""What stands between a lead and its frames."""
_CHAIN = re.compile(r"\s{0,4}(?:调用链|调用栈|堆栈|call chain|call stack|stack|chain)\W", re.IGNORECASE)
_QUOTED = re.compile(r"`([^`]{1,100})`")
_NAMED = (
    r"(?=(?:the |all |both |every |its )?(?:other )?(?:ranks?|procs?|gpus?|workers?|nodes?|cards?|stages?|hosts?|actors?|pid|others?|rest|[TDPEC]P)\b"
    r"|其余|其他|其它|剩下|rank|\d{1,4} ?号|r\d{1,4}[=:@])"
)
_CLAUSE = re.compile(
    r"(?<=[.;!?。])\s{1,4}(?=[^\W\d])|[,;]\s{1,4}(?:(?:and|but|while|whereas|meanwhile)\s)?" + _NAMED + r"|\s(?:and|but|while|whereas)\s" + _NAMED,
    re.IGNORECASE,
)
"""Where a sentence begins to tell of somebody else."""
_OTHERS = re.compile(
    r"\W{0,4}(?:and |but |while )?(?:all |every |everybody )?(?:the |of the )?(?:others?|rest|remaining|everybody else|everyone else)"
    r"(?: (?:ones?|ranks?|processes|workers|gpus|cards))?\W{0,3}$|(?:其余|其他|其它|剩下)(?:的)?(?:rank|卡|进程)?$",
    re.IGNORECASE,
)
_ANY_NAME = re.compile(r"[^\w\[(]{0,8}(?P<name>[A-Za-z][A-Za-z0-9-]{1,40})(?: ?[\[(]" + said.NUMBERS + r"[\])])?[^\w\[(]{0,4}$")
_DRAWN = re.compile(r"\W{0,8}(?P<name>" + _CLASS + r"|(?i:(?:the )?main thread))[`*]{0,3}")
_NO_NAMES = frozenset(
    "stack stacks trace traces traceback backtrace bt frame frames here it this that dump output result place where at in and the a an"
    " thread threads main mainthread error warning info debug note file line step steps time see like e g i".split()
)
"""What stands before a stack and is nobody."""
_END = re.compile(r"[.;!。]\s{0,4}$")
_LISTED = re.compile(r"`,\s?`")
"""Between names in backticks, the innermost first."""
_ADVERBS = frozenset("together there here somewhere elsewhere already".split())
"""``3 ranks wait together at a.py:7``: how they stand, and no function."""
_MOST_QUALIFIERS = 6
_SENTENCE = re.compile(r"[.;!?]\*{0,2}\s|\s(?:while|whereas|but)\s", re.IGNORECASE)
"""More than a name: names behind it may be of anything."""
_NEXT_SENTENCE = re.compile(r"(?<=[\w)`])[.;!?]\s(?=[A-Z])")
_SAME = re.compile(r"(?P<who>[^:=]{2,40}?) ?[:=] ?(?:the )?(?:same|ditto|idem|identical|likewise)\W{0,4}$", re.IGNORECASE)
"""``rank1: same``, behind another's stack on the line."""
_WITH_PID = re.compile(r"\W{0,6}`[\w.-]{1,80}` \(?pid ", re.IGNORECASE)
"""The name of a machine in backticks."""
_OF_LEAD = re.compile(r"(?<=[\w)`])[;.]\s{1,3}(?=[A-Za-z`])")
_BULLET = re.compile(r"^\s{0,12}(?:[-*•+] |\d{1,2}[.)] )")
_TIMES = re.compile(r"^\s{0,4}\d{1,5} ?[x×]\s{1,4}")
"""``15x all_reduce < step (ranks 0-14)``"""
_BEHIND = re.compile(r"\s\(?(?:\d{1,6} )?ranks?:? " + said.NUMBERS + r"\)\s{0,8}$", re.IGNORECASE)
_ASIDES = re.compile(r"[,;(]\s?")
_NOT_SO = re.compile(
    r"\b(?:if|would|could|should|might|must|will|expected|supposed|never|not|no longer|until|before|after|instead|used to|fixed)\b|n't\b",
    re.IGNORECASE,
)


def clauses(text: str) -> tuple[Event, ...]:
    """The processes of which the sentences of a line tell where they stand; empty unless several are told of."""
    if len(text) > MAX_CHARS or _MAY_TELL.search(text) is None or _CLAUSE.search(text) is None:
        return ()
    told: list[tuple[Event, ...]] = []
    for clause in _CLAUSE.split(text):
        if told and (same := _SAME.match(clause)) is not None and (head := labels.read(f"{same['who']}:")) is not None:
            told.append((head, *(event for event in told[-1] if isinstance(event, Frames))))
        elif (one := read(clause)) and (_has_file(one) or _is_known(one)):
            told.append(one)
    return tuple(event for one in told for event in one) if len(told) > 1 and any(map(_has_file, told)) else ()


def read(text: str) -> tuple[Event, ...]:
    """Who is named and the frames behind it; empty for a line that is not wholly understood."""
    text = _END.sub("", text)
    if len(text) > MAX_CHARS or _MAY_TELL.search(text) is None or _SUBJECT.search(text, 0, _MAX_LEAD) is None:
        return ()
    for number, cut in enumerate(_CUT.finditer(text, 0, _MAX_LEAD + 12)):
        if number >= _MAX_CUTS or cut.start() > _MAX_LEAD:
            break
        lead = text[: cut.start()].strip()
        if not lead or _SUBJECT.search(lead) is None or lead.count("`") % 2:
            continue
        if (
            _CHAIN.match(text, cut.end()) is None
            and _WITH_PID.match(lead) is None
            and any(labels.read(f"{code[1]}:") is None for code in _QUOTED.finditer(lead))
        ):
            break  # what is quoted here is a place already
        if ":" not in cut[0] and _NOT_SO.search(_ASIDES.split(lead)[-1]) is not None:
            break  # "rank 0 should be in ..." tells where it is not
        frames = _frames(text[cut.end() :], lead, is_drawn=cut["arrow"] is not None)
        if frames is None:
            continue
        named = _OF_LEAD.split(lead)[-1]  # "Only rank 0 uploads; all others sit in ..." tells where the others are
        drawn = _drawn(named) if cut["arrow"] is not None else None
        if (head := drawn or labels.owner(named) or _others(named) or _by_name(named, frames)) is None:
            continue
        return (head, frames, last) if (last := _comes_next(text[cut.end() :])) is not None else (head, frames)
    return ()


def behind(text: str) -> tuple[Event, ...]:
    """``f (a.py:1) < g (b.py:2) (15 ranks: 0-6, 8-15)``: who is there stands in brackets behind the stack."""
    found = _BEHIND.search(text, max(0, len(text) - 400)) if text.rstrip().endswith(")") and len(text) <= MAX_CHARS else None
    if found is None:
        return ()
    stack = _TIMES.sub("", _BULLET.sub("", text[: found.start()]))
    frames = joined.read(stack) or joined.names(stack, code=2) or read_frame(f"    {stack.strip(' `')}")
    if frames is None:
        return ()
    head = Head(level="label", ranks=said.numbers(found["ranks"]), is_new=True)
    return head, msgspec.structs.replace(frames, is_certain=True)


def _comes_next(rest: str) -> Head | None:
    """``... in `barrier()`. Rank 0:``: the last sentence of the line says whose stack the next ones show."""
    parts = _NEXT_SENTENCE.split(rest)
    return labels.read(parts[-1]) if len(parts) > 1 and parts[-1].rstrip(" `*_").endswith(":") else None


def _by_name(lead: str, frames: Frames) -> Head | None:
    """``replica-a [0, 1]: f (a.py:1) < g (b.py:2)``: any name that stands before a whole stack with files is that of its process."""
    found = _ANY_NAME.match(lead) if sum(1 for _, file, _ in frames.places if file) > 1 else None
    if found is None or found["name"].lower() in _NO_NAMES or joined.is_code(found["name"].replace("-", "")):
        return None
    ranks = said.numbers(found["ranks"]) if found["ranks"] else ()
    return Head(level="label", label=f"{found['name']} " if ranks else found["name"], ranks=ranks, is_new=True)


def _drawn(lead: str) -> Head | None:
    """``TaskRunner -> fit -> ray.get``, ``main thread -> ...``: the part of a program at which a drawn chain begins."""
    found = _DRAWN.fullmatch(lead)
    return Head(level="label", label=found["name"], is_new=True) if found is not None else None


def _others(lead: str) -> Head | None:
    """Those of whom it is only said that they are all others."""
    return Head(level="label", label="other ranks", is_new=True) if _OTHERS.match(lead) else None


def _has_file(told: tuple[Event, ...]) -> bool:
    """Names alone may be anything in a sentence: `prose` reads those, where a text shows no stack."""
    return any(file for one in told if isinstance(one, Frames) for _, file, _ in one.places)


def _is_known(told: tuple[Event, ...]) -> bool:
    """Is the innermost name a wait that everybody knows?"""
    return any(one.places[0][0].rsplit(".", 1)[-1] in KNOWN for one in told if isinstance(one, Frames))


def _frames(rest: str, lead: str, *, is_drawn: bool = False) -> Frames | None:
    """The frames behind the words that qualify them. A function may be called like such a word, so that fewer of them are tried too."""
    told: list[tuple[str, str | None, str | None]] = [(rest, None, None)]
    while len(told) < _MOST_QUALIFIERS and (word := _QUALIFIERS.match(told[-1][0])) is not None and word.end():
        text, thread, state = told[-1]
        told.append((text[word.end() :], thread or word["thread"], state or word["state"]))
    is_plain = said.NO_STACK.search(lead) is None and _SENTENCE.search(lead) is None
    for whole, thread, state in reversed(told):
        whole = _LISTED.sub("` <- `", whole) if len(_LISTED.findall(whole)) > 1 else whole
        text = _NEXT_SENTENCE.split(whole, maxsplit=1)[0]
        found = read_frame(text) or joined.read(text, is_named=True)
        found = None if found is not None and found.places[0][0] in _ADVERBS else found
        if found is None and is_plain:
            is_sure = state or is_drawn or "←" in text or "<" in text
            found = joined.names(text, least=2 if is_sure else 3, code=1 if is_sure else 2)
        if found is not None:
            return msgspec.structs.replace(found, is_certain=True, name=found.name or _thread(thread))
    return None


def _thread(told: str | None) -> str | None:
    return "MainThread" if told is not None and (told == "主线程" or told.lower().startswith("main")) else told


def of_row(head: Head, stacks: list[Frames]) -> tuple[Event, ...]:
    """Who is named, and what its cells show: one stack, or those of several of its threads."""
    if len(stacks) == 1:
        return head, stacks[0]
    if all(len(one.places) == 1 for one in stacks):
        # one frame a column: its caller stands in the next
        return head, msgspec.structs.replace(stacks[0], places=tuple(one.places[0] for one in stacks), order=None)
    return head, *(event for at, one in enumerate(stacks) for event in (Head(level="thread", source="text", key=f"column {at}"), one))
