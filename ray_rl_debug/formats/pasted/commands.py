"""Commands with which people call a tool, and what a line of them tells: the process, a pause before, a loop, a comment behind."""

from __future__ import annotations

import re

_TOOL_ALONE = re.compile(
    r"^\W{0,8}(?:(?:and|also|the|with|via|using|from|in|same|process|output|of|stack|trace|native|by|for) ){0,6}[`*]{0,3}"
    r"(?:gdb|lldb|pstack|gstack|native|c\+\+|bt|backtrace|c(?:\+\+)? stack|native (?:stack|frames|trace))[`*]{0,3}"
    r"(?: (?:output|stack|trace|backtrace|says|shows|gives|dump|frames)){0,3}\W{0,6}$",
    re.IGNORECASE,
)
_TOOL = re.compile(r"py-?spy (?:dump|record)\b|pystack remote\b|\bgdb\b|\bstrace\b|\b(?:pstack|gstack|eu-stack)\b|\basyncio (?:ps|pstree)\b")
_ARGUMENTS = re.compile(r"[^|;&$#]{0,200}")
_OF_PID = re.compile(r"(?:^|\s)(?:-p|-?-pid)[ =]?(?P<pid>\d{1,9})\b")
_OF_ITSELF = re.compile(r"(?<![\w./(-])(?<!-\w )(?<!-\w=)(?P<pid>\d{1,9})\b(?![\w.]*[./-]\w| ?(?:s|sec\w*|min\w*|ms|h|hours?|times?)\b)")
"""A number alone. One behind an option is the option's (``record -d 60``)."""
_OF_THREADS = re.compile(r"\b(?:apply|[Tt]hreads?|t a)(?:[ ,]{1,2}\d{1,6}\b){1,60}")
"""gdb's own numbers: ``thread apply 4 9 bt``."""
_OF_ANOTHER = re.compile(r"\b(?:ranks?|nodes?|hosts?|gpus?|workers?|replicas?|stages?|steps?|[TDPE]P|threads?|engines?)[ #:=_-]{0,2}$", re.IGNORECASE)
"""Words of which the number behind them is no process id: *py-spy dump on the stuck rank 1*."""
_LONG_OPTION = re.compile(r"--[\w-]{2,30}[ =]$")
_COMMENT = re.compile(r"\s#{1,3} (?P<comment>\S.{0,300})$")
_SHORT = 3
"""Words of a comment that only names."""
_SLEEP = re.compile(r"\bsleep (?P<seconds>\d{1,5})(?P<unit>[smh]?) ?(?:;|&&|$)")
_LOOP = re.compile(r"\bfor \w{1,20} in (?P<pids>\d{2,9}(?: \d{2,9}){1,200}) ?; ?do\b.{0,200}(?:py-?spy|pystack|gdb)")


def is_tool(text: str) -> bool:
    """A heading that names a tool and nobody: ``and with gdb:``. What it shows is of the process above."""
    return len(text) < 80 and _TOOL_ALONE.match(text) is not None


def loop_of(text: str) -> tuple[int, ...]:
    """``for p in 4008 4009; do py-spy dump --pid $p; done`` → the process ids."""
    found = _LOOP.search(text) if "for " in text and len(text) <= 4_000 else None
    return tuple(int(pid) for pid in found["pids"].split()) if found else ()


def comment_of(text: str) -> str | None:
    """What is written behind a command that dumps a process: ``py-spy dump --pid 12  # rank 3 looks the same``. It speaks of the stack to come."""
    found = _COMMENT.search(text) if "#" in text else None
    return found["comment"] if found is not None and pid_of(text[: found.start()]) is not None else None


def short_comment(text: str) -> str:
    """What stands behind a command and only names the process: ``py-spy dump --pid 12  # rank 3`` → ``rank 3``; empty where it says more."""
    found = _COMMENT.search(text) if "#" in text else None
    return found["comment"] if found is not None and len(found["comment"].split()) <= _SHORT else ""


def pause_s(text: str) -> float | None:
    """How long a line of the shell waits before it calls a tool: ``sleep 300; py-spy dump --pid 12``."""
    found = _SLEEP.search(text) if "sleep " in text else None
    if found is None or pid_of(text if " do " in text else text[found.end() :]) is None:
        return None
    return float(found["seconds"]) * {"m": 60.0, "h": 3600.0}.get(found["unit"], 1.0)


def pid_of(text: str) -> int | None:
    """The process for which a line calls a tool."""
    for tool in _TOOL.finditer(text):
        arguments = _ARGUMENTS.match(text, tool.end())
        told = arguments[0] if arguments else ""
        if named := _OF_PID.search(told):
            return int(named["pid"])
        told = _OF_THREADS.sub("", told)
        before = ((told[: n.start()], n) for n in _OF_ITSELF.finditer(told))
        alone = next((n for text_before, n in before if not (_LONG_OPTION.search(text_before) or _OF_ANOTHER.search(text_before))), None)
        if alone is not None:
            return int(alone["pid"])
    return None


_SIGNALS = re.compile(rb"\bkill -(?:s )?(?:SIG)?(?:ABRT|6|QUIT|3)\b|\bI (?:have )?sen[dt] [^.\n]{0,30}\bSIG(?:ABRT|QUIT)\b")


def sends_signal(text: bytes) -> bool:
    """Does somebody tell that he ended a program by a signal to see its stacks? Then it stood there, and did not end by itself."""
    return _SIGNALS.search(text) is not None
