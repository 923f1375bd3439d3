"""What the words of a line say: that a process ended, that something was raised, or that all is well."""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.logs.ends import DEATH, GIVES_UP, any_of, without_lesser_ends

STEMS = (
    "rror", "RROR", "raceback", "xception", "XCEPTION", "FATAL", "atal ", "CRITICAL", "illed", "Aborted", "core dump", "dumped core",
    "panic", "OOM", "egmentation fault", "SIG", "Bus error", "terminate called", "heck fail", "CHECK fail", "Assertion", "_ASSERT", "exit code",
    "xited with",
    "Exit Code", "Exit code", "exitcode", "exit status", "(): ", "corrupt", "stack smash", "Interrupt", "ailed to ", "ommand not found",
    "ermission denied", "CANCELLED", "OutOf", "llegal instruction", "No such file", "__main__' module", "No space left", "quota exceeded", "ABORT",
    "build stopped", "\tERR ", " ERR ", "BrokenProcessPool", ".Empty", ".Full", "erification failed", "onnection refused", "o route to host",
    "ould not resolve", "died", "NCCL WARN", "imed out", "imeout", "temporarily unavailable", "Cannot connect to", "preempted", "by signal",
    "(status: F", '"fatal', "=fatal", '"critical', "=critical", "now abort",
    "eturncode", "eturn code", "is dead", ": fatal: ", "] fatal: ",
    "egfault", "process exited, code=",
    "with -", "Fatal: ", ": exit ", "borting th", "killing th", "Killing th", "erminating th",
    " E ", " C ", "[E] ", "[F0", "[F1", *(f"[E{month}" for month in range(10)),
    *(f"{level}{month:02}" for level in "EF" for month in range(1, 13)),
)  # fmt: skip
"""Plain texts, one of which every line holds that this module can call a failure. Searching them is fast, reading lines is not.

Those of the last row are the levels of Ray's, glog's and torch's records: ``[2026-11-21 10:00:00,123 E 9 9]``, ``[F1121 10:00:00.123``, ``[E802``,
and ``E1121 10:00:00.123`` where glog writes without a bracket: its line may hold no other word of failure."""

_NAME = r"(?:[A-Za-z_][\w]*\.)*[A-Z]\w*"
EXCEPTION = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*(?:_?(?:[A-Z]\w*?)?(?:Error|Exception|Interrupt|Failure|OutOfResources|TimeoutExpired|BrokenProcessPool|Abort)|SystemExit|[a-z]+[A-Z]\w*Error)"
    r"|(?:[a-z_]\w*\.)+_?(?:[A-Z]\w*?)?(?:Timeout|Full|Empty|Exhausted|Closed|Refused|NotFound|Died|Disconnected|Unavailable|Exceeded|Denied|Mismatch|TimedOut|Unsupported|Invalid|Failed|Missing)|(?:[a-z_]\w*\.)+(?:\w*error|timeout|(?:errors|exceptions|error|exception)\.[A-Z]\w+))"
    r"(?:\([\w.]{1,80}\))?(?:: ?(?P<said>.*)|$)"
)
"""An exception as Python ends a traceback with it."""
ANY_NAME = re.compile(rf"^(?P<name>{_NAME}|[a-z_]\w*\.[\w.]*[a-z]\w*)(?:\([\w., ]{{1,80}}\))?(?::(?: (?P<said>.*)|$)|$)")
"""The last line of a traceback, whatever the class is called: anywhere else such a line may be anything."""


_TOOL = re.compile(
    any_of(
        r"^(?:[\w./-]+: )?(?:line \d+: )?(?:error|Error|ERROR|fatal|FATAL|Fatal|ERR!)[!:] ?\S",
        r": (?:command not found|No such file or directory|Permission denied|cannot execute)",
        r"^(?:/\S{1,200}/python[\d.]*: )?can't (?:open file|find '__main__' module in) '",  # the words of Python itself
        r": (?:[Nn]o space left on device|Disk quota exceeded|Input/output error|Resource temporarily unavailable)",
        r"^[\w./-]+\.(?:c|cc|cpp|h):\d+ {1,4}Error: \S",  # Open MPI's of its parts
        r"^Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$",  # faulthandler's, when nobody stopped its clock: it dumps, and may end the process
        r"^(?!test)[a-z]{2,8}[A-Z]\w{2,40}(?:\(\))? error: \S",  # a call of a library in C: ``cuFileDriverOpen error: ``
        r"^(?!kernel: )[\w./-]+: (?:\w+ ){0,3}[Ee]rror\b(?::| (?!(?:on|of|in|at|for|count|rate)\b))|\*\*\* \[[^\]\n]{1,120}\] (?:Error \d|Killed)",
        r"^Host key verification failed|^Permission denied \(|^Cannot connect to the \w+ daemon\b",
        r"^(?:ssh|scp|rsync|curl|wget|pdsh\S*|git)\b.{0,200}(?:[Cc]onnection (?:refused|timed out|reset)|[Nn]o route to host|[Cc]ould not resolve)",
        r"^(?:Unhandled|Uncaught|Fatal) (?:error|exception|Error|Exception)|^Exception in thread \"[^\"\n]{1,80}\" ",  # the last: Java
    )
)
"""How programs begin the line of an error when they have no logger."""

