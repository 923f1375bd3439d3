"""Lines that say whose stack comes next: ``=== PID 4008 ===``, ``Rank 3 (node1):``, ``$ py-spy dump --pid 4008``, ``==> rank_3.txt <==``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted import said
from ray_rl_debug.formats.pasted.events import Head

_COMMAND = re.compile(
    r"(?:py-?spy (?:dump|record)[^|;&$]{0,120}?|pystack remote[^|;&$]{0,80}?|gdb [^|;&$]{0,80}?|strace [^|;&$]{0,80}?"
    r"|asyncio (?:ps|pstree).{0,20}?) ?"
    r"(?:-p|--pid)?[ =]?(?P<pid>\d{1,9})\b"
)
_LOOP = re.compile(r"\bfor \w{1,20} in (?P<pids>\d{2,9}(?: \d{2,9}){1,200}) ?; ?do\b.{0,200}(?:py-?spy|pystack|gdb)")
_FILE = re.compile(
    r"^(?:==>|>>>|={2,}|-{2,}|#{2,}|\*{2,}|file:|File:)\s?(?P<path>[\w./@:-]{0,200}?(?P<name>[\w.@-]{1,120}\.(?:txt|log|out|err|stack"
    r"|dump|json|pyspy|trace)))\b.{0,20}$"
)
_RANK = re.compile(
    r"\b(?:(?P<part>(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}[ _,/]{0,2}){1,5})|(?:global[ _-]?)?"
    r"(?:ranks?|rangs?|rangos?|ранг(?:и|а|ов)?|ランク|랭크|卡|进程)[ _#:=]{0,3}"
    r"\[?" + said.NUMBERS + r")(?![\w.])",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\b(ranks?[ _#:]?\d{1,6})\s?(?:\.{2,3}|…|-|–|to|through|bis|à|至|到)\s?rank[ _#:]?(\d{1,6})\b", re.IGNORECASE)
"""``rank0 .. rank6``: both ends with the word."""
_LOCAL = re.compile(r"\b(?:local|node)[ _-]?rank", re.IGNORECASE)
_NAMED = re.compile(r"^\W{0,12}(?P<label>(?:(?:DP|TP|PP|EP|CP|[Rr]ank|RANK|[Ww]orker|[Nn]ode)[ _-]?\d{1,6}[ _]?){1,5}) {1,20}(?P<rest>\S.{0,8000})$")
_PARTS = re.compile(r"^\W{0,12}(?P<role>[A-Za-z_]{1,20})(?P<ranks>\d{1,6}(?:[,-]\d{1,6}){0,200}): {1,8}(?P<rest>\S.{0,8000})$")
_PID = re.compile(
    r"\b(?:pid|PID|process|Process|worker pid|python)[ #:=]{1,3}(?P<pid>\d{2,9})\b|^\W{0,12}(?P<alone>\d{3,9})\W{1,12}$"
    r"|^(?:#{1,6}|={2,}|-{2,}|>{2,})\s?(?P<headed>\d{3,9})$"
)
_NODE = re.compile(
    r"\b(?:node|host|machine|pod|worker)[ _-]?(?P<node>\d{1,5}|[a-z][\w-]{0,20}\d[\w.-]{0,40})\b|@(?P<at>[a-z][\w.-]{1,60})[ :~]", re.IGNORECASE
)
_PROMPT = re.compile(r"^\s{0,4}(?:\([\w.() -]{1,60}\) ?)?\[?(?P<user>[\w.-]{1,40})@(?P<host>[\w.-]{1,80})[ :][^\$#]{0,200}[\$#] ")
_RAY_STACK = re.compile(r"^\s{0,8}Stack dump for (?P<rest>\S.{0,4000})$")
_TITLE = re.compile(r"\b(?P<title>(?:ray|VLLM|sglang)::[\w.:]{1,120}(?:\([^()]{0,40}\))?)")
_CHILD = re.compile(r"^Process (?P<name>[A-Za-z_][\w-]{0,80}(?:-\d{1,6}|_[A-Z]{2}\d{1,4})(?::\d{1,6}){0,4}):$")
"""How multiprocessing announces the traceback of a child."""
_HEAVY = re.compile(r"^\s{0,4}(?:[-*•] )?(?:={2,}|-{2,}|#{1,6} |\*\*|\[|>{2,}|<|\+{2,})")


def read(text: str) -> Head | None:
    """Whose stack comes next, if the line tells; a line that could be any sentence must be short."""
    stripped = text.strip()
    if not stripped or len(stripped) > 600:
        return None
    if file := _FILE.match(stripped):
        return Head(level="label", label=file["name"], is_new=True, ranks=_ranks(file["name"].replace("_", " "))[0], pid=_file_pid(file["name"]))
    if child := _CHILD.match(stripped):
        return Head(level="label", label=child["name"], is_new=True)
    host = _PROMPT.match(text)
    if "py" in text or "gdb" in text or "strace" in text:
        command = _COMMAND.search(stripped)
        if command and not stripped.startswith(("Error", "[")):
            return Head(level="label", pid=int(command["pid"]), node=host["host"] if host else None, is_new=True)
    if host:
        return Head(level="label", node=host["host"])
    if len(stripped) > 240:
        return None
    ranks, label = _ranks(stripped)
    pid = _PID.search(stripped)
    number = (pid["pid"] or pid["alone"] or pid["headed"]) if pid else None
    title = _TITLE.search(stripped)
    is_heading = _HEAVY.match(text) is not None or stripped.endswith((":", "**", "---", "===", "`", "]"))
    count = said.count_in(stripped) if not ranks else None
    if not (ranks or label or number or title or count):
        return _node_alone(stripped, is_heading)
    if not is_heading and len(stripped.split()) > 14:
        return None
    node = _NODE.search(stripped)
    return Head(
        level="label",
        ranks=ranks,
        label=label,
        pid=int(number) if number and len(number) < 10 else None,
        title=title["title"] if title else None,
        node=(node["node"] or node["at"])
        if node and not (node["node"] or "x").isdecimal()
        else (f"node{node['node']}" if node and node["node"] else None),
        count=count,
        is_new=True,
    )


def loop_of(text: str) -> tuple[int, ...]:
    """``for p in 4008 4009; do py-spy dump --pid $p; done`` → the process ids."""
    found = _LOOP.search(text) if "for " in text and len(text) <= 4_000 else None
    return tuple(int(pid) for pid in found["pids"].split()) if found else ()


def parts(text: str) -> tuple[str, tuple[int, ...], str] | None:
    """``DP0,3,5-7: f (a.py:1)`` → role, ranks and the rest."""
    found = _PARTS.match(text)
    return (found["role"], said.numbers(found["ranks"]), found["rest"]) if found else None


def before_frame(text: str) -> tuple[str, str] | None:
    """``PP0  isend (a.py:1)`` → label and the rest, if the rest is a frame."""
    found = _NAMED.match(text)
    return (found["label"].strip(), found["rest"]) if found else None


def ray_stack(text: str) -> str | None:
    """The line of ``ps`` in a head of ``ray stack``."""
    found = _RAY_STACK.match(text) if "Stack dump for" in text else None
    return found["rest"] if found else None


def _ranks(text: str) -> tuple[tuple[int, ...], str | None]:
    if _LOCAL.search(text):
        text = _LOCAL.sub("local", text)
    found = _RANK.search(_RANGE.sub(r"\1-\2", said.without_excepted(text)))
    if found is None:
        return (), None
    if found["part"]:
        return (), found["part"].strip(" _,/").replace(" ", "_").upper()
    return said.numbers(found["ranks"]), None


def _file_pid(name: str) -> int | None:
    found = re.search(r"(?:pid[_.=-]?|py-?spy[_.-]|stack_|dump_)(\d{2,9})(?!\d)", name)
    return int(found[1]) if found else None


def _node_alone(text: str, is_heading: bool) -> Head | None:
    if not is_heading or len(text) > 80:
        return None
    node = _NODE.search(text)
    if node is None:
        return None
    name = node["node"] or node["at"]
    return Head(level="label", node=f"node{name}" if name.isdecimal() else name)
