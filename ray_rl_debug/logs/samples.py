"""What a model was asked and what it said, printed into a log over several lines: whatever it tells of errors, none is of the program."""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.logs import turns
from ray_rl_debug.logs.named import is_one_process
from ray_rl_debug.logs.window import Window
from ray_rl_debug.model.snapshot.log_book import LogWriter

MAX_LINES = 60
"""Of a sample, before and behind a line in it."""
MAX_BYTES = 8 << 10
MAX_END_BYTES = 60
"""Of the end of a line, where a turn may end, too."""
_TEXTS = (
    b"prompt]", b"response]", b"question]", b"answer]", b"completion]", b"rompt:", b"uestion:", b"esponse:", b"ser:", b"ssistant:",
    b"answer:", b"nswers:", b"output:",
    b"PROMPT:", b"QUESTION:", b"USER:", b"ASSISTANT:", b"RESPONSE:", b"COMPLETION:",
    b"[tool] ", b"bservation", b"ool output", b"ool result", b"ool response",
    *turns.IN_BYTES, b"<think>", b"<answer>", b"```", b"<output>", b"<result>", b"<tool_", b"<execution_", b"<interpreter>", b"<information>",
    b"Ran ", b": test", b") ... ", b" root@", b" user@", b" agent@", b" ubuntu@",
)  # fmt: skip
"""One of them stands in each line that opens a sample: reading lines takes long, and most logs hold no samples."""
_NUMBERED = r"(?:\[(?:[A-Za-z_]{2,20}[ #=:]?)?\d{1,9}\] ?)?"
"""``[sample 17] user:``"""
_OF_ONE = r"(?:[Ss]ample|[Pp]rompt|[Rr]ollout|[Ee]xample|[Tt]rajectory)[ #=:]{1,2}\d{1,9}:? "
"""``sample 17 answer:``"""
_OF_TOOL = r"\[(?:tool|observation)\] |(?:[Oo]bservation|[Tt]ool (?:output|result|response))(?: \d+)?: ?"
"""What a tool gave back to an agent, whose next words end it."""
_ANSWER = r"\[(?:response|answer|completion)\]|(?:[Rr]esponse|[Mm]odel answer|[Aa]ssistant|ASSISTANT|RESPONSE|COMPLETION): ?"
_TAG = r"(?:observation|tool_(?:response|result|output)|output|result|execution_(?:result|output)|interpreter|information)>"
"""Around what a tool gave, as agents write it."""
_AT_PROMPT = r"\[[A-Za-z][\w-]{0,30}[ :#-]\d{1,9}\] (?:\([\w.-]{1,40}\) )?[\w.-]{1,40}@[\w.-]{1,60}:\S{1,80}[$#]"
"""``[env 3] root@box:/app# ls``: the shell of an agent, one of several; who works at a terminal has no number in front of its prompt."""
_OPENS = re.compile(
    rf"{_NUMBERED}(?:{_ANSWER}|\[(?:prompt|question)\]|{_OF_TOOL}"
    rf"|{_OF_ONE}(?:[Aa]nswer|[Rr]esponse|[Oo]utput|[Cc]ompletion|[Tt]ext)s?:"
    rf"|(?:[Pp]rompt|[Qq]uestion|[Uu]ser|PROMPT|QUESTION|USER): ?|<think>|<answer>|{turns.BEGINS}|{_AT_PROMPT}"
    rf"|<{_TAG}|test\w* \([\w.]+\)(?:$| \.\.\. (?!\w+$)))"
)
_CLOSES = re.compile(
    rf"{_NUMBERED}(?:{_ANSWER}|\[(?:score|reward|ground_truth|gold|extracted)\]|(?:[Jj]udge|[Ss]core|[Rr]eward|[Gg]round truth|SCORE|REWARD)\b ?[:=]"
    r"|(?:[Ee]xtracted|[Pp]arsed|[Gg]old|[Ee]xpected|[Cc]orrect)(?: answer| solution)? ?:"
    rf"|{_OF_ONE}(?:[Ss]core|[Rr]eward|[Vv]erdict|[Gg]rade)\b"
    rf"|.*</{_TAG}|Ran \d+ tests? in |(?:ok|FAIL|ERROR)$"
    rf"|\[agent\] |(?:Thought|Action)(?: \d+)?: |</think>|</answer>|.*{turns.ENDS}|{_AT_PROMPT}|={{3,}}.*\b(?:score|reward|sample)\b)"
)
_TURN_ENDS = re.compile(turns.ENDS)
_FENCE_OPENS = re.compile(r"```(?:output|result|execution|observation)$")
"""In front of what the code printed that a model wrote between fences of its own."""
_OF_TOOL_ALONE = re.compile(rf"{_NUMBERED}(?:{_OF_TOOL})$")
_FENCE_CLOSES = re.compile(r"```$")
_FENCE = re.compile(r"```")