_COUNTED = r"[\"']?(?:_(?:count|rate|ratio|num))?[\"']?\s*[=:]\s*[\"']?(?:0(?:\.0*)?\b|None|none|null|NULL|\[\]|\{\}|false|False|\"\")"
ENDED_WELL = re.compile(r"\b(?:exit ?code|exit status|(?<!response )status|(?<!reason )code|exitcode)[ :=]*\(?0\b|\bINTENDED_(?:USER|SYSTEM)_EXIT\b")
"""The line of a known error that holds these words tells of no error: something ended well."""
INNOCENT = re.compile(
    any_of(
        r"\b(?:0|no|No|zero|without|without any|not an|not a fatal|non-fatal|nonfatal|ignored?|ignoring|suppress\w*)"
        r" (?:\w+ )?(?:errors?(?! (?:messages?|details?|texts?|descriptions?|strings?)\b)|failures?|exceptions?|tracebacks?|fatal)\b",
        r"\b(?:errors?|failures?|failed|exceptions?|num_errors|error_count|err)" + _COUNTED,
        r"\berror[_ ](?:rate|ratio|bars?|margin|handl\w+|feedback|correct\w+|bound|code[=:]? ?0\b)|(?:loss|reward|metric|mean|std)\S{0,200}error",
        r"Exception ignored in|ignored exception",
        rf"{ENDED_WELL.pattern}|\breturn(?:ed)?(?: value)?[ :=]*\(?0\b",
        r"(?:exited|finished|completed) (?:successfully|normally|cleanly|gracefully)",
        r"\b(?:[Ii]f|(?<![Ee]rror )(?<!xception )(?<!ailure )[Ww]hen|[Ii]n case|[Ww]hether|[Uu]nless|[Uu]ntil|[Oo]nce) "
        r"(?:[^.\n]|\.(?! )){0,60}(?:errors?|fails?|exception|timeouts?|crash|killed|dies)",
        r"\bEXPECTED_TERMINATION\b",
        r"\bon[_ ](?:error|failure)\b|CANCELLED AT \S+ \*\*\*",
        # what tools say that could not look at a process; the process may be well
        r"^command terminated with exit code [12]$|^Error: Permission Denied: Try running again with elevated permissions",
        r"^Reason: (?:.{0,160}\(os error \d+\)|E[A-Z]{3,12}: )|\b[Pp]y-?[Ss]py (?:dump )?(?:failed|could not|cannot|timed out)",
        r"^(?:[Ee]rror: )?(?:Failed to (?:suspend process|copy \w+ symbol|get stack trace|get process|lock process)"
        r"|Timed out waiting for process \d+|Found argument '[-\w]+' which wasn't expected|unexpected argument '[-\w]+' found)",
        r"^\d{1,7}\s{1,8}(?:in )?\S{1,400}\.(?:S|cc?|cpp|h): No such file or directory\.?$",  # gdb without the source of a library
        r"^(?:ptrace: |Could not attach to process|warning: process \d+ is )|^pystack: |^💀",
        r"(?:Error|error|Exception) (?:handler|handling|reporting|tracking|log|messages?) ",
        r"^[A-Za-z_]\w* ?= ?[\w.\"'-]{1,40},?\s+(?:#|//) ",  # a line of code that gives a name a value
        r"\b(?:kill|abort|stop|exit)s? after \d+(?:\.\d+)? ?(?:s|sec\w*|m|min\w*|h|hours?)\b",  # a setting: what has happened is told in the past
        # a line of code, also as grep shows it behind its file and number
        r"^(?:[\w./-]{1,200}\.\w{1,4}[:-]\d{1,7}[:-]\s{0,200})?(?:import|from|raise|except|assert|return|try|def|class|with|for|if)\b",
        r"^[\w./-]{1,200}\.\w{1,4}[:-]\d{1,7}[:-]\s{0,200}(?:#|//|\*|--) ",
        r"^[\w./+-]{2,80}:? (?:line \d{1,6}: )?[Ww]arning ?: ",
        r"^NCCL INFO |\bfor benchmark choice \w",  # the last: Inductor tries kernels, and takes one that fits
        r"\bcall trace: ?(?:\w+ -> )?\d",  # so HCCL tells, function by function, that a call failed
        r"^ProcessGroupNCCL preparing to dump |^Dumping (?:input data|scheduler (?:output|stats))\b",  # torch's watchdog and vLLM, of what they hold
        r"^(?:PC: )?@ +0x[0-9a-f]+ |^Stack trace: ?$",
        r"^--?[A-Za-z][\w-]*(?:[ =,]{1,2}\S+){0,4}\s{2,}\S",  # an option and what it does, as a program lists its own
        r"^\++ (?=[\w./'\"\[({-])",  # a command, as a shell writes it before it runs it (set -x)
        # a printed object: ``error: Tensor(shape=…)``, ``args: Namespace(…)``
        r"^(?![^(]{0,80}(?:[Ee]rror|ERROR|[Ee]xception|[Ff]ail|FAIL|[Ff]atal|FATAL))(?:[\w .-]{1,40}[:=] ?)?[A-Z]\w*\(\w+=.*\)[,})\]]*$",
        r"^\*{0,2}(?!\w{0,80}(?:Error|ERROR|Exception|Fail|FAIL|Fatal|FATAL))[A-Z]\w* ?\(\w+=[^)]*$",  # the same, over several lines
        r"^\w+: (?:Tensor|MemoryMappedTensor|TensorDict|NonTensorData|NonTensorStack)\(",  # a field of a printed tensordict may be ``error``
        r"^(?:\d{1,6}[.):|]?\s+)?(?:What|Why|How|Which|Where|When|Who)\b[^?\n]{3,300}\?",  # a question
        r"^[-*] (?:fix(?:e[sd])?|add(?:s|ed)?|chang(?:e|es|ed)|remov(?:e|es|ed))\b",  # a list of changes
        r"^\|.*\|\s*(?:RE|TLE|WA|CE|MLE|OLE|AC)\b[^|]*\|$",  # a row of verdicts
        r"\{\{ ?[$.]\w",  # a template, whose words stand for what may be said one day
        r"^test\w* \([\w.]+\)$",  # what unittest says of one test
        r"^[\w./-]{1,40}: (?:write error: |standard output: )Broken pipe$",  # whoever read from a tool had enough
        r"\b(?:[Aa]|any|every|each) (?:Segmentation fault|Bus error|core dump)",
        r"<<< (?:FAILURE|ERROR)!|^(?:org\.opentest4j|org\.junit|junit\.framework)\.",  # tests of Java
        r"^Unclosed (?:client session|connector|connection|resource|transport)\b|^Task was destroyed but it is pending!",
    )
)
"""Words that hold the name of an error and speak of none; the native frames behind an error at its level; what was printed and not said."""
MADE_ANEW = r"(?:replaced|respawned|recreated|re-?queued|refilled)"
"""What was done with a part that had ended."""
_DONE_ABOUT_IT = any_of(
    r"[Rr]etried|[Rr]econnect(?:ing|ed)|[Ii]gnor(?:ing|ed)\b|(?<!Error syncing pod, )[Ss]kipp(?:ing|ed)\b|[Rr]ecover(?:ed|ing)\b|[Hh]andled\b",
    r"[Cc]aught\b(?! collective| signal| panic| in function| \w+ in | exception: )|[Ss]ucceeded",
    r"[Rr]esum(?:ing|ed)\b|[Rr]e-?queue(?:d\b(?! in held)|\b(?! failed\b))(?! job\b.{0,60} due to failure)",
    r"\bback (?:in)?to the queue\b|[Rr]escheduled",
    r"(?<!probe, will be )[Rr]estarted\b|[Rr]estart(?:ing)? (?:it|them)\b",
    r"(?:is|are|was|were) (?:filtered|discarded|dropped)\b|[Ss]tart(?:s|ed|ing) (?:it|them) again\b|[Rr]e-?(?:run|runn?ing)\b(?! (?:it )?with| `)",
)
"""Words for what a program did about an error. A count of them, as in ``skipped=0``, says nothing of the error beside it."""
_GOES_ON = (
    r"(?<![Nn]o[ -])(?<![Nn]ot )(?<!without )(?<!cannot )\b(?:"
    + any_of(
        r"[Rr]e-?try(?:ing)?\b(?! ?(?:limit|count|budget)\w* (?:exceeded|exhausted|reached))|[Ww]ill (?:be )?retr\w+",
        r"[Rr]etries left|[1-9]\d* restores? left",
        r"(?<!non-)[Rr]etr[iy]able\b",
        r"[Ff]all(?:ing|s)? ?back to|[Ff]ell back|(?:going|changing|switching) to \S+ instead",
        r"\b(?:[Uu]s|[Tt]ak|[Ii]nstall|[Ll]oad)ing \S+(?: \S+){0,4} instead\b",
        r"(?!fail|crash|di(?:ed|es)|exit|lost|los|stop|kill|hang|hung|br[eo]ak|timed|abort|refus|happen|rais|resets?\b)"
        r"\b(?:\w+(?:ing|[^s]s|ed)|read|drawn|run|sent|built|begun|written|done) (?:it |them )?(?:again|anew)\b",
        r"\b(?:tries|trying) (?:the )?(?:next|another|other|:?\d)",
        r"\ba new (?:\w+ )?(?:one|copy|worker|process|engine|server|instance|actor|container|env\w*|simulator)\b.{0,20}"
        r"\b(?:start(?:s|ed)|takes|took|spawned|launched|created|comes|came)\b|\b(?:was|is|were|are|been) replaced\b",
        r"(?:not available|unavailable|not supported|not installed)\b[^.]{0,120}\b(?:only|instead|disabled|without it)\b",
        r"[,;] (?!re(?:start|tr))(?:\w+ ){1,5}(?:is|are|will be) (?:disabled|off|switched off|turned off|left out)\b",
        r"\b[Ww]ill (?:(?:now )?(?:ignore|skip|continue|proceed|go on|fall back)|be (?:ignored|skipped))\b(?! (?:until|if|when|after)\b)",
        r"[Ww]ill (?:stay|remain|keep) (?:alive|running|up)\b",
        r"[Uu]sing fallback|[Aa]s (?:a |the )?fallback\b|[Cc]ontinuing\b|[Nn]o(?:n-?|t )fatal|harmless",
        r"(?:[Mm]etrics|[Ee]vents|[Ll]ogs|[Tt]races|[Tt]elemetry|[Uu]sage) (?:\w+ ){0,3}(?:won't|will not|cannot) be "
        r"(?:exported|reported|recorded|collected|sent)",
        r"[Aa]s expected\b|(?<=\()expected\b(?! (?:to be|a|an|the|one|at) |(?:,? \w+)? ?[\d\[({'\"])",
        r"[Ss]elf-heal\w*|Setting [A-Z]+ to (?=/)|[Bb]acking off|[Tt]rying (?:again|next)",
        r"[Nn]ext (?:try|attempt|retry) in\b|(?:[Aa]ttempt|[Tt]ry|[Rr]etry) #?\d+ (?:in \d|ok\b|succeed|work)",
        r"(?:at|on|in|during) (?:try|attempt|retry) #?\d+(?! ?(?:s|sec|min|h)\b)",
        r"(?:(?<=\d: )|^)\w*Warning(?=: )|[Cc]an (?:be )?(?:safely )?ignored?|[Ss]afe(?:ly)? (?:to )?ignore|[Aa]ttempt \d+(?: ?/ ?| of )\d+",
        rf"(?:{_DONE_ABOUT_IT})(?![\"']?[=:] ?\d)",
    )
    + ")"
)
HANDLED = re.compile(_GOES_ON)
"""Words of a program that goes on in spite of an error."""
_WENT_ON = re.compile(
    any_of(
        rf"\b{MADE_ANEW}\b",
        r"(?<![Nn]o )(?<!ranks )(?<!last )\b(?:[Ss]uccessful(?:ly)?|[Ss]uccess|[Cc]ontinue[sd]?|[Ff]allback|[Cc]ompleted)\b",
        r"\b[Ss]erver (?:is |has )?(?:started|up|ready|running|listening)\b|\bApplication startup complete\b",
        r"\b(?:[Rr]unning|[Ll]istening|[Ss]tarted) (?:on|at):? (?:port|https?:|wss?:|tcp:|unix:|[\d.]+:\d)",
        r"\b[A-Za-z][\w.-]* (?:is|are|came|comes) (?:now |back )?up(?:$|[.,;!]| and\b| again\b)",
        r"\b(?:is|are|now|became) (?:now )?ready\b|\bready to (?:accept|serve|receive)\b",
        r"\b[Ll]ink (?:is )?(?:[Uu]p|UP)\b|[Cc]able plugged\b",
        r"\bBootstrap ?: Using \S|\bUsing network \w+|\bNET/\w+ ?: Using \S|\bInit COMPLETE\b|\bConnected all (?:rings|trees)\b",
        r"^(?:Prefill|Decode) batch\b|^Resized to \d",  # the latter: what Ray's autoscaler lacked has come
        r"(?i:load|captur|compil|warm|init|benchmark|sav)\w*.{0,60}\b(?:took|takes) \d",
        r"\b(?:[Ff]ound|[Ss]elected|[Cc]hose|[Pp]icked|[Dd]etermined|[Bb]est) (?:\w+ ){0,4}(?:batch(?:[ _]size)?|size|config\w*)\b[^.\d]{0,20}\d",
        r"(?<!<Task )\b[Ff]inished\b(?! collective| ranks| [A-Z_]{4,}\b)",
        r"\b[1-9]\d* GPUs? (?:\w+ ){0,3}(?:healthy|seen|visible|found|detected|available)\b(?!.*\b(?:but|needs?|required?|requires|of)\b)",
        r"(?<![Nn]ot )(?<!longer )(?<!stopped )(?<!stops )\b(?:answers|responds|responding|is reachable|is back|(?:came|comes) back)\b",
        r"\b(?:goes on|go on|carr(?:ies|y) on|proceed(?:s|ing|ed)?)\b",
        r"\b(?:has been|have been|was|were) (?:upgraded|installed|deployed|reloaded)\b",
        r"\berrors? (?:was |were )?(?:corrected|repaired|healed)\b",
        r"\bserver \S+ OK$",  # the kernel's client of NFS, when the server is back
        r"^(?:[Pp]assed|PASS(?:ED)?|ok|OK)$",
        r"(?<!\(\) )\b[Dd]one\b|\bSynced\b|\bSubmitted batch job \d|\b[Uu]sing (?:\w+ backend|\S+(?: \S+){0,3} instead)\b",
        r"\b(?:is|are|will be) used(?: instead)?(?:$|[.,;:])",
        r"\b[Dd]efault(?:s|ing) to\b|^AUTOTUNE \w+\(",  # the latter: Inductor's table of the kernels that fitted
    )
)
"""In a line behind an error these words say as well that its program goes on."""
_DENIED = re.compile(
    r"(?:\b(?:[Nn]o|[Nn]ot|[Nn]obody|[Nn]one|[Nn]othing|[Nn]either|[Nn]ever|[Cc]annot|[Cc]an't)|(?<![\w./-])0 (?:of|out))\b[^.,;:]{0,60}$"
)
"""A word that denies what comes next in the same part of the sentence: a death (`DEATH`), or that a program goes on (`_WENT_ON`)."""
_NOT_DONE = re.compile(r"\b(?:can ?not|can't|could not|couldn't|never) be $")
"""Right in front of what a program would do about an error."""
_PROMISES = re.compile(r"\bwill be (?:retried|rescheduled|restarted)\b(?! (?:if|when|unless)\b)|\b(?:[1-9]\d*|infinite) retries (?:left|remaining)\b")
"""Words that outweigh those of giving up in the same line: what ended, however unexpectedly, will be started again."""


