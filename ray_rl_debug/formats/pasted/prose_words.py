"""Words of sentences that tell of stacks: who, where, and where doubt is."""

from __future__ import annotations

import re

CLAUSES = re.compile(
    r"(?<=[.;!?])\*{0,2}\s{1,4}(?=\S)|,?\s(?:while(?! \w{3,12}ing\b)|whereas|meanwhile|though|versus|vs\.?)\s"
    r"|(?<=[`)]),\s(?=(?:the )?(?:global )?(?:(?:ranks?|nodes?|hosts?|workers?|stages?) ?#?(?:\d|N\b)|[TDPE]P\d|(?:others?|rest|remaining)\b))"
    r"|(?<=[a-z]),\s(?=ranks? ?#?\d{1,5} (?:is |are )?(?:stuck|blocked|waiting|waits?|hangs?|parked)\b)"
    r"|,\s(?:and|but)\s(?=(?:exactly|only|the|one|rank|all|both|its|\d)\b)"
    r"|\s(?:e|et|und|y|mas|aber|mais|pero)\s(?=(?:(?:o|a|le|el|der|die) )?(?:ranks?|rang|rango|worker|gpu) ?#?\d{1,9}\b)"
    r"|,?\s(?:[иа]\s)?(?=(?:ранг|процесс|воркер)\w{0,2} ?#?\d{1,9} )"
    r"|(?<!ranks)(?<!workers)(?<!processes)(?<!everyone)(?<!everybody)(?<!gpus)(?<!nodes)(?<!stages)(?<!\ball)"
    r"\s(?:and|but)\s(?=(?:the )?(?:rank|node|worker|host|stage|pid|process|gpu) ?#?\d{1,9}\b"
    r"|one (?:rank|process|thread|worker|gpu|node) (?:is|was|sits|waits|hangs)\b)",
    re.IGNORECASE,
)
STANDING = (
    r"stuck|blocked|stalled|parked|wedged|frozen|waits?|waiting|waited|hangs?|hanging|hung|sits?|sitting|sat|stands?|stood|spins?|spinning|idle"
)
"""What people say of a process that gets no further."""
DOUBT = re.compile(
    r"\b(?:if|would|could|should|might|may|must|can|will|whenever|until|never|not|no longer|instead of|unless|previously|used to"
    r"|when(?! (?:it|this|the (?:job|run|training)) (?:hangs?|hung|stops|stopped|stalls|stalled|freezes|froze|is stuck)\b)"
    r"|likely|probably|possibly|perhaps|maybe|presumably|supposedly|apparently|guess|suspect(?:ed)?"
    r"|fix(?:es|ed)?)\b|n't\b|\?\s*$",
    re.IGNORECASE,
)
SPOKEN_CALLS = (
    (r"all[- ]?reduces?", "all_reduce"),
    (r"all[- ]?gathers?", "all_gather"),
    (r"reduce[- ]?scatters?", "reduce_scatter"),
    (r"all[- ]?to[- ]?all", "all_to_all"),
    (r"barriers?", "barrier"),
    (r"broadcasts?", "broadcast"),
    (r"ray\.get", "ray.get"),
    (r"ray\.wait", "ray.wait"),
)
"""Calls that people name in plain words, *the others wait in an all-reduce*, and how they are called."""
SPOKEN_WORK = (
    (r"data ?loaders?|data loading", "dataloader"),
    (r"optimi[sz]er\.? ?steps?", "optimizer_step"),
    (r"forward(?: pass)?", "forward"),
    (r"backward(?: pass)?", "backward"),
    (r"reward (?:function|computation|model|manager)", "reward_function"),
    (r"(?:checkpoint|ckpt) (?:save|saving|write)|(?:save|saving) of the checkpoint", "save_checkpoint"),
    (r"(?:checkpoint|ckpt|weight|model) load(?:ing)?", "load_checkpoint"),
    (r"(?:evaluation|validation)(?: loop)?", "evaluate"),
)
"""Work that they name so, *rank 3 is in the backward pass*: where code stands beside it, that tells more."""
_BEFORE_SPOKEN = tuple(
    "in at on inside within the a an its their nccl gloo own next last first same"
    " gradient grad loss metric metrics tp dp ep pp fsdp final global initial weight".split()
)
IS_SPOKEN = (
    "(?:"
    + "|".join(rf"(?<=\b{word} )" for word in _BEFORE_SPOKEN)
    + r"|^\s)(?:"
    + "|".join(told for told, _ in SPOKEN_CALLS + SPOKEN_WORK)
    + r")(?![\w.(-]*\w|[ -]?(?:group|time))"
)
_SPOKEN_WORDS = tuple(
    "reduce,gather,scatter,all-to-all,all to all,alltoall,barrier,broadcast,loader,loading,ray.get,ray.wait"
    ",optimizer,optimiser,forward,backward,reward ,saving,save,evaluation,validation".split(",")
)
"""One of them is in each of these."""
_SPEAKS = re.compile(
    r"\b(?:" + STANDING + r"|stays?|is|are|still) (?:for (?:it|them) )?(?:in|at|inside|on) "
    r"(?:(?:" + "|".join(_BEFORE_SPOKEN) + r") ){0,3}" + IS_SPOKEN,
    re.IGNORECASE,
)


