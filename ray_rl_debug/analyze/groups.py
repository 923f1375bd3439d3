"""In which of torch's process groups a rank waits: names and members compare between processes, addresses do not."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.model.snapshot import Process, ThreadSample

_ADDRESS = re.compile(r"<[\w.]*ProcessGroup(?: object)? at 0x([0-9a-f]+)>")
_RANKS = re.compile(r"\[\d+(?:, \d+)*\]")


class GroupId(msgspec.Struct, frozen=True, kw_only=True):
    """A process group as all its members know it."""

    name: str
    members: tuple[int, ...]
    """By rank in the default group."""
    is_default: bool = False

    @property
    def words(self) -> str:
        """``the default group``, ``group 3 (ranks 0, 2)``."""
        some = ", ".join(map(str, self.members[:6])) + (", ..." if len(self.members) > 6 else "")
        return "the default group" if self.is_default else f"group {self.name} (ranks {some})"


def may_be_known(process: Process, place: Place) -> bool:
    """Can locals of a thread that stands here tell its group? A creation names its group; others are found in torch's table of groups."""
    if place.kind is Kind.NEW_GROUP:
        return True
    return process.torch is not None and place.kind in WAITS_FOR_RANKS and place.kind not in (Kind.P2P, Kind.RENDEZVOUS)


def group_of(process: Process, place: Place, sample: ThreadSample) -> GroupId | None:
    """The group of the collective, or of the creation, in which a thread stands; None where it stands in none, or it was not read."""
    if not may_be_known(process, place) or not sample.locals:
        return None
    by_frame: dict[int, dict[str, str]] = {}
    for local in sample.locals:
        by_frame.setdefault(local.frame, {})[local.name] = local.value
    return _created(by_frame) if place.kind is Kind.NEW_GROUP else _used(process, by_frame)


def _created(frames: Mapping[int, Mapping[str, str]]) -> GroupId | None:
    name = next((v["group_name"].strip("\"'") for v in frames.values() if v.get("group_name", "None") != "None"), None)
    ranks = next((v["ranks"] for _, v in sorted(frames.items()) if _RANKS.fullmatch(v.get("ranks", ""))), None)
    return GroupId(name=name, members=tuple(map(int, ranks.strip("[]").split(", ")))) if name and ranks else None


def _used(process: Process, frames: Mapping[int, Mapping[str, str]]) -> GroupId | None:
    if process.torch is None:
        return None
    told = next((v["group"] for _, v in sorted(frames.items()) if "group" in v), None)
    if told is None:
        return None
    address = _ADDRESS.fullmatch(told)
    for group in process.torch.groups:
        same = group.is_default if told == "None" else address is not None and group.address == int(address[1], 16)
        if same and group.members is not None:
            return GroupId(name=group.name, members=group.members, is_default=group.is_default)
    return None
