"""The beginning of a log line: who wrote it, when, and at which level. Programs put several of these in front of each other."""

from __future__ import annotations

import functools
import re

import msgspec

from ray_rl_debug.logs import marks
from ray_rl_debug.logs.json_lines import plain_behind_marks, plain_of_pairs
from ray_rl_debug.logs.stamps import STAMP, read_stamp
from ray_rl_debug.logs.words import EXCEPTION, OF_A_SAMPLE
from ray_rl_debug.model.snapshot.log_book import LogWriter

COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\[(?:\d{1,2}(?:;\d{1,2})*)m")
"""Colours, also those that lost their escape byte on the way."""
_QUOTED = re.compile(r"(?:> ?){1,4}")
"""Before a line that somebody quotes in an answer."""
MAX_PARTS = 10
MAX_RECORDS = 2
"""Within each other: a container runtime keeps the record of a program in one of its own."""
KEPT_HEADS = 512
"""Read last: of a failure and what stands around it the same lines are asked for many times."""

LEVELS = {
    **dict.fromkeys(("DEBUG", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4", "DEBUG5", "TRACE", "VERBOSE", "D"), "D"),
    **dict.fromkeys(("INFO", "INFO_MESSAGE", "NOTICE", "NOTE", "SUCCESS", "I"), "I"),
    **dict.fromkeys(("WARNING", "WARN", "W"), "W"),
    **dict.fromkeys(("ERROR", "ERR", "E", "SEVERE"), "E"),
    **dict.fromkeys(("FATAL", "CRITICAL", "EMERG", "ALERT", "PANIC", "F", "C"), "F"),
}
_SEPARATORS = " \t|-:,;>"
_OPTION = re.compile(r"--[A-Za-z]")
"""No separator: ``--BEGIN OUTPUT--``, ``--lr=3``."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in front of the text of a line."""

    writer: LogWriter
    text: str
    level: str | None = None
    time_s: float | None = None
    is_zoned: bool = False
    is_stamped: bool = False
    """Its program gave it a time: a record begins. Who collects lines stamps each of them."""
    source: str | None = None
    """Line of code that wrote it, ``core.py:710``."""
    indent: int = 0
    """Blanks in front of `text`."""


class _Found:
    def __init__(self) -> None:
        self.node: str | None = None
        self.ip: str | None = None
        self.pid: int | None = None
        self.rank: str | None = None
        self.program: str | None = None
        self.level: str | None = None
        self.time_s: float | None = None
        self.is_zoned = False
        self.is_stamped = False
        self.source: str | None = None
        self.marked = False
        self.is_tool = False
        """A program that names others in its lines, but no loggers."""


@functools.lru_cache(KEPT_HEADS)
def read_head(line: str, *, near_s: float | None = None) -> Head:
    """Peel the marks off one line, which has no line end.

    Args:
        near_s: A time near this line, for stamps without a year or a day.
    """
    if "\x1b" in line:
        line = COLOUR.sub("", line)
    for _ in range(MAX_RECORDS):
        plain = None
        if line.endswith(("}", "}\r")):
            plain = plain_behind_marks(line.rstrip())
        elif "level=" in line or "lvl=" in line:
            plain = plain_of_pairs(line)
        if plain is None:
            break
        line = plain
    if "[" in line:
        line = COLOUR.sub("", line)
    line = _last_part(line)
    if line.startswith("> "):
        line = _QUOTED.sub("", line, count=1)
    got = _Found()
    at = _blank(line, 0)
    for _ in range(MAX_PARTS):
        after = _part(line, at, got, near_s)
        if after is None or after <= at:
            break
        at = after
    text = line[at:]
    stripped = text.lstrip(" \t")
    writer = LogWriter(node=got.node, ip=got.ip, pid=got.pid, rank=got.rank, program=got.program)
    indent = len(text) - len(stripped)
    if not got.marked:
        indent = _blank(line, 0)
    return Head(
        writer=writer,
        text=stripped.rstrip(),
        level=got.level,
        time_s=got.time_s,
        is_zoned=got.is_zoned,
        is_stamped=got.is_stamped,
        source=got.source,
        indent=indent,
    )


def _last_part(line: str) -> str:
    """What a terminal would show of a line that a progress bar wrote over."""
    line = line.rstrip("\r")
    cut = line.rfind("\r")
    line = line if cut == -1 else line[cut + 1 :]
    bar = marks.BAR.search(line) if "<" in line else None
    return line if bar is None else line[bar.end() :]


def _blank(line: str, at: int) -> int:
    while at < len(line) and line[at] in " \t":
        at += 1
    return at


def _part(line: str, at: int, got: _Found, near_s: float | None) -> int | None:
    """Read one mark; where the next begins, or None."""
    if at >= len(line):
        return None
    first = line[at]
    if first == "(":
        return _parenthesis(line, at, got)
    if first in "[rR" and got.rank is None and (found := marks.BARE_RANK.match(line, at)):
        got.rank = found["rank"] or found["named"]
        return _done(got, found.end())
    if first == "[":
        return _bracket(line, at, got, near_s)
    if first == "<" and (found := marks.STREAM.match(line, at) or (marks.PRIORITY.match(line, at) if at == 0 else None)):
        return _done(got, found.end())
    if (first.isdigit() or first in "AIWEFJMSOND") and not got.is_stamped and (found := STAMP.match(line, at)):
        return _stamp(line, found, got, near_s)
    if at == 0 and first in "DIWEF" and (found := marks.LETTER_IN_FRONT.match(line)):
        got.level = LEVELS[first]
        return _done(got, found.end())
    if first.isdigit() and got.rank is None and (found := marks.SRUN.match(line, at)):
        got.rank = found["rank"]
        return _done(got, found.end())
    if first.isalpha() or first == "_":
        return _word(line, at, got)
    if (
        (first.isdigit() or first == " ")
        and got.time_s is not None
        and (found := marks.PID_TID.match(line, at))
        and got.pid in (None, int(found["pid"]))
    ):
        got.pid = int(found["pid"])
        return found.end()
    if first.isdigit() and got.is_stamped and got.level is None and (found := marks.NUMBER_AND_LEVEL.match(line, at)):
        got.pid, got.level = int(found[0].split(":", 1)[0]), LEVELS[found["level"]]
        return found.end()
    if first.isdigit() and got.pid is None and (found := marks.NCCL.match(line, at)):
        return _nccl(found, got)
    if (first.isdigit() or first == "{") and (columns := _columns(line, at, got)) is not None:
        return columns
    if got.marked and first in _SEPARATORS and not line.startswith(("---", "    ", ">>> "), at) and not _OPTION.match(line, at):
        end = at
        while end < len(line) and line[end] in "|-:,;>":
            end += 1
        if end > at:
            if padded := marks.PADDED.match(line, end):
                return padded.end()
            return end + (end < len(line) and line[end] == " ")
        return at + 1 if line[at + 1 : at + 2] in tuple("[(|-DIWEFCN") else None
    return None


def _done(got: _Found, end: int) -> int:
    got.marked = True
    return end


def _stamp(line: str, found: re.Match[str], got: _Found, near_s: float | None) -> int | None:
    stamp = read_stamp(found, near_s=near_s)
    got.marked = True
    if stamp is None:
        got.is_stamped = found["h5"] is not None
        return found.end()
    if got.time_s is None:
        got.time_s, got.is_zoned = stamp.time_s, stamp.is_zoned
    got.level = stamp.level or got.level
    got.is_stamped = marks.COLLECTED.match(line, found.start()) is None and not _stamp_at(line, stamp.end + 1)
    at = stamp.end
    if stamp.level and (tail := marks.GLOG_TAIL.match(line, at)):
        got.pid, got.source = int(tail["pid"]), tail["source"]
        return tail.end()
    if numbered := marks.PID_AND_LEVEL.match(line, at):
        got.pid, got.level = int(numbered["pid"]), LEVELS[numbered["level"]]
        return numbered.end()
    if kube := marks.KUBE.match(line, at + 1):
        return kube.end()
    syslog = marks.SYSLOG.match(line, at + 1)
    if syslog and (found["named"] or (syslog["pid"] and syslog["node"].upper() not in LEVELS)):
        got.node, got.program, got.is_stamped = syslog["node"], syslog["program"], False
        got.pid = int(syslog["pid"]) if syslog["pid"] else got.pid
        return syslog.end()
    # One blank belongs to the stamp; more are the text's own.
    return at + (line[at : at + 1] in (" ", "\t") and line[at : at + 1] != "")


def _stamp_at(line: str, at: int) -> bool:
    """Does another stamp follow, that of the program? Then the one before it is of who collects the lines."""
    found = STAMP.match(line, at + (line[at : at + 1] == "["))
    return found is not None and found["h5"] is None


def _parenthesis(line: str, at: int, got: _Found) -> int | None:
    if family := marks.OF_A_FAMILY.match(line, at):
        return _done(got, family.end())
    found = marks.WITH_PID.match(line, at)
    if found is None:
        return None
    inner = found["inner"]
    if python := marks.OF_PYTHON.match(inner):
        got.pid = int(python[1])
        return _done(got, found.end())
    keys = {one["key"].lower(): one["value"] for one in marks.KEYED.finditer(inner)}
    if not keys and not inner.startswith(("raylet", "gcs_server", "autoscaler")):
        return None
    got.node = keys.get("node", got.node)
    name = re.split(r",? ?\b(?:pid|PID|ip|rank|node)[=:]|,", inner, maxsplit=1)[0].split(" +")[0].strip()
    if "repeated" in name:
        return None
    # An engine's line that Ray hands on has both marks: the inner one is nearer to the writer.
    got.program = name or got.program
    got.pid = int(keys["pid"]) if keys.get("pid", "").isdigit() else got.pid
    got.ip = keys.get("ip", got.ip)
    got.rank = keys.get("rank", keys.get("rankid", got.rank))
    return _done(got, found.end())


def _bracket(line: str, at: int, got: _Found, near_s: float | None) -> int | None:
    found = marks.BRACKET.match(line, at)
    if found is None:
        return None
    if ompi := None if got.marked else marks.OF_OPEN_MPI.match(line, at):
        got.node, got.rank, got.source = ompi["node"], ompi["rank"], ompi["source"]
        return _done(got, ompi.end())
    if ucx := marks.OF_UCX.match(line, at):
        got.node, got.pid, got.level, got.source = ucx["node"], int(ucx["pid"]), LEVELS.get(ucx["level"], "D"), ucx["source"]
        return _done(got, ucx.end())
    inner = found["inner"].strip()
    if told := marks.LEVEL_AND_SOURCE.match(inner):
        got.level, got.source = LEVELS[told["level"]], told["source"]
        return _done(got, found.end())
    if not got.marked and (chromium := marks.OF_CHROMIUM.match(inner)):
        got.level, got.source, got.is_stamped = LEVELS[chromium["level"]], f"{chromium['source']}:{chromium['line']}", True
        return _done(got, found.end())
    if not got.marked and (named := marks.NAME_AND_LEVEL.match(line, at)):
        return _done(got, named.end())
    if got.rank is not None and marks.OF_TORCH.match(inner):
        return _done(got, found.end())
    if rank := marks.RANK.match(inner):
        got.rank = rank["rank"]
        return _done(got, found.end())
    if role := marks.ROLE.match(inner):
        return _role(role, got, found.end())
    if mpi := marks.MPI.match(inner):
        got.rank, got.node = mpi["rank"], mpi["node"] or got.node
        return _done(got, found.end())
    if inner.upper() in LEVELS and len(inner) > 1:
        got.level = LEVELS[inner.upper()]
        return _done(got, found.end())
    if not got.is_stamped and (time := STAMP.search(line, at, found.end())):
        stamp = read_stamp(time, near_s=near_s)
        if stamp is not None:
            if got.time_s is None:
                got.time_s, got.is_zoned = stamp.time_s, stamp.is_zoned
            got.is_stamped = not _stamp_at(line, found.end())
            got.level = stamp.level or got.level
        if got.level is None and (letter := marks.LETTER.match(inner)):
            got.level = LEVELS[letter["level"]]
        rest = line[time.end() : found.end()].rstrip(" :").removesuffix("]")
        if numbers := marks.RAY_NUMBERS.search(rest):
            got.level, got.pid = LEVELS[numbers["level"]], int(numbers["pid"])
        if parts := marks.PARTS.search(rest):
            got.rank = parts[1]
        return _done(got, found.end())
    if got.is_stamped and got.level and got.pid is None and inner.isdigit() and line.startswith("[", found.end()):
        got.pid = int(inner)  # ``ERROR [924] [client.hpp:54] ``
        return found.end()
    if inner.startswith("pod/"):
        got.node = inner.split("/")[1]
        return _done(got, found.end())
    if group := marks.OF_GROUP.search(inner):
        got.rank = group["rank"]
        return _done(got, found.end())
    if pid := marks.PID.match(inner) or (None if got.marked else marks.HOST_PID.match(inner)):
        got.pid = int(pid["pid"])
        got.node = pid.groupdict().get("node") or got.node
        return _done(got, found.end())
    for one in marks.KEYED.finditer(inner):
        key, value = one["key"].lower(), one["value"]
        if key == "pid" and value.isdigit():
            got.pid = int(value)
        elif key in ("rank", "rankid") and value.isdigit():
            got.rank = value
    if re.match(r"^[EWIF](?: |$)", inner):
        got.level = inner[0]
        return _done(got, found.end())
    is_of_a_sample = inner in ("tool", "observation", "agent") or OF_A_SAMPLE.match(line, at)
    source = re.match(r"^[\w./-]+\.(?:py|cc|cpp|cu|h):\d+", inner)
    if (got.marked and not is_of_a_sample) or source:
        got.source = source[0] if source else got.source
        return _done(got, found.end())
    return None


def _role(found: re.Match[str], got: _Found, end: int) -> int:
    got.program, got.rank = found["role"] or found["role2"], found["rank"] or found["rank2"]
    return _done(got, end)


def _word(line: str, at: int, got: _Found) -> int | None:
    if found := marks.LEVEL.match(line, at):
        got.level = "F" if got.level == "F" else LEVELS[found["level"]]  # ``FATAL ERROR ::``
        return _done(got, found.end())
    if found := marks.LOW_LEVEL.match(line, at):
        got.level = LEVELS[found["level"].upper()]
        return _done(got, found.end())
    if got.is_stamped and got.level is None and (found := marks.LOGGER_AND_LEVEL.match(line, at)):
        got.level = LEVELS[found["level"]]
        return found.end()
    if got.time_s is not None and got.level is None and (found := marks.LOGGER_LEVEL.match(line, at)):
        got.level, got.rank = LEVELS[found["level"]], found["rank"] or got.rank
        return found.end()
    if got.time_s is not None and got.level is None and (found := marks.DOTTED_LEVEL.match(line, at) or marks.TF_LEVEL.match(line, at)):
        got.level = LEVELS[found["level"]]
        return found.end()
    if found := marks.NCCL.match(line, at):
        return _nccl(found, got)
    if not got.marked and at == 0 and (found := marks.OF_SYSTEMD.match(line) or marks.OF_MODULE.match(line)):
        got.program = found.groupdict().get("program")
        return _done(got, found.end())
    if not got.marked and (found := marks.HOST_OF_TOOL.match(line, at)):
        got.node = found["node"]
        return _done(got, found.end())
    if found := marks.NAMED.match(line, at):
        got.program, got.node, got.is_tool = found["program"].split("-")[0] if found["node"] else found["program"], found["node"] or got.node, True
        return _done(got, found.end())
    if got.level and (found := marks.OF_CANN.match(line, at)):
        got.pid = int(found["pid"])
        return found.end()
    if got.level and (found := marks.SOURCE.match(line, at)):
        got.source = found[0].rstrip("] ")
        return found.end()
    if got.node is None and not got.marked and (found := marks.COMPOSE.match(line, at) or marks.HOST.match(line, at) or marks.POD.match(line, at)):
        got.node = found["node"]
        return _done(got, found.end())
    if got.time_s is not None and (found := marks.ROLE_COLUMN.match(line, at)) and (role := marks.ROLE.match(found["name"])):
        return _role(role, got, found.end())
    if got.marked and got.rank is None and (found := marks.RANK_FIELD.match(line, at)):
        got.rank = found["rank"] or found["named"]
        return found.end()
    if got.program == "systemd" and (found := marks.UNIT.match(line, at)):
        got.program, got.pid = found["program"], None
        return found.end()
    if got.marked and not got.is_tool and (got.level or got.is_stamped) and (found := marks.LOGGER.match(line, at)) and not _is_exception(found[0]):
        if got.source is None and (source := marks.SOURCE_FILE.match(found[0])):
            got.source = source[0]
        return found.end()
    return _columns(line, at, got)


def _columns(line: str, at: int, got: _Found) -> int | None:
    found = marks.COLUMNS.match(line, at) if got.is_stamped and got.level is None else None
    if found is None:
        return None
    got.level = LEVELS[found["level"]]
    return found.end()


def _is_exception(word: str) -> bool:
    return re.search(r"(?:Error|Exception|Interrupt|Exit): $", word) is not None or EXCEPTION.match(word.rstrip()) is not None


def _nccl(found: re.Match[str], got: _Found) -> int:
    got.node, got.pid = found["node"], int(found["pid"])
    return _done(got, found.end())
