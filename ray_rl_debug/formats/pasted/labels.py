"""Lines that say whose stack comes next: ``=== PID 4008 ===``, ``Rank 3 (node1):``, ``$ py-spy dump --pid 4008``, ``==> rank_3.txt <==``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted import commands, lone_names, rank_numbers, said
from ray_rl_debug.formats.pasted.events import Head
from ray_rl_debug.formats.pasted.prose_words import STANDING

_AT_DEBUGGER = re.compile(r"^\((?:cuda-)?gdb\) (?!attach)")
"""What somebody typed there: its numbers are of threads and frames."""
_NAMED_PID = re.compile(r"^\W{0,12}(?P<label>[A-Za-z][\w.-]{0,40}) ?\((?P<pid>\d{3,8})\):?\W{0,4}$")
"""``P0 (4000):``"""
_ELASTIC_FIELD = re.compile(r"^\s{0,8}(?:time|host|rank|exitcode|error_file|traceback) {1,8}: ")
"""What torchelastic says of a child that failed: no name of what follows."""
_PART_ALONE = re.compile(
    r"^\W{0,12}(?P<name>(?:EngineCore|APIServer|ApiServer|Worker)(?:_(?:DP|TP|PP|EP)\d{1,4}){0,4})\b(?! (?:rank|process|group|node|#?\d{1,5})\b)"
)
"""A part of vLLM at the beginning of a heading, without the ``VLLM::`` of its process title."""
_ENDINGS = r"\.(?:txt|log|out|err|stack|dump|pyspy|trace|raw|folded|collapsed)"
"""Of files in which people keep stacks."""
_FILE = re.compile(
    r"^(?:==>|>>>|={2,}|-{2,}|#{2,}|\*{2,}|file:|File:)\s?(?P<path>[\w./@:-]{0,200}?(?P<name>[\w.@-]{1,120}(?:" + _ENDINGS + r"|\.json)))\b.{0,20}$"
)
_SHOWN_FILE = re.compile(
    r"^(?:[\w@.:~/-]{0,80}[$#] )?(?:(?:cat|less|more|head|tail)(?: -\w{1,8}(?: \d{1,6})?){0,3} )?"
    r"(?P<path>[\w./@-]{1,300}" + _ENDINGS + r"):?$"
)
_FILE_ALONE = re.compile(r"^[\w./@-]{1,300}" + _ENDINGS + "$")
_KIND = re.compile(
    r"\W{0,8}(?:(?:and|then|now|also|here|is|this|that|stacks?|trace|dump|frames|of|for|from|in|on|the|an?|one|our|my|its|other|same|next) ){0,8}"
    r"(?P<label>(?:[A-Za-z]{2,16}[ _-]){0,2}(?:actor|worker|driver|trainer|learner|runner|scheduler|controller|engine|server|launcher|client"
    r"|parent|master))(?: process)?"
    r"\W{0,6}:\W{0,4}$",
    re.IGNORECASE,
)
"""``and from the train actor:``"""
_PART_OF_PROGRAM = r"main|child|parent|master|worker|server|driver|engine|scheduler|trainer|client|launcher|actor"
_WHOSE_STACK = re.compile(
    r"\W{0,12}(?:the )?(?P<label>(?:"
    + _PART_OF_PROGRAM
    + r") process)(?:['’]s)?(?: main)?(?: thread)? (?:stack|back ?trace|trace|dump)\b[^.;]{0,60}$"
    r"|\W{0,12}(?:py-?spy|pystack|gdb|stack|back ?trace|trace)(?: dump| output| trace)?[`*]{0,3} (?:of|for|from) (?:the )?"
    r"(?P<of>" + _PART_OF_PROGRAM + r")\b(?! (?:\d|threads?\b))[^.;]{0,60}$"
    r"|#{1,6} (?:the )?(?P<alone>" + _PART_OF_PROGRAM + r")(?: process)?(?: \([^()]{1,60}\))?\W{0,4}$"
    r"|(?:stack|back ?trace|trace)s? (?:of|for|from) (?P<those>(?:the )?(?:ones?|others?|rest)(?: (?:in|at|that) [^.;:]{1,60})?):?$",
    re.IGNORECASE,
)
"""``Worker process thread stack (stuck)``, as a summary that can be opened; ``py-spy dump of parent (idle)``; ``Stack of the ones in allreduce``."""
_PARTS = re.compile(r"^\W{0,12}(?P<role>[A-Za-z_]{1,20})(?P<ranks>\d{1,6}(?:[,-]\d{1,6}){0,200}): {1,8}(?P<rest>\S.{0,8000})$")
_PID = re.compile(
    r"\b(?:pid|PID|process|Process|Prozess|Processus|Proceso|Processo|worker pid|python)[ #:=]{1,3}(?P<pid>\d{2,9})\b"
    r"|^\W{0,12}(?P<alone>\d{3,9})\W{1,12}$"
    r"|^(?:#{1,6}|={2,}|-{2,}|>{2,})\s?(?P<headed>\d{3,9})$|(?:进程|進程|プロセス|프로세스|процесс)[ #:：=]{0,3}(?P<cjk>\d{4,9})(?!\d)"
    r"|\b(?:back ?traces?|stacks?(?: ?traces?)?|bt|dumps?|threads) (?:of|for|from) (?:the |its )?(?:child |worker |parent )?(?P<of>\d{3,9})\b(?! \w)"
    r"|^\W{0,12}(?P<program>\d{3,8}) python[\d.]{0,5}\W{0,4}$|^\W{0,12}(?P<first>\d{3,8}) ?\((?=[^()]{0,40}rank)"
)
_NODE = re.compile(
    r"\b(?:node|host|machine|pod|worker)[ _-]?(?!(?:DP|TP|PP|EP|CP)\d)(?P<node>\d{1,5}|[a-z][\w-]{0,20}\d[\w.-]{0,40})\b"
    r"|@(?P<at>[a-z][\w.-]{1,60})[ :~]",
    re.IGNORECASE,
)
_NODES = re.compile(r"^\W{0,8}(?:all |on |the |other ){0,3}(?P<word>node|host|machine|pod)s ?#?" + said.NUMBERS + r"(?![\w.-]*\w)", re.IGNORECASE)
"""``Hosts 1-3 went on:``: one stack comes for several."""
_HOST_ALONE = re.compile(
    r"^[^\w\n]{0,6}(?P<lead>(?:[Oo]n|[Ff]rom|[Aa]t) (?:the )?)?"
    r"(?P<host>(?P<stem>[a-z]{2,20})-(?=[\w.-]{0,40}\d)[\w.-]{0,59}\w)(?P<colon>:)?[^\w\n]{0,4}$"
)
"""``gpu-a7:`` over what was seen there; ``on gpu-a7`` too."""
_NODE_BY_WORD = re.compile(
    r"^\W{0,8}(?:(?:on|from|at|the|and|now|stack|dump|output|of) ){0,4}"
    r"(?P<node>(?:head|worker|master|first|second|third|fourth|other) (?:node|host|machine|server|box)"
    r"|(?:node|host|machine|server|box) [A-H]|(?:server|box) \d{1,4})(?: \([^()]{1,60}\))?\W{0,6}$",
    re.IGNORECASE,
)
"""``**head node**``, ``machine B:``, ``Server 2``"""
_WORKER = re.compile(r"(?<![\w-])(?P<label>worker #?\d{1,5})(?![\w.-]*\w)", re.IGNORECASE)
"""One of several processes by its number; ``worker-3`` is a machine more often."""
_COUNTED = re.compile(r"^\W{0,8}(?P<name>[A-Za-z]{3,12})[-_ #]?" + said.NUMBERS + r" \((?P<count>\d{1,5}) [a-z]{3,12}\)\W{0,6}$")
"""``Task-0..17, 19..31 (31 tasks):``: any name with numbers, where it is said how many they are."""
_YAML = re.compile(
    r"^\s{0,24}(?:- (?:name|id)|(?:- )?(?:pod|pod_?name|host|host_?name|node|node_?name|machine|container|instance)): {1,8}[\"']?"
    r"(?P<name>[A-Za-z][\w.-]{0,80}\d[\w.-]{0,40})[\"']?\s{0,8}$",
    re.IGNORECASE,
)
"""Whose stack comes, where somebody writes a list of them as YAML."""
_YAML_LIST = re.compile(
    r"^\s{0,24}(?:- )?(?:pods|hosts|nodes|machines|hostnames): {0,8}"
    r"\[ ?(?P<names>[\"']?[A-Za-z][\w.-]{0,80}[\"']?(?:, ?[\"']?[A-Za-z][\w.-]{0,80}[\"']?){0,64}) ?\]\s{0,8}$"
)
"""``hosts: [gpu-01, gpu-02]``"""
_RULED_NAME = re.compile(
    r"^(?P<rule>-{2,20}|={2,20}|#{2,20}|\*{2,20}|~{2,20}|<{2,9}|>{2,9}) ?(?P<name>[A-Za-z][\w.-]{0,60}-\d{1,5}(?:-\d{1,5}){0,2}) ?[-=#*~<>]{2,20}$"
)
"""``---- trainer-0-1 ----``: a pod, between rules."""
_INSIDE = re.compile(
    r"\b(?:kubectl|oc)\b[^|;&]{0,100} exec (?:-\w{1,3} (?:[\w.-]{1,60} )??|--?[\w-]{2,20}[= ][\w.-]{1,60} ){0,4}(?:pod/)?"
    r"(?P<name>[a-z0-9][\w.-]{2,80})(?= )"
)
"""In which pod the command runs that follows."""
_BESIDE = re.compile(r"\([^()]{0,40}\branks?[ _:=#]{0,2}" + said.NUMBERS + r"[^()]{0,40}\)", re.IGNORECASE)
"""``py-spy dump --pid 12  (rank 3)``"""
_SSH = re.compile(r"^\W{0,8}ssh (?:-\w{1,3} )?(?:[\w.-]{1,40}@)?(?P<host>[a-z][\w.-]{0,60}\d[\w.-]{0,20})(?: .{0,200})?$")
"""The command that goes to a machine, above what it prints there."""
_SSH_TO = re.compile(r"\bssh (?:-\w{1,3} (?:[\w.=-]{1,40} (?=[a-z]))??){0,3}(?:[\w.-]{1,40}@)?(?P<name>[a-z][\w.-]{0,80})(?= )")
"""To which machine the command goes that follows on the same line."""
_PROMPT = re.compile(r"^\s{0,4}(?:\([\w.() -]{1,60}\) ?)?\[?[\w.-]{1,40}@(?P<host>[\w.-]{1,80})[ :][^\$#]{0,200}[\$#] ")
_RAY_STACK = re.compile(r"^\s{0,8}Stack dump for (?P<rest>\S.{0,4000})$")
_CLASS_BESIDE = re.compile(
    r"\b(?:pid|PID)[ #:=]{1,3}\d{2,9}[,:]? ?\((?P<name>[A-Z]\w{1,60}(?:Actor|Worker|Proc|Engine|Runner|Trainer|Manager|Server|Rollout|Group))\)"
)
"""``pid=1234 (ActorModelRayActor)``: the class of an actor of Ray's."""
_TITLE = re.compile(r"\b(?P<title>(?:ray|VLLM|sglang)::[\w.:]{1,120}(?:\([^()]{0,40}\))?)")
_CHILD = re.compile(
    r"^(?:\^C)?Process (?P<name>[A-Za-z_][\w-]{0,80}(?:-\d{1,6}|_[A-Z]{2}\d{1,4})(?::\d{1,6}){0,4}|[a-z]{1,40}(?:_[a-z]{1,40}){1,4}):$"
)
"""How multiprocessing announces the traceback of a child."""
_NUMBERED_PROCESS = re.compile(r"^(?P<name>[Pp]rocess \d{1,4}) .{0,60}\b(?:traceback|back ?trace|stack(?: trace)?)s?:$")
"""``Process 3 timed out with traceback:``: a launcher's own number."""
_FOLDED = re.compile(
    r"^(?P<list>[A-Za-z][\w.-]{0,80}(?:\d|\[[\d,-]{1,400}\])[\w.-]{0,60}"
    r"(?:,[A-Za-z][\w.-]{0,60}(?:\d|\[[\d,-]{1,80}\])){0,64})(?: \((?P<count>\d{1,6})\))?\s*$"
)
_OF_FILE_NAME = re.compile(r"rank[_.=-]?(\d{1,6})(?!\d)", re.IGNORECASE)
_LEAD = re.compile(r"^\W{0,6}\*\*(?P<lead>[^*\n]{2,60}\*\*(?: \([^()\n]{2,80}\))?)")
"""What a long entry of a list is about: ``- **Waiters** (the other 11 ranks): they have ... and stand here:``."""
_OWNS = re.compile(
    r"\b(?P<who>(?:global )?ranks? ?#?\d{1,5}|[TDPE]P ?\d{1,4}|pid \d{2,9})(?:['’]s|\b,? (?:whose|with (?:its|a|the)))\b"
    r"[^`'’]{0,60}\b(?:stack|trace|backtrace|chain)\b[^`]{0,40}$",
    re.IGNORECASE,
)
"""``... missing ranks: {0}, with rank 1's full stack attached: `` before a chain."""
_LAST_SENTENCE = re.compile(r"(?<=[\w)\"'”`])[.!?]['\"”`*]{0,3}\s{1,3}(?=[^.!?]{3,160}:\W{0,4}$)")
"""Before the last sentence of a line that leads to a stack: ``Rank 0 reports an error. rank 3 got stuck, and the stack is:``."""
_OTHERS_COME = re.compile(
    r"\W{0,4}(?:(?:all |every )?(?:the |of the )?(?:others?|rest|remaining)\b"
    r"|(?:most|several|many|some|all|both|each)\b[^.:]{0,20}\b(?:ranks?|processes|workers|gpus|nodes|them)\b(?! ?\d))[^.:]{0,60}:\W{0,4}$",
    re.IGNORECASE,
)
"""``Rank 3 does not come. The others:`` leads to no stack of rank 3, and ``It is tp 4. Most processes hang at:`` to none of a part."""
_STANDS_SO = re.compile(
    r"\b(?:global )?(ranks? ?#?\d{1,5}|pid \d{2,9})(?: process| worker)?,? (?:(?:is|was|always|only|still) ){0,2}"
    r"(?:" + STANDING + r")\b",
    re.IGNORECASE,
)
"""A long sentence that says of one process where it stands, above its stack: ``... I find that the rank 0 process hangs on a broadcast``."""
_PROGRESS = re.compile(
    r"\b(?:completed|finished|entering|entered|before|after|starting|started|loading|loaded|saving|saved)\b.{0,60}\b(?:for|on) (?:global )?rank ?\d",
    re.IGNORECASE,
)
"""``Training completed for rank 6.``: what a program says of itself, and no heading."""
_MOST_WORDS = 14
"""Of a sentence that is read whole."""
_HEAVY = re.compile(r"^\s{0,4}(?:[-*•] )?(?:={2,}|-{2,}|#{1,6} |\*\*|\[|>{2,}|<|\+{2,})")


