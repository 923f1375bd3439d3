"""Looks at processes that no tool could read, and at the parts of an engine; and how a process is named in such advice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.frameworks import ASKS, spot_of
from ray_rl_debug.analyze.launchers import is_launcher
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.seen import NO_NODE, Seen
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import NextDump, Outcome
from ray_rl_debug.model.snapshot import Frame
from ray_rl_debug.rules.scene import Scene


def _on(scene: Scene, one: Seen) -> str:
    """On which machine, where the files name it."""
    folders = {n.name.partition(":")[0] for n in scene.view.snapshot.nodes}
    folder = one.identity.node.partition(":")[0]
    return "" if folder == NO_NODE or len(folders) < 2 or one.names_node else f" on {folder}"


def pid_of(one: Seen) -> str:
    return str(one.process.pid) if one.process.pid else "PID"


def is_without_python(one: Seen) -> bool:
    """Does a debugger of C show a program's own ``main``, and nothing of Python? Then py-spy has nothing to say of it."""
    if not one.process.samples or any(s.source not in ("gdb", "assumed") for s in one.process.samples) or "python" in one.process.title:
        return False
    frames = [f for t in one.threads for f in t.frames]
    return any(_MAIN.match(f.function) for f in frames) and not any(
        f.file.endswith(".py") or "ython" in f.file or _OF_PYTHON.match(f.function) for f in frames
    )


_USAGE = re.compile(r"Found argument '|unexpected argument '|unrecognized subcommand")
"""The tool's complaint about how it was called; it says nothing of the process."""
_MAIN = re.compile(r"main(?: ?\(|$)")
_OF_PYTHON = re.compile(r"_?Py[A-Z_]\w|py[a-z]*bind11::|torch::|c10d?::|at::")
"""Functions of Python itself, and of what is called from it."""
ALL_THREADS = 'gdb -p {pid} -batch -ex "thread apply all bt"'


def look_at(one: Seen, options: str = "") -> str:
    """The command that shows the stacks of a process: py-spy's, or gdb's where the process runs no Python."""
    return ALL_THREADS.format(pid=pid_of(one)) if is_without_python(one) else f"py-spy dump{options} --pid {pid_of(one)}"


def named(scene: Scene, one: Seen) -> str:
    if one.process.pid:
        return f"pid {one.process.pid} ({one.name}){_on(scene, one)}"
    return f"{one.name}{_on(scene, one)} (its pid is not in the file)"


def refused(scene: Scene) -> Iterator[NextDump]:
    """Where the tool was refused everywhere, the same once more with the right to look; where it was called wrongly, the same by hand."""
    miscalled = [s for s in scene.view if not s.threads and any(r.kind == "unread" and _USAGE.search(r.text) for r in s.process.remarks)]
    if miscalled and not any(s.threads for s in scene.view):
        pids = " ".join(str(s.process.pid) for s in miscalled if s.process.pid)
        yield NextDump(
            what="the same processes, with the tool called by hand",
            command=f"for pid in {pids or f'$(pgrep -f {PROGRAMS})'}; do py-spy dump --pid $pid; done",
            why="whoever called the tool used an option that its version does not have: no process was looked at",
            outcomes=(Outcome(seen="stacks", means="report on them tells who waits for whom"),),
        )
        return
    was_refused = any(g.id == gaps.STACKS_REFUSED for n in scene.view.snapshot.nodes for g in n.gaps)
    if not was_refused or any(s.threads for s in scene.view):
        return
    # py-spy would hang at a process that sits in the kernel, or is stopped
    own = " ".join(str(s.process.pid) for s in scene.view if s.process.pid and s.process.state not in ("D", "T", "t"))
    yield NextDump(
        what="the same processes, with the right to look into them",
        command=f"for pid in {own or f'$(pgrep -f {PROGRAMS})'}; do sudo py-spy dump --pid $pid; done",
        why="the tool was refused on every process: it needs root, or in a container the capability SYS_PTRACE (--cap-add SYS_PTRACE)",
        outcomes=(
            Outcome(seen="stacks", means="report on them tells who waits for whom"),
            Outcome(seen="refused again", means="run it on the host, outside of the container, where sysctl kernel.yama.ptrace_scope is 0 or 1"),
        ),
    )


def unread(scene: Scene) -> Iterator[NextDump]:
    """Those that a tool could not read: often the one that matters."""
    for one in scene.view:
        failed = next((r for r in one.process.remarks if r.kind == "unread"), None)
        if one.threads or failed is None or _USAGE.search(failed.text):
            continue
        pid = pid_of(one)
        yield NextDump(
            what=f"{named(scene, one)}, which could not be read",
            who=(one.who(),),
            command=f"{_ask_kernel(pid)}; sudo py-spy dump --nonblocking --pid {pid}",
            why=f"the tool said: {failed.text[:120]}",
            outcomes=(
                Outcome(
                    seen="state D", means="it sits in the kernel: a mount, a disk or a driver does not answer. It is the one that the others wait for"
                ),
                Outcome(seen="state T or t", means="it was stopped, or another tool traces it: kill -CONT, or end that tool"),
                Outcome(seen="no such process", means="it has died: look for its last lines in the log, and in dmesg"),
            ),
        )


