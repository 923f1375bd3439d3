"""Which reader knows a line."""

from __future__ import annotations

import functools
import itertools
import re

from ray_rl_debug.formats.dump import Said
from ray_rl_debug.formats.pasted import (
    apple,
    call_trace,
    chains,
    core_dumps,
    faulthandler,
    gdb,
    ipython,
    joined,
    kernel,
    labels,
    led,
    markdown_rows,
    own_heads,
    perf,
    ps,
    pyspy,
    pyspy_top,
    pystack,
    said,
    symbols,
    tracebacks,
)
from ray_rl_debug.formats.pasted.events import Event, Frames, Gone, Head
from ray_rl_debug.formats.pasted.frames import read_frame
from ray_rl_debug.formats.pasted.places import is_native

_GONE = re.compile(
    r"^[\W_]{0,8}(?:\.{2,}|…|⋮|(?:\[|\()?(?:snip|cut|truncated|omitted|elided|(?:\d{1,6} )?(?:more )?(?:frames?|lines?|threads?)"
    r"(?: \w{1,12}){0,3})(?:\]|\))?)[\W_]{0,8}$",
    re.IGNORECASE,
)
_WRAPPED = re.compile(
    r"^ {2,8}(?:(?:\(\) )?from (?:/|\.)\S{1,400}|at [\w./+-]{1,400}\.\w{1,4}:\d{1,9}|[A-Za-z_]\w{0,60}=\S.{0,2000}\)"
    r"(?: (?:from|at) \S{1,400})?)$"
)
"""gdb breaks a long line before the library or the file, or between two arguments."""
_SHOWN = re.compile(r"^-{1,12}> ?(?:\d{1,7}(?: |$)|$)")
"""The line of source in which a frame is, as IPython shows it."""
_NAMED_FIRST = re.compile(
    r"^\W{0,6}(?:(?:global |on )?"
    r"(?:ranks?|procs?|processes|r(?=\d)|pid|workers?|nodes?|hosts?|gpus?|cuda|cards?|stages?|actors?|TP|DP|PP|EP|CP|卡|进程)"
    r"[ _#=:-]{0,2}[\[{(]?\d|\d{1,8} \((?:global )?rank|\d{1,5} ?号)",
    re.IGNORECASE,
)
"""A line that begins with somebody's name: its frames come behind it."""
_SYMBOL = re.compile(r"^ {2,24}[A-Za-z_][\w.:~]{2,120}(?:@@?[\w.]{1,20})?$")
_TEMPLATE = re.compile(r"^ {2,24}[A-Za-z_][\w:~]{2,120}<[^\n]{20,12000}$")
"""A name of C++ so long that somebody's form broke it; its library stands in the next line."""
_EMPTY = re.compile(r"^ {2,24}(?P<name><module>|[A-Za-z_][\w.]{0,120}) \(\)$")
"""A frame whose file somebody took out."""
_CUT = re.compile(r"^ {2,24}(?P<name>[A-Za-z_][\w.:~]{1,120}) \((?P<file>[\w./+-]{2,300})?$")
"""The last line of what somebody copied may end in the middle of a frame."""
_TOP = re.compile(
    r"^\W{0,8}(?:top|innermost|current|last|inner|topmost)[ -](?:frames?|stack|of stack|location|position)\W{0,4}[:=] {0,4}(?P<rest>\S.{0,4000})$",
    re.IGNORECASE,
)
"""``top frame: `recv (a.py:5)` from `get (b.py:7)` ``: of whom a line above says."""
_TALLIED = re.compile(r"^\s{0,12}(?P<count>\d{1,6})(?: ?[x×])? {1,40}(?P<rest>\S.{0,8000})$")
"""A number before a whole stack is how often it was met (``sort | uniq -c``)."""
_PID_FIRST = re.compile(r"^(?P<pid>\d{3,8}) {3,12}(?P<rest>[A-Za-z_<]\S{0,200} \([^()\s]{1,300}:\d{1,7}\))\s{0,8}$")
"""``echo -n "$p "`` before the one line that somebody kept of ``py-spy dump --pid $p``: py-spy indents it. A count stands behind blanks."""
_SAME_CELLS = frozenset({"same", "ditto", "same as above", "as above", "identical", "同上", "\u3003", "\u2033", '"', "''"})
_STATE_WORDS = re.compile(r"(?:active|idle)(?:\+gil)?|running|sleeping|\d{1,3} ?%(?: CPU)?", re.IGNORECASE)
_LEAST_CODE = 2
"""Names in a cell without files that no word of a sentence looks like."""
_COLLECTS = "Garbage-collecting"
"""``py-bt`` says so in the place of a frame."""
_MARK = re.compile(r"^\s{0,12}(?:[-*•+] |#{1,6} |\d{1,2}[.)] |# )")
_MAX_KEPT, _MOST_KEPT = 300, 8_192
"""Characters of a line whose events are kept, and how many such lines: all ranks of a job show the same frames."""
_MAY_TELL = re.compile(
    r"hread|Process|File |\.(?:py|so|cc?|cpp|S|rs)\b|#\d|0x|ecent call|/proc/|\[<|\(T\)|[Ff]atal|Timeout|Stack (?:dump|of )|<(?:string|module|frozen)"
)


