"""Words that tell of an end: one table for all who ask whether somebody ended, or went on.

From the strongest to the weakest: `DEATH`, by which a process is no more, whoever writes it; `PART_ENDED`, by which a record says that its part of
the run ended, gave up or did not start; `GIVES_UP`, by which a program does not go on; and `OF_AN_END`, beginnings of words for what stands behind an
error. A line that holds none of the last may tell that work goes on; that one holds such a word proves no end. Aborting is left to the words of
giving up, which know whose request was aborted.
"""

from __future__ import annotations

import re

OF_ASKING = r"(?:-15|-2|143|130)"
"""Exit codes of who was asked to end, by SIGTERM or from a keyboard."""


def any_of(*parts: str) -> str:
    """One pattern of several, each in a line of its own."""
    return "|".join(parts)


_IN_CLEANUP = r" (?:in|during) (?:\w+ ){0,2}(?:clean-?up|shutdown|teardown)\b"
ENDS_RUN = re.compile(
    r"\b(?:[Aa]borting|[Kk]illing|[Tt]erminating) (?:the|this) (?:whole )?(?:run|job|training|trainer|program|experiment)\b"
    r"|\b(?i:error|failed|failure|time-?out|timed out|cannot|unable|missing|not found|is nan)\b[^\n]{0,100}[,.;] ?(?:[Ee]xiting|[Qq]uitting)\b"
    r"(?! (?:code|status|mode|loop|early))"
)
"""Words of a program that ends itself or all others, and says so with no level."""
DEATH = re.compile(
    any_of(
        ENDS_RUN.pattern,
        r"Segmentation fault|\bSegfault encountered\b|\bBus error\b|Illegal instruction|core dumped|dumped core",
        r"\bAborted$|^Aborted\b|^Killed$|: Killed$|(?<!\d)\d+ Killed  |OOMKilled",
        r"^Fatal Python error: |^Fatal glibc error: |^terminate called (?:after|without)|^fatal error: (?!.*No such file)|^FATAL ERROR\b",
        r"^(?:free|malloc|malloc_consolidate|calloc|realloc|munmap_chunk)\(\)?: \w",
        r"double free or corruption|^corrupted (?:size|double)|stack smashing detected",
        r"panicked at |^(?:panic|PANIC): ",
        r"\b[Cc]heck failed: |\bCHECK failed|\bAssertion [`'\"].{1,200}failed|\b[A-Z]+_ASSERT(?:: |\(.{1,200}\) failed)",
        r"\*\*\* (?:SIG[A-Z]+ received|Aborted at|Process received signal)|received signal (?:SIG(?!URG|TRAP|CONT|CHLD|WINCH|INT\b|STOP|TSTP)|\d)",
        r"\b(?:exited|exit|failed|ended|terminated|died|finished|completed|returned|unmounted)\b.{0,40}"
        r"\b(?:exit ?code|return ?code|exit status|(?<!HTTP )status|(?<!SSL error )code|signal)(?: of)?[ :=]*[(\[]?-?(?!0\b)(?:\d+|SIG[A-Z]+)",
        r"\b[Ff]ailed with (?:an? )?(?:exit|return) ?code list: |\bprocesses exited with non-zero status\b",
        r"\b[Ee]xit ?[Cc]ode ?[:=]?\s{0,8}-?[1-9]\d*\b|\b(?:terminated|exited|ended|died|finished) with -[1-9]\d{0,2}\b",
        r"^(?:rank|worker|process|proc|child|node|job|task) ?#?\d{1,6}: exit (?!0\b)\d{1,3}$",
        r"\.(?:c|cc|cpp|cu|cuh|h|hpp):\d{1,6}:? {1,4}Fatal(?: [Ee]rror)?: \S",
        r"(?:was )?killed by the OOM|[Kk]illed .{1,120} due to (?:memory|out of memory)",
        r"(?:terminated|killed|crashed) (?:by|with|due to) signal(?=:? ?(?:\d|[A-Z]|$))",
        r"\b(?:[Pp]rocess|[Ww]orker|child|subprocess|server|scheduler|rank \d+|[Cc]ontainer)\b.{0,60}\b(?:died|crashed|was killed|is dead)\b",
        r"\b(?:[Jj]ob|[Pp]od|[Tt]ask|[Aa]llocation|[Ii]nstance|[Nn]ode)\b.{0,60}\b(?:cancell?ed|killed|terminated|stopped|evicted)\b.{0,40}\bpreempted\b",
        r"^\W{0,3}(?:[Jj]ob|[Tt]ask) finished \(status: FAILED|\bwill now abort\b",
        r"\bMPI_ABORT was invoked|\bAbort\(-?\d+\) (?:on node|\(rank)|\bKernel panic - not syncing\b|\bhard LOCKUP\b",
        rf"\bbuild stopped: |^Task exception was never retrieved\W*$|^Unhandled exception(?!{_IN_CLEANUP}) in ",
        r"^triggerUncaughtException\(|^throw er; // Unhandled 'error' event|^X Error of failed request: ",  # Node and Xlib
        r"JavaScript heap out of memory|java\.lang\.OutOfMemoryError|\bDUE TO (?:TIME LIMIT|(?:NODE|TASK) (?:\S+ )?FAILURE|PREEMPTION)",
    )
)
"""Lines after which the process, or the one they speak of, is no more."""
LIVES = (
    r"(?:[Ee]ngine(?: ?[Cc]ore)?|[Ss]erver|[Ww]orker\w*|[Ss]cheduler|[Ss]hard(?: \d+)?|[Cc]ontainer|[Jj]ob|[Rr]ank(?: \d+)?|[Pp]rocess(?:es)?"
    r"|(?:[Rr]ollout|[Mm]ain|[Tt]rain\w*) thread"
    r"|[Tt]rain(?:er|ing)|[Rr]unner|GCS|[Rr]aylet|[Nn]ode|[Aa]ctor|[Dd]river|[Pp]rogram|[Rr]un|[Ll]auncher|[Ll]oop|[Ss]cript)"
)
"""What runs, and may end."""
PART_ENDED = re.compile(
    rf"\b{LIVES}\b.{{0,60}}\b(?:failed to (?:start|launch|initiali[sz]e|boot)|ended|stopped|(?:has |have )?died|is dead|is (?:gone|lost|down)"
    r"|(?:terminated|exited|finished) unexpectedly)\b"
    rf"|^{LIVES}(?: #?\d+)? failed with (?:an? )?(?:exception|error)\b"
    r"|\b[Ii]nitiali[sz]ation failed\b|\b(?:[Pp]roducer|[Cc]onsumer|[Pp]refetch\w*|[Ff]eeder|[Rr]ollout|[Mm]ain|[Tt]rain\w*) thread (?:has )?failed\b"
    r"|\b(?:[Rr]eplicas?|[Dd]eployment)\b.{0,60}\bfailed to (?:start|launch|initiali[sz]e|boot)\b"
    r"|\b(?:[Uu]ser [Pp]rogram|[Tt]rain(?:er|ing)|[Jj]ob|[Rr]ank \d+|[Dd]river) failed with (?:an? )?[\w.]*(?:[Ee]xception|[Ee]rror)\b"
    rf"|\b[Ff]ailed to (?:start|launch|initiali[sz]e|boot) (?:the |a |an )?(?:\w+ ){{0,2}}{LIVES}\b"
    r"|(?<!\bon )(?<!\bwill )\b(?:exits?|exited|quits?)(?: (?:with|because|due|after|now)\b|[:;,.]|$)|\bcrash(?:ed|es|ing)?\b|\bhit an exception\b"
    r"|\b[Uu]nhandled (?:event|fault|failure|signal)\b"
    rf"|\b[Uu]n(?:caught|handled) (?:\w+ )?\w*(?:[Ee]xception|[Ee]rror)(?!{_IN_CLEANUP}|\" err=)"
    r"|\bcaught in function '(?:main|run|train)\w*'"
    r"|\b(?:[Tt]rial|[Tt]ask|[Jj]ob)(?: task)?(?: '[\w-]{1,80}')? (?:has )?failed(?: (?:for|with|after|on)\b|$)"
    r"|^[Jj]ob (?=[\w-]*\d)[\w-]{1,80} failed: "
    r"|, (?:stopping|stopped|quitting|leaving)\b|\b[Uu]ncaught$"
    r"|^(?:[Cc]reating|[Ss]tarting) (?:the )?server: "
    r"|\bsetting DOWN\b|\bbeing killed\b|\bTERMINATED\b|\bDUE TO (?:\S+ ){0,3}FAILURE|\b(?:[Cc]annot|[Uu]nable to) (?:go on|continue|proceed)\b"
    r"|\bfatal\b|\bFATAL\b|\barguments? (?:is|are) required|\bunrecognized arguments|\b[Nn]o such (?:option|command)\b"
    r"|\b[Mm]issing (?:option|argument|parameter|command)\b"
)
"""Words of a record that somebody ended, or refused to start: parsers of command lines end the program."""
GIVES_UP = re.compile(
    any_of(
        r"[Gg]iv(?:ing|es?) up|[Gg]ave up|[Aa]ll (?:\w+ )?(?:attempts|retries|tries) failed",
        r"[Ss]topping (?:all|everything|the (?:run|job|training|program))\b",
        r"[Mm]ax(?:imum)?(?: number of)? (?:retries|attempts|restarts)|retries (?:exceeded|exhausted)|[Ee]xhausted",
        r"[Kk]illing (?:sub)?process|closing signal",
        r"[Aa]bort(?:ing|ed)?\b(?! by (?:the )?(?:client|user)\b)"
        r"(?! (?:\d+ )?(?:request|rid|running|rollout|generation|task|group|sample|trajector(?:y|ie))s?\b)",
        r"(?:[Aa]ttempt|[Tt]ry|[Rr]etry)[ :#]{1,2}(?P<last>\d{1,4}) ?(?:/|of) ?(?P=last)(?!\d)",
        r"[Nn]o more (?:retries|attempts)|\b(?:0|[Nn]o) (?:retries|attempts|restores|restarts|tries) left\b",
        r"[Uu]nrecoverable|[Cc]annot (?:recover|continue)|[Ee]xiting|[Tt]erminating",
        r"[Ss]hutting down|after \d+ (?:retries|attempts|tries)|\bnot (?:recovered|handled|expected)|[Uu]nexpected",
    )
)
"""Words of a program that ends, or does not go on with its work, because of an error."""
OF_AN_END = (
    r"(?i:stop|shut|aborts\b|exit|quit|terminat|kill|(?<!the )end(?:s|ed|ing)?\b|die[sd]?\b|dead|lost|loss of\b|gone|closed|down\b"
    r"|tear|leav|drain|evict|preempt|cancel"
    r"|fail|error|fatal|crash|broken|unhealthy|unreachable|unexpect|refus|reject|interrupt|hang|hung|stuck|exhaust|giv(?:e|es|ing) up|back-?off"
    r"|signal|sig(?:term|kill|int|segv|abrt|bus|quit)\b)"
)
_ENDS = re.compile(rf"\b{OF_AN_END}")
_FAILS_TO_END = re.compile(
    r"\b(?:[Ee]rrors?|[Ee]xceptions?|[Ff]ail(?:ed|ures?)|[Uu]nable|[Cc]ould not|[Cc]annot|[Tt]imed out)(?: (?:to|in|while|when|during|occurred)){0,2}"
    r" (?:gracefully |forcibly )?(?:abort|terminat|kill|shut(?:ting)? ?down|stop|clos|destroy|cancel|clean|tear|join|releas)\w*[^.:;,]{0,60}"
)
"""Of what was to be ended, and does not end: nothing that does work failed there."""


