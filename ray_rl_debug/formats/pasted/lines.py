"""Lines of a pasted text without what others put around them: quotes, fences, colours, stamps and names of log collectors."""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.formats.pasted import mixed, prefixes, said, torn

MAX_CHARS = torn.MAX_CHARS
MAX_REWRITTEN = 200
_MAX_KEPT, _MOST_KEPT = 300, 8_192
"""Characters of a line that is remembered, and how many such lines are."""

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[ -/]?[@-~]|\x1b\][^\x07]{0,200}\x07|(?<!\w)\[(?:\d{1,2}|\d{1,3}(?:;\d{1,3}){1,4})m")
_BAR = re.compile(r"\d{1,3}%\|[^|]{0,400}\|[^\[\]]{0,60}\[[^\[\]]{0,200}\]\s?")
_DAY = r"[^\W\d_]{2,9}\.? [ \d]?\d"
"""Month and day of the system's log, in its language: ``Dec  9``, ``déc. 19``."""
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"

_QUOTE = re.compile(r" {0,3}> ?")
_RAY = re.compile(
    r"\s?\((?:(?:[A-Za-z_][\w.:-]{0,80} (?=[A-Za-z_][\w.]{0,80} pid=))?(?P<title>[A-Za-z_][\w.:<>/\[\]-]{0,100})"
    r"(?:\s|,\s?))?pid=(?P<pid>\d{1,9})(?:,\s?ip=(?P<node>[\w.:-]{1,60}))?[^()]{0,80}\)(?: |$)"
)
"""``(Actor pid=12, ip=10.0.0.2) ``; of a named actor ``(name Actor pid=12) ``; of a worker whose class is not loaded yet ``(pid=12) ``."""
_ELASTIC = re.compile(r"\s?\[(?P<rank_word>rank|default|Rank )(?P<rank>\d{1,6})\]:(?: |$)?")
_MPI = re.compile(r"\[\d{1,4},(?:mpirank:)?(?P<rank>\d{1,6})(?:,(?P<node>[\w.-]{1,60}))?\]<std(?:out|err)>:\s?")
_OMPI = re.compile(r"`?\[(?P<node>[A-Za-z][\w.-]{0,80}):(?P<pid>\d{1,9})\] (?=\[ {0,2}\d{1,3}\] )")
"""Open MPI before each line of its own backtrace."""
_JOURNAL = re.compile(r"(?:" + _DAY + r" \d\d:\d\d:\d\d|" + _STAMP + r") (?P<node>[\w.-]{1,80}) [\w./@-]{1,60}\[(?P<pid>\d{1,9})\]: ")
_KERNEL = re.compile(
    r"(?:(?:" + _DAY + r" \d\d:\d\d:\d\d|" + _STAMP + r") (?P<node>[\w.-]{1,80}) kernel: )?(?:<\d{1,3}>)?\[ {0,12}\+?\d{1,9}\.\d{6}\]"
    r"(?:\[ {0,8}[TC]\d{1,9}\])? ?"
    r"|(?:" + _DAY + r" \d\d:\d\d:\d\d|" + _STAMP + r") (?P<node2>[\w.-]{1,80}) kernel: ?"
    r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] ?"
    r"|\[ {0,8}\d{1,7}s\](?: |$)"
)
"""The kernel's log: ``dmesg``, ``dmesg -T``, ``dmesg -H`` (the time since the last line) and journald; and build services: ``[  192s] ``."""
_CONTAINER = re.compile(_STAMP + r" std(?:out|err) [FP] |\[pod/(?P<node>[\w.-]{1,120})(?:/[\w.-]{1,80})?\] ")
_COMPOSE = re.compile(r"(?P<node>[A-Za-z][\w.-]{0,60}[-_]\d{1,4}) {1,12}\| ?")
_PDSH = re.compile(
    r"(?P<node>[A-Za-z][\w.-]{0,60}\d[\w.-]{0,20}) ?(?:>> |: (?=(?: {2,4}File \"| {4}\S|Traceback|Thread |Current thread|Process \d"
    r"|\[rank\d)))"
)
"""``worker-0 >> ``, and pdsh's ``node12: `` before lines that are a stack's."""
_TIME = re.compile(r"(?:\[)?" + _STAMP + r"(?: (?P<part>(?:(?:DP|TP|PP|EP|CP)\d{1,4} ?){1,5}))?(?:\])?(?: - | |: |$)")
_LEVEL = re.compile(
    r"(?:\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?:?)(?: {1,9}| - )(?:\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? )?"
    r"(?:\[?[\w./-]{1,80}\.\w{1,4}:\d{1,6}\] ?)?(?:- )?"
)
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})? (?=\[(?:rank|default)\d{1,6}\]:|\([A-Za-z_][\w.:]{0,80} pid=)")
"""A time alone, as a terminal or ``ts`` writes it before what torch and Ray put before a line."""
_LOGGER = re.compile(r"[A-Za-z][\w.]{0,60} - (?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL) - (?=\[(?:rank|default)\d{1,6}\]:)")
"""A logger's name and level, before what torch puts before a line."""
_CHAT = re.compile(
    r"\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?\]? {1,2}(?:<[A-Za-z][\w.-]{0,30}>|@?(?![A-Za-z]{1,12}[-_ ]?\d)[A-Za-z][\w.-]{0,30}:) (?= {0,24}\S)"
)
"""``[10:41] ana: ``: who said it is no process."""
_GREP = re.compile(r"(?P<node>[\w./-]{1,120}\.(?:out|log|txt|err|dump|stack))(?:[:-]\d{1,7})?[:-](?=\s{1,24}\S|[A-Z#<])")
"""What grep writes before each line of several files, with a colon or, beside a match, a dash."""
_FIELDS = re.compile(
    r"\[(?=[^\[\]]{0,40}(?:rank|pid))(?:(?:pid[=: ]?(?P<pid>\d{1,9})|rank[=: ]?(?P<rank>\d{1,6})|(?:host|node)[=: ](?P<node>[\w.-]{1,60}))"
    r"[ ,;]{0,2}){1,3}\]:? "
    r"(?= {0,24}(?:[\w.<>]{1,80} \([^()\s]{1,300}:\d{1,7}\)$|File \"))"
)
"""``[pid=12 rank=3] f (a.py:1)``: a script's own, before each frame."""
_WIDE = str.maketrans({"（": " (", "）": ")", "：": ": ", "，": ", ", "；": "; ", "［": "[", "］": "]", "【": "[", "】": "]", "＝": "=", "＃": "#"})
_LINE_IN_CJK = re.compile(r"(?<=[\w.]) ?(?:的 ?)?第 ?(\d{1,7}) ?行")
"""``t.py 第9行``"""
_COMMENT = re.compile(r"#{1,2} (?:MAGIC )?(?=\s?(?:\[(?:rank|default)\d{1,6}\]:|\([A-Za-z_][\w.:]{0,80} pid=))")
"""Output of a program that a notebook's export, or somebody's script, keeps as comments."""
_PREFIXES = (
    _QUOTE, _COMMENT, _GREP, _FIELDS, _CHAT, _CLOCK, _LOGGER, _RAY, _ELASTIC, _MPI, _OMPI,
    _JOURNAL, _KERNEL, _CONTAINER, _COMPOSE, _PDSH, _TIME, _LEVEL,
)  # fmt: skip
_BROKEN = re.compile(r"File \"[^\"]{1,400}\", line \d{1,9},\s{0,8}$")
_BROKEN_OFF = re.compile(r"^\s{0,8}in [\w<>.]{1,200}\s{0,8}$")
_ARROW_FIRST = re.compile(r"[ >]{0,40}(?P<arrow>→|->|←|<-|/(?= [\w.<>]{1,80} \([^()\s]{1,200}:\d{1,7}\))) \S")
_MOST_PIECES = 4
"""Lines into which a terminal breaks one frame, or somebody a chain of them."""
_FENCE = re.compile(r"^\s{0,12}(?:[-*] )?(?:```|~~~(?![^\n]{1,200}~~~|~{0,400}\^))[`~]{0,10}(?P<rest>.*)$")
_GLUED = re.compile(r"^\s{0,12}```(?P<rest>(?:[A-Z$(\[]|#\d).{0,4000} .{0,4000})$")
"""A fence and the first line of what it holds, which somebody did not part."""
_LOGGED = ("log", "message", "msg", "MESSAGE", "textPayload", "line")
"""Under which name collectors of logs keep what a program wrote."""
_STACK_LIST = re.compile(r"\"(?:stack|frames|traceback|backtrace|stack_?trace)\": ?\[ ?[\"{]", re.IGNORECASE)
"""A list of frames in a record of somebody's own dump."""
_FIELDS_OF_FRAME = (("func", "function", "name", "method"), ("file", "filename", "path"), ("line", "lineno"))
_FRAME = re.compile(r"\.(?:py|pyx|cc|cpp|c|h|so)\b")
_REPEATED = re.compile(r" \[repeated \d{1,6}x across cluster\].{0,200}$")
_CSV_ROW = re.compile(r"^\"[^\"]{0,200}\",\".*\"$")
_CSV_CELL = re.compile(r"\"((?:[^\"]|\"\"){0,12000})\"(?:,|$)")
"""Of a log viewer's export: every cell in quotes, the message in the last one."""
_ROW_TAGS = (
    (re.compile(r"<tr(?: [^<>]{0,100})?>\s{0,20}<t[dh](?: [^<>]{0,100})?>", re.I), "| "),
    (re.compile(r"</t[dh]>\s{0,20}<t[dh](?: [^<>]{0,100})?>", re.I), " | "),
    (re.compile(r"</t[dh]>\s{0,20}</tr>", re.I), " |"),
)
"""Of a table in HTML whose row stands on one line: it is read as one of Markdown."""
_QUOTED_FRAMES = re.compile(r"` ?(?:→|⟶|⇒|←|->|=>|<-) ?`")
"""Frames in backticks of their own, joined by arrows."""
_BREAK_TAG = re.compile(r"<br ?/?>")
_TAG = re.compile(r"</?(?:details|summary|pre|code|p|b|strong|em|li|ul|ol|table|thead|tbody|tr|td|th)(?: [^<>]{0,100})?/?>", re.IGNORECASE)
_JOINED = re.compile(
    r"Thread (?:0x)?[0-9A-Fa-f]{1,16} \((?:active|idle)[^)]{0,8}\)"
    r"(?:: \"[^\"]{0,80}\")? {1,12}[\w.<>]{1,80} {1,60}\([^()\s]{1,200}:\d{1,6}\) {1,12}[\w.<>]{1,80} {1,60}\("
)
_BREAKS = re.compile(
    r"(?<=\)) {1,12}(?=[\w.<>]{1,80} {1,60}\([^()\s]{1,200}:\d{1,6}\))|(?<=\") {1,12}(?=[\w.<>]{1,80} {1,60}\()| {1,12}(?=(?:Process \d{1,9}: "
    r"|Python v\d|Thread (?:0x)?[0-9A-Fa-f]{1,16} \())"
)
_LABEL_OF_LINE = re.compile(r"^ {0,4}(?P<rank>\d{1,5}): ?(?=\S| {2})")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line as its program wrote it."""

    number: int
    """In the file, from 1."""
    text: str
    """Without prefixes; the indentation below them is kept."""
    owner: str = ""
    """Whose line a collector says this is; lines of different owners may be mixed."""
    pid: int | None = None
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    """Of all who wrote it, where equal lines were folded."""
    local_rank: int | None = None
    node: str | None = None
    title: str | None = None
    part: str | None = None
    """``DP0 TP1``, as SGLang stamps its lines. Only the first line of what it writes has it."""
    fence: bool = False
    """It opens or closes a block of code."""
    in_fence: bool = False
    stamped: bool = False


def read_lines(lines: Iterable[tuple[int, str]], learned: re.Pattern[str] | None = None) -> Iterator[Line]:
    """Each line, given with its number; one that a progress bar rewrote (carriage returns) is several with one number.

    Args:
        learned: Prefixes of the text's own.
    """
    in_fence = False
    for number, raw in _chained(_rejoined(lines)):
        for part in _parts(raw):
            line = read_line(part[:MAX_CHARS], number, in_fence, learned)
            yield line
            if line.fence:
                in_fence = not in_fence
                glued = _GLUED.match(line.text) if in_fence else None
                if glued is not None:
                    yield read_line(glued["rest"], number, in_fence)


def _rejoined(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, and in one line again what somebody's form broke before the name of a function: ``File "a.py", line 3,`` / `` in f``."""
    held: tuple[int, str] | None = None
    for number, raw in torn.rejoined(mixed.apart(lines)):
        if held is not None:
            if _BROKEN_OFF.match(raw):
                yield held[0], f"{held[1].rstrip()} {raw.strip()}"
                held = None
                continue
            yield held
            held = None
        if raw.rstrip().endswith(",") and 'File "' in raw and _BROKEN.search(raw[-400:]):
            held = (number, raw)
        else:
            yield number, raw
    if held is not None:
        yield held


def _chained(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, and a chain of calls in one line again that goes on in the next: ``f → g`` / ``  → h``."""
    held: tuple[int, str] | None = None
    pieces = 0
    for number, raw in lines:
        if held is not None:
            begins = _ARROW_FIRST.match(raw)
            if begins is not None and f" {begins['arrow']} " in held[1] and pieces < _MOST_PIECES and len(held[1]) < MAX_CHARS:
                held, pieces = (held[0], f"{held[1].rstrip()} {raw.strip(' >')}"), pieces + 1
                continue
            yield held
            held = None
        if ("→" in raw or "->" in raw or "←" in raw or "<-" in raw or ") / " in raw) and _ARROW_FIRST.match(raw) is None:
            held, pieces = (number, raw), 1
        else:
            yield number, raw
    if held is not None:
        yield held


def plain_lines(raw: str) -> list[str]:
    """The lines in one line of a file, without the prefixes that are known."""
    return [read_line(part[:MAX_CHARS]).text for part in _parts(raw)]


def _parts(raw: str) -> list[str]:
    """What a terminal would show as several lines, or what was several before somebody's form joined them."""
    if raw.startswith("{") and (told := _logged(raw)) is not None:
        return told
    if raw.startswith('"') and _CSV_ROW.match(stripped := raw.rstrip()[:MAX_CHARS]):
        *before, message = (c.replace('""', '"') for c in _CSV_CELL.findall(stripped))
        return [f"{' '.join(before)} {line}" for line in message.split("\n")]
    if "</t" in raw:
        for tags, sign in _ROW_TAGS:
            raw = tags.sub(sign, raw)
    parts = raw.split("\r") if "\r" in raw else [raw]
    if len(parts) > MAX_REWRITTEN:
        # A progress bar that rewrote its line for days; only what another program wrote into it can be a stack's.
        parts = [p for p in parts[:-1] if "Thread" in p or "File " in p or "Process" in p or ".py:" in p] + parts[-1:]
    if "<br" in raw and not raw.lstrip(" >").startswith("|"):
        parts = [line for part in parts for line in _BREAK_TAG.split(part)]
    if len(raw) > 100 and "Thread " in raw and _JOINED.search(raw[:MAX_CHARS]):
        return [line for part in parts for line in _BREAKS.sub("\n", part[:MAX_CHARS]).split("\n")]
    return parts


def _as_text(value: object) -> object:
    """A frame that is an object of its own as one text: ``{"func": "f", "file": "a.py", "line": 3}``."""
    if not isinstance(value, dict):
        return value
    told = [next((value[key] for key in keys if key in value), None) for keys in _FIELDS_OF_FRAME]
    return f"{told[0]} ({told[1]}:{told[2]})" if None not in told else value


def _is_stack(value: object) -> bool:
    """Is it a list of frames, one text each?"""
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) and _FRAME.search(v) for v in value)