def _ask_kernel(pid: str) -> str:
    return f"grep -E 'State|TracerPid' /proc/{pid}/status; sudo cat /proc/{pid}/stack"


def cut_off(scene: Scene) -> Iterator[NextDump]:
    """The main thread of a process of which only threads were shown that Python has started."""
    for one in scene.view:
        stacks = [t.frames for t in one.threads if t.frames]
        if (
            ended(one) is not None
            or any(t.name == "MainThread" for t in one.threads)
            or any(_begins(s) for s in stacks)
            or not any(_is_started(s) for s in stacks)
        ):
            continue
        yield NextDump(
            what=f"the main thread of {named(scene, one)}, and its other threads",
            who=(one.who(),),
            command=look_at(one),
            why="the stacks are of threads that the program has started: the main thread's was cut off, and it tells what the program does",
            outcomes=(
                Outcome(seen="the main thread waits for a thread, a lock or a queue", means="the thread that should end that wait is the cause"),
                Outcome(seen="it waits for another process", means="dump that one too"),
            ),
        )


def _begins(frames: Sequence[Frame]) -> bool:
    """Does a stack begin where a program does?"""
    return frames[-1].function == "<module>" or (frames[-1].file.endswith("process.py") and short_name(frames[-1].function) == "_bootstrap")


def _is_started(frames: Sequence[Frame]) -> bool:
    if frames[-1].function in ("clone", "clone3", "__clone", "__clone3", "start_thread"):
        return True
    return any(f.file.endswith("threading.py") and short_name(f.function) in ("_bootstrap", "_bootstrap_inner", "run") for f in frames[-3:])


def in_the_kernel(scene: Scene, one: Seen) -> NextDump:
    """A process in state D or T must not be waited for by a tool that stops it; the kernel tells what it does."""
    return NextDump(
        what=f"what the kernel says of {named(scene, one)}, twice",
        who=(one.who(),),
        command=f"{_ask_kernel(pid_of(one))}; sleep 30; {_ask_kernel(pid_of(one))}",
        why=f"a listing shows it in state {one.process.state}: a tool that stops processes would hang at it",
        outcomes=(
            Outcome(seen="state D and the same stack", means="it sits in the kernel: the names of its calls tell the mount, disk or driver"),
            Outcome(seen="state T or t", means="it was stopped: kill -CONT, or end the tool that TracerPid names"),
            Outcome(seen="another state", means="it goes on: slow, or the cause is elsewhere"),
        ),
    )


def why_it_ended(scene: Scene, one: Seen) -> NextDump:
    """A process that has ended has no stack: the kernel's log and its own say why it did."""
    return NextDump(
        what=f"why {named(scene, one)} ended",
        who=(one.who(),),
        command="sudo dmesg -T | grep -iE 'oom|out of memory|killed process|segfault|xid' | tail -n 20",
        why="a listing shows it in state Z: it has ended, so no tool can dump it",
        outcomes=(
            Outcome(seen="a line names its pid", means="the kernel ended it: out of memory, a crash, or its GPU"),
            Outcome(seen="no line names it", means="it ended itself: the end of its own log holds the first failure"),
        ),
    )


def launched(scene: Scene) -> Iterator[NextDump]:
    """The ranks below a launcher that alone was dumped: it waits for their end, whatever they do."""
    for one in scene.view:
        if any(is_launcher(t.frames) for t in one.threads) and not scene.view.children(one):
            yield NextDump(
                what=f"the children of {named(scene, one)}: the ranks that it has started",
                who=(one.who(),),
                command=f"for pid in $(pgrep -P {pid_of(one)}); do py-spy dump --pid $pid; done",
                why="it is a launcher and waits for the end of its ranks, in a healthy run as in a hang",
                outcomes=(
                    Outcome(seen="one rank is in another place", means="it is the one that the others wait for: its stack says why"),
                    Outcome(seen="all are in the same collective", means="network or device, or a rank on another node: dump those too"),
                    Outcome(seen="there is no child", means="the ranks died: their logs hold the first failure"),
                ),
            )


def awaited(scene: Scene) -> Iterator[NextDump]:
    """The coroutines of an event loop at rest: no stack of a thread shows for what they wait."""
    for one in scene.view:
        thread = one.telling
        is_loop = thread is not None and any(short_name(f.function) == "run_until_complete" for f in thread.frames)
        if not is_loop or one.identity.part is not None or one.process.kind == "ray-worker" or one.process.async_tasks:
            continue
        yield NextDump(
            what=f"the asyncio tasks of {named(scene, one)}",
            who=(one.who(),),
            command=f"python -m asyncio pstree {pid_of(one)}; rayrl-debug snapshot --here --pid {pid_of(one)}",
            why="its event loop rests, and stacks of threads do not show in which await its coroutines are (pstree needs Python 3.14 in the process)",
            outcomes=(
                Outcome(seen="a task that waits for an answer", means="whoever should answer is the cause: look at that server, or set a time limit"),
                Outcome(seen="only tasks that wait for requests", means="it is a server at rest: nobody asks it"),
            ),
        )


