"""The kinds of evidence by which a failure that stands alone says that something of the run ended; everything else was only logged.

Each kind is a form, in which who fails writes, and no list of what is harmless: what is new to us has no such form, and accuses nobody.

* a record at level *fatal*
* a traceback that nobody caught, and an exception with its class, as the whole of a line
* a known error in its own line; within a sentence it is what the sentence is about, and of a peer that has gone only an exception tells
* a death whose line begins with what ended, not with who tells of it
* words of a record by which a part of the run gives up, ends, or did not start
* words of Python, of a shell or of a library, by which what it was told to start does not start

Measured on 2224 errors and on the innocent blocks of 20 lots that were accused at the first look: a peer's end within a sentence brought 9 errors and
14 innocents, the complaint of a tool at no level 14 and 10, a death told by somebody else 7 and 16. So these are only noted. A known error behind one
word of a sentence, or in its brackets, brought 6 of 16 accused innocents of four lots of 600, and none of 2521 errors that nothing else told.
"""

from __future__ import annotations

import re

from ray_rl_debug.logs.ends import DEATH, ENDS_RUN, LIVES, PART_ENDED, gives_up
from ray_rl_debug.logs.finished import tells_only_that_it_is_gone
from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.logs.others import OF_A_RUN
from ray_rl_debug.logs.words import EXCEPTION, OF_A_DEVICE, SMALL_TOOL
from ray_rl_debug.model.snapshot.log_book import LogEvent
from ray_rl_debug.signatures import Signature
from ray_rl_debug.story.doubts import is_doubtful

