"""Logs of one JSON object per line, as structured loggers and container runtimes write them, as the plain lines that they stand for."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import msgspec

_TEXT = ("message", "msg", "log", "event", "text", "body", "MESSAGE")
_LEVEL = ("level", "levelname", "severity", "lvl", "level_name")
_TIME = ("time", "timestamp", "@timestamp", "asctime", "ts", "t")
_TRACE = ("exc_info", "exception", "traceback", "stack_trace", "stack", "exc_text", "error")
_REASON = ("error", "err", "exception", "exc", "reason", "cause", "detail")
_RANK = ("rank", "local_rank", "RankID")
_PID = ("pid", "process", "process_id")
_NODE = ("node", "host", "hostname", "pod", "pod_name", "instance")
_OF_WRITER = ("labels", "extra", "context", "resource", "kubernetes", "process", "host", "fields", "attributes")
"""Objects in a record that hold who wrote it, in the manner of clouds and of structured loggers."""
MAX_MARK_CHARS = 160
_BEHIND = " :]>|"
"""Ends a mark in front of a record."""
_NAMES_LEVEL = re.compile(rf'"(?:{"|".join(_LEVEL)})": ?"')
_COUNTED = re.compile(r"(\d{10})\.(\d{1,9})$")
_PAIRS = re.compile(r"(?:time|ts|t|timestamp|level|lvl)=(?:\"[^\"\n]{0,60}\"|\S{1,60}) \w")
_PAIR = re.compile(r"(?P<key>[A-Za-z_][\w.]{0,40})=(?P<value>\"(?:[^\"\\\n]|\\.)*\"|\S*)")
_SPELLED_WORD = re.compile(r"^\d{4}-\d\d-\d\d(?:T\S+| [\d:.,]+\S*) ")
_SPELLED_TIME = re.compile(r"^\d{4}-\d\d-\d\d[T ]")


def plain_behind_marks(line: str) -> str | None:
    """The same for an object that stands behind a stamp or another mark: these stay in front. Only a record is read so, which names its level."""
    at = line.find('{"')
    if not (0 <= at <= MAX_MARK_CHARS and line.endswith("}") and (at == 0 or (line[at - 1] in _BEHIND and _NAMES_LEVEL.search(line, at)))):
        return None
    plain = plain_line(line[at:])
    if plain is None or at == 0:
        return plain
    return line[:at] + _SPELLED_WORD.sub("", plain)


def plain_line(line: str) -> str | None:
    """``2026-11-21T00:30:13Z ERROR [rank3] text: reason``, then the object's traceback with spelled-out line ends; None when it is no such object."""
    if not (line.startswith("{") and line.endswith("}")):
        return None
    try:
        got = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return _spelled(got) if isinstance(got, dict) else None


def plain_of_pairs(line: str) -> str | None:
    """The same for a record of pairs, ``time="…" level=error msg="…" rank=3``, also behind marks; None when it is no such record."""
    found = _PAIRS.search(line[: MAX_MARK_CHARS + 160])
    if found is None or found.start() > MAX_MARK_CHARS or (found.start() and line[found.start() - 1] not in _BEHIND):
        return None
    got: dict[object, object] = {}
    for pair in _PAIR.finditer(line, found.start()):
        value = pair["value"]
        got.setdefault(pair["key"], value[1:-1].replace('\\"', '"') if value.startswith('"') and len(value) > 1 else value)
    if not any(key in got for key in _LEVEL) or not any(key in got for key in _TEXT):
        return None
    plain = _spelled(got)
    return line[: found.start()] + plain if plain is not None else None


def _spelled(got: dict[object, object]) -> str | None:
    text = _first(got, _TEXT)
    if text is None:
        return None
    time, level = _time(got), _first(got, _LEVEL)
    parts = [time] if time is not None and _SPELLED_TIME.match(time) else []
    if level is not None and level.isalpha():
        parts.append(level.upper())
    node, rank, pid = (_first(got, keys) or _beneath(got, keys) for keys in (_NODE, _RANK, _PID))
    named = [f"{key}={value}" for key, value in (("node", node), ("rank", rank), ("pid", pid)) if value]
    if named:
        parts.append(f"({', '.join(named)})")
    trace = _first(got, _TRACE)
    reason = _first(got, _REASON)
    if reason is not None and not reason.isdigit() and "\n" not in reason and reason not in text:
        text = f"{text}: {reason}"
    told = text.rstrip("\n") + (f"\n{trace}" if trace and "\n" in trace and "Traceback" in trace else "")
    return " ".join([*parts, told.replace("\n", "\\n")])


def _beneath(got: dict[object, object], keys: tuple[str, ...]) -> str | None:
    """The same of an object in it that says whose record it is."""
    for name in _OF_WRITER:
        inner = got.get(name)
        if isinstance(inner, dict) and (value := _first(inner, keys)) is not None:
            return value
    return None


def _time(got: dict[object, object]) -> str | None:
    """The time, spelled out where it counts from 1970: in seconds, or in thousandths, millionths or milliardths of them."""
    time = _first(got, _TIME)
    if time is not None and (counted := _COUNTED.match(time)):
        time = f"{counted[1]}{counted[2]:0<6.6}"
    if time is None:
        whole = next((value for key in _TIME if isinstance(value := got.get(key), float) and 1e9 <= value < 1e10), None)
        time = str(int(whole * 1e6)) if whole is not None else None
    if time is None or not time.isdigit() or len(time) not in (10, 13, 16, 19):
        return time
    return f"{datetime.fromtimestamp(int(time[:10]), tz=timezone.utc):%Y-%m-%dT%H:%M:%S}.{time[10:] or '0'}Z"


def _first(got: dict[object, object], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = got.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None
