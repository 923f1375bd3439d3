"""Dumps of many files as one snapshot: what is known becomes facts, what cannot be known becomes gaps."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.formats.dump import Dump, DumpThread
from ray_rl_debug.formats.stack_table import StackTable, short_file
from ray_rl_debug.imports.titles import safe_title
from ray_rl_debug.imports.told import async_tasks, files_of, kernel_threads, locks_of, remarks_of, state_of, unread_gap
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap, Node, Process, RayState, Sample, Snapshot, ThreadSample
from ray_rl_debug.model.source_line import SourceLine
from ray_rl_debug.privacy.masking import mask

_RANK = re.compile(r"(?:^|[^a-z])(?<!local[_.-])(?<!node[_.-])rank[_.=-]?(\d{1,6})(?!\d)", re.IGNORECASE)
_NAME_PID = re.compile(r"(?:^|[^0-9a-z])(?:pid[_.=-]?|pyspy_|py-spy_|stack_|process_)(\d{2,8})(?!\d)", re.IGNORECASE)
_NAME_END = re.compile(
    r"(?:stack|dump|py-?spy|trace)(?:(?!\d{6}|20\d\d[_.-]?\d\d).)*(?<!step)(?<!iter)(?<!epoch)[_.-](?!20\d\d(?:\d{4})?$)(\d{3,8})$", re.IGNORECASE
)
"""``VLLM_STACK_DUMP_for_worker_9002``; a date, a year, a time behind a date or a step is no process id."""
_NAME_TITLE = re.compile(r"(ray__[\w.]+)")
_PASTED = "pasted"
"""A text from standard input is kept in a file of this name, which names no process."""
_RAY_SYSTEM = ("python monitor.py", "DashboardAgent", "RuntimeEnvAgent", "raylet", "gcs_server")


MAX_LABEL = 200


class FileDumps(msgspec.Struct, kw_only=True):
    """What one file held."""

    node: str
    """Name of its folder, or ``imported``."""
    stem: str
    """File name without its ending."""
    name: str = ""
    """File name as given."""
    folder: str = ""
    """Name of the folder it lies in; empty where none is known."""
    above: str = ""
    """Name of the folder above that."""
    time_s: float
    """Last modification, Unix time."""
    dumps: list[Dump]
    listed: RayState | None = None
    """Rows of ``ray list`` inside the text."""
    documents: tuple[tuple[int, bytes], ...] = ()
    """Counters of collectives inside the text, each with its line."""


def build(files: Iterable[FileDumps], *, gaps_: Iterable[Gap] = ()) -> Snapshot:
    """One snapshot; files in the order in which their stacks were taken. Several dumps of one pid become its samples."""
    nodes: dict[str, dict[int, list[tuple[FileDumps, Dump]]]] = {}
    for file in files:
        alone = len({(d.pid, d.label, d.rank) for d in file.dumps}) == 1
        for position, dump in enumerate(file.dumps):
            if alone and dump.label is None and dump.rank is None and (of_name := _RANK.search(file.stem)):
                dump.rank = int(of_name[1])
            _place(nodes, file, dump, position)
    built = [_node(name, processes) for name, processes in nodes.items()]
    taken = max((n.started_time_s + n.window_s for n in built), default=0.0)
    return Snapshot(
        tool_version=__version__,
        taken_time_s=taken,
        nodes=tuple(built),
        gaps=(
            Gap(
                id=gaps.NO_RAY_TABLES_IN_FILE,
                where="cluster",
                what="Ray's actors and tasks, thread states, CPU times, sockets, environments",
                reason="stacks collected by hand hold only frames",
                remedy="rayrl-debug snapshot -o hang",
            ),
            *gaps_,
        ),
        options={"imported": True},
    )


def _place(nodes: dict[str, dict[int, list[tuple[FileDumps, Dump]]]], file: FileDumps, dump: Dump, position: int) -> None:
    named = _NAME_PID.search(file.stem) or _NAME_END.search(file.stem)
    if dump.pid is None and named and len(file.dumps) == 1:
        dump.pid = int(named[1])
    if dump.title is None and (title := _NAME_TITLE.search(file.stem)):
        dump.title = title[1].replace("ray__", "ray::", 1)
    pid = dump.pid or 0
    at = dump.node or file.node
    held = nodes.get(at, {}).get(pid) if pid else None
    if pid and (held is None or any(_is_same(one, file, dump) for one in held)):
        nodes.setdefault(at, {}).setdefault(pid, []).append((file, dump))
        return
    # No pid, or the pid of another container: a place of its own, named after the file.
    name = f"{at}:{file.stem}"
    if dump.label or dump.rank is not None:
        name += f":{dump.label or f'rank_{dump.rank}'}"
    elif position and not pid and dump.source not in ("faulthandler", "py-spy raw"):
        name += f":{position}"
    nodes.setdefault(name, {}).setdefault(pid, []).append((file, dump))


def _is_same(held: tuple[FileDumps, Dump], file: FileDumps, dump: Dump) -> bool:
    """Is it the same process again? Containers all have a pid 1; their titles and file names tell them apart."""
    if "ps" in (held[1].source, dump.source) or not (held[1].threads and dump.threads):
        return True
    ranks = {_rank(held[1]), _rank(dump)} - {None}
    if len(ranks) > 1 or (held[0].stem != file.stem and None in (_rank(held[1]), _rank(dump)) and ranks):
        return False
    first, second = _base(held[1].title), _base(dump.title)
    return first == second or None in (first, second)


def _base(title: str | None) -> str | None:
    """A Ray title changes with the running method: ``ray::Class.method`` is ``ray::Class``."""
    return title.split(".", 1)[0].split(" ", 1)[0] if title and title.startswith("ray::") else title


def _rank(dump: Dump) -> str | None:
    if dump.rank is not None:
        return str(dump.rank)
    found = _RANK.search(dump.label or "")
    return found[1] if found else None


def _node(name: str, processes: dict[int, list[tuple[FileDumps, Dump]]]) -> Node:
    table = StackTable()
    started = min(f.time_s for held in processes.values() for f, _ in held)
    window = 0.0
    found, missing = [], []
    lacks = []
    for pid, held in processes.items():
        times = _times(held)
        window = max(window, times[-1])
        process = _process(pid, held, times, table)
        found.append(process)
        if len(process.samples) == 1:
            missing.append(pid)
        if not process.samples and (unread := unread_gap(process, name)) is not None:
            lacks.append(unread)
    if 0 in processes:
        lacks.append(Gap(id=gaps.RANK_UNKNOWN, where=name, what="its process id", reason="the text does not say"))
    if missing:
        lacks.append(
            Gap(
                id=gaps.WINDOW_SHORT,
                where=name,
                what=f"a second look at {len(missing)} {'process' if len(missing) == 1 else 'processes'}",
                reason="each process was dumped once, so slow and hung look the same",
                remedy="dump them again some seconds later, and give all files",
            )
        )
    return Node(
        name=name,
        started_time_s=started,
        window_s=window,
        frames=table.frames(_lines(processes.values(), table)),
        stacks=table.stacks(),
        processes=tuple(found),
        locks=locks_of({pid: [d for _, d in held] for pid, held in processes.items()}),
        gaps=tuple(lacks),
    )


def _lines(held: Iterable[list[tuple[FileDumps, Dump]]], table: StackTable) -> dict[int, SourceLine]:
    """What the lines of innermost frames call, where a traceback shows their source."""
    found: dict[int, SourceLine] = {}
    for one in held:
        for _, dump in one:
            for thread in dump.threads:
                number = table.number(thread.frames[0]) if thread.calls and thread.frames else None
                if number is not None and thread.calls:
                    found[number] = SourceLine(calls=thread.calls)
    return found


def _process(pid: int, held: list[tuple[FileDumps, Dump]], times: list[float], table: StackTable) -> Process:
    read = [(f, d) for f, d in held if d.source != "ps"]
    title = next((d.title for _, d in reversed(read) if d.title), None) or next((d.title for _, d in held if d.title), None)
    label = next((d.label for _, d in held if d.label), None)
    rank = next((r for _, d in held if (r := _rank(d)) is not None), None)
    dumps = [d for _, d in held]
    shown = _shown(list(zip(times, held, strict=True)))
    return Process(
        pid=pid,
        title=safe_title(title) if title else mask(label)[:MAX_LABEL] if label else _nameless(*held[0]),
        kind=_kind(title or label or "", dumps),
        ppid=next((d.ppid for d in dumps if d.ppid is not None), None),
        state=state_of(dumps),
        threads=kernel_threads(dumps),
        python=next((d.python for d in dumps if d.python), None),
        env={"RANK": rank} if rank is not None else {},
        samples=tuple(
            Sample(
                at_s=at_s,
                source=d.source,
                native=d.native,
                threads=tuple(_thread(t, table) for t in d.threads if t.frames),
                file=f.name or None,
                line=d.line,
            )
            for at_s, (f, d) in shown
        ),
        async_tasks=async_tasks(dumps),
        files=files_of(dumps),
        remarks=remarks_of((f.name, d) for f, d in held),
    )


def _nameless(file: FileDumps, dump: Dump) -> str:
    """The file's name for a process without one; with the machine where the text names it."""
    if dump.pid and file.stem == _PASTED:
        return "process"
    return f"{file.stem} on {mask(dump.node)[:MAX_LABEL]}" if dump.node and not dump.pid and dump.rank is None else file.stem