SAID_OF_ANOTHER = re.compile(
    r"(?i)\b(?:see|seen|saw|says?|said|gets?|got|reads?|shows?|prints?|printed|stderr|stdout|contains?|means?|called|message|error|output|line"
    r"|like|as|with|the|an?):? "
    r"(?P<quote>[\"`])[^\"`\n]{1,300}(?P=quote)"
    r"|(?<=[a-z] )`[^`\n]{1,300}`(?=[,.;]? [a-z])"
)
"""Words of an error that a sentence quotes: answers of models are full of them."""
_ACTS = re.compile(
    r"(?<![Tt]ry )(?<!consider )\b(?:[Rr]etrying|[Ww]ill retry|[Cc]ontinuing|[Ff]alling back|[Ii]gnoring|[Rr]ecovered|[Ss]kipping|[Rr]econnecting"
    r"|[Rr]estarting)\b|(?:->|=>) ?[Uu]sing \S|\((?:is |was )?ignored\b|\b[Cc]aught[;,]|\b[Nn]ext (?:try|attempt|retry) in\b"
    r"|\b(?:runs|works) without\b|, us(?:ing|es) the (?:native|eager|slow(?:er)?|torch|python|reference|built-?in|fallback|default)\b[\w -]{0,60}$"
)
"""What the line of an exception says of the program, not of the exception."""