def is_spoken_of(text: str, lower: str) -> bool:
    """Does a text say in plain words where somebody stands?"""
    return any(word in lower for word in _SPOKEN_WORDS) and _SPEAKS.search(text) is not None


NUMBERED = r"(?:\d{1,4}|one|two|three|four|five|six|seven|eight|both|all|every|each)"
WHO = re.compile(
    r"(?P<thread>`?\b(?:(?:the )?main thread|(?:thread|hilo|fil) principal|Hauptthread|MainThread|(?:thread|hilo) (?:do|del|du|de la) \w{3,40}|"
    r"Thread-\d{1,5}|[A-Za-z]\w{0,40}(?:Thread|Executor)(?:[-_]\d{1,5}){1,2}"
    r"|(?:background|watchdog|loader|pin[- ]memory|heartbeat|writer|reader) thread|(?<=\ban )(?:[\w-]{2,20} ){1,3}thread"
    r"|(?<=\ba )(?:[\w-]{2,20} ){1,3}thread|(?<=\bthe )(?:[\w-]{2,20} ){1,2}thread)\b`?)"
    r"|(?P<part>`?\b(?:EngineCore|APIServer|(?:VLLM|ray|sglang)::[\w:.]{2,80}|Worker_[A-Z]{2}\d{1,4}(?:_[A-Z]{2}\d{1,4}){0,3}"
    r"|(?<=`)[^`]{0,80}\bpython3? [^`\s][^`]{0,80}(?=`)"
    r"|(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}[ _]?){1,4}(?:(?<=\d)-\d{1,4}\b)?|"
    r"(?:the )?(?:driver|trainer|scheduler|detokenizer|launcher|router|controller|orchestrator)(?![.(_])"
    r"|the (?:vLLM|SGLang|rollout|inference|training|policy|reference|reward|critic|actor) (?:worker|engine|server|process|actor|trainer)(?![.(_])"
    r"|the (?:(?:main |master |root )?process|(?:main|master|root|head|leader) rank|program|server|client|engine|worker)(?![.(_]))\b`?)"
    r"|(?P<ranks>\b(?:(?:(?:actor|critic|ref|reference|reward|rollout|teacher|student) |global )?ranks?"
    r"|GPUs?) ?#?\d{1,5}(?:(?:\.{2,3}|…|-|–|/|\+|, ?| and )\d{1,5}){0,32}\b"
    r"|\b(?:nodes?|hosts?|workers?|stages?) \d{1,4}(?:(?:-|–| to |, ?| and |, and )\d{1,4}){1,16}\b"
    r"|\b(?:node|host|worker|task|stage|engine|replica|pid|process) ?#?\d{1,9}\b"
    r"|\b(?:ранг|процесс|воркер)\w{0,2} ?#?\d{1,9}\b)"
    r"|(?P<some>\b(?:exactly |only |the )?(?:(?:(?:all|every) )?(?:of )?(?:the )?(?:other )?(?:ranks|processes|workers|gpus|nodes)"
    r" (?:except|but|apart from|other than)(?: for)? (?:(?:global )?ranks? )?#?\d{1,5}(?:(?:, ?| and )\d{1,5}){0,8}"
    r"|(?:(?:other|remaining) )?(?P<count>" + NUMBERED + r")(?: of (?:the |them )?(?:\d{1,4} )?)?"
    r"(?: (?:other|remaining|local|[A-Z]{2}|scheduler|trainer|training|actor|rollout|engine|reward|critic|inference|agent|judge|tool))? ?"
    r"(?:[A-Z]{2}-)?(?:ranks?|process(?:es)?|threads?|workers?|tasks|gpus?|nodes?|actors?|hosts?|boxe?s?|peers?|stages?"
    r"|child(?:ren)?(?: process(?:es)?)?)(?:'s?|s')?(?: hosts?)?"
    r"|every(?:one|body) else|(?:its|the|a|each) (?:forked )?child(?:ren)?(?: process(?:es)?)?(?: \d{3,9}\b)?"
    r"|other (?:\d{1,4}|two|three|four|five|six|seven)(?= (?:in|at|on|inside|are|wait|sit|hang|stand|block)\b)"
    r"|others?(?: ones?| ranks?| process(?:es)?| box(?:es)?| workers?| nodes?)?"
    r"|odd (?:one|rank)|peer|rest|ranks? N)\b\+?)"
    r"|(?P<cjk>(?:全部|所有|其余|其他|另外)的? ?(?:(?P<many>\d{1,4}) ?[个张] ?)?(?:ranks?|进程|卡|worker|节点)的?)"
    r"|(?P<tool>\b(?:py-?spy(?: dump)?|pystack|gdb|(?:stack|thread) ?(?:dump|trace))\b`?[^.`]{0,60}"
    r"\b(?:shows?|showed|says|said|points? (?:at|to)|caught|finds|found)\b(?: the (?:call )?stack)?(?=[\s:(]{0,4}`))",
    re.IGNORECASE,
)
STUCK = re.compile(r"\b(?:stuck|blocked|stalled|parked|wedged|frozen|hangs?|hanging|hung|spinning|waiting|never returns)\b", re.IGNORECASE)
"""What a sentence says of a place that a tool shows, where it names no process."""
STANDS = re.compile(
    r"\b(?:(?:is|are|was|were|all|still|just|now|only) ){0,3}(?:waits?|waiting) for"
    r" (?:it|them|him|each other|everybody|everyone|ranks? ?\d{1,5}|the (?:others?|rest|last))\s(?:in|at|inside|on)\b|"
    r"\bnever (?:leaves?|left|returns? from|exits?|(?:gets?|got) (?:past|out of|through)|(?:comes?|came) (?:out of|back from))\b"
    r"|\b(?:is|are|was|were) (?:still |now |already |currently |busy ){0,2}(?:calling|executing|issuing|running|performing|posting"
    r"|loading|saving|writing|reading|downloading|uploading|tokenizing|compiling|decoding|parsing|computing|evaluating|scoring|generating|copying"
    r"|busy (?:in|with))\b"
    r"|\b(?:go|goes|went|gone|move|moves|moved|proceeds?|proceeded|continues?|continued|advance[sd]?) (?:on |ahead |straight ){0,2}(?:to|into)\b|"
    r"\b(?:" + STANDING + r"|blocks|idles|loops?"
    r"|remain(?:s|ed)?|stays?|stayed"
    r"|launching|already|still|is|are|was|were)\b[^`.;]{0,60}?\b(?:in|at|inside|on|within|launching|for|while \w{3,12}ing)\b"
    r"|\b(?:has|have|had) (?:all |both |already |since |long ){0,3}(?:entered|reached|arrived (?:at|in)|gone into|got(?:ten)? to)\b"
    r"|\b(?:está|estão|están|esperam?|esperan?|attend(?:ent)?|est|sont|hängt|hängen|wartet|warten|steht|stehen)"
    r"(?: (?:parad|bloquead|atascad|detenid|bloqué|pres)\w{0,3})? (?:em|en|na|no|dans|sur|in|auf|bei)\b"
    r"|\b(?:за)?(?:вис(?:ит|ят|ла|ли)?|жд[её]т|ждут|сто(?:ит|ят)|застря(?:л|ла|ли)|заблокирован\w?) (?:в|на|внутри)\b"
    r"|(?:卡|阻塞|停|挂)(?:住|死)?在|等在|在等|都在(?=[ `])|正在(?=[ `])|还在(?=[ `])",
    re.IGNORECASE,
)
AT_ON = re.compile(
    r"\b(?:hangs?|hanging|hung|stuck|blocks|blocked|waits?|waiting|stalls|stalled)(?: for ever)? (?:in|at|inside|on) "
    r"(?P<where>`[^`]{2,200}`(?:[^`.;]{0,12}`[^`]{2,200}`){0,4})[^`.;]{0,12} (?:on|for) (?:the )?$",
    re.IGNORECASE,
)
"""``it hangs in `get_state_dict()` on `` before a rank."""
IT = re.compile(
    r"\s{1,2}(?:it|there|(?:this|that)(?! (?:ranks?|process|workers?|nodes?|actor|thread|gpu|card|machine|host|one)\b))\b(?! \w{0,20}`)",
    re.IGNORECASE,
)
THEY_THERE = re.compile(
    r"\W{0,6}(?:and )?(?:they|it|these|those|(?:all|both) of them)\b[^`.;]{0,30}?\b(?:stuck|blocked|blocks?|stops?|stopped|waits?|waiting|hangs?|hung"
    r"|hanging|parked|sits?|sitting|stays?|stayed|remains?|remained|never returns?)\b[^`.;]{0,12}\b(?:there|in it|inside)\b",
    re.IGNORECASE,
)
"""*Ranks 0-2 enter `all_reduce`. They block there.*: who and where the sentence before says."""
ENTERS = re.compile(
    r"[`*\s]{0,4}(?:all |both |have |has |had |then )?(?:enter|reach|call|start|hit|get to|got to|join|post)(?:e?s|e?d|ing)?\b", re.IGNORECASE
)
GO_IN = re.compile(
    r"[`*\s]{0,4}(?:all |both |then )?(?:enter|reach|post)(?:e?s|e?d)?\b(?!.{0,80}\b(?:then|before|after|first|once)\b)", re.IGNORECASE
)
NAMED_ENTRY = re.compile(
    r"\s{0,12}(?:[-*+•]|\d{1,2}[.)]) [`*]{1,3}(?P<part>[A-Za-z][\w.-]{1,40})[`*]{1,3}"
    r"(?=(?: \([^()]{0,60}\))?(?::| —| –| -)\s(?:\w{1,12} ){0,2}(?:stuck|blocked|waiting|waits|parked|hung|hangs|sits)\b)"
    + "".join(f"(?P<{other}>(?!))?" for other in ("thread", "ranks", "some", "count", "cjk", "many", "tool"))
)
"""``- `index_updater`: blocked in ``: an entry of a list whose name is nobody's that is known."""
_NOUN = re.compile(r"\b(?:rank|process|worker|gpu|thread|node|actor)(?:s|es)?\b", re.IGNORECASE)
_STANDS_BEHIND = r"(?= (?:is|are|was|were|waits?|sits?|hangs?|stands?|blocks?)\b)"
PRONOUN = re.compile(r"\W{0,4}(?:It|That (?:rank|one|process))(?= (?:is|was|sits|hangs|waits|stands|still)\b)")
"""*Only rank 0 evaluates. It is still in ...*"""
_SOME_ALONE = re.compile(
    r"(?P<before>^|[.;:,] |\b(?:and|but|while|whereas|only) )(?P<count>two|three|four|five|six|seven|eight)"
    r"(?= (?:are|were|wait|sit|hang|stand|block)\b)",
    re.IGNORECASE,
)
"""*I looked at all eight actors: seven are waiting in ...*"""
_OF_THEM = re.compile(r"\b(?P<count>" + NUMBERED + r") of them\b", re.IGNORECASE)
_ONE_ALONE = re.compile(
    r"(?P<before>(?:\band|\bbut|\bwhile|\bwhereas|[,;:]) )(?:the )?(?:last |other |remaining )?one" + _STANDS_BEHIND, re.IGNORECASE
)


