"""``py-spy dump`` as text, of all its versions: processes, Python's version, threads."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Head

_PROCESS = re.compile(r"^\W{0,20}(?P<before>.{0,60}?)\bProcess:? (?P<pid>\d{1,9})(?:: (?P<title>.{0,4000})|:|\W{0,4})$")
_TRANSLATED_PROCESS = re.compile(
    r"^\W{0,20}(?:进程|進程|プロセス|프로세스|Proceso|Processus|Prozess|Processo|Процесс) ?(?P<pid>\d{2,9})[:：] (?P<title>\S.{0,4000})$"
)
_TRANSLATED_THREAD = re.compile(
    r"^(?P<before>\W{0,20})(?:线程|線程|スレッド|스레드|Hilo|Subproceso|Fil|Поток) ?(?=(?:0x[0-9a-fA-F]{1,16}|\d{1,16}) ?[(（:：])"
)
"""A browser that translates a page also translates the words of a dump in it."""
_TRANSLATED_STATES = str.maketrans({"（": " (", "）": ")", "：": ":", "“": '"', "”": '"'})
_PARENT = re.compile(r"^\W{0,20}Parent Process:? (?P<pid>\d{1,9}):")
"""``--subprocesses`` writes it below the version."""
_PYTHON = re.compile(r"^\W{0,20}(?:.{0,40}? )?Python v(?P<version>\d{1,2}\.\d{1,3})")
_THREAD = re.compile(
    r"^(?P<before>.{0,120}?)(?:\b|(?<=[^\x00-\x7f]))Thread:? {1,3}(?:(?P<tid>0x[0-9a-fA-F]{1,16}|\d{1,16})(?P<cut>\.{2,3}|…)?|(?=\())"
    r"(?: {0,3}\((?P<state>[^()]{0,40})\))?"
    r"(?:[:,]? {0,3}[\"“'](?P<name>[^\"“”']{0,200})[\"”']?|:? {0,2}\(?(?P<plain>[A-Za-z][\w.-]{0,80})\)?)?:?"
    r"(?:\s{0,40}(?:$|[←<#/*=`~(\[—–-].{0,300}$))"
)
_NAMED = re.compile(
    r"^\W{0,12}[\"']?(?P<name>MainThread|[A-Z][\w-]{0,60}Thread(?:-\d{1,5})?|Thread-\d{1,6})[\"']?(?: thread)?(?P<tid> \d{1,9})?"
    r"(?: \((?P<state>[^()]{0,40})\))?(?: {1,4}(?:PAUSED|RUNNING|Paused|Running)(?: [Oo][Nn] \w{1,20})?)?\W{0,6}$"
)
"""A thread by its name alone; editors write behind it whether they stopped it."""
_NAMED_FRAME = re.compile(r"^\W{0,12}(?P<name>MainThread|Main thread|main thread|Thread-\d{1,6}(?: \([^()]{1,60}\))?):? {1,4}(?P<frame>\S.{0,4000})$")
_HEAD_FRAME = re.compile(
    r"^(?P<head>\W{0,12}Thread (?:0x[0-9a-fA-F]{1,16} |\d{1,9} )?\([^()]{1,60}\)(?:: {0,3}\"[^\"]{0,120}\"|:)?):?"
    r" {1,6}(?P<frame>[\w<].{0,4000})$"
)
_OWN_NAME = re.compile(r"(?=.*(?:\d|_|Thread))[A-Za-z][\w.-]{0,80}$")
_PID_BEFORE = re.compile(r"\bpid ?[=: ] ?(\d{1,9})", re.IGNORECASE)
_STATES = frozenset({"active", "idle", "active+gil", "idle+gil", "gil"})
_FAULTHANDLER = "most recent call"


def read(text: str) -> Head | None:
    """The head in this line, if it is one of py-spy's."""
    if (translated := _TRANSLATED_THREAD.match(text)) is not None:
        text = f"{translated['before']}Thread {text[translated.end() :].translate(_TRANSLATED_STATES)}"
    if "hread" in text:
        if _FAULTHANDLER in text or "(LWP" in text:
            return None
        return _thread(text)
    if "Parent Process" in text and (parent := _PARENT.match(text)):
        return Head(level="version", source="py-spy", ppid=int(parent["pid"]))
    if "Process" in text and (found := _PROCESS.match(text)):
        before = found["before"].strip(" |:[]#=*-")
        return Head(level="process", source="py-spy", pid=int(found["pid"]), title=found["title"], label=before or None, is_new=True)
    if named := _TRANSLATED_PROCESS.match(text):
        return Head(level="process", source="py-spy", pid=int(named["pid"]), title=named["title"], is_new=True)
    if "Python v" in text and (version := _PYTHON.match(text)):
        return Head(level="version", source="py-spy", python=version["version"])
    return None


def frame_behind_head(text: str) -> tuple[Head, str] | None:
    """The head of a thread and what follows it on the line: ``MainThread: f (a.py:1)``, ``Thread 7 (idle): f (a.py:1)``."""
    if "hread" not in text:
        return None
    if named := _NAMED_FRAME.match(text):
        name = "MainThread" if named["name"].lower().startswith("main") else named["name"]
        return Head(level="thread", source="py-spy", name=name), named["frame"]
    headed = _HEAD_FRAME.match(text)
    if headed is None:
        return None
    head = _thread(headed["head"])
    return (head, headed["frame"]) if head is not None else None


def _thread(text: str) -> Head | None:
    found = _THREAD.match(text)
    if found is None:
        named = _NAMED.match(text)
        if named is None:
            return None
        return _head(named["name"], named["tid"], named["state"], None)
    state, tid = found["state"], found["tid"]
    if tid is None and state not in _STATES:
        return None
    before = found["before"].strip(" |:[]#*-`>\"'")
    pid = _PID_BEFORE.search(before)
    label = (before[: pid.start()] if pid else before).strip(" (|:[]#*-`")
    if found["before"][-1:].isalnum():
        label = ""  # the end of a sentence in a language that puts no blank before the head
    # A word before "Thread" that is no label: "the Thread 5".
    if label.count(" ") > 3:
        return None
    # Programs that dump themselves write the name where py-spy writes the state.
    own = state if state not in _STATES and state and _OWN_NAME.match(state) else None
    if found["cut"]:
        tid = None  # several threads would have the same rest of a number
    return _head(found["name"] or found["plain"] or own, tid, state, label or None, int(pid[1]) if pid else None)


def _head(name: str | None, tid: str | None, state: str | None, label: str | None, pid: int | None = None) -> Head:
    known = state in _STATES if state else False
    number = tid.strip() if tid else None
    return Head(
        level="thread",
        source="py-spy",
        order="inner",
        pid=pid,
        # A hex or huge number is pthread's, not the kernel's.
        tid=int(number) if number and not number.startswith("0x") and len(number) < 9 else None,
        key=number,
        name=name,
        active=state.startswith("active") if known and state else None,
        owns_gil="gil" in state if known and state else None,
        label=label,
    )