_ASKS = re.compile(r"\b(?:if|whether|until|unless)\b[^,.;:]{0,60}$")
_NAMELESS = re.compile(r"(?:Error|Exception|error): ?")
"""What tools and JavaScript begin any complaint with; a class of an exception says that it was raised."""
_PRINTED = ("Error:", "error:")
"""No class of Python's, as ``Exception: `` is."""
_COMPLAINT = re.compile(r"\b(?:[Ee]rror|[Ff]ail(?:ed|ure)|[Uu]nable|[Cc]ould not|[Cc]annot)\b[^:]{0,80}: ?$")
"""In front of a reason."""
_OF_MACHINES = ("accelerators", "kubernetes", "nccl", "slurm")
"""Layers whose programs write lines of no other form than their own, with names of objects and states in front."""
_PLAIN = re.compile(r"(?<![\w./:=<'\"#@-])[A-Z]?[a-z]{2,}(?![\w./=>'\"#@-]|:\S)")
"""A word, no name. One in front of a known error makes a sentence that tells of it: ``Checkpoint failed: No space left on device``."""
_RAISED = re.compile(r"\b(?:[A-Z]\w*(?:Error|Exception)|(?:[a-z_]\w*\.)+[A-Z]\w*): ")
_OF_A_TOOL = re.compile(
    r"(?:[\w./+-]+(?: [a-z]+)?:? )?(?:[Ee]rror|ERROR)(?: message| from server \(\w+\)| response from daemon| writing)?(?: '[^'\n]{1,200}')?(?:: |$)"
)
"""So a tool begins an error's own line, which tells its reasons one after the other. A record that begins so tells which of its steps failed."""
_RAISES = re.compile(r"[\w./+-]+\.(?:c|cc|cpp|cu|h|hpp):\d+\b|(?:\S+ +)?Warning {2,}|.*\bERROR: ")
"""So begin the lines of a source with its line, an event of Kubernetes, and what quotes a tool."""
_MARKS = re.compile(
    r"(?:[\w.-]+ kernel: )?(?:\[[^\]\n]{1,40}\] )?"
    r"(?:(?:(?!\w*(?:[Ee]rror|[Ee]xception|[Ff]ail\w*):)[\w./-]+(?:\[\d{1,8}\])?"
    r"|[\w-]+ [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f.]{2,6}): |\(pid[ =]\d{1,8}\) )*"
)
"""In front of a sentence: who says it, or of which device a driver does."""
_OF_THE_KERNEL = re.compile(
    r"(?:Killed|reaped) process \d+ \((?P<killed>[^)\n]{1,64})\)|(?P<name>[\w.:+-]{1,64})\[\d+\]:? (?:segfault at|general prot|trap )"
)
"""The kernel's words on the program that it ended."""
_FAULTED = re.compile(r"\bXid \([^)\n]{1,40}\): \d+, pid=\d+, name=(?P<name>[^,<\n]{1,64})")
"""The driver's words on the program whose fault it is; a sick card is that of whoever uses it."""
_RUNS = re.compile(r"python|ray|pt_|VLLM|vllm|sglang|torch|train|rollout|gcs_server|redis|mpirun|deepspeed|accelerate|java")
"""How the programs of a run begin their names."""
_UNIT = re.compile(r"[\w@-]+\.(?:service|scope)")
_RUNS_IT = re.compile(r"(?i:server\b|gpu|python|slurm|docker|container|kube|podman)")
"""In the name of a unit of systemd beside `OF_A_RUN`; the other units are the machine's own."""
_OF_A_NAME = re.compile(
    rf"(?i:{LIVES}|the|an?|this|of|unit|with|in|on|at|and|or|has|have|been|be|was|were|is|are|not|group|main|child|pid|local_rank|step|jobid|thread"
    r"|line|port|task|replica|service|app|application|allocation|monitored|timeout|command|instance|pod|system|ray|multiprocessing|entrypoint|subprocess|stderr|stdout|\w*error|\w*exception|dashboard|prolog"
    r"|task\(s|[\w-]+-job|epilog|status|message|exit(?:s|ed)|crashed|killed|after|s|cancelled|due|to|fatal)|(?:[A-Z][a-z]+){1,6}[A-Z][A-Za-z]*|[^|`{]*[\d/_.@'\"<=(][^|`{]*"
)
"""Words in front of those of a death: what ended, and the source that says so."""
_IN_BRACKETS = re.compile(r"\([\w.:/-]{1,80}\)[,:]?")
"""A name behind a number: ``Job 12 (grpo) failed``."""
_LOGGER = re.compile(r"^[\w.-]+: ")
"""In front of the words of a record."""
_OWN_FORM = re.compile(
    r"\d{1,8}:[A-Z] \d\d \w{3} \d{4} [\d:.]{8,12} # Redis "
    r"|[\w./+-]+\.(?:c|cc|cpp|cu|h|hpp):\d+: |.{0,80}JavaScript heap out of memory|MPICH ERROR \[Rank |File System \S+ unmounted "
    r"|.{0,120}\bwill now abort\b|Unhandled (?:\w+ )?error "
)
_ENGINE = re.compile(r"(?:EngineCore|Worker)(?:_?[A-Z]{2,4}\d{1,4})*")
"""How vLLM calls the processes of an engine, ``Worker_DP0_TP2``: what one of them raises ends the engine, or the call that it was told to run."""
_STARTS_NOTHING = re.compile(
    r"(?:/\S{1,200}/python[\d.]*: )?can't (?:open file|find '__main__' module in) '"
    r"|(?:[\w./-]+: )?line \d+: \S+: (?:command not found|cannot execute|Permission denied)"
    r"|[\w./-]*/\S+: (?:Permission denied|cannot execute)|(?:OMP: Error|libgomp: |OpenBLAS )|\S+ NCCL WARN "
    r"|Exception in thread \""
)


def tells_of_an_end(event: LogEvent, known: Signature | None) -> bool:
    """Has a failure one of these kinds of evidence?

    Args:
        known: What the catalogue has on it.
    """
    known = known if known is not None and known.effect != "info" else None
    if event.kind == "error" and known is None and SMALL_TOOL.match(event.text):
        return False
    if event.level == "F" and not event.is_followed:
        return True
    if _is_unit_of_the_machine(event.writer.program or ""):
        return False
    if is_doubtful(event, known):
        return False
    if event.kind == "traceback":
        return _is_uncaught(event, known) or _says_so((event.record or "", *event.lines[:1]), event, event.caught is not True)
    if known is not None:
        if (named := _OF_THE_KERNEL.search(event.text)) is not None:
            return _RUNS.match(named["killed"] or named["name"]) is not None
        if known.late and (is_seen_by_another(event) or _is_fault_of_another(event)):
            return False
        if _is_own_line(event, known):
            return True
        return event.level != "W" and _says_so((*_sentence_around(event, known)[::2], *event.lines), event, False)
    if event.kind == "death":
        if ENDS_RUN.search(event.text):
            return True
        return _begins_with_what_ended(event.text) or (event.level is not None and _begins_with_what_ended(_LOGGER.sub("", event.text)))
    if _says_so(event.lines, event, True):
        return True
    if EXCEPTION.match(event.text):
        if event.level == "E" and _ENGINE.fullmatch(event.writer.program or "") and not event.is_bare:
            return True
        is_raised = event.frame is not None or not _NAMELESS.match(event.text)
        return not event.is_bare and event.level is None and is_raised
    return event.level is None and _STARTS_NOTHING.match(event.text) is not None