PROGRAMS = "'python|ray::|VLLM::|sglang::'"
"""For ``pgrep -f``: actors of Ray and parts of engines replace their command line by a title of their own."""
TRAINER = "pgrep -af 'python.*(main|train|driver)'; py-spy dump --pid THAT_PID"
_ENGINE_PARTS = "EngineCore|VLLM::|sglang::"


def between_parts(scene: Scene, core: Seen, workers: Sequence[Seen]) -> NextDump:
    """A core and its workers that wait for each other: is it so later too, and is there a worker that nobody has dumped?"""
    own = " ".join(str(s.process.pid) for s in (core, *workers) if s.process.pid)
    return NextDump(
        what=f"{named(scene, core)} and its workers again, in 30 s; and all other workers of the engine, on every node",
        who=(core.who(), *(w.who() for w in workers[:4])),
        command=f"sleep 30; for pid in {own} $(pgrep -f '{_ENGINE_PARTS}|RayWorkerProc'); do py-spy dump --native --pid $pid; "
        "ss -tnp | grep pid=$pid,; done",
        why=f"the core {core.does()}, and no worker that was dumped has anything to do",
        outcomes=(
            Outcome(seen="a worker that is not in the files computes, or is in a collective", means="it has the message: its stack is the cause"),
            Outcome(
                seen="the same lines at all of them",
                means="a message was lost: in shared memory a part died; across nodes the connection of the queue (ss) is gone or full",
            ),
            Outcome(seen="other lines", means="the engine works: look at who sends it requests"),
        ),
    )


def engine(scene: Scene, one: Seen) -> NextDump:
    """The parts of an engine wait for each other, and all of them for requests."""
    part = one.identity.part
    seen = {s.identity.part.part for s in scene.view if s.identity.part is not None and s.threads}
    missing = [p.label for p in part.engine.parts if p.part in ("core", "worker", "server") and p.part not in seen] if part is not None else []
    engine_of = f"the engine of {named(scene, one)}"
    return NextDump(
        what=f"{', '.join(missing)} in {engine_of}, and the trainer that sends it requests" if missing else f"the trainer that uses {engine_of}",
        who=(one.who(),),
        command=f"for pid in $(pgrep -f '{_ENGINE_PARTS}'); do py-spy dump --pid $pid; done" if missing else TRAINER,
        why=f"it {one.does()}",
        outcomes=_OF_ENGINE,
    )


_OF_ENGINE = (
    Outcome(seen="a core or a worker is in a collective or in code of its own", means="it is what this process waits for"),
    Outcome(seen="all of them rest", means="the engine has no request: the trainer keeps it waiting"),
    Outcome(seen="one of them is gone", means="it died: its log holds the first failure"),
)


def asks_core(one: Seen) -> bool:
    """Does it wait for the core of the engine that it has inside of it?"""
    return one.telling is not None and any(spot_of(ASKS, f.function, f.file) is not None for f in one.telling.frames)


def core_of(scene: Scene, one: Seen) -> NextDump:
    """An engine inside of a program has a core of its own, which nobody has dumped."""
    return NextDump(
        what=f"the engine core that {named(scene, one)} has started, and the core's workers",
        who=(one.who(),),
        command=f"for pid in $(pgrep -f '{_ENGINE_PARTS}'); do py-spy dump --pid $pid; done",
        why=f"it {one.does()}, and its engine core should send that",
        outcomes=_OF_ENGINE,
    )


def other_end(scene: Scene, one: Seen, why: str) -> NextDump:
    return NextDump(
        what=f"the process at the other end of the connection of {named(scene, one)}",
        who=(one.who(),),
        command=f"ss -tnp | grep pid={pid_of(one)}, ; py-spy dump --pid THE_OTHER_PID",
        why=why,
        outcomes=(
            Outcome(seen="the other end works on an answer", means="the cause is there: its stack says where"),
            Outcome(seen="no such process, or nothing is connected", means="it has died, or the network dropped the connection"),
        ),
    )


def all_threads(scene: Scene, one: Seen, why: str) -> NextDump:
    return NextDump(
        what=f"all threads of {named(scene, one)}",
        who=(one.who(),),
        command=look_at(one),
        why=why,
        outcomes=(
            Outcome(seen="a thread in own code", means="it keeps the others of its process waiting, as a blocked event loop does"),
            Outcome(seen="all threads idle", means="it waits for another process: dump those that it talks to"),
        ),
    )