def _shown(held: list[tuple[float, tuple[FileDumps, Dump]]]) -> list[tuple[float, tuple[FileDumps, Dump]]]:
    """The dumps that are looks at what the process did. What the kernel or an error's traceback shows is another thing than a look at its stacks: it
    counts where there is nothing else."""
    with_frames = [one for one in held if any(t.frames for t in one[1][1].threads)]
    looks = [one for one in with_frames if one[1][1].source not in ("kernel", "native", "collective") and not is_error(one[1][1])]
    of_python = [one for one in looks if _knows_python(one[1][1])]  # what C frames alone show cannot be compared with these
    return of_python or looks or with_frames[:1]


def _knows_python(dump: Dump) -> bool:
    return dump.source != "gdb" or any(file.endswith((".py", ".pyx")) or file.startswith("<") for t in dump.threads for _, file, _ in t.frames)


def without_errors(files: list[FileDumps]) -> list[FileDumps]:
    """The traceback of an error is a matter of logs. Beside looks it tells who has failed: in one file with them, or when it names its process."""
    if not any(not is_error(d) for f in files for d in f.dumps):
        return []
    kept = []
    for file in files:
        is_log = all(is_error(d) for d in file.dumps)
        dumps = [d for d in file.dumps if not is_log or d.pid is not None or _rank(d) is not None]
        kept += [msgspec.structs.replace(file, dumps=dumps)] if dumps else []
    return kept