def may_tell(text: str) -> bool:
    """Can a line that a log collector stamped be one of a stack's? Asked first, because logs are long."""
    return _MAY_TELL.search(text) is not None


def classify(text: str) -> tuple[Event, ...]:
    """The events of one line, without looking at others; empty for a line that no reader of stacks knows."""
    return classified(text) if len(text) <= _MAX_KEPT else classified.__wrapped__(text)


@functools.lru_cache(maxsize=_MOST_KEPT)
def classified(text: str) -> tuple[Event, ...]:
    """The same, remembered."""
    if text.lstrip().startswith("| "):
        of_table = _table_row(text)
        if of_table or text.rstrip().endswith(" |"):
            return of_table
    if (numbered := _PID_FIRST.match(text)) is not None and (of_pid := read_frame(numbered["rest"])) is not None:
        return Head(level="label", pid=int(numbered["pid"]), is_new=True), _whole(of_pid)
    if listed := led.behind(text):
        return listed
    if _NAMED_FIRST.match(text) and (named := led.clauses(text) or led.read(text)):
        return named
    found = _plain(text)
    if found or len(text) > 2_000:
        return found
    mark = _MARK.match(text)
    if mark and mark.end() < len(text):
        found = _plain(" " * mark.end() + text[mark.end() :])
        if found:
            return found
    return _labelled(text)


def _plain(text: str) -> tuple[Event, ...]:
    head = (
        pystack.read(text)
        or faulthandler.read(text)
        or tracebacks.read(text)
        or core_dumps.read(text)
        or gdb.read(text)
        or kernel.read(text)
        or perf.read(text)
        or call_trace.read(text)
        or symbols.read(text)
        or apple.read(text)
    )
    if head is not None:
        beside = tracebacks.told_beside(text) if isinstance(head, Head) and head.level == "thread" and head.key is None else None
        owner = labels.read(f"{beside}:") if beside is not None else None
        return (owner, head) if owner is not None and (owner.ranks or owner.pid is not None) else (head,)
    if (of_top := pyspy_top.read(text)) is not None:
        return (of_top,)
    if headed := pyspy.frame_behind_head(text):
        frames = read_frame(headed[1])
        if frames is not None:
            return (headed[0], frames)
    if several := gdb.several_threads(text):
        return several
    is_own = text.lstrip().startswith("#") or "ThreadID" in text
    pyspy_head = (tracebacks.numbered(text) if is_own else None) or pyspy.read(text) or tracebacks.numbered(text)
    if pyspy_head is not None:
        return (pyspy_head,)
    if (rest := labels.ray_stack(text)) is not None:
        row = ps.aux(rest)
        if row is None:
            return (Head(level="process", source="py-spy", title=rest[:400], is_new=True),)
        return (Head(level="process", source="py-spy", pid=row.pid, title=row.title, state=row.state, is_new=True),)
    if row := ps.aux(text):
        return (row,)
    if _WRAPPED.match(text):
        return (Gone(),)
    found = ipython.read(text) or read_frame(text)
    if found is not None:
        return (found,)
    if (own := own_heads.read(text)) is not None:
        return (own,)
    if text.startswith("-> ") or text.strip() == _COLLECTS or _SHOWN.match(text) or (len(text) < 80 and _GONE.match(text.strip())):
        # pdb shows the source line of a frame behind an arrow.
        return (Gone(),)
    return ()


def _labelled(text: str) -> tuple[Event, ...]:
    """``Rank 3 (pid 12): f (a.py:1)``: a label and a stack on one line; ``31 f (a.py:1)|g (b.py:2)``: a count and a stack."""
    if tallied := _TALLIED.match(text):
        whole = read_frame(tallied["rest"])
        if whole is None and "x" in tallied[0][: tallied.start("rest")]:
            whole = joined.names(tallied["rest"], least=2, code=1)
        if whole is not None and whole.is_whole and len(whole.places) > 1:
            head = Head(level="label", count=int(tallied["count"]), is_new=True)
            return (head, _whole(whole))
    if (top := _TOP.match(text)) is not None and (frames := read_frame(top["rest"]) or joined.read(top["rest"], is_named=True)) is not None:
        return (_whole(frames),)
    if named := labels.parts(text):
        role, ranks, rest = named
        frames = read_frame(rest)
        if frames is not None:
            is_rank = role.lower() in ("rank", "ranks")
            head = Head(level="label", ranks=ranks, label=None if is_rank else role, is_new=True)
            return (head, _whole(frames))
    return led.clauses(text) or led.read(text) or chains.read(text) or chains.clauses(text)