def is_in_sample(window: Window, writer: LogWriter, start: int, end: int) -> bool:
    """Does a line open a sample, or stand between the mark that opens one and the one that closes it, with no record of the program in between?

    Only both make it one: an error right behind a printed sample is the program's own.
    """
    begin = max(0, start - MAX_BYTES)
    if not any(window.text.find(text, begin, min(end, start + 400)) != -1 for text in _TEXTS):
        return False
    before = window.text[begin:start].split(b"\n")[-1 - MAX_LINES : -1]
    after = window.text[end + 1 : end + 1 + MAX_BYTES].split(b"\n")[:MAX_LINES]
    own = window.head(window.text[start : min(end, start + 400)].decode("utf-8", "replace"))
    if writer.rank is not None and (writer.pid, writer.program, writer.node) == (None, None, None):
        # A log that a person pasted into a prompt has marks of its own.
        writer = msgspec.structs.replace(writer, rank=None) if not _has_rank(window, before, after) else writer
    opens = _OPENS.match(own.text) is not None
    each = own.is_stamped and own.level is None
    closes = _TURN_ENDS.search(window.text[max(start, end - MAX_END_BYTES) : end].decode("utf-8", "replace")) is not None
    opened = opens or _meets(window, writer, before[::-1], _OPENS, _CLOSES, each)
    if opened and (closes or _meets(window, writer, after, _CLOSES, _OPENS, each)):
        return True
    if _is_fenced(window, writer, before[::-1]) and _meets(window, writer, after, _FENCE_CLOSES, _FENCE, each):
        return True
    return _meets(window, writer, before[::-1], _FENCE_OPENS, _FENCE, each) and _meets(window, writer, after, _FENCE_CLOSES, _FENCE, each)


def _has_rank(window: Window, before: list[bytes], after: list[bytes]) -> bool:
    """Does any other line near have the mark of a rank in front of its turn? Then the mark is the program's."""
    return any(
        _OPENS.match((head := window.head(raw[:400].decode("utf-8", "replace"))).text) and head.writer != LogWriter() for raw in (*before, *after)
    )


def _is_fenced(window: Window, writer: LogWriter, back: list[bytes]) -> bool:
    """Is the nearest fence above right below words that say that a tool's output comes?"""
    heads = (window.head(raw[:400].decode("utf-8", "replace")) for raw in back)
    own = [h for h in heads if is_one_process(h.writer, writer)]
    at = next((i for i, head in enumerate(own) if _FENCE.match(head.text)), None)
    return at is not None and at + 1 < len(own) and _OF_TOOL_ALONE.match(own[at + 1].text) is not None


def _meets(window: Window, writer: LogWriter, rows: list[bytes], wanted: re.Pattern[str], other: re.Pattern[str], each: bool) -> bool:
    """Is the first mark among these lines of the writer the wanted one? A stamp begins a record, unless `each` line has one.

    So does a level, but *error* alone: such words are what people ask about, and who ends by an error prints no closing mark behind it.
    """
    for raw in rows:
        head = window.head(raw[:400].decode("utf-8", "replace"))
        if not is_one_process(head.writer, writer):
            continue
        # An answer opens, and ends the question in front of it: what is wanted goes first.
        if wanted.match(head.text):
            return True
        is_record = head.level is not None and (head.is_stamped or head.level in ("D", "I", "W"))
        if is_record or (head.is_stamped and not each) or other.match(head.text):
            return False
    return False
