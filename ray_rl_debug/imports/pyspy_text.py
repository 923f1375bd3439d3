"""The text of ``py-spy dump``, as people paste it: quoted, prefixed by log collectors, shortened, annotated, several ranks in one file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ray_rl_debug.formats.dump import CodePlace, Dump, DumpThread
from ray_rl_debug.imports.titles import safe_title

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PROCESS = re.compile(r"^(?P<prefix>.{0,120}?)\bProcess (?P<pid>\d+)(?:: (?P<title>.*))?$")
_PYTHON = re.compile(r"Python v(?P<version>\d+\.\d+)")
_THREAD = re.compile(
    r"^(?P<prefix>.{0,120}?)\bThread (?P<tid>0x[0-9a-fA-F]+|\d+)"
    r"(?: \((?P<state>active\+gil|active|idle|gil|[^()]{0,40})\))?(?:: ?\"(?P<name>[^\"]*)\"?)?:?\s*$"
)
_PREFIX_PID = re.compile(r"\bpid[=: ](\d+)")
_LOCATION = re.compile(r"\s\((?P<file>[^()\s][^()]*?)(?::(?P<line>\d+))?\)")
_AT = re.compile(r"^(?P<function>\S.*?) @ (?P<file>[^\s:]+)(?::(?P<line>\d+))?")
_PATH_LIKE = re.compile(r"\.(?:pyx?|so(?:\.[\d.]+)?|c|cc|cpp|cu|h|hpp|rs|dylib)$|/|^<.*>$|^\[?\w+\]?$|^python[\d.]*$")
_NAMED_RANKS = re.compile(r"^\s*(?P<role>[A-Za-z_]{1,20})(?P<ranks>\d+(?:[,-]\d+)*): (?P<rest>.*\(.*\).*)$")
_ADDRESS = re.compile(r"^0x[0-9a-fA-F]{4,16}$")
_LOCALS_HEAD = re.compile(r"^\s*(?:Arguments|Locals):\s*$")
_MAX_LINE = 8000
_MAX_THREADS = 20_000


def read(lines: Iterable[str]) -> list[Dump]:
    """The processes in the text, in their order. What is no stack is passed over; a file without stacks gives an empty list."""
    reader = _Reader()
    for line in lines:
        reader.feed(_ANSI.sub("", line[:_MAX_LINE]).rstrip())
    return [d for d in reader.dumps if d.threads]


def parse_frame(text: str) -> list[CodePlace]:
    """The frames of one line, innermost first: one, several for ``a -> b (file:1)``, none when the line is no frame."""
    text = text.strip()
    if _ADDRESS.match(text):
        return [(text, "", 0)]
    for found in _LOCATION.finditer(text):
        file = found["file"]
        if found["line"] is None and not _PATH_LIKE.search(file):
            continue
        function = text[: found.start()].strip()
        if not function:
            return []
        names = [n.strip() for n in function.split(" -> ")] if " -> " in function else [function]
        inner = (names[-1], file, int(found["line"] or 0))
        return [inner, *((name, "", 0) for name in reversed(names[:-1]))]
    if at := _AT.match(text):
        return [(at["function"], at["file"], int(at["line"] or 0))]
    return []


class _Reader:
    """What the lines so far have said."""

    def __init__(self) -> None:
        self.dumps: list[Dump] = []
        self._prefix = ""
        self._open: list[DumpThread] = []
        """Threads that share the frames to come: several headers may stand over one stack."""
        self._frames: list[CodePlace] = []
        self._locals_indent: int | None = None
        self._count = 0

    def feed(self, line: str) -> None:
        if found := _PROCESS.match(line):
            self._start_process(int(found["pid"]), found["title"], found["prefix"])
        elif found := _THREAD.match(line):
            self._start_thread(found)
        elif version := _PYTHON.search(line):
            if self.dumps:
                self.dumps[-1].python = self.dumps[-1].python or version["version"]
        else:
            self._frame(line)

    def _start_process(self, pid: int, title: str | None, prefix: str) -> None:
        self._close()
        self._prefix = prefix
        self.dumps.append(Dump(pid=pid, title=safe_title(title) if title else None, threads=[], source="py-spy"))

    def _start_thread(self, found: re.Match[str]) -> None:
        prefix = found["prefix"]
        if self._frames or prefix.strip() != self._prefix.strip():
            self._close()
        named = _PREFIX_PID.search(prefix)
        pid = int(named[1]) if named else None
        if not self.dumps or (pid is not None and self.dumps[-1].pid != pid):
            title = safe_title(prefix[: named.start()]) if named else None
            self.dumps.append(Dump(pid=pid, title=title or None, threads=[], source="py-spy"))
        elif pid is None and prefix.strip() != self._prefix.strip() and self.dumps[-1].threads:
            # A collector's prefix names another container: another process, whose Process line was cut away.
            self.dumps.append(Dump(pid=None, label=prefix.strip(" |:[]#") or None, threads=[], source="py-spy"))
        self._prefix = prefix
        self._count += 1
        if self._count > _MAX_THREADS:
            return
        state = found["state"]
        known = state in ("active", "idle", "active+gil", "gil")
        tid = found["tid"]
        thread = DumpThread(
            frames=self._frames,
            # A hex number is pthread's, not the kernel's.
            tid=None if tid.startswith("0x") else int(tid),
            name=found["name"],
            active=state.startswith("active") if known else None,
            owns_gil="gil" in state if known else None,
        )
        self.dumps[-1].threads.append(thread)
        self._open.append(thread)

    def _frame(self, line: str) -> None:
        bare = self._prefix.rstrip()
        if bare and line.lstrip().startswith(bare.lstrip()):
            line = line.lstrip()[len(bare.lstrip()) :]
        if not line.strip():
            self._close()
            return
        if self._is_local(line):
            return
        if named := _NAMED_RANKS.match(line):
            self._ranks(named)
        elif self._open:
            for place in parse_frame(line):
                self._frames.append(place)
                self.dumps[-1].native = self.dumps[-1].native or ".so" in place[1]

    def _is_local(self, line: str) -> bool:
        """Lines below ``Arguments:`` and ``Locals:`` (py-spy --locals) are values of the user's, and are never read."""
        indent = len(line) - len(line.lstrip())
        if _LOCALS_HEAD.match(line):
            self._locals_indent = indent
            return True
        if self._locals_indent is not None and indent > self._locals_indent:
            return True
        self._locals_indent = None
        return False

    def _ranks(self, named: re.Match[str]) -> None:
        frames = parse_frame(named["rest"])
        if not frames:
            return
        self._close()
        for rank in _numbers(named["ranks"]):
            thread = DumpThread(frames=frames, name="MainThread")
            self.dumps.append(Dump(label=f"{named['role']}{rank}", threads=[thread], source="py-spy"))

    def _close(self) -> None:
        if self._frames:
            self._open = []
            self._frames = []
        self._locals_indent = None


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        # More ranks than any job has is a number that means something else.
        yield from range(int(first), min(int(last or first), int(first) + 4096) + 1)
