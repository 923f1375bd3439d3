"""Ranks that wait in the creation of one process group and do not agree on its size: it can never be complete.

Each rank's own numbers are torch's locals: ``world_size`` and ``rank`` of a rendezvous, ``group_size`` and ``group_rank`` of the creation behind
it. Groups made from inside another (``new_group``) are left out: there several sizes at a time are usual.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank holds for true about the group that it creates."""

    one: Seen
    rank: int
    size: int
    port: int | None = None
    """Where the store listens, where the rank still waits at it."""
    group: str | None = None


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that together look like one group, with more than one size among them."""

    claims: tuple[Claim, ...]
    odd: tuple[Claim, ...]
    """Those whose size or place is the rarest; in a tie all."""
    is_of_places: bool = False
    """They agree how many they are, and meet at different addresses."""

    def text(self) -> str:
        """``trainer says 4 ranks, eng0 and eng1 say 3``; ``rank 0 (pid 7) at port 29500, rank 1 (pid 8) at port 29501``."""
        if self.is_of_places:
            return ", ".join(f"rank {c.rank} ({c.one.name}) at port {c.port}" for c in self.claims[:4])
        by_size: dict[int, list[str]] = defaultdict(list)
        for claim in self.claims:
            by_size[claim.size].append(claim.one.name)
        sides = sorted(by_size.items(), key=lambda side: len(side[1]))
        first, *rest = (f"{_names(names)} {'says' if len(names) == 1 else 'say'} {size}" for size, names in sides)
        return ", ".join([f"{first} ranks", *rest])


def find_disagreements(view: View) -> list[Disagreement]:
    """One for each job in which ranks claim different sizes of what looks like one group."""
    by_job: dict[str | None, list[Claim]] = defaultdict(list)
    for one in view.at(Kind.RENDEZVOUS):
        claim = claim_of(one)
        if claim is not None:
            by_job[one.identity.job_id].append(claim)
    found = [_disagreement(group) or _apart(group) for claims in by_job.values() for group in _by_group(claims)]
    return [d for d in found if d is not None]


def _apart(claims: list[Claim]) -> Disagreement | None:
    """Ranks that would make one complete group, and wait for each other at different ports."""
    by_port: dict[int | None, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_port[claim.port].append(claim)
    whole = len(claims) > 1 and len({c.size for c in claims}) == 1 and sorted(c.rank for c in claims) == list(range(claims[0].size))
    if not whole or len(by_port) < 2 or None in by_port:
        return None
    least = min(map(len, by_port.values()))
    odd = tuple(c for some in by_port.values() if len(some) == least for c in some)
    return Disagreement(claims=tuple(sorted(claims, key=lambda c: c.rank)), odd=odd, is_of_places=True)


def _by_group(claims: list[Claim]) -> Iterator[list[Claim]]:
    """Claims of each name. A rank that waits at its store has not told the name yet: it goes with those who are connected to it."""
    names = {c.group for c in claims if c.group is not None}
    if len(names) < 2:
        yield claims
        return
    for name in sorted(names):
        named = [c for c in claims if c.group == name]
        yield named + [c for c in claims if c.group is None and c.port is not None and all(c.port in _ports(n.one, "ESTABLISHED") for n in named)]


def size_edges(view: View) -> Iterator[Edge]:
    """From every rank of a group that cannot be complete to those whose number is the odd one."""
    for found in find_disagreements(view):
        for claim in found.claims:
            for odd in found.odd:
                if odd.size != claim.size or (found.is_of_places and odd.port != claim.port):
                    evidence = f"waits for a group of {claim.size}; {odd.one.identity.label} for one of {odd.size}"
                    if found.is_of_places:
                        evidence = f"waits at port {claim.port}; {odd.one.identity.label} at port {odd.port}"
                    op = claim.one.place.op if claim.one.place else "init"
                    yield Edge(source=claim.one.key, target=odd.one.key, why=Why.COLLECTIVE, op=op, evidence=evidence, certainty=Certainty.LIKELY)


def claim_of(one: Seen) -> Claim | None:
    """What a rank in a rendezvous holds for true, by torch's own variables; None where they were not read, or it moves."""
    if one.telling is None or one.motion is Motion.MOVING or one.is_stopped:
        return None
    frames: dict[int, dict[str, str]] = defaultdict(dict)
    for local in one.telling.sample.locals:
        frames[local.frame][local.name] = local.value
    size, rank = _first(frames, "world_size", "rank") or _first(frames, "group_size", "group_rank") or (0, 0)
    if size < 1 or not 0 <= rank < size:
        return None
    port = next((_number(v["port"]) for v in frames.values() if "port" in v), None)
    group = next((v["group_name"].strip("\"'") for v in frames.values() if v.get("group_name", "None") != "None"), None)
    return Claim(one=one, rank=rank, size=size, port=port, group=group)


def _first(frames: dict[int, dict[str, str]], size: str, rank: str) -> tuple[int, int] | None:
    """The innermost frame that has both."""
    for _, values in sorted(frames.items()):
        found = _number(values.get(size)), _number(values.get(rank))
        if found[0] is not None and found[1] is not None:
            return found[0], found[1]
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.removeprefix("-").isdigit() else None


def _disagreement(claims: list[Claim]) -> Disagreement | None:
    sizes: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        sizes[claim.size].append(claim)
    ranks = [c.rank for c in claims]
    # twice the same rank: these are groups of their own; and one that is complete is not in anybody's way
    if len(sizes) < 2 or len(set(ranks)) < len(ranks) or 0 not in ranks or any(len(c) == size for size, c in sizes.items()):
        return None
    first = next(c for c in claims if c.rank == 0)
    stores = _ports(first.one, "LISTEN")
    if first.port is not None:
        stores &= {first.port}
    if not set.intersection(stores, *(_ports(c.one, "ESTABLISHED") for c in claims if c is not first)):
        return None  # they do not meet at the first rank's store
    least = min(map(len, sizes.values()))
    return Disagreement(
        claims=tuple(sorted(claims, key=lambda c: c.rank)),
        odd=tuple(c for of_size in sizes.values() if len(of_size) == least for c in of_size),
    )


def _ports(one: Seen, state: str) -> set[int | None]:
    """Ports that it listens at, or that it is connected to."""
    sockets = [s for s in one.process.sockets or () if s.family.startswith("tcp") and s.state == state]
    return {_number(((s.local if state == "LISTEN" else s.remote) or "").rpartition(":")[2]) for s in sockets}


def _names(names: list[str]) -> str:
    shown = names[:4] + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
