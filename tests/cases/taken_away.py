"""Every single fact of a snapshot taken away in turn: ``PYTHONPATH=tests python -m cases.taken_away [FILE...] [--every N] [--start M]``.

A fact that is missing may turn an answer into *possible* or *unknown*. It must never accuse anybody else: nobody of a healthy run, and in a hang
nobody but the culprit. Without files everything that was recorded is judged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.codec import encode_compressed
from ray_rl_debug.model.report import Certainty, Report, Who
from ray_rl_debug.model.snapshot import Fact, Node, Snapshot

T = TypeVar("T", bound=Fact)
_TESTS = Path(__file__).resolve().parents[1]
RECORDED = sorted(f for folder in ("cases/RRD*", "kinds/recorded", "quiet/recorded", "data/gpu") for f in _TESTS.glob(f"{folder}/*.json.gz"))
"""Every recorded run: cases, kinds of hang with their healthy twins, quiet runs, and runs on cards."""
_NAMES = frozenset({"node_id", "name", "ip", "boot_id", "pid", "kind", "options"})
"""Not facts about the run, but what facts are filed under."""
_WHOLE = frozenset({"frames", "stacks", "doors", "clock", "versions", "timing"})
"""Tables that others point into, and what rules do not look at."""


def variants(snapshot: Snapshot) -> Iterator[tuple[str, Snapshot]]:
    """The snapshot without one fact, and what that was: a field of a structure, or one of several structures."""
    for i, node in enumerate(snapshot.nodes):
        for what, less in _node(node):
            yield f"{node.name}: {what}", replace(snapshot, nodes=(*snapshot.nodes[:i], less, *snapshot.nodes[i + 1 :]))
    if snapshot.ray is not None:
        yield "Ray's tables", replace(snapshot, ray=None)
        for what, ray in _fields(snapshot.ray):
            yield f"Ray: {what}", replace(snapshot, ray=ray)


def _node(node: Node) -> Iterator[tuple[str, Node]]:
    for i, process in enumerate(node.processes):
        others = (*node.processes[:i], *node.processes[i + 1 :])
        yield f"process {process.pid}", replace(node, processes=others)
        for what, less in _fields(process):
            yield f"process {process.pid}: {what}", replace(node, processes=(*node.processes[:i], less, *node.processes[i + 1 :]))
    for what, less_node in _fields(node, skip=frozenset({"processes"})):
        yield what, less_node


def _fields(value: T, *, skip: frozenset[str] = frozenset()) -> Iterator[tuple[str, T]]:
    """Each field with a default set to it; of fields that hold structures also each of these left out, and each of their fields."""
    for field in msgspec.structs.fields(value):
        held: Any = getattr(value, field.name)
        default = field.default if field.default is not msgspec.NODEFAULT else None
        if field.name in skip | _NAMES | _WHOLE or held is None or held == default or held == () or held == {}:
            continue
        if field.default is not msgspec.NODEFAULT:
            yield field.name, _changed(value, field.name, default)
        if isinstance(held, tuple) and held and isinstance(held[0], Fact):
            for i, one in enumerate(held):
                rest = (*held[:i], *held[i + 1 :])
                yield f"{field.name}[{i}]", _changed(value, field.name, rest)
                for what, less in _fields(one):
                    yield f"{field.name}[{i}].{what}", _changed(value, field.name, (*held[:i], less, *held[i + 1 :]))


def _changed(value: T, name: str, to: Any) -> T:
    return replace(value, **{name: to})


def accused(report: Report) -> set[tuple[str | None, int | str | None]]:
    """Whom a report accuses with more than *possible*."""
    return {_key(w) for f in report.findings if f.certainty is not Certainty.POSSIBLE and f.root for w in f.who}


def allowed(snapshot: Snapshot) -> set[tuple[str | None, int | str | None]]:
    """Whom a report on less may accuse: the culprits of the whole, also by the addresses of their connections where their process is missing."""
    found = accused(diagnose(snapshot))
    culprits = (p for node in snapshot.nodes for p in node.processes if (node.name, p.pid) in found)
    addresses = {(None, socket.local) for p in culprits for socket in p.sockets or () if socket.state == "ESTABLISHED" and socket.local}
    return found | addresses | _parts(snapshot, found)


def _key(who: Who) -> tuple[str | None, int | str | None]:
    return (who.node, who.pid if who.pid is not None else who.label)


def _parts(snapshot: Snapshot, found: set[tuple[str | None, int | str | None]]) -> set[tuple[str | None, int | str | None]]:
    """Of those that left no process: the process whose part each was, which has another name without Ray's tables."""
    names = {one.name: one.key for one in build_view(snapshot)}
    told = ((node, *name.rpartition(" of ")) for node, name in found if isinstance(name, str))
    return {(node, f"{part} of {names[whose]}") for node, part, _, whose in told if whose in names}


def accuses_others(report: Report, less: Snapshot, culprits: set[tuple[str | None, int | str | None]]) -> bool:
    """Does a report on less accuse anybody who is not among these?"""
    others = accused(report) - culprits
    return bool(others) and not (len(others) == len(parts := _parts(less, others)) and parts <= culprits)


def wrong(snapshot: Snapshot, *, every: int = 1, start: int = 0) -> Iterator[tuple[str, Report, Snapshot]]:
    """Variants of which somebody is accused who is not accused of the whole snapshot. Of `every` variants one is judged."""
    culprits = allowed(snapshot)
    for number, (what, less) in enumerate(variants(snapshot)):
        if (number + start) % every == 0:
            report = diagnose(less)
            if accuses_others(report, less, culprits):
                yield what, report, less


def count(snapshot: Snapshot) -> int:
    return sum(1 for _ in variants(snapshot))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="cases.taken_away", description=__doc__)
    parser.add_argument("file", nargs="*", type=Path)
    parser.add_argument("--every", type=int, default=1, help="judge one of so many variants")
    parser.add_argument("--start", type=int, default=0, help="begin so many variants later: another sample of them")
    parser.add_argument("--keep", type=Path, help="keep the snapshots that accuse somebody there")
    options = parser.parse_args(arguments)
    total = bad = 0
    for file in options.file or RECORDED:
        snapshot = load((file,)).snapshot
        if snapshot is None:
            continue
        total += count(snapshot) // options.every
        for what, report, less in wrong(snapshot, every=options.every, start=options.start):
            bad += 1
            first = next(f for f in report.findings if f.certainty is not Certainty.POSSIBLE)
            print(f"{file.parent.name}/{file.name} without {what}: {first.id} {first.certainty.value} {first.summary}"[:300], flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{bad}.json.gz").write_bytes(encode_compressed(less))
    print(f"{bad} of {total} accuse somebody")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
