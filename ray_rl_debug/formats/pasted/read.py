"""All processes in a pasted text."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ray_rl_debug.formats.dump import Dump, DumpThread, Said
from ray_rl_debug.formats.pasted import absent, commands, core_dumps, diffs, glued, listed_tasks, lone_names, mutual, panes, prose, sentences, trees
from ray_rl_debug.formats.pasted.events import PIDS
from ray_rl_debug.formats.pasted.faulthandler import ABORTED
from ray_rl_debug.formats.pasted.left import Left
from ray_rl_debug.formats.pasted.lines import Line, plain_lines, read_lines, relabelled
from ray_rl_debug.formats.pasted.partial import LOCAL_RANK, Partial
from ray_rl_debug.formats.pasted.prefixes import learn
from ray_rl_debug.formats.pasted.profiles import combined
from ray_rl_debug.formats.pasted.regions import lines_of
from ray_rl_debug.formats.pasted.stream import Stream

MAX_SEARCHED = 4 << 20
"""Bytes of a text in which it is looked for who labels its lines."""
MAX_STREAMS = 20_000
"""Writers in one text; more are read as one."""
_ENOUGH_RANKS = 2
"""Of which the text tells the rank and the number on its machine, to know the others' by them."""
_FEW = 4
"""Processes of which a sentence tells, and frames of each."""
_WORDS = 12
"""In a line that is a sentence."""
_OUTERMOST = 3
"""Below Python's own frames stand two of the C library, where native frames were asked for."""
_BY_TASK = re.compile(
    rb"^ {0,4}(?P<task>\d{1,5}): +[\w.<>]{1,80} \([^()\s]{1,300}:\d{1,7}\)\r?\n {0,4}(?P=task): +[\w.<>]{1,80} \([^()\s]{1,300}:\d{1,7}\)",
    re.MULTILINE,
)
"""``srun --label`` before frames: the same number twice counts no frames."""
_NUMBERED = re.compile(r"\s{0,8}#\d{1,4} \S")


def read(text: str | bytes) -> list[Dump]:
    """The processes in the text, in their order; a text without any gives an empty list. Of bytes only what may be a stack is decoded.

    Frames are innermost first. Several dumps of one process stay several. What the text does not say is None.
    """
    return read_all(text)[0]