def without_shared_ends(files: list[FileDumps]) -> list[FileDumps]:
    """A signal that all of them were ended by came from outside (a watchdog, their user), and shows where each stood: it is nobody's own failure."""
    looks = [d for f in files for d in f.dumps if d.threads]
    ends = [{s.text for _, s in d.said if s.kind == "failed" and s.text.startswith(_SIGNALLED)} for d in looks]
    shared = set.intersection(*ends) if len(ends) > 1 else set()
    for dump in looks if shared else ():
        dump.said = [(line, s) for line, s in dump.said if s.text not in shared]
    return files


_SIGNALLED = ("Fatal Python error: Aborted", "Fatal Python error: Terminated", "Fatal Python error: User defined signal")


def is_error(dump: Dump) -> bool:
    """Is it the traceback of an error, or the line of a fatal one alone, and no look at a process that runs?"""
    if not any(s.kind == "failed" for _, s in dump.said):
        return False
    is_bare = not dump.threads and dump.state is None and all(s.kind == "failed" for _, s in dump.said)
    return dump.source == "traceback" or is_bare


def _thread(thread: DumpThread, table: StackTable) -> ThreadSample:
    return ThreadSample(
        stack=table.add(thread.frames),
        tid=thread.tid,
        name=thread.name,
        active=thread.active,
        owns_gil=thread.owns_gil,
        waits_for_gil=thread.waits_for_gil,
        locals=thread.locals,
    )


def _times(held: list[tuple[FileDumps, Dump]]) -> list[float]:
    """Seconds since the first dump: as the text says, else by the files' times where they agree with the order. Else only the order counts: all 0."""
    if any(d.after_s is not None for _, d in held):
        return list(itertools.accumulate(d.after_s or 0.0 for _, d in held))
    stamps = [f.time_s for f, _ in held]
    increasing = all(b > a for a, b in itertools.pairwise(stamps))
    return [t - stamps[0] for t in stamps] if increasing else [0.0] * len(stamps)


def _kind(title: str, dumps: list[Dump]) -> str:
    if any(name in title for name in _RAY_SYSTEM):
        return "ray-system"
    if title.startswith("ray::"):
        return "ray-worker"
    places = {(function.rsplit(".", 1)[-1], short_file(file)[0]) for d in dumps for t in d.threads for function, file, _ in t.frames}
    if places & {("main_loop", "ray/_private/worker.py")}:
        return "ray-worker"
    if places & {("get", "ray/_private/worker.py"), ("wait", "ray/_private/worker.py")}:
        return "driver"
    # The user chose these files, as with --pid.
    return "named"
