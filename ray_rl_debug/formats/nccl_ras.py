"""What NCCL RAS says, as JSON (2.28 and newer, also the malformed one of 2.28) or as text, read into `RasCommunicator`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgspec

from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import RasCommunicator, RasRank

MAX_RANKS = 1_000_000

# NCCL 2.28 leaves out commas between members of missing_ranks: after a value, at the end of a line, before the next name or object.
_NO_COMMA = re.compile(r'(["\d\]}]|true|false|null)([ \t]*\r?\n\s*)(?=["{])')
_EXTRA_COMMA = re.compile(r",(\s*[\]}])")

_HEAD = re.compile(r"^#\d+-\d+ \((?P<hash>[0-9a-f]+)\) (?P<what>[A-Z]+)")
_DIFFERENT = re.compile(r"^  Communicator ranks have different (?:(?P<op>\w+) operation counts|status)")
_MANY = re.compile(r"^  (?P<count>\d+) ranks? ha(?:ve|s) (?:launched up to operation (?P<n>\d+)|(?P<none>not launched any)|status (?P<status>\w+))")
_RANK = re.compile(
    r"^  Rank (?P<rank>\d+)(?: has (?:launched up to operation (?P<n>\d+)|(?P<none>not launched any operations)|status (?P<status>\w+)))? -- "
    r"(?:GPU (?P<gpu>\d+)\S* managed by process (?P<pid>\d+) on node (?P<host>\S+)|\[process information not found\])"
)
_PROCESS = re.compile(r"^  Process (?P<pid>\d+) on node (?P<host>\S+) managing GPU")


def is_ras(data: bytes) -> bool:
    """Does this look like an answer of RAS, or like what ``ncclras`` printed?"""
    head = data[:4096]
    if head.lstrip().startswith(b"{"):
        return b'"communicators"' in head and (b'"nccl_version"' in head or b'"communicators_count"' in head)
    return (b"NCCL version" in head or b"Job summary" in head) and b"Communicators..." in data[: 1 << 16]


def parse_ras(data: bytes) -> tuple[RasCommunicator, ...]:
    """The communicators of one answer.

    Raises:
        UnreadableFileError: neither of the two forms, or cut off.
    """
    text = data.decode("utf-8", "replace")
    start = text.find("{")
    if start != -1 and '"communicators"' in text[start : start + 4096]:
        return _from_json(text[start:])
    if "Communicators..." in text or "communicators" in text:
        return _from_text(text)
    raise UnreadableFileError("not an answer of NCCL RAS")


def _from_json(text: str) -> tuple[RasCommunicator, ...]:
    plain = _decode(text)
    listed = plain.get("communicators") if isinstance(plain, Mapping) else None
    if not isinstance(listed, list):
        raise UnreadableFileError("JSON without communicators")
    return tuple(_communicator(c) for c in listed if isinstance(c, Mapping))


def _decode(text: str) -> object:
    decoder = json.JSONDecoder()
    for attempt in (text, _EXTRA_COMMA.sub(r"\1", _NO_COMMA.sub(r"\1,\2", text))):
        try:
            return decoder.raw_decode(attempt)[0]
        except (ValueError, RecursionError):
            continue
    raise UnreadableFileError("JSON of RAS that is cut off or damaged")


def _communicator(plain: Mapping[str, object]) -> RasCommunicator:
    ranks = tuple(r for one in _list(plain.get("ranks")) if (r := _rank(one)) is not None)
    missing = tuple(r for one in _list(plain.get("missing_ranks")) if (r := _rank(one, lost=True)) is not None)
    name = str(plain.get("hash") or "?")
    second = plain.get("secondary_hash")
    return RasCommunicator(
        hash=f"{name}/{second}"[:80] if isinstance(second, str) else name[:80],
        size=_int(plain.get("size")) or len(ranks) + len(missing),
        ranks=ranks,
        missing=missing,
    )


def _rank(plain: object, *, lost: bool = False) -> RasRank | None:
    rank = _int(plain.get("rank")) if isinstance(plain, Mapping) else None
    if rank is None or not isinstance(plain, Mapping):
        return None
    counts = plain.get("collective_counts")
    host = plain.get("host")
    return RasRank(
        rank=rank,
        host=host[:200] if isinstance(host, str) and host else None,
        pid=_int(plain.get("pid")) or None,
        device=_int(plain.get("cuda_dev")),
        status=_status(plain.get("status"), lost),
        counts={str(op)[:40]: n for op, value in counts.items() if (n := _int(value)) is not None} if isinstance(counts, Mapping) else {},
    )


def _status(plain: object, lost: bool) -> str | None:
    """``running``, ``init``, ``abort``, ``finalize``; of those that do not answer ``dead``, ``unresponsive`` or None."""
    if not isinstance(plain, Mapping):
        return None
    if lost:
        return "dead" if plain.get("considered_dead") is True else "unresponsive" if plain.get("unresponsive") is True else None
    if plain.get("abort_flag") is True:
        return "abort"
    if plain.get("finalize_called") is True or plain.get("destroy_flag") is True:
        return "finalize"
    return "init" if _int(plain.get("init_state")) else "running"


def _from_text(text: str) -> tuple[RasCommunicator, ...]:
    """The communicators in trouble: only of those does the text name ranks. Where it says "so many ranks", their numbers are the ones not named."""
    found: dict[str, _Told] = {}
    told: _Told | None = None
    dead: set[tuple[str, int]] = set()
    section = ""
    for line in text.splitlines():
        if head := _HEAD.match(line):
            section = head["what"]
            told = found.setdefault(head["hash"], _Told())
        elif line.startswith(("DEAD", "INCOMPLETE", "TIMEOUT", "Errors", "Warnings")):
            section, told = line.split()[0], None
        elif told is None:
            if section == "DEAD" and (process := _PROCESS.match(line)):
                dead.add((process["host"], int(process["pid"])))
        else:
            told.take(section, line)
    return tuple(told.communicator(name, dead) for name, told in found.items())


class _Told:
    """What the text says of one communicator."""

    def __init__(self) -> None:
        self.missing: dict[int, RasRank] = {}
        self.ranks: dict[int, RasRank] = {}
        self.size = 0
        self._op: str | None = None
        self._value: int | str | None = None
        self._listed = 0
        self._unlisted: list[tuple[str | None, int | str, int]] = []
        self._pending: tuple[str | None, int | str, int] | None = None

    def take(self, section: str, line: str) -> None:
        if different := _DIFFERENT.match(line):
            self._close()
            self._op, self._value = different["op"], None
        elif many := _MANY.match(line):
            self._close()
            self._value = _value(many)
            self._pending = (self._op, self._value, int(many["count"]))
            self._listed = 0
        elif one := _RANK.match(line):
            self._one(section, one)

    def _one(self, section: str, one: re.Match[str]) -> None:
        rank = RasRank(
            rank=int(one["rank"]),
            host=one["host"],
            pid=int(one["pid"]) if one["pid"] else None,
            device=int(one["gpu"]) if one["gpu"] else None,
        )
        if section == "INCOMPLETE":
            self.missing[rank.rank] = rank
            return
        alone = bool(one["n"] or one["none"] or one["status"])
        said = _value(one) if alone else self._value
        if said is None:
            return
        self._listed += not alone
        self.ranks[rank.rank] = _with(self.ranks.get(rank.rank, rank), self._op, said)

    def _close(self) -> None:
        """The head of a list of ranks that did not follow: those ranks are the ones that nobody names."""
        if self._pending is not None and self._listed == 0:
            self._unlisted.append(self._pending)
        self._pending = None

    def communicator(self, name: str, dead: set[tuple[str, int]]) -> RasCommunicator:
        self._close()
        count = max((n for _, _, n in self._unlisted), default=0)
        size = count + len(self.ranks) + len(self.missing)
        others = [r for r in range(min(size, MAX_RANKS)) if r not in self.ranks and r not in self.missing]
        if len(others) == count:
            for op, value, n in self._unlisted:
                if n == count:
                    self.ranks.update({r: _with(self.ranks.get(r, RasRank(rank=r)), op, value) for r in others})
        known = size if self.ranks else 0  # of one that lacks ranks the text does not say how many there are
        missing = tuple(
            msgspec.structs.replace(r, status="dead") if (r.host or "", r.pid or 0) in dead else r for _, r in sorted(self.missing.items())
        )
        return RasCommunicator(hash=f"0x{name.lstrip('0')}", size=known, ranks=tuple(r for _, r in sorted(self.ranks.items())), missing=missing)


def _value(found: re.Match[str]) -> int | str:
    if found["status"]:
        return found["status"].lower()
    return int(found["n"]) if found["n"] else 0


def _with(rank: RasRank, op: str | None, value: int | str) -> RasRank:
    if isinstance(value, str):
        return msgspec.structs.replace(rank, status=value)
    return msgspec.structs.replace(rank, counts={**rank.counts, op or "?": value})


def _list(value: object) -> list[object]:
    return value[:MAX_RANKS] if isinstance(value, list) else []


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None