def read_all(text: str | bytes) -> tuple[list[Dump], tuple[int, ...]]:
    """The processes in the text, and the lines that look like frames and that no stack took."""
    dumps: list[Partial] = []
    left = Left()
    streams: dict[str, Stream] = {}
    missing: list[tuple[int, Said]] = []
    """What lines say of ranks that have not come."""
    each_other: list[tuple[int, Said]] = []
    """What lines say of who waits for whom."""
    last: Line | None = None
    message: Line | None = None
    """The first line of one that goes on in lines without its stamp."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    machines = lone_names.find(data)
    is_by_task = _BY_TASK.search(data[:MAX_SEARCHED]) is not None
    lines = diffs.sides(lines_of(data)) if diffs.has_diff(data) else lines_of(data)
    if (column := panes.edge(data)) is not None:
        lines = panes.apart(lines, column)
    for line in sentences.apart(read_lines(trees.joined_lines(glued.apart(lines)), learn(data, plain_lines))):
        if not line.owner and last is not None and last.owner and _NUMBERED.match(line.text):
            # torch's own log writes the rank before the first line of a message only.
            line = msgspec.structs.replace(last, number=line.number, text=line.text)
        if core_dumps.begins(line.text):
            message = line if line.owner else None
        elif message is not None and not line.owner and (not line.text.strip() or line.text[: core_dumps.INDENT].isspace()):
            line = msgspec.structs.replace(message, number=line.number, text=line.text)
        else:
            message = None
        if is_by_task and (told_by := relabelled(line)) is not None:
            line = msgspec.structs.replace(line, text=told_by[0], rank=told_by[1], owner=f"task {told_by[1]}")
        last = line
        if (gone := absent.of_line(line.text)) is not None:
            missing.append((line.number, gone))
        if not line.owner and (said_so := mutual.of_line(line.text)) is not None:
            each_other.append((line.number, said_so))
        owner = line.owner if line.owner in streams or len(streams) < MAX_STREAMS else ""
        if (stream := streams.get(owner)) is None:
            stream = streams[owner] = Stream(dumps, machines, left)
        stream.feed(line)
    for stream in streams.values():
        stream.finish()
    if _may_be_told(data, dumps):
        told_in_words = prose.read(data)
        if sum(len(d.threads) for d in told_in_words) > sum(1 for d in dumps for t in d.threads if t.frames):
            dumps[:] = [d for d in dumps if not any(t.frames for t in d.threads)] + told_in_words
            for dump in told_in_words:
                left.take(dump.line or 0)
    elif len(data) <= prose.MAX_BYTES:
        beside = _told_beside(prose.read(data), dumps)
        dumps += beside
        for dump in beside:
            left.take(dump.line or 0)
    if commands.sends_signal(data):
        for dump in dumps:
            dump.said[:] = [(number, one) for number, one in dump.said if not one.text.startswith(ABORTED)]
    absent.add_to_ranked(missing, dumps)
    mutual.add(each_other, dumps)
    _name_local_ranks(dumps)
    told = combined([one for d in dumps if _tells(d) for one in _of_each_program(d)])
    for dump in told:
        _name_main(dump)
    _name_machine(told)
    _count_once(told)
    kept = _without_sketches(_without_caught(told))
    _lend_files(kept, told)
    return listed_tasks.gathered([d for dump in kept for d in _of_each_rank(dump)]), left.lines()


def _may_be_told(data: bytes, dumps: list[Partial]) -> bool:
    """Does the text show no stack, so that its sentences may tell more? Single frames are none, nor are a few names that a sentence joins."""
    shown = [d for d in dumps if any(t.frames for t in d.threads)]
    longer = [d for d in shown if any(len(t.frames) > 1 for t in d.threads)]
    if any(d.source != "text" for d in shown) or len(longer) > _FEW or len(data) > prose.MAX_BYTES:
        return False
    lines = data.split(b"\n") if longer else []
    return all(
        len(lines[min(d.line or 1, len(lines)) - 1].split()) >= _WORDS and len(d.threads) == 1 and len(d.threads[0].frames) <= _FEW for d in longer
    )


def _told_beside(told_in_words: list[Partial], dumps: list[Partial]) -> list[Partial]:
    """Of those that sentences tell of: all others, or a rank or a part of which no stack is shown, in a function that stands in none of these."""
    shown = {name for d in dumps for name in _names_of(d)}
    has_pids = any(d.pid is not None and d.threads for d in dumps)
    places = {f[0] for d in dumps for t in d.threads for f in t.frames}
    return [
        d
        for d in told_in_words
        if not any(f[0] in places for t in d.threads for f in t.frames)
        and ((prose.is_rest(d) and (shown or has_pids)) or (shown and (names := _names_of(d)) and shown.isdisjoint(names) and _has_number(names)))
    ]


def _has_number(names: set[str]) -> bool:
    """``rank 3``, ``TP0``: one of several; *the trainer* may be any of those that are shown."""
    return all(name[-1].isdigit() for name in names)


def _names_of(dump: Partial) -> set[str]:
    ranks = dump.ranks or ((dump.rank,) if dump.rank is not None else ())
    return {*(f"rank {rank}" for rank in ranks), *(name for name in (dump.label, dump.title) if name)}


def _name_local_ranks(dumps: list[Partial]) -> None:
    """torchelastic's ``[default3]`` is a rank where the lines of the others tell both numbers, and these differ by the same."""
    local = [(int(d.label.removeprefix(LOCAL_RANK)), d) for d in dumps if d.label is not None and d.label.startswith(LOCAL_RANK)]
    first = {d.rank - number for number, d in local if d.rank is not None}
    if len(first) != 1 or len({d.rank for _, d in local if d.rank is not None}) < _ENOUGH_RANKS:
        return
    for number, dump in local:
        dump.rank = number + min(first)


_PYTHON_2 = "python2."


def _tells(dump: Partial) -> bool:
    if dump.source == "ps":
        return True
    # A thread without a Python frame has nothing to tell; a process of such threads runs no Python now.
    if dump.source == "py-spy" and dump.pid is not None and dump.threads and not any(t.frames for t in dump.threads) and not dump.said:
        dump.said.append((dump.line or 1, Said(kind="unread", text="py-spy shows its threads, and no frame of Python in them")))
    dump.threads = [t for t in dump.threads if t.frames or t.wchan or t.call]
    for thread in dump.threads:
        if thread.waits_for_gil and thread.frames and _PYTHON_2 in thread.frames[0][1]:
            thread.waits_for_gil = None  # its py-bt takes each lock for the interpreter's
    return bool(dump.threads or dump.said or dump.tasks)