def _logged(raw: str) -> list[str] | None:
    """The lines that a program wrote, where a collector keeps each in a JSON object (Docker, Kubernetes, Fluent Bit); None for other lines."""
    has_stack = 'File \\"' in raw
    may_tell = has_stack or _STACK_LIST.search(raw[:MAX_CHARS]) is not None or any(f'"{key}"' in raw for key in _LOGGED)
    if len(raw) > MAX_CHARS or not raw.rstrip().endswith("}") or not may_tell:
        return None
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if has_stack and (stack := next((v for v in found.values() if isinstance(v, str) and "\n" in v and 'File "' in v), None)) is not None:
        # A logger with fields keeps the stack in one of its own; others say who wrote it.
        rank = found.get("rank")
        return [f"[rank{rank}]: {line}" if isinstance(rank, int) else line for line in stack.removesuffix("\n").split("\n")]
    lists = ([_as_text(one) for one in v] for v in found.values() if isinstance(v, list))
    if (frames := next((v for v in lists if _is_stack(v)), None)) is not None:
        rank, pid = (found.get(key) if isinstance(found.get(key), int) else None for key in ("rank", "pid"))
        names = [f"Process {pid}"] if pid is not None else []
        names += [f"(rank {rank})" if names else f"Rank {rank}"] if rank is not None else []
        return [*([f"{' '.join(names)}:"] if names else []), *(f"    {frame}" for frame in frames)]
    told = next((found[key] for key in _LOGGED if isinstance(found.get(key), str)), None)
    return told.removesuffix("\n").split("\n") if told is not None else None


