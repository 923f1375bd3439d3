"""A dump while its text is being read, and how the names that people give go into it."""

from __future__ import annotations

import msgspec

from ray_rl_debug.formats.dump import Dump, Said
from ray_rl_debug.formats.pasted.events import Head
from ray_rl_debug.formats.pasted.lines import Line

LOCAL_RANK = "local rank "
"""Label of a process of which only its number on its machine is known."""


class Partial(Dump, kw_only=True):
    """A dump with what only matters until all lines are read."""

    ranks: tuple[int, ...] = ()
    keys: dict[str, int] = msgspec.field(default_factory=dict)
    """Threads by what the text calls them, as positions."""
    chosen: str | None = None
    """Which of them is gdb's current one."""
    is_headless: bool = False
    weight: int = 0
    """How often a profile met its stack."""


def set_writer(dump: Partial, line: Line) -> None:
    """Who wrote the line, as a collector's prefix says."""
    dump.pid, dump.node, dump.ranks = line.pid, line.node, line.ranks
    dump.rank = line.ranks[0] if len(line.ranks) == 1 else line.rank
    dump.title = writer_title(line.title) if line.title else None
    dump.label = f"{LOCAL_RANK}{line.local_rank}" if line.local_rank is not None else None


def set_names(dump: Partial, head: Head, number: int | None = None) -> None:
    """What a head says of the process, and, of a head in this line, how many others are at the place that comes; what it does not say stays."""
    dump.pid = head.pid if head.pid is not None else dump.pid
    dump.title = head.title or dump.title
    dump.label = head.label or dump.label
    dump.node = head.node or dump.node
    dump.state = head.state or dump.state
    if head.ranks:
        dump.ranks = head.ranks
        # "DP3" is a place in a part of an engine, not a rank of the world.
        dump.rank = head.ranks[0] if len(head.ranks) == 1 and not head.label else None
    if number is not None and head.said is not None:
        dump.said.append((number, head.said))
    elif number is not None and head.count is not None and head.count > 1:
        dump.said.append((number, Said(kind="same", text=f"{head.count} processes", count=head.count)))


def set_same(dump: Partial, other: Partial) -> None:
    """It is the process of another dump once more."""
    dump.pid, dump.title, dump.label, dump.rank, dump.node = other.pid, other.title, other.label, other.rank, other.node
    dump.ranks, dump.source, dump.python = other.ranks, other.source, other.python


def with_label(head: Head, label: Head) -> Head:
    """A tool's head with what the writer said above it; the tool is believed first."""
    return msgspec.structs.replace(
        head,
        pid=head.pid if head.pid is not None else label.pid,
        ranks=head.ranks or label.ranks,
        node=head.node or label.node,
        label=head.label or label.label,
        title=head.title or label.title,
        count=head.count or label.count,
        said=head.said or label.said,
    )


def is_named_so(dump: Partial, head: Head) -> bool:
    """Has this dump the names of the head?"""
    named = (head.pid, head.label, head.ranks)
    return named != (None, None, ()) and (dump.pid, dump.label, dump.ranks or ((dump.rank,) if dump.rank is not None else ())) == named


def of_rank(dumps: list[Partial], rank: int | None) -> Partial | None:
    """The last dump of a rank."""
    return next((d for d in reversed(dumps[-64:]) if rank is not None and d.threads and d.rank == rank), None)


def is_awaited(dump: Partial) -> bool:
    """Was the process named, and nothing of it shown yet? One that a tool could not read is not awaited."""
    is_unread = any(s.kind == "unread" for _, s in dump.said)
    return not dump.threads and not dump.tasks and not is_unread and dump.source != "ps"


def is_main_of_another(dump: Partial, head: Head) -> bool:
    """Is it the main thread of another process? The number of a main thread is that of its process."""
    main = next((t.tid for t in dump.threads if t.name == "MainThread"), None)
    return head.name == "MainThread" and None not in (head.tid, main) and head.tid != main


def writer_title(title: str) -> str:
    """Ray's prefixes name classes, vLLM's the parts of the engine."""
    is_vllm = title.startswith(("EngineCore", "Worker_", "VllmWorker", "ApiServer", "APIServer"))
    return f"VLLM::{title}" if is_vllm else title if "::" in title else f"ray::{title}"