def _of_each_program(dump: Partial) -> list[Partial]:
    """A process has one stack that begins at module level. faulthandler names no process, and shows this stack last: then comes the next process."""
    begun = [i for i, t in enumerate(dump.threads) if t.frames and t.frames[-1][0] == "<module>"]
    if dump.source != "faulthandler" or len(begun) < 2 or dump.pid is not None or dump.rank is not None or dump.label is not None:
        return [dump]
    ends = [*(i + 1 for i in begun[:-1]), len(dump.threads)]
    parts = [dump.threads[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    first = msgspec.structs.replace(dump, threads=parts[0], label="process 1")
    return [first, *(msgspec.structs.replace(dump, threads=part, said=[], label=f"process {n}") for n, part in enumerate(parts[1:], 2))]


def _name_main(dump: Partial) -> None:
    """The main thread where the tool did not name it, and the process id where the main thread's number tells it."""
    threads = dump.threads
    if dump.source == "kernel" and len(threads) == 1 and threads[0].tid is None:
        threads[0].tid = dump.pid  # below a process's own number stands the stack of its first thread
    if not threads or dump.source in ("ps", "kernel", "native"):
        return
    named = next((t for t in threads if t.name == "MainThread"), None)
    if named is None:
        named = _main(dump)
        if named is not None:
            named.name = "MainThread"
    if named is not None and dump.pid is None and named.tid:
        dump.pid = named.tid
    elif named is not None and named.tid is None and len(threads) == 1:
        named.tid = dump.pid  # of two looks at one process, one may have named its thread


def _main(dump: Partial) -> DumpThread | None:
    """The thread that began the program: the one with the number of the process, or whose stack begins at module level; else by the tool's order."""
    threads = dump.threads
    of_pid = next((t for t in threads if t.tid is not None and t.tid == dump.pid), None)
    if of_pid is not None:
        return of_pid
    if dump.source == "gdb" and any(key.isdecimal() for key in dump.keys):
        # gdb counts from the main thread; who pasted only some threads may have left it out.
        at_first = dump.keys.get("1", len(threads))
        return threads[at_first] if at_first < len(threads) else None
    if dump.source == "pystack":
        first = min((t for t in threads if t.tid), key=lambda t: t.tid or 0, default=None)
        return first if len(threads) == 1 or (first is not None and not _is_started(first)) else None
    at_module = [t for t in threads if t.name is None and t.frames and t.frames[-1][0] == "<module>"]
    if len(at_module) == 1:
        return at_module[0]
    at = threads[-1] if dump.source == "faulthandler" else threads[0]
    return at if at.name is None and not _is_started(at) else None


def _is_started(thread: DumpThread) -> bool:
    """Does its stack begin where Python, or the C library, starts a thread?"""
    outermost = thread.frames[-_OUTERMOST:]
    if outermost and outermost[-1][0] == "run" and outermost[-1][1].endswith("threading.py"):
        return True  # what lies further out was not copied
    return any(
        name.rsplit(".", 1)[-1] in ("_bootstrap", "_bootstrap_inner", "thread_run") and "threading" in file for name, file, _ in outermost
    ) or (bool(outermost) and outermost[-1][0] in ("clone", "clone3", "__clone", "__clone3", "start_thread"))


def _count_once(dumps: list[Partial]) -> None:
    """ "3 in:" above three heads over one stack speaks of these three, not of more."""
    shared: dict[int, list[Partial]] = {}
    for dump in dumps:
        if len(dump.threads) == 1 and dump.threads[0].frames:
            shared.setdefault(id(dump.threads[0].frames), []).append(dump)
    for group in shared.values():
        others = len(group) - 1
        if others:
            first = group[0]
            counted = ((n, msgspec.structs.replace(s, count=s.count - others) if s.kind == "same" and s.count else s) for n, s in first.said)
            first.said = [(n, s) for n, s in counted if s.kind != "same" or s.count is None or s.count > 1]


def _name_machine(dumps: list[Partial]) -> None:
    """Where a text names one machine alone, and one of its processes is listed without it too, all that have a number are there."""
    named = {d.node for d in dumps if d.node is not None}
    if len(named) == 1 and {d.pid for d in dumps if d.node is not None} & {d.pid for d in dumps if d.node is None} - {None}:
        for dump in dumps:
            dump.node = dump.node or (next(iter(named)) if dump.pid is not None else None)


def _lend_files(dumps: list[Partial], shown: list[Partial]) -> None:
    """Frames of which somebody wrote the names alone are in the file that the text shows elsewhere for such a name, if it is one."""
    files: dict[str, set[str]] = {}
    for dump in shown:
        for function, file, _ in (f for t in dump.threads for f in t.frames if f[1].endswith(".py")):
            files.setdefault(function, set()).add(file)
    only = {function: next(iter(found)) for function, found in files.items() if len(found) == 1}
    for dump in dumps if only else ():
        if _has_no_files(dump):
            for thread in dump.threads:
                thread.frames = [(name, only.get(name, file), line) for name, file, line in thread.frames]


def _without_caught(dumps: list[Partial]) -> list[Partial]:
    """An error that a process raised before it was looked at was caught, as of a module that is optional: it was no look."""
    looked = {d.pid: d.line or 0 for d in dumps if d.pid is not None and d.threads and not _has_failed(d)}
    return [d for d in dumps if d.pid not in looked or d.source != "traceback" or not _has_failed(d) or (d.line or 0) > looked[d.pid]]


def _has_failed(dump: Partial) -> bool:
    return any(said.kind == "failed" for _, said in dump.said)


def _without_sketches(dumps: list[Partial]) -> list[Partial]:
    """A table or a list names some frames of each rank, and further down the whole stack of one of them stands: that is one look, not two."""
    whole = {
        name: d
        for d in dumps
        if (name := _name_of(d)) is not None and len(d.threads) == 1 and len(d.threads[0].frames) > 1 and not _has_no_files(d) and d.after_s is None
    }
    kept = []
    for dump in dumps:
        name = _name_of(dump)
        fuller = whole.get(name) if name is not None else None
        if fuller is None or fuller is dump or not _is_sketch(dump) or dump.pid == fuller.pid:
            kept.append(dump)
            continue
        fuller.pid = fuller.pid if fuller.pid is not None else dump.pid
        fuller.title = fuller.title or dump.title
        fuller.said = [*dump.said, *fuller.said]
    return kept


def _is_sketch(dump: Partial) -> bool:
    """One frame, or names of functions alone; many processes may have one title, so that one with a title alone must have no number."""
    if len(dump.threads) != 1:
        return False
    is_titled = dump.label is None and dump.rank is None and not dump.ranks
    return _has_no_files(dump) and dump.pid is None if is_titled else len(dump.threads[0].frames) == 1 or _has_no_files(dump)


def _has_no_files(dump: Partial) -> bool:
    return not any(file for t in dump.threads for _, file, _ in t.frames)


def _name_of(dump: Partial) -> tuple[str | None, tuple[int, ...], str | None] | None:
    ranks = dump.ranks or ((dump.rank,) if dump.rank is not None else ())
    if not ranks and dump.label is None and dump.title is not None:
        return (dump.title, (), dump.node)
    return (dump.label, ranks, dump.node) if ranks or dump.label else None


def _of_each_rank(dump: Partial) -> Iterable[Dump]:
    """``DP0,3,5-6`` over one stack are four processes."""
    plain = msgspec.structs.asdict(dump)
    ranks = plain.pop("ranks")
    for key in ("keys", "chosen", "is_headless", "weight"):
        plain.pop(key)
    if dump.label == PIDS:
        yield from (Dump(**{**plain, "label": None, "pid": pid, "rank": None}) for pid in ranks)
        return
    if len(ranks) < 2:
        label = f"{dump.label}{ranks[0]}" if dump.label and ranks and not dump.label[-1].isdigit() else dump.label
        yield Dump(**{**plain, "label": label})
        return
    for number, rank in enumerate(ranks):
        label = f"{dump.label}{rank}" if dump.label else f"rank_{rank}"
        # the stack that was copied for all is one's, and so is its number; parts with one number would be taken for one process
        pid = dump.pid if not (number and dump.label) else None
        yield Dump(**{**plain, "rank": None if dump.label else rank, "label": label, "pid": pid})
