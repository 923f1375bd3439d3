"""gdb and lldb: ``bt``, ``thread apply all bt``, ``info threads``, ``py-bt``; frames innermost first, numbered."""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.formats.pasted import said
from ray_rl_debug.formats.pasted.events import Event, Frames, Head
from ray_rl_debug.formats.pasted.frames import read_frame

_ATTACH = re.compile(r"(?:Attaching to (?:program: .{0,400}, )?process|gdb (?:.{0,200} )?(?:-p|--pid|-pid)[ =]?|attach) (?P<pid>\d{1,9})\b")
_THREAD = re.compile(
    r"^\W{0,6}(?:\[Switching to thread |\(gdb\) )?[Tt]hread #?(?P<number>\d{1,6})(?: [(\[]?Thread 0x[0-9a-fA-F]{1,16})?(?: \((?:LWP"
    r"|lwp) (?P<lwp>\d{1,9})(?: \"(?P<inside>[^\"]{0,60})\")?\))?"
    r"(?: ?[\"(](?P<name>[^\"()]{0,60})[\")])?[^:]{0,80}:?\s*$"
)
_SWITCHED = re.compile(
    r"^\W{0,6}\[?Switching to (?:thread (?P<number>\d{1,6}) \()?\(?Thread 0x[0-9a-fA-F]{1,16} \((?:LWP|lwp) (?P<lwp>\d{1,9})\)[)\]]{0,3}\s*$"
)
_ASKED = re.compile(r"^\((?:cuda-)?gdb\) (?:t|thread) (?P<number>\d{1,6})\s*$")
"""What somebody typed to go to a thread."""
_SEVERAL = re.compile(r"[ #*=-]{0,8}Threads " + said.NUMBERS + r"(?:,? \(?[^:]{0,100})?:?[ *=-]{0,8}$")
_MOST_THREADS = 256
_OWN_HEAD = re.compile(r"^\W{0,8}Thread (?P<number>\d{1,6}) ?\((?P<name>[^(),]{1,40}), ?(?:LWP|lwp|tid) (?P<lwp>\d{1,9})\)(?P<rest>.{0,200})$")
"""``### Thread 2 (worker, LWP 4012) — holds the GIL``: a person's words in place of gdb's."""
_ROW = re.compile(
    r"^\s*(?P<here>\*)?\s{0,8}(?P<number>\d{1,6})\s{1,8}(?:Thread 0x[0-9a-fA-F]{1,16} \()?(?:LWP|process) (?P<lwp>\d{1,9})\)?"
    r"(?:,? ?\"(?P<name>[^\"]{0,60})\")?\s{1,60}"
    r"(?:(?:0x[0-9a-fA-F]{1,16} in )?(?P<function>[^\s(][^(]{0,400}?)\s?\((?P<args>.{0,2000})|0x[0-9a-fA-F]{1,16} in (?P<cut>\w{2,200}))$"
)
_FRAME = re.compile(
    r"^\W{0,6}(?:frame )?# ?(?P<number>\d{1,5}):?\s{1,4}(?:(?P<at>(?:0x[0-9a-fA-F]{6,16}|<>) in )|0x[0-9a-fA-F]{1,16} (?:in |<)?)?"
    r"(?P<rest>\S.{0,9000})$"
)
_BARE = re.compile(
    r"^#(?P<number>\d{1,5}) {1,4}0x[0-9a-f]{8,16}(?: - \d{1,3})? {1,2}"
    r"(?P<function>[^\s(]\S{0,800}|[\w:~<>]{1,400}\([^()]{0,4000}(?:\([^()]{0,400}\)[^()]{0,4000}){0,20}\))"
    r"(?: - (?P<lib>\S{1,400}))?$"
)
_ELFUTILS = re.compile(r"^(?P<word>PID|TID) (?P<number>\d{1,9})(?: - (?:process|core)|:)$")
"""``eu-stack`` writes an address and a name, below ``PID 12 - process`` and ``TID 12:``."""
NO_SYMBOLS = "[unknown]"
"""File of a native frame of which the debugger names none: a program's own, as Python is linked into ``python3.12``."""
_PLACE = re.compile(r" (?:at (?P<file>[^\s:]{1,400}):(?P<line>\d{1,9})|from (?P<lib>\S{1,400}))\s*$")
_PY_FRAME = re.compile(r"Frame 0x[0-9a-fA-F]{1,16}, for file (?P<file>.{1,400}?), line (?P<line>\d{1,9}), in (?P<function>\S{1,200})")
_TORCH = re.compile(r"^(?P<function>.{1,4000}?) \+ 0x[0-9a-fA-F]{1,16} \(0x[0-9a-fA-F]{1,16} in (?P<lib>[^()]{1,400})\)$")
_LLDB = re.compile(
    r"^(?P<lib>[^\s`]{1,200})`(?P<function>.{1,4000}?)(?: \+ \d{1,9})?(?: at (?P<file>[^\s:]{1,400}):(?P<line>\d{1,9})(?::\d{1,6})?)?$"
)
BUILT_IN = "<built-in>"
"""File of a function of C."""
_BUILT_IN = re.compile(r"^\s{0,12}<built-in method (?P<function>\w{1,80}) of (?P<type>[\w.]{1,120}) object at remote 0x[0-9a-fA-F]{1,16}>\s*$")
"""``py-bt`` shows the functions of C that Python has called, with their objects."""
_IN_ARGUMENTS = re.compile(r"^\s{1,12}Frame 0x[0-9a-fA-F]{1,16}, for file ")
"""gdb, with Python's own printers, shows the Python frame among the arguments of the C frame that runs it, in a line of its own."""
_EDITOR = re.compile(
    r"^\s{0,12}(?P<lib>[\w.+-]{1,120})!(?P<function>[^\s(!][^!]{0,4000}?)(?: ?\((?P<file>/[^()\s]{1,400}|\w:[^()]{1,400}):(?P<line>\d{1,9})\))?$"
)
"""``libc.so.6!poll(int n) (/build/poll.c:29)``, as editors show native frames."""
_REMARK = re.compile(r"(?<!\s)\s{2,}(?:←|⟵|<-{1,3}|//|#|—|--) ?\S.{0,300}$")
"""What somebody wrote behind a frame."""
_NAME_ALONE = re.compile(r"[A-Za-z_][\w.:~]{2,160}(?:<[^<>]{0,80}>)?(?:\(\)|(?: \(\w{1,20}\)))?$")
"""A frame of which only the name was kept."""
_WITHOUT_NUMBER = re.compile(
    r"^\W{0,4}(?P<function>[A-Za-z_]\w{2,80}) \(\w{1,40}=.{1,2000}\) (?:at|from) (?P<file>[^\s:\"'`]{1,400})(?::(?P<line>\d{1,9}))?[\"'`]?$"
)
"""Where gdb met the program, as it says when it attaches; people quote that line alone."""
_WANTS_GIL = re.compile(r"^\s{0,12}Waiting for the GIL\s*$")
_AS_PYTHON_TELLS = {"Waiting for a lock (e.g. GIL)": "PyThread_acquire_lock", "Waiting for the GIL": "take_gil"}
"""``py-bt-full`` has words for the C functions in which a thread waits."""
_SIGNAL = "<signal handler called>"
"""Between the frames of a signal's handler, above, and what it interrupted."""
_CUT = re.compile(r" (?:from|at)$")
"""A line that ends where the library would stand."""
_FROM = re.compile(r"^(?P<function>\S{1,300}) from (?P<file>[^\s:]{1,400}):(?P<line>\d{1,9})$")


