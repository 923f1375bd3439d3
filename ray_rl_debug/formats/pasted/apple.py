"""What macOS shows of a process: ``sample`` and ``spindump``, whose frames are a tree with the outermost on top, and crash reports, innermost first.

``+   2439 take_gil  (in Python) + 88  [0x10515f4f9]``, ``48  poll + 10 (libsystem_kernel.dylib + 105458) [0x7fff]``,
``1   libsystem_pthread.dylib  0x00007fffb527386e _pthread_cond_wait + 712``.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Frames, Head
from ray_rl_debug.formats.pasted.gdb import NO_SYMBOLS
from ray_rl_debug.formats.pasted.places import is_native

_TREE = re.compile(
    r"^(?P<before>[\s+!:|*]{0,400})(?P<count>\d{1,9}) {1,4}(?P<function>[A-Za-z_~?<$\-+\[][^\n]{0,2000}?) {1,4}"
    r"(?:\+ \d{1,9} )?\((?:in (?P<lib>[^()]{1,120})|(?P<image>[^()]{1,120}?) \+ \d{1,12})\)(?: \+ [\d,.]{1,60})?"
    r" {1,4}\[0x[0-9a-f]{4,16}[\d,.xa-f]{0,120}\].{0,200}$"
)
_CUT = re.compile(r"^(?P<before>[\s+!:|*]{2,400})(?P<count>\d{1,9}) {1,4}(?P<function>[A-Za-z_]\w{2,200}) {1,4}\(in [^()]{0,80}$")
"""The last line of what somebody copied."""
_REPORT = re.compile(
    r"^\s{0,8}(?P<number>\d{1,4}) {1,12}(?P<lib>[\w?][^\n]{0,80}?)\s{1,40}0x[0-9a-fA-F]{6,16} "
    r"(?P<function>[^\n]{1,2000}?) \+ \d{1,12}(?: \([^()]{1,200}\))?$"
)
_OF_SAMPLE = re.compile(
    r"^[\s+!]{0,12}\d{1,9} Thread_(?P<number>\d{1,12})(?:: ?(?P<name>[^:]{1,80}?))?(?: {1,8}DispatchQueue_(?P<queue>\d{1,6}): .{1,120})?\s*$"
)
_OF_SPINDUMP = re.compile(
    r"^\s{0,8}Thread (?P<number>0x[0-9a-f]{1,12})\s{1,40}"
    r"(?:(?:DispatchQueue \S{1,100}|Thread name) {0,4}(?:\"(?P<name>[^\"]{1,80})\")?.{0,80}?\s{1,40})?\d{1,9} samples? \(.{1,200}$"
)
_OF_REPORT = re.compile(r"^Thread (?P<number>\d{1,4})(?: Crashed)?::? (?P<name>.{0,80}?)(?:Dispatch queue: (?P<queue>\S{1,120}))?\s*$")
_HEAVIEST = re.compile(r"^Heaviest stack for the (?P<who>main thread|.{1,80}?) of the target process:?$")
_PROCESS = re.compile(
    r"^(?:Process: {1,20}(?P<title>\S.{0,80}?) \[(?P<pid>\d{1,9})\]|Analysis of sampling (?P<title2>\S{1,80}) \(pid (?P<pid2>\d{1,9})\).{0,80})$"
)


def read(text: str) -> Head | Frames | None:
    """A head or a frame of macOS's tools."""
    if "0x" in text and " + " in text and (report := _REPORT.match(text)):
        place = (report["function"].strip(), _library(report["lib"]), 0)
        return Frames(places=(place,), source="native", order="inner", is_certain=True, number=int(report["number"]), native=True)
    if ("[0x" in text or "(in " in text) and (tree := _TREE.match(text) or _CUT.match(text)):
        groups = tree.groupdict()
        place = (tree["function"].strip(), _library(groups.get("lib") or groups.get("image") or ""), 0)
        return Frames(places=(place,), source="native", order="outer", is_certain=True, native=True, depth=tree.start("count"))
    if "Thread" in text:
        return _thread(text)
    if text.startswith("Heaviest") and (heaviest := _HEAVIEST.match(text)):
        name = "MainThread" if heaviest["who"] == "main thread" else heaviest["who"]
        return Head(level="thread", source="native", order="outer", name=name, key=name)
    if text.startswith(("Process:", "Analysis of")) and (process := _PROCESS.match(text)):
        pid, title = process["pid"] or process["pid2"], process["title"] or process["title2"]
        return Head(level="process", source="native", pid=int(pid), title=title, is_new=True)
    return None


def _library(name: str) -> str:
    """The library, or Python; a program or a bundle (``org.python.python``) is known by no ending."""
    name = name.strip()
    if is_native(name):
        return name
    return "Python" if "python" in name.lower() else NO_SYMBOLS


def _thread(text: str) -> Head | None:
    if "Thread_" in text and (sampled := _OF_SAMPLE.match(text)):
        is_main = sampled["queue"] == "1"
        return Head(level="thread", source="native", order="outer", key=sampled["number"], name="MainThread" if is_main else sampled["name"])
    if "samples" in text and (dumped := _OF_SPINDUMP.match(text)):
        return Head(level="thread", source="native", order="outer", key=dumped["number"], name=dumped["name"])
    if "::" in text and (reported := _OF_REPORT.match(text)):
        is_main = reported["queue"] == "com.apple.main-thread"
        name = "MainThread" if is_main else reported["name"].strip() or None
        return Head(level="thread", source="native", order="inner", key=reported["number"], name=name)
    return None