OF_A_SAMPLE = re.compile(
    r"\[(?i:codeact|react|agent|tool|interpreter|executor|repl|python)(?:[ _:#-]\w{1,20})?\] (?:[Rr]esult|[Oo]bservation|[Oo]utput|[Oo]bs): |"
    r"(?:\d{1,9}[).:] )?(?:[Pp]rompt|[Qq]uestion|Q): .{1,400} \| (?:[Aa]nswer|[Rr]esponse|[Cc]ompletion|A): |"
    r"\[(?:prompt|response|question|answer|ground_truth|completion|user|assistant|human)\](?: |$)"
    r"|(?:[Pp]rompt|[Qq]uestion|[Rr]esponse|[Cc]ompletion)s?(?: \d+)?[:=] ?[\"'\[{]"
    r"|(?:[Mm]odel answer|[Aa]ssistant|[QA]): |(?:\[[\w #:=-]{1,40}\] )?(?:user|assistant|human|model|agent|environment)> "
    r"|\[(?:tool|observation)[:_]\w{1,40}\](?: |$)|"
    r"(?:(?:[Ss]tep|[Tt]urn|[Rr]ound|[Ee]pisode|[Tt]ask|[Ee]nv)[ _#-]?\d{1,9}:? ){0,3}"
    r"(?:[Oo]bservation|[Tt]ool (?:output|result|response))(?: \d+)?: "
    r"|(?:\[[\w-]{1,20}\] )?(?:sample|candidate|cand|completion|submission)[ #_-]?\d{1,9}(?: \([^()\n]{1,40}\))?: "
    r"|\[(?:env|sandbox|tool|grader|judge|agent)(?:[ _-]?\d{1,6})?\] (?:command|cmd|program|candidate|test|cell|snippet|code|script)\b"
    r"|\[(?:tool|sandbox|grader|judge)(?:[ _:-]\w[\w-]{0,39})?\] (?:exit|exited|timed|killed|stdout|stderr|returned)\b"
    r"|\d{1,6} {2,}(?:RE|TLE|WA|CE|MLE|OLE|AC) {2,}\S|[│┃].*[│┃]$|\*\*(?:[Uu]ser|[Aa]ssistant|[Hh]uman|[Mm]odel|[Aa]gent|[Tt]ool|[Ss]ystem):\*\* "
    r"|\{(?:[\"']\w{1,20}[\"']: ?(?:-?[\d.]+|[\"'][^\"'\n]{0,80}[\"']), ?){0,3}"
    r"[\"'](?:prompt|input|question|completion|response|output|messages)s?[\"']: ?[\"'\[{]"
    r"|\S+::\S+ (?:PASSED|XFAIL|XPASS|SKIPPED)\b|test\w* \([\w.]+\) \.\.\. |(?:[Tt]est(?:ing)?|[Gg]rading|[Jj]udging|[Vv]erifying) [^:]{1,80} \.\.\. "
)
"""What trainers print in front of what a model was asked and what it said, or around it (tables and panels of rich, one object per sample), and how
test runs print what they found of one thing that they tried; no word of it is an error of the program."""
TELLS_OLDER = re.compile(r"\bfailed\b.{0,60}\blast available logs\b|^Job '[\w-]{1,80}' failed$")
"""Behind such a line of Ray's stands what was written before it."""
HOLDS_A_SAMPLE = re.compile(r"\b(?:prompts?|messages|completions?|responses?|content)[\"']?[:=] ?[\[{(]{0,3}[\"']")
"""Behind it stands, in a note of an engine or a trainer, what a model was asked or gave."""
OF_ONE_ANSWER = re.compile(
    r"(?:[Ff]ail(?:ed|ure)|[Uu]nable|[Cc]ould not|[Cc]annot|[Ee]rror)(?: to| in| while| when)? (?:decod|pars|extract|grad|scor|verif|compar)\w{1,6} "
    r"(?:\w+ ){0,3}(?:tool[ _-]?calls?|answers?|completions?|generations?|(?:gold )?solutions?|rewards?|trajector(?:y|ies))\b"
    r"|\b(?:returned|given|sent|shown|handed|fed|passed) (?:back )?to the (?:model|agent|policy|caller)\b"
    r"|\b(?:sympify|math_verify|latex2sympy\w*|\w+_sympy)\b"
)
"""Of a program that could not read what a model gave once."""
OF_ONE_REQUEST = re.compile(
    r"\b(?:rid|req_id|request[_ ]id)s?[ :=]{1,2}[\[\"']{0,2}[\w-]*\d|\b[Rr]equest (?=[\w-]*\d)(?:(?:chat)?cmpl-)?[\da-f-]{6,}"
    r"|\bHTTP status (?:4\d\d|50[0234])\b|\brequest: \"(?:GET|POST|PUT|HEAD|DELETE) /"
)
"""Of a server that names the one request it speaks of."""
CLIENT_LEFT = re.compile(
    r"\b[Cc]lient (?:has )?(?:disconnected|closed|went away)\b|\b[Dd]isconnected (?:from|by) the client\b|\bClientDisconnect(?:ed)?\b"
)
"""Of a server whose client did not wait for its answer."""
SCORED = re.compile(
    r"(?i)\b(?:score|reward|verdict|grade|return)s?\b[ :=]{1,3}-?\d|: -?\d+(?:\.\d+)? points?\b"
    r"|\b(?:CE|RE|AC|WA|TLE|MLE)\b,? (?:\w+ )?(?:CE|RE|AC|WA|TLE|MLE)\b"
    r"|\b(?:verdict|result|status): ?(?:CE|RE|WA|TLE|MLE|OLE)\b"
    r"|\b(?:mean|accuracy|pass(?:ed)?|compiled?)\b[ :=]{1,3}[01]?\.\d"
    r"|\b\d+ (?:of|/) \d+ (?:\w+ ){0,2}(?:verified|pass|passed|compiled?|correct|solved)\b"
)
"""What a program says of the code of a model that it tried: how good it was."""
OF_A_DEVICE = re.compile(
    r"\bCUDA_ERROR_(?:CONTAINED|ILLEGAL|LAUNCH_|ECC|NVLINK|HARDWARE|MISALIGNED|ASSERT|UNKNOWN|DEVICE_UNAVAILABLE)"
    r"|\b(?:CUDA|Cuda|HIP|NPU|NCCL|HCCL|CUBLAS|CUDNN|cu[A-Z]\w+) (?:\w+ ){0,2}(?:[Ee]rror|failure)\b(?!: out of memory)"
)
"""An error of a device, which no catching mends."""
SMALL_TOOL = re.compile(
    r"(?:/\w+)*/?"
    r"(?:df|ls|rm|ln|cp|mv|cat|du|stat|find|grep|head|tail|mkdir|rmdir|chmod|chown|kill|pkill|which|readlink|realpath|ld|collect2|sysctl|ulimit): "
    r"|(?:curl|wget|nc|ping|killall|modprobe|ldconfig|stty|tput|sed|awk|tee|touch|mesg|hostname|lscpu|ip|xargs): "
    r"|ALSA lib [\w.]+:\d+:|lib(?:E?GL|vulkan)(?: \w+)?: |MESA[\w-]*: "
    r"|(?:[\w./-]+: )?line \d+: (?!python|torchrun|ray:|srun|mpirun|accelerate|deepspeed|vllm|conda|uv:)[\w./-]+: (?:command not found|No such file)"
)
"""Tools that a script calls on its way, its shell where it lacks one, and libraries that look for a device.

What they complain of ends the script only where nothing follows."""
RETRIES = re.compile(
    r"(?:(?:[Aa]ttempt|[Tt]ry|[Rr]etry) #?\d+ (?:in \d|ok|succeed|work)"
    r"|(?:[Rr]etrying|[Ww]ill retry|[Ff]alling back|[Cc]ontinuing|[Ss]kipping|[Rr]econnecting|[Rr]etry \d)\b|Exception ignored in )"
)
"""Of a line behind a traceback that begins so: it is the program's own, not the end of the message."""
FINISHED = re.compile(
    r"\b(?:[Tt]raining|[Jj]ob(?: '[\w-]+')?|[Rr]un|[Ee]valuation) (?:is |was |has )?(?:done|completed?|completes|finished|succeeded)\b"
    r"(?! \(status: F)"
    r"|^All done\b|\bworker group successfully finished\b"
    r"|\b[Aa]ll (?:\w+ )?(?:epochs|steps|iterations|rollouts|episodes|tasks|jobs|trials|experiments"
    r"|prompts|requests|samples|evaluations) (?:are |have )?(?:done|completed?|finished)\b"
    r"|\bFinished server process \[|\bApplication shutdown complete\b|\bStopped all \d+ Ray processes\b"
    r"|\b[Ee]pochs? (?P<epoch>\d{1,6})/(?P=epoch) (?:is )?(?:done|finished|completed?)\b|\b[Ss]aved (?:the )?final (?:model|checkpoint|weights)\b"
    r"|\b[Dd]one, (?P<all>\d{1,9}) (?:of|/) (?P=all)\b"
    r"|[\"']train_runtime[\"']: |\"run_stop\".{0,200}\"status\": \"success\""
    r"|^Prompt: .{1,400}, Generated text: "
    r"|\b[Ff]inal (?:validation|evaluation|test) (?:metrics|results)\b|\b[Ss]aved to \S*\bfinal\b|\b[Ff]inal (?:model|checkpoint|weights) saved\b"
)
"""Of a program whose work is done."""
NOT_THE_JOB = re.compile(
    r"(?:kernel|sshd|CRON|cron|anacron|sudo|su|chronyd|ntpd|dhclient|NetworkManager|polkitd|dbus-\w+|snapd?|rsyslogd|multipathd|irqbalance|udisksd|tuned|postfix"
    r"|nvidia-persistenced|systemd-(?:logind|resolved|timesyncd|networkd|udevd|journald|tmpfiles)|logrotate|apt[\w.-]*|unattended-upgrades?|fwupd[\w-]*|ModemManager|avahi-\w+"
    r"|google_\w+|(?:Google|OSConfig)\w*|amazon-[\w-]+|aws[\w-]*|waagent|WALinuxAgent|cloud-init|node_exporter|telegraf|fluent[\w-]*|vector|promtail"
    r"|\w*[-_]?exporter|(?!runtime_env|dashboard)\w+[-_]agent)(?:\.service)?"
)
"""Services in a machine's journal: what fails in them ends no job, unless it is a known error."""