def wants_interpreter(text: str) -> bool:
    """What ``py-bt`` writes above the frames of a thread that waits for the interpreter's lock."""
    return "Waiting for the GIL" in text and _WANTS_GIL.match(text) is not None


def read(text: str) -> Event | None:
    """A head or a frame of gdb's, or one that torch writes in the same manner."""
    if text.startswith(("PID ", "TID ")) and (found := _ELFUTILS.match(text)):
        number = int(found["number"])
        if found["word"] == "PID":
            return Head(level="process", source="gdb", pid=number, is_new=True)
        return Head(level="thread", source="gdb", order="inner", tid=number, key=f"tid{number}")
    if text.startswith("#") and (bare := _BARE.match(text)):
        place = (bare["function"], bare["lib"] or NO_SYMBOLS, 0)
        return Frames(places=(place,), source="gdb", order="inner", is_certain=True, number=int(bare["number"]), native=True)
    if "#" in text and (frame := _FRAME.match(text)):
        if ".py" in text and "0x" not in text and (of_python := read_frame(frame["rest"])) is not None and not of_python.native:
            return msgspec.structs.replace(of_python, source="text", order="inner", is_certain=True, number=int(frame["number"]))
        number, rest = int(frame["number"]), frame["rest"].rstrip("`* ").strip()
        rest = f"{_AS_PYTHON_TELLS[rest]} ()" if rest in _AS_PYTHON_TELLS else rest
        return _frame(number, rest) or (_cut_off(number, rest) if frame["at"] else None)
    if "<built-in method" in text and (built_in := _BUILT_IN.match(text)):
        place = (f"{built_in['type'].rsplit('.', 1)[-1]}.{built_in['function']}", BUILT_IN, 0)
        return Frames(places=(place,), source="gdb", order="inner", is_certain=True)
    if "Frame 0x" in text and _IN_ARGUMENTS.match(text) and (python := _PY_FRAME.search(text)):
        place = (python["function"], python["file"], int(python["line"]))
        return Frames(places=(place,), source="gdb", order="inner", is_certain=True)
    if text.startswith("(") and (asked := _ASKED.match(text)):
        return Head(level="thread", source="gdb", order="inner", key=asked["number"], is_chosen=True)
    if "LWP" in text or "hread " in text:
        return _thread(text)
    if "=" in text and (told := _WITHOUT_NUMBER.match(text)):
        place = (told["function"], told["file"], int(told["line"] or 0))
        return Frames(places=(place,), source="gdb", order="inner", native=True)
    if "!" in text and ".so" in text and (edited := _EDITOR.match(text)):
        place = (edited["function"].partition("(")[0].strip(), edited["file"] or edited["lib"], int(edited["line"] or 0))
        return Frames(places=(place,), source="gdb", order="inner", is_certain=True, native=True)
    if ("ttach" in text or "gdb" in text) and (attached := _ATTACH.search(text)):
        return Head(level="process", source="gdb", pid=int(attached["pid"]), is_new=True)
    return None