def read(text: str) -> Head | None:
    """Whose stack comes next, if the line tells; a line that could be any sentence must be short."""
    stripped = text.strip()
    if not stripped or len(stripped) > 600 or _ELASTIC_FIELD.match(text):
        return None
    if _AT_DEBUGGER.match(stripped):
        return None
    if (counted := _COUNTED.match(stripped)) and len(numbers := said.numbers(counted["ranks"])) == int(counted["count"]):
        is_rank = counted["name"].lower() in ("rank", "ranks")
        return Head(level="label", label=None if is_rank else f"{counted['name'].lower().removesuffix('s')} ", ranks=numbers, is_new=True)
    if (of_pid := _NAMED_PID.match(stripped)) and not _PID.search(stripped):
        ranks, label = rank_numbers.read(stripped)
        return Head(level="label", label=label or (None if ranks else of_pid["label"]), ranks=ranks, pid=int(of_pid["pid"]), is_new=True)
    if file := _FILE.match(stripped):
        return Head(
            level="label", label=file["name"], is_new=True, ranks=rank_numbers.read(file["name"].replace("_", " "))[0], pid=_file_pid(file["name"])
        )
    if "." in stripped and (shown := _SHOWN_FILE.match(stripped.strip("`* "))) and (of_file := _OF_FILE_NAME.search(shown["path"])):
        return Head(level="label", is_new=True, ranks=(int(of_file[1]),))
    if child := _CHILD.match(stripped):
        return Head(level="label", label=child["name"], is_new=True)
    if numbered := _NUMBERED_PROCESS.match(stripped):
        return Head(level="label", label=numbered["name"].lower(), is_new=True)
    if (ruled := _RULED_NAME.match(stripped)) is not None and not rank_numbers.is_named(stripped) and not rank_numbers.read(stripped)[1]:
        return Head(level="label", node=ruled["name"], is_new=True)
    if (":" in text and (told := _YAML.match(text))) and not rank_numbers.is_named(told["name"]):
        return Head(level="label", node=told["name"], is_new=True)
    if ": [" in text and (listed := _YAML_LIST.match(text)) is not None:
        names = re.findall(r"[A-Za-z][\w.-]*", listed["names"])
        return Head(level="label", node=",".join(names), count=len(names) if len(names) > 1 else None, is_new=True)
    if (
        len(stripped) <= said.HEADING_CHARS
        and (whose := _WHOSE_STACK.match(stripped)) is not None
        and not (_PID.search(stripped) or rank_numbers.is_named(stripped))
    ):
        return Head(level="label", label=(whose["label"] or whose["of"] or whose["alone"] or whose["those"]).lower(), is_new=True)
    host = _PROMPT.match(text)
    if "py" in text or "gdb" in text or "st" in text:
        asked = commands.pid_of(stripped)
        if asked is not None and (host or not stripped.startswith(("Error", "["))):
            beside, inside = _BESIDE.search(stripped), _INSIDE.search(stripped) or _SSH_TO.search(stripped)
            node = inside["name"] if inside else host["host"] if host else None
            return Head(
                level="label",
                pid=asked,
                ranks=said.numbers(beside["ranks"]) if beside else rank_numbers.read(commands.short_comment(stripped))[0],
                node=node,
                is_new=True,
            )
    if host or (host := _SSH.match(stripped)):
        return Head(level="label", node=host["host"])
    if len(stripped) > 240:
        lead = _LEAD.match(stripped) if stripped.endswith((":", ":**")) else None
        return read(f"{lead['lead']}:") if lead is not None else None
    plain = stripped.replace("`", "")
    ranks, label = rank_numbers.read(plain)
    pid = _PID.search(plain)
    number = next((n for n in pid.groups() if n), None) if pid else None
    is_heading = _HEAVY.match(text) is not None or stripped.endswith((":", "**", "---", "===", "`", "]"))
    told_title = _TITLE.search(stripped)
    part = _PART_ALONE.match(stripped) if told_title is None and is_heading else None
    title = told_title["title"] if told_title else f"VLLM::{part['name']}" if part else None
    if title is None and (of_class := _CLASS_BESIDE.search(plain)) is not None:
        title = f"ray::{of_class['name']}"
    count = said.count_in(stripped) if not ranks else None
    if not (ranks or label or number or title or count):
        return _node_alone(stripped, is_heading)
    if not is_heading and _PROGRESS.search(stripped) is not None:
        return None
    if not is_heading and len(stripped.split()) > _MOST_WORDS:
        standing = _STANDS_SO.findall(stripped)
        return read(f"{standing[0]}:") if len(standing) == 1 else None
    node = _NODE.search(stripped)
    return Head(
        level="label",
        ranks=ranks,
        label=label,
        pid=int(number) if number and len(number) < 10 and len(ranks) < 2 else None,
        title=title,
        node=_machine(node) if node else None,
        count=count,
        is_new=True,
    )


