"""Listings of ``ps`` and ``top``: the heading says what the columns are, whichever were asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.formats.pasted.events import Row

_PID = frozenset({"PID", "LWP", "TID", "SPID", "PPID", "PGID", "PGRP", "SID"})
_OTHERS = frozenset(
    "USER UID %CPU %MEM VSZ RSS TTY TT STAT S START STIME STARTED TIME TIME+ COMMAND CMD ARGS WCHAN NLWP THCNT PR NI PRI VIRT RES SHR C F ELAPSED"
    " ADDR SZ CPU PSR COMM EXE UCMD".split()
)
_TITLES = frozenset({"COMMAND", "CMD", "ARGS", "COMM", "UCMD", "EXE"})
_AUX = re.compile(
    r"^(?:\S{1,200} )?[\w.+$@-]{1,40}\s{1,20}(?P<pid>\d{1,9})\s{1,12}\d{1,5}(?:\.\d)?\s{1,12}\d{1,3}"
    r"(?:\.\d)\s{1,12}\d{1,18}\s{1,12}\d{1,18}\s{1,12}\S{1,12}\s{1,12}"
    r"(?P<state>[RSDTtZXIW])[<NLsl+]{0,5}\s{1,12}\S{1,12}\s{1,12}[\d:-]{1,12}\s{1,4}(?P<title>\S.{0,4000})$"
)
_TREE = re.compile(r"^\s{0,20}(?P<pid>\d{1,9})\s{1,40}(?:(?:\||`)\s{0,8}){0,40}\\_ (?P<title>\S.{0,400}?)(?P<dead> <defunct>)?\s*$")
_SHORT = re.compile(
    r"^\s{0,20}(?P<pid>\d{1,9})\s{1,12}(?:pts/\d{1,5}|tty\w{1,8}|\?)\s{1,12}(?P<state>[RSDTtZXIW])[<NLsl+]{0,5}"
    r"\s{1,12}(?:(?:\d{1,4}-)?\d{1,6}:\d\d(?::\d\d)? {1,4})?(?:(?:\||`)\s{0,8}){0,40}(?:\\_ )?(?P<title>\S.{0,4000})$"
)
"""``ps x``: the terminal, the state and the time, which somebody may have left out, and no user."""
_FULL = re.compile(
    r"^\s{0,8}[\w.+$@-]{1,40}\s{1,12}(?P<pid>\d{1,9})\s{1,12}(?P<ppid>\d{1,9})\s{1,8}\d{1,3}\s{1,8}(?:\d\d:\d\d|[A-Z][a-z]{2}\d{2})\s{1,8}"
    r"(?:pts/\d{1,5}|tty\w{1,8}|\?)\s{1,12}(?:\d{1,4}-)?\d\d:\d\d:\d\d (?P<title>\S.{0,4000})$"
)
"""``ps -ef``"""
_ASKED = re.compile(
    r"\bps (?:[-\w]{1,12} ){0,4}-?[A-Za-z]{0,6}o ?(?P<columns>[a-z%_]{1,12}(?:[:=]\w{0,20})?(?:,[a-z%_]{1,12}(?:[:=]\w{0,20})?){1,20}) ?[^|]{0,80}\|"
)
_ALIASES = {"STATE": "STAT", "COMMAND": "ARGS", "UNAME": "USER", "ETIME": "ELAPSED", "PCPU": "%CPU", "PMEM": "%MEM", "LSTART": "STARTED"}
_BRANCH = re.compile(r"^(?:[|`]\s{0,8}){0,40}\\_ ")
"""What ``ps f`` draws before the command of a child."""
_OF_KERNEL = re.compile(r"^\[(?![Pp]ython|ray\b|VLLM|sglang)[\w/:.@>+#-]{1,60}\]$")
"""``[nfsd]``: a command in brackets; one that ended stands there with ``<defunct>``."""
_STATE = re.compile(r"^[RSDTtZXIW][<NLsl+]{0,5}$")


def heading(text: str) -> tuple[str, ...] | None:
    """The columns, if this line is a heading: it has PID or the like and nothing but names of columns."""
    if "PID" not in text and "LWP" not in text and "TID" not in text:
        return None
    words = text.strip("`|# ").split()
    if len(words) < 2 or not _PID & set(words) or not all(w in _PID or w in _OTHERS for w in words):
        return None
    return tuple(words)


def asked_columns(text: str) -> tuple[str, ...] | None:
    """The columns that a command asks for, ``ps -eo pid,stat,args | grep train``: its heading is not there then."""
    found = _ASKED.search(text) if "ps " in text and "|" in text else None
    if found is None:
        return None
    names = tuple(c.split(":")[0].split("=")[0].upper() for c in found["columns"].split(","))
    columns = tuple(_ALIASES.get(name, name) for name in names)
    return columns if "PID" in columns and all(c in _PID or c in _OTHERS for c in columns) else None


def row(text: str, columns: Sequence[str]) -> Row | None:
    """One line below a heading; None ends the listing."""
    words = text.strip("`|").split(None, len(columns) - 1)
    if len(words) < len(columns) - 1:
        return None
    held = dict(zip(columns, words, strict=False))
    pid, tid = _number(held.get("PID")), _number(held.get("LWP") or held.get("TID") or held.get("SPID"))
    if pid is None:
        pid, tid = tid, None
    if pid is None:
        return None
    state = held.get("STAT") or held.get("S") or ""
    if state and not _STATE.match(state):
        return None
    wchan = held.get("WCHAN")
    return Row(
        pid=pid,
        ppid=_number(held.get("PPID")),
        tid=tid,
        state=state[:1] or None,
        wchan=wchan if wchan not in (None, "-", "0", "?") else None,
        title=next((_BRANCH.sub("", held[c]) for c in columns if c in _TITLES and c in held), None),
    )


def is_of_kernel(row: Row) -> bool:
    """Is it a thread of the kernel, and no process of a job?"""
    return row.title is not None and row.state != "Z" and _OF_KERNEL.match(row.title) is not None


def aux(text: str) -> Row | None:
    """One line of ``ps aux`` whose heading was cut off (``| grep python``), also behind words; one of a tree of processes."""
    if (short := _SHORT.match(text)) is not None:
        return Row(pid=int(short["pid"]), state=short["state"], title=short["title"])
    if (full := _FULL.match(text)) is not None:
        return Row(pid=int(full["pid"]), ppid=int(full["ppid"]), title=full["title"])
    if "\\_ " in text and (tree := _TREE.match(text)):
        return Row(pid=int(tree["pid"]), title=tree["title"], state="Z" if tree["dead"] else None)
    found = _AUX.match(text)
    if found is None:
        return None
    return Row(pid=int(found["pid"]), state=found["state"], title=found["title"])


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None