def several_threads(text: str) -> tuple[Head, ...]:
    """``Threads 2-5 (waiting on the same condition):``: one stack comes for all of them."""
    found = _SEVERAL.match(text) if text.lstrip(" #*=-").startswith("Threads ") else None
    numbers = said.numbers(found["ranks"])[:_MOST_THREADS] if found is not None else ()
    heads = (Head(level="thread", source="gdb", order="inner", key=str(number), is_also=at > 0) for at, number in enumerate(numbers))
    return tuple(heads) if len(numbers) > 1 else ()


def _thread(text: str) -> Event | None:
    if "(" in text and (own := _OWN_HEAD.match(text)):
        name = "MainThread" if own["name"].strip().lower().startswith("main") else own["name"].strip()
        owns = True if re.search(r"\b(?:holds|has|owns) the (?:GIL|gil)\b", own["rest"]) else None
        return Head(level="thread", source="gdb", order="inner", tid=int(own["lwp"]), key=own["number"], name=name, owns_gil=owns)
    if switched := _SWITCHED.match(text):
        return Head(level="thread", source="gdb", order="inner", tid=int(switched["lwp"]), key=switched["number"], is_chosen=True)
    if row := _ROW.match(text):
        place = _PLACE.search(" " + (row["args"] or ""))
        file = (place["file"] or place["lib"]) if place else NO_SYMBOLS
        line = int(place["line"]) if place and place["line"] else 0
        is_here, name = row["here"] is not None, row["name"] or None
        head = Head(level="thread", source="gdb", order="inner", tid=int(row["lwp"]), key=row["number"], name=name, is_chosen=is_here)
        return Frames(
            places=(((row["function"] or row["cut"]).strip(), file, line),),
            source="gdb",
            order="inner",
            is_certain=True,
            is_whole=True,
            native=True,
            head=head,
        )
    if "LWP" not in text and not re.search(r"[Tt]hread #?\d{1,6} ?(?:\(|$|:|,)", text):
        return None
    found = _THREAD.match(text)
    if found is None or (found["lwp"] is None and "LWP" in text) or (found["lwp"] is None and "#" not in text and "(Thread 0x" not in text):
        return None
    tid = int(found["lwp"]) if found["lwp"] else None
    return Head(level="thread", source="gdb", order="inner", tid=tid, key=found["number"], name=found["name"] or found["inside"])