def read_line(raw: str, number: int = 1, in_fence: bool = False, learned: re.Pattern[str] | None = None) -> Line:
    """One line without its prefixes."""
    # A dump of many ranks, or a log, has the same lines again and again.
    line = stripped(raw, learned) if len(raw) <= _MAX_KEPT else stripped.__wrapped__(raw, learned)
    return msgspec.structs.replace(line, number=number, in_fence=in_fence)


@functools.lru_cache(maxsize=_MOST_KEPT)
def stripped(raw: str, learned: re.Pattern[str] | None) -> Line:
    """The same wherever the line stands, remembered."""
    text = raw
    if "\x1b" in text or "[" in text:
        text = _COLOURS.sub("", text)
    text = text.expandtabs(8).rstrip()
    if "%|" in text:
        text = _without_bar(text)
    if text.endswith("]") and "[repeated " in text:
        text = _REPEATED.sub("", text)
    if "` " in text and _QUOTED_FRAMES.search(text):
        text = text.replace("`", "")
    if "&" in text and ";" in text:
        text = html.unescape(text)
    if not text.isascii():
        text = _LINE_IN_CJK.sub(r":\1", text.translate(_WIDE)).rstrip()
    if "<" in text:
        text = _TAG.sub("", text).rstrip()
    found: dict[str, str] = {}
    stamped = False
    for _ in range(6):
        taken = next((m for p in _PREFIXES if (m := p.match(text)) is not None and m.end()), None)
        if taken is None:
            own = learned.match(text) if learned is not None else None
            if own is None or not own.end():
                break
            text = text[own.end() :]
            found = {**prefixes.writer(own[0]), **found}
            continue
        stamped = stamped or taken.re in (_TIME, _LEVEL, _KERNEL)
        text = text[taken.end() :]
        for name, value in taken.groupdict().items():
            key = name.removesuffix("2")
            if value is not None and (taken.re is _RAY or key not in found):
                # Of two prefixes of processes the inner one wrote the line.
                found[key] = value
    fence = _FENCE.match(text)
    owner = ":".join(found.get(k, "") for k in ("node", "title", "pid", "rank", "ranks")) + found.get("title_of_lines", "")
    return Line(
        number=1,
        text=text,
        owner=owner if owner.strip(":") else "",
        pid=int(found["pid"]) if "pid" in found else None,
        rank=int(found["rank"]) if "rank" in found and found.get("rank_word") != "default" else None,
        ranks=said.numbers(found["ranks"]) if "ranks" in found else (),
        node=found.get("node"),
        title=found.get("title"),
        local_rank=int(found["rank"]) if found.get("rank_word") == "default" else None,
        part=found["part"].strip() if "part" in found else None,
        fence=fence is not None,
        stamped=stamped,
    )


def indent_of(text: str) -> int:
    """How many blanks stand before the text."""
    return len(text) - len(text.lstrip())


def relabelled(line: Line) -> tuple[str, int] | None:
    """The line without the number of a task (``srun --label``), and that number; None when there is none."""
    found = _LABEL_OF_LINE.match(line.text)
    return (line.text[found.end() :], int(found["rank"])) if found else None


def _without_bar(text: str) -> str:
    """What stands behind a progress bar that was not ended with a new line."""
    end = 0
    for found in _BAR.finditer(text):
        end = found.end()
    return text[end:] if end else text