_ONE_OF_MANY = re.compile(
    r"\b(?:[Rr]equests?|rids?|[Ss]amples?|[Pp]rompts?|[Tt]rajector(?:y|ies)|[Ee]pisodes?|[Ss]essions?|[Cc]onnections?|[Qq]uer(?:y|ies)|[Gg]enerations?"
    r"|[Tt]ool calls?|[Rr]ollouts? (?=[\w-]*\d))(?: [\w.,:-]*\d[\w.,:-]*)?"
    r" (?:(?:was|were|is|are|got|has been|have been) )?(?:aborted|cancelled|canceled|terminated|killed)\b"
)
"""Of one of the many things that a run works on, of which the next is taken."""


def fails_to_end(text: str) -> bool:
    """Does a line say that something was to be ended, and that this failed?"""
    return _FAILS_TO_END.search(text) is not None


def without_lesser_ends(text: str) -> str:
    """A line without its words of an end that was wanted and failed, or of one request's: those that are left tell of an end."""
    return _ONE_OF_MANY.sub("", _FAILS_TO_END.sub("", text))


def gives_up(text: str) -> bool:
    """Does a line say that its program does not go on? *Unexpected* alone is what any error may be."""
    return any(not found[0].lower().startswith(("unexpected", "not ")) for found in GIVES_UP.finditer(without_lesser_ends(text)))


_COUNTED = re.compile(r"\b\d{1,9} (?i:errors?|failures?|failed)\b")
"""Of a state in numbers: ``7 of 8 RUNNING, 1 ERROR``"""


def speaks_of_an_end(text: str) -> bool:
    """Does a line hold words of an end, or of giving up, beside those that it only counts?"""
    return GIVES_UP.search(text) is not None or _ENDS.search(_COUNTED.sub("", text)) is not None