def _frame(number: int, rest: str) -> Frames | None:
    if python := _PY_FRAME.search(rest):
        place = (python["function"], python["file"], int(python["line"]))
        return Frames(places=(place,), source="gdb", order="inner", is_certain=True, number=number)
    if torch := _TORCH.match(rest):
        return Frames(places=((torch["function"], torch["lib"], 0),), source="native", order="inner", is_certain=True, number=number, native=True)
    if "`" in rest and (lldb := _LLDB.match(rest)):
        place = (_without_arguments(lldb["function"]), lldb["file"] or lldb["lib"], int(lldb["line"] or 0))
        return Frames(places=(place,), source="gdb", order="inner", is_certain=True, number=number, native=True)
    if collective := _FROM.match(rest):
        place = (collective["function"], collective["file"], int(collective["line"]))
        return Frames(places=(place,), source="collective", order="inner", is_certain=True, number=number, native=False)
    if rest == _SIGNAL:
        return Frames(places=((_SIGNAL, NO_SYMBOLS, 0),), source="gdb", order="inner", is_certain=True, number=number, native=True)
    bare = _REMARK.sub("", _CUT.sub("", rest))
    is_remarked, rest = len(bare) < len(rest), bare
    place_ = _PLACE.search(rest)
    function = (rest[: place_.start()] if place_ else rest).strip()
    has_arguments = " (" in function or ("::" in function and "(" in function)
    if place_ is None and (not has_arguments or not function.endswith((")", "]", ">", ",", "=", "("))):
        if _NAME_ALONE.match(function) is None:
            return None
        place = (function.removesuffix("()"), NO_SYMBOLS, 0)
        return Frames(places=(place,), source="gdb", order="inner", is_certain=is_remarked, number=number, native=True)
    function = _without_arguments(function.removesuffix("()"))
    if not function or function.startswith('"'):
        return None
    file = (place_["file"] or place_["lib"]) if place_ else NO_SYMBOLS
    line = int(place_["line"]) if place_ and place_["line"] else 0
    if file.endswith((".py", ".pyx")):
        return Frames(places=((function, file, line),), source="text", order="inner", is_certain=True, number=number)
    return Frames(places=((function, file, line),), source="gdb", order="inner", is_certain=True, number=number, native=True)


def _cut_off(number: int, rest: str) -> Frames:
    """A frame with its address, whose line ends anywhere: somebody's form, or the end of what was copied."""
    place = (_without_arguments(rest), NO_SYMBOLS, 0)
    return Frames(places=(place,), source="gdb", order="inner", is_certain=True, number=number, native=True)


def _without_arguments(function: str) -> str:
    """``poll (fds=0x1, n=2)`` → ``poll``; templates and their brackets stay."""
    found = re.match(r"(?P<name>.{1,4000}?) \((?!anonymous)", function)
    return (found["name"] if found else function).strip()