def leading(text: str) -> str:
    """The last sentence of a line that leads to a stack, where that sentence names somebody; else the line."""
    parts = _LAST_SENTENCE.split(text, maxsplit=8) if text.rstrip(" `*_").endswith(":") else ()
    last = parts[-1] if len(parts) > 1 else ""
    if last and _OTHERS_COME.match(last):
        return last
    return last if last and (head := read(last)) is not None and (head.ranks or head.pid or head.label or head.title) else text


def owner(text: str) -> Head | None:
    """Whose stack follows on the same line: of several who are named, the one of whose stack the words speak."""
    owns = _OWNS.search(text)
    return read(f"{owns['who'] if owns is not None else text}:")


def folded(text: str) -> Head | None:
    """The machines whose output follows, as ``clush -b`` and ``dshbak -c`` write them between two rules: ``gpu[01-03] (3)``, ``gpu04``."""
    found = _FOLDED.match(text)
    if found is None or ((of_process := read(text)) is not None and of_process.ranks):
        return None  # "rank0" between two rules is no machine
    told = found["list"]
    count = int(found["count"]) if found["count"] else len(said.numbers(told[told.index("[") + 1 : -1])) if told.endswith("]") and "[" in told else 1
    return Head(level="label", node=told, count=count if count > 1 else None, is_new=True)


