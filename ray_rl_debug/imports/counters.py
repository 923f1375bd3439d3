"""Flight Recorder dumps and answers of NCCL RAS in files → processes named by world and rank, with their counters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.formats.flight_recorder import parse, rank_of_name
from ray_rl_debug.formats.flight_trim import trim
from ray_rl_debug.formats.nccl_ras import is_ras, parse_ras
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import FlightRecord, Gap, Node, Process, RasCommunicator, Snapshot

WORLD = "world"
"""What a world is called whose role nobody tells."""


class CounterFile(msgspec.Struct, frozen=True, kw_only=True):
    """What one file held: a dump of one rank, or one answer of RAS."""

    folder: str
    stem: str
    time_s: float
    record: FlightRecord | None = None
    poll: tuple[RasCommunicator, ...] | None = None
    is_text: bool = False


def read_counters(data: bytes, path: Path, folder: str, time_s: float) -> CounterFile | None:
    """The counters in a file; None when it is of another kind.

    Raises:
        UnreadableFileError: it is of this kind, and cut off or hostile.
    """
    stem = path.name.rsplit(".", 1)[0]
    if is_ras(data):
        is_text = not data.lstrip().startswith(b"{")
        return CounterFile(folder=folder, stem=stem, time_s=time_s, poll=parse_ras(data), is_text=is_text)
    if data[:1] == b"\x80" or _is_flight(data):
        record = trim(parse(data, path.name, rank=rank_of_name(path.name), taken_time_s=time_s))
        return CounterFile(folder=folder, stem=stem, time_s=time_s, record=record)
    return None


def _is_flight(data: bytes) -> bool:
    head = data[:65536]
    return head.lstrip().startswith(b"{") and (b'"pg_config"' in data or b'"pg_status"' in data or b'"collective_seq_id"' in head)


def add_counters(known: Snapshot | None, files: Sequence[CounterFile]) -> Snapshot:
    """The snapshot of stacks, if there is one, with the counters; ranks that no stack shows become processes without stacks."""
    nodes = list(known.nodes) if known is not None else []
    lacks: list[Gap] = []
    flights: dict[str, list[CounterFile]] = defaultdict(list)
    polls: dict[str, list[CounterFile]] = defaultdict(list)
    for file in files:
        (flights if file.record is not None else polls)[file.folder].append(file)
    for folder, found in flights.items():
        name = WORLD if len(flights) == 1 else folder
        nodes, missing = _add_flight(nodes, found, name, folder, alone=len(flights) == 1)
        lacks += missing
    for folder, found in polls.items():
        nodes = _add_polls(nodes, found, folder)
    taken = max([f.time_s for f in files] + ([known.taken_time_s] if known is not None else []))
    if known is not None:
        return msgspec.structs.replace(known, nodes=tuple(nodes), gaps=(*known.gaps, *lacks), taken_time_s=taken)
    reason = "the files hold counters of collectives only"
    lacks.append(
        Gap(
            id=gaps.NO_RAY_TABLES_IN_FILE,
            where="cluster",
            what="stacks, Ray's actors and tasks, thread states",
            reason=reason,
            remedy="give stacks of the named ranks too: py-spy dump --pid",
        )
    )
    return Snapshot(tool_version=__version__, taken_time_s=taken, nodes=tuple(nodes), gaps=tuple(lacks), options={"imported": True})


def _add_flight(nodes: list[Node], files: Sequence[CounterFile], name: str, folder: str, *, alone: bool) -> tuple[list[Node], list[Gap]]:
    records = [(f, f.record) for f in files if f.record is not None]
    lacks = [
        Gap(id=gaps.RANK_UNKNOWN, where=f.stem, what="this Flight Recorder dump", reason="neither the dump nor its file name gives a rank")
        for f, r in records
        if r.rank is None
    ]
    by_rank: dict[int, list[tuple[CounterFile, FlightRecord]]] = defaultdict(list)
    for file, record in records:
        if record.rank is not None:
            by_rank[record.rank].append((file, record))
    size = _world_size([r for _, r in records])
    absent = [r for r in range(min(size, 100_000)) if r not in by_rank]
    if absent:
        shown = ", ".join(map(str, absent[:8])) + (f" and {len(absent) - 8} more" if len(absent) > 8 else "")
        what, why = f"Flight Recorder dump of rank {shown} of {size}", "no such file: what these ranks did is unknown"
        lacks.append(Gap(id=gaps.RANK_UNKNOWN, where=folder, what=what, reason=why))
    for rank, held in sorted(by_rank.items()):
        at = _process_of_rank(nodes, rank, folder, alone)
        if at is not None:
            node = nodes[at[0]]
            more = tuple(msgspec.structs.replace(r, pid=at[1]) for _, r in held)
            nodes[at[0]] = msgspec.structs.replace(node, flight_records=(*node.flight_records, *more))
            continue
        first, last = held[0][0], held[-1][0]
        nodes.append(
            Node(
                name=f"{folder}:{first.stem}",
                started_time_s=first.time_s,
                window_s=max(0.0, last.time_s - first.time_s),
                processes=(_stub(0, name, rank, {"RANK": str(rank), "WORLD_SIZE": str(size)}),),
                flight_records=tuple(msgspec.structs.replace(r, pid=0) for _, r in held),
            )
        )
    return nodes, lacks


def _stub(pid: int, world: str, rank: int, env: dict[str, str]) -> Process:
    return Process(pid=pid, title=f"rank --role {world.replace(' ', '_')} --worker-index {rank}", kind="named", env=env)


def _process_of_rank(nodes: Sequence[Node], rank: int, folder: str, alone: bool) -> tuple[int, int] | None:
    """Position of the node and pid of the one process that is this rank."""
    found = [(i, n, p) for i, n in enumerate(nodes) for p in n.processes if p.env.get("RANK") == str(rank) and p.samples]
    here = [(i, p.pid) for i, n, p in found if n.name == folder or n.name.startswith(f"{folder}:")]
    if len(here) == 1:
        return here[0]
    return (found[0][0], found[0][2].pid) if alone and len(found) == 1 else None


def _world_size(records: Iterable[FlightRecord]) -> int:
    """Members of the largest group; for gloo, which does not write them, one more than the highest rank."""
    held = list(records)
    members = [max(ranks) + 1 for r in held for ranks in r.groups.values() if ranks]
    return max(members + [r.rank + 1 for r in held if r.rank is not None], default=0)


def _add_polls(nodes: list[Node], files: Sequence[CounterFile], folder: str) -> list[Node]:
    # Text names only communicators in trouble, and calls them otherwise: it is no poll beside JSON.
    structured = [f for f in files if not f.is_text] or list(files)
    polls = [f.poll for f in structured if f.poll is not None]
    window = max(f.time_s for f in structured) - min(f.time_s for f in structured)
    pids = {p.pid for n in nodes for p in n.processes}
    by_host: dict[str, dict[int, Process]] = defaultdict(dict)
    for one in sorted(polls[-1], key=lambda c: -c.size):
        for rank in (*one.ranks, *one.missing):
            if rank.pid is not None and rank.pid not in pids and rank.pid not in by_host[rank.host or folder] and rank not in one.missing:
                by_host[rank.host or folder][rank.pid] = _stub(rank.pid, WORLD, rank.rank, {"RANK": str(rank.rank), "WORLD_SIZE": str(one.size)})
    started = min(f.time_s for f in structured)
    nodes += [
        Node(name=host, started_time_s=started, window_s=window, processes=tuple(found.values())) for host, found in sorted(by_host.items()) if found
    ]
    nodes.append(Node(name=f"{folder}:ras", started_time_s=started, window_s=window, communicators=tuple(polls)))
    return nodes