def _table_row(text: str) -> tuple[Event, ...]:
    """One row of a Markdown table: the cells before a stack say whose it is. Further stacks are of other threads."""
    cells = markdown_rows.cells(text)
    stacks = [(position, frames) for position, cell in enumerate(cells) if (frames := _of_cell(cell)) is not None]
    if not stacks:
        # a function in one column and its place in the next
        pairs = ((at, read_frame(f"{one} {two}")) for at, (one, two) in enumerate(itertools.pairwise(cells)) if one and two and "." in two)
        stacks = [(at, frames) for at, frames in pairs if frames is not None][:1]
    if not stacks:
        chains_of_names = ((at, joined.names(cell, code=_LEAST_CODE)) for at, cell in enumerate(cells) if at)
        stacks = [(at, frames) for at, frames in chains_of_names if frames is not None][:1]
    if not stacks:
        return ()
    before = [c for c in cells[: stacks[0][0]] if c]
    told = " ".join(before) if any(not c.isdecimal() for c in before) else (f"rank {before[0]}" if before else "")
    head = labels.read(f"{told}:") if told else None
    # Tables name files for many reasons; it is a stack where the row names a process.
    return led.of_row(head, [frames for _, frames in stacks]) if head is not None else ()


def _of_cell(cell: str) -> Frames | None:
    """The stack in a cell: on one line, or on several."""
    parts = [p for p in re.split(r"<br ?/?>| / ", cell) if p]
    read = [f for p in parts if (f := read_frame(p)) is not None]
    if not read or len(read) < len(parts):
        return _listed_in(cell)
    places = tuple(place for f in read for place in f.places)
    return Frames(places=places, order=read[0].order, is_whole=True, is_certain=True, native=any(f.native for f in read))


def _listed_in(cell: str) -> Frames | None:
    """``gc.collect, active+gil, periodic (utils.py:40)``: frames and names of a cell, and what the thread does between them."""
    parts = [p for p in cell.split(", ") if not _STATE_WORDS.fullmatch(p)]
    found = [f.places if (f := read_frame(p)) is not None else (alone,) if (alone := joined.name_alone(p)) is not None else () for p in parts]
    places = tuple(place for some in found for place in some)
    if len(parts) < _LEAST_CODE or not all(found) or not any(file for _, file, _ in places):
        return None
    return Frames(places=places, is_whole=True, is_certain=True)


def is_same_row(text: str) -> Head | None:
    """A row of a table whose last word is that it is as the one above: the process it names."""
    if not text.lstrip().startswith("|"):
        return None
    cells = markdown_rows.cells(text)
    at = next((i for i, c in enumerate(cells) if c.lower() in _SAME_CELLS), None)
    if not at:
        return None
    told = " ".join(c for c in cells[:at] if c)
    return labels.read(f"{told}:") if told else None


def unread_row(text: str) -> tuple[Head, Said] | None:
    """A row of a table in which a tool says that it could not read the process: the process, and what was said."""
    if not text.lstrip().startswith("|"):
        return None
    cells = markdown_rows.cells(text)
    for at, cell in enumerate(cells):
        told = said.unread(cell.replace("`", ""), expected=False)
        head = labels.read(f"{' '.join(c for c in cells[:at] if c)}:") if told is not None and at else None
        if told is not None and head is not None:
            return head, told
    return None


def _whole(frames: Frames) -> Frames:
    return Frames(places=frames.places, source=frames.source, order=frames.order, is_certain=True, native=frames.native, is_whole=frames.is_whole)


def symbol(text: str) -> Frames | None:
    """A name alone, as a frame without its file, or several joined by arrows; only in the middle of a stack is it one."""
    if empty := _EMPTY.match(text):
        return Frames(places=((empty["name"], "", 0),))
    if text.startswith("  ") and (several := joined.names(text.strip())) is not None:
        return Frames(places=several.places)
    if not (_SYMBOL.match(text) or _TEMPLATE.match(text)) or text.strip().endswith(":"):
        return None
    return Frames(places=((text.strip(), "", 0),), native=True)


def cut_frame(text: str) -> Frames | None:
    """A frame whose line ends in its file: where it is the first of a thread, the thread would be lost without it."""
    found = _CUT.match(text)
    if found is None:
        return None
    file = found["file"] or ""
    return Frames(places=((found["name"], file, 0),), native=is_native(file))
