"""What a tool said of an example, and whether it is right. Pure: texts and values in, values out.

A tool answers with one JSON object on its standard output (what stands before the last line that opens an object is ignored)::

    {"state": "hang", "culprits": [{"pid": 4711, "label": "actor/3"}], "cause": "straggler", "certainty": "likely"}

``state``      hang, slow, healthy, finished or unknown
``culprits``   all that the tool accuses: ``pid`` of a process, or ``label`` for what is no living process (a placement group, a dead actor)
``cause``      one of the words in docs/causes.md; null or left out: the tool does not tell causes
``certainty``  proven, likely or possible; left out: likely. A *possible* answer accuses nobody in a run that does not hang.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from truth import Row

STATES = ("hang", "slow", "healthy", "finished", "unknown")
CERTAINTIES = ("proven", "likely", "possible")
MAX_CULPRITS = 10_000


class NoAnswerError(Exception):
    """The tool's output is no answer of the agreed form; the message says what is wrong with it."""


@dataclasses.dataclass(frozen=True)
class Accused:
    """One whom a tool accuses."""

    pid: int | None = None
    label: str = ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a tool said, in the contract's words."""

    state: str
    culprits: tuple[Accused, ...] = ()
    cause: str | None = None
    certainty: str = "likely"


@dataclasses.dataclass(frozen=True)
class Score:
    """One tool's answer to one example, judged."""

    example: str
    hangs: bool
    """Is the example a hang? The others only look like one."""
    who: str
    """``right``, ``wrong`` (somebody innocent was accused), or ``none`` (nobody was accused)."""
    state: bool
    cause: bool | None
    """None: the tool does not tell causes, or there is none to tell."""
    said: str
    """The answer in one line, or why there is none."""
    took_s: float = 0.0
    left_stopped: int = 0
    """Processes that the tool left stopped; they were let go on."""


def read_answer(text: str) -> Answer:
    """The answer in a tool's output. Raises NoAnswerError."""
    found = _last_object(text)
    state, certainty, cause = found.get("state"), found.get("certainty", "likely"), found.get("cause")
    if state not in STATES:
        raise NoAnswerError(f"state must be one of {', '.join(STATES)}, not {json.dumps(state)[:60]}")
    if certainty not in CERTAINTIES:
        raise NoAnswerError(f"certainty must be one of {', '.join(CERTAINTIES)}, not {json.dumps(certainty)[:60]}")
    if not (cause is None or isinstance(cause, str)):
        raise NoAnswerError("cause must be a text or null")
    culprits = found.get("culprits", [])
    if not isinstance(culprits, list) or len(culprits) > MAX_CULPRITS:
        raise NoAnswerError(f"culprits must be a list of at most {MAX_CULPRITS}")
    return Answer(state=state, culprits=tuple(_accused(c) for c in culprits), cause=cause, certainty=certainty)


def _last_object(text: str) -> dict[str, Any]:
    """The last JSON object that begins at the start of a line and reaches to the end of the text."""
    start = len(text)
    decoder = json.JSONDecoder()
    for _ in range(100):  # each failed try costs a pass over the rest
        start = text.rfind("{", 0, start)
        if start < 0:
            break
        if start and text[start - 1] != "\n":
            continue
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if not text[end:].strip():
            return dict(found)
    raise NoAnswerError("no JSON object at the end of the output" if text.strip() else "no output")


def _accused(one: Any) -> Accused:
    if not isinstance(one, dict):
        raise NoAnswerError('a culprit must be an object such as {"pid": 4711}')
    pid, label = one.get("pid"), one.get("label") or ""
    if isinstance(pid, bool) or not (pid is None or isinstance(pid, int)) or not isinstance(label, str):
        raise NoAnswerError("a culprit's pid must be a number or null, its label a text")
    if pid is None and not label:
        raise NoAnswerError("a culprit needs a pid or a label")
    return Accused(pid=pid, label=label)


def judge(row: Row, answer: Answer, pids: Mapping[str, int], victims: Sequence[str]) -> Score:
    """Is the answer right? `pids` are those of the example's seats, `victims` the seats that nobody may accuse."""
    names = {pid: name for name, pid in pids.items()}
    accused = [(names.get(a.pid, "") if a.pid is not None else "", a.label) for a in answer.culprits]
    innocent = any(name in victims for name, _ in accused)
    hangs = row.state.split("|")[0] == "hang"
    if row.who == "-":
        counted = bool(accused) and answer.certainty != "possible"
        who = "wrong" if innocent or (counted and not hangs) else "right" if not hangs or answer.state == "hang" else "none"
    elif innocent:
        who = "wrong"
    elif any(is_one_of(row.who, name, label) for name, label in accused):
        who = "right"
    else:
        who = "wrong" if accused else "none"
    cause = None if row.cause == "-" or answer.cause is None else answer.cause in row.cause.split("|")
    return Score(row.scenario, hangs, who, answer.state in row.state.split("|"), cause, _in_one_line(answer, accused))


def is_one_of(who: str, name: str, label: str) -> bool:
    """Is a process of this seat, or a thing of this label, among those that the table names?"""
    return any(wanted[6:] in label if wanted.startswith("label:") else wanted == name for wanted in who.split("|"))


def unanswered(row: Row, why: str) -> Score:
    """A tool that failed, took too long or answered in another form: as if it had accused nobody."""
    hangs = row.state.split("|")[0] == "hang"
    return Score(row.scenario, hangs, "none" if hangs else "right", False, None, f"no answer: {why}")


def _in_one_line(answer: Answer, accused: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(dict.fromkeys(name or label or "somebody else" for name, label in accused[:3])) + (" ..." if len(accused) > 3 else "")
    return ", ".join(part for part in (answer.state, answer.cause, f"by {shown}" if accused else "") if part)


@dataclasses.dataclass(frozen=True)
class Line:
    """One tool's row of the table."""

    tool: str
    hangs: int
    named: int
    wrong: int
    causes: int | None
    """None: it tells none."""
    quiet: int
    accused_in_quiet: int
    median_s: float
    left_stopped: int


def sum_up(tool: str, scores: Sequence[Score]) -> Line:
    """A tool's answers to all examples that it was asked about. Raises IndexError without any."""
    hangs, quiet = [s for s in scores if s.hangs], [s for s in scores if not s.hangs]
    causes = [s.cause for s in hangs if s.cause is not None]
    return Line(
        tool=tool,
        hangs=len(hangs),
        named=sum(s.who == "right" for s in hangs),
        wrong=sum(s.who == "wrong" for s in hangs),
        causes=sum(causes) if causes else None,
        quiet=len(quiet),
        accused_in_quiet=sum(s.who == "wrong" for s in quiet),
        median_s=sorted(s.took_s for s in scores)[len(scores) // 2],
        left_stopped=sum(s.left_stopped for s in scores),
    )


def table(lines: Sequence[Line]) -> str:
    """All tools as a Markdown table, those that name most first."""
    head = "| tool | culprit named | innocent accused | nobody named | cause told | accused without a hang | left stopped | median s |"
    rows = [
        f"| {x.tool} | {x.named} of {x.hangs} | {x.wrong} | {x.hangs - x.named - x.wrong} | {'-' if x.causes is None else x.causes}"
        f" | {x.accused_in_quiet} of {x.quiet} | {x.left_stopped} | {x.median_s:.1f} |"
        for x in sorted(lines, key=lambda x: (-x.named, x.wrong, x.tool))
    ]
    return "\n".join([head, "| --- " * 8 + "|", *rows])