def is_seen_by_another(event: LogEvent) -> bool:
    """Does a part of a program log that another is gone, and neither how nor why? So it does also where all was done, and parts end in any order."""
    is_record = event.level == "E" and event.about is not None and EXCEPTION.match(event.text) is None
    return is_record and tells_only_that_it_is_gone(event.text)


def _is_fault_of_another(event: LogEvent) -> bool:
    faulted = _FAULTED.search(event.text)
    return faulted is not None and _RUNS.match(faulted["name"]) is None


def _is_unit_of_the_machine(program: str) -> bool:
    return _UNIT.fullmatch(program) is not None and OF_A_RUN.search(program) is None and _RUNS_IT.search(program) is None


def _is_uncaught(event: LogEvent, known: Signature | None) -> bool:
    """Python prints what nobody caught in no record; from an error of a device no catching helps."""
    if event.caught is True:
        return known is not None and OF_A_DEVICE.search(event.text) is not None
    return known is not None or event.caught is False or (event.level is None and not event.is_bare)


def _says_so(said: tuple[str, ...], event: LogEvent, has_own_words: bool) -> bool:
    """What was caught has the words of whoever raised it, not of the program."""
    own = (event.text,) if has_own_words and not event.is_bare else ()
    return any(gives_up(text) or _says_that_it_ended(text) for text in (*own, *said))


def _says_that_it_ended(text: str) -> bool:
    """Who asks whether something ended does not say that it did."""
    return any(_ASKS.search(text, 0, found.start()) is None for found in PART_ENDED.finditer(text))


def _is_own_line(event: LogEvent, known: Signature) -> bool:
    if known.one_try is not None and event.count == 1 and re.search(known.one_try, event.text):
        return False
    if event.level == "W" and _RAISED.search(event.text) and not OF_A_DEVICE.search(event.text):
        return False  # what was raised is in the hands of whoever warns of it
    if known.effect == "cascade" and (event.level in ("D", "I", "W") or _is_reason(event, known)):
        return False
    if event.level is None and event.writer.pid is not None and event.text.startswith(_PRINTED) and not OF_A_DEVICE.search(event.text):
        return False  # what Python raises has a class: a process that prints ``Error: `` holds it
    if EXCEPTION.match(event.text) or event.kind == "death" or known.layer in _OF_MACHINES:
        return True
    if OF_A_DEVICE.search(event.text) is not None:
        return True
    around = _sentence_around(event, known)
    begins = "".join(around[:2])
    if not around or _RAISES.match(begins) is not None or (event.level is None and _OF_A_TOOL.match(begins) is not None):
        return True
    if around[0].endswith(("[", "(", "=", "'", '"')):
        return False
    before = _MARKS.sub("", around[0], count=1).rpartition(". ")[2]
    return _PLAIN.search(before) is None or (around[1][:1].islower() and not before.rstrip().endswith((":", "(", "=")))


def _is_reason(event: LogEvent, known: Signature) -> bool:
    """Is a peer's end only what a complaint gives as its reason? ``Error stopping the collector: The actor died``"""
    if _NAMELESS.match(event.text):
        return True
    around = _sentence_around(event, known)
    return bool(around) and _COMPLAINT.search(around[0]) is not None


def _sentence_around(event: LogEvent, known: Signature) -> tuple[str, ...]:
    """What the line tells before the known error, that, and what behind it; nothing where that is an error's own line."""
    # A stamp without a year is one only beside a time; which year that is does not matter here.
    text = read_head(event.text, near_s=event.time_s or 0.0).text if event.kind == "known" else event.text
    found = re.search(known.pattern, text)
    return () if found is None or EXCEPTION.match(text) else (text[: found.start()], found[0], text[found.end() :])


def _begins_with_what_ended(text: str) -> bool:
    """Stand only names in front of the death in its clause? ``no answer of rollout-2, the process is dead``"""
    found = DEATH.search(text)
    if found is None or _OWN_FORM.match(text):
        return found is not None
    begins = max(text.rfind(", the ", 0, found.start()), text.rfind("; ", 0, found.start())) + 1
    words = (word.strip("[](),:;*!") for word in text[begins : found.start()].split() if word != "||" and not _IN_BRACKETS.fullmatch(word))
    return all(_OF_A_NAME.fullmatch(word) for word in words if word)