def of_file(text: str) -> Head | None:
    """The name of a file between two rules: ``stacks/rank0.txt``."""
    return read(f"==> {text.strip()} <==") if _FILE_ALONE.match(text) else None


def parts(text: str) -> tuple[str, tuple[int, ...], str] | None:
    """``DP0,3,5-7: f (a.py:1)`` → role, ranks and the rest."""
    found = _PARTS.match(text)
    return (found["role"], said.numbers(found["ranks"]), found["rest"]) if found else None


def ray_stack(text: str) -> str | None:
    """The line of ``ps`` in a head of ``ray stack``."""
    found = _RAY_STACK.match(text) if "Stack dump for" in text else None
    return found["rest"] if found else None


def _file_pid(name: str) -> int | None:
    found = re.search(r"(?:pid[_.=-]?|py-?spy[_.-]|stack_|dump_)(\d{2,9})(?!\d)", name)
    return int(found[1]) if found else None


def _node_alone(text: str, is_heading: bool) -> Head | None:
    if len(text) > 80:
        return None
    alone = _HOST_ALONE.match(text)
    if alone is not None and (alone["lead"] or alone["colon"]) and not lone_names.is_no_machine(alone["stem"]):
        return Head(level="label", node=alone["host"])
    if (by_word := _NODE_BY_WORD.match(text)) is not None and (is_heading or by_word["node"][-1].isdecimal()):
        return Head(level="label", node=by_word["node"].lower())
    if not is_heading:
        return None
    if (nodes := _NODES.match(text)) is not None:
        count = len(said.numbers(nodes["ranks"]))
        return Head(level="label", node=f"{nodes['word'].lower()}s {nodes['ranks']}", count=count if count > 1 else None, is_new=True)
    if (worker := _WORKER.search(text)) is not None:
        return Head(level="label", label=worker["label"].lower().replace("#", ""), is_new=True)
    node = _NODE.search(text)
    if node is None:
        kind = _KIND.match(text if text.endswith(":") or not text.startswith("#") else f"{text}:")
        return Head(level="label", label=" ".join(kind["label"].lower().split()), is_new=True) if kind is not None else None
    return Head(level="label", node=_machine(node))


def _machine(found: re.Match[str]) -> str:
    """``node 3`` → ``node3``; ``ppo-worker-1`` stays as it is."""
    name: str = found["at"] or found["node"]
    if not name.isdecimal():
        return name
    if found[0][-len(name) - 1] not in "-_":
        return f"node{name}"
    before = re.search(r"[\w.-]{0,60}$", found.string[: found.start()])
    return ((before[0] if before else "") + found[0]).strip("-_. ")