class Said(msgspec.Struct, frozen=True):
    """What one line claims."""

    kind: str
    """``death``, ``error`` or ``exception``."""
    name: str | None = None
    """Class of the exception."""


def judge(text: str, level: str | None) -> Said | None:
    """What a line says by its own words; None when it is no failure.

    Args:
        text: The line without what stands in front of it.
        level: Of its record; a note or a warning is no failure, whatever words it holds.
    """
    if level in ("D", "I") or not any(map(str.isalnum, text)):
        return None
    if level == "W":
        return Said("death") if _tells_death(text) and not INNOCENT.search(text) and not is_handled(text) else None
    found = EXCEPTION.match(text)
    innocent = INNOCENT.search(text)
    if innocent and not (found and innocent.start()):  # behind its name an exception may quote anything: ``No error message was given``
        return None
    if found and not found["name"].endswith("Warning"):
        return None if is_handled(text) else Said("exception", found["name"])
    if is_handled(text):
        return None
    if _tells_death(text):
        return Said("death")
    if level in ("E", "F") or _TOOL.search(text):
        return Said("error")
    return None


def _tells_death(text: str) -> bool:
    """Does a line say that a process ended, and not that none did?"""
    found = DEATH.search(text)
    return found is not None and _DENIED.search(text, 0, found.start()) is None


def is_handled(text: str) -> bool:
    """Does a line say that the program goes on in spite of its error?"""
    return goes_on(text) is not None


def goes_on(text: str, *, behind: bool = False) -> str | None:
    """The words of a line that say that the program goes on in spite of its error, or of one in the lines before (`behind`)."""
    acts = (_ACTS if EXCEPTION.match(text) and not behind else HANDLED).finditer(text)
    found = next((f for f in acts if not _NOT_DONE.search(text, max(0, f.start() - 20), f.start())), None)
    if found is None and behind:
        found = next((f for f in _WENT_ON.finditer(text) if not _DENIED.search(text, 0, f.start())), None)
    if found is None or (_PROMISES.search(text) is None and GIVES_UP.search(without_lesser_ends(text)) is not None):
        return None
    return found[0]