_VERB = r"(?= (?:sits?|hangs?|waits?|stands?|blocks?|(?:is|are) (?:stuck|hung|blocked|waiting|parked|still|different|in|at|inside))\b)"
_LISTED = r"\d{1,4}(?:(?:-|–| to |, ?| and )\d{1,4}){1,16}"
_BEFORE = r"(?P<before>^|(?<!\d)[.;:,] |(?<!\d )\b(?:so|only|and|but|while|whereas|then) )"
_RANKS_ALONE = re.compile(_BEFORE + r"(?P<ranks>" + _LISTED + ")" + _VERB, re.IGNORECASE)
_RANK_ALONE = re.compile(_BEFORE + r"(?P<ranks>\d{1,4})" + _VERB, re.IGNORECASE)


def with_nouns(text: str) -> str:
    """A paragraph that speaks of processes, with the word where it was left out.

    *7 of them are in `a`, and one is in `b`*; *0 to 6 sit in `a`, only 7 is in `b`*: a number alone may count, unless others are listed.
    """
    if _RANKS_ALONE.search(text) is not None:
        text = _RANKS_ALONE.sub(lambda found: f"{found['before']}ranks {found['ranks'].replace(' to ', '-')}", text)
        return _RANK_ALONE.sub(r"\g<before>rank \g<ranks>", text)
    if _NOUN.search(text) is None:
        return text
    text = _SOME_ALONE.sub(r"\g<before>\g<count> processes", _OF_THEM.sub(r"\g<count> processes", text))
    return _ONE_ALONE.sub(r"\g<before>one process", text)
