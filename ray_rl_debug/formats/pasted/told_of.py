"""What a text says of processes beside their stacks: a tool could not read one, one stands where another does, a later look showed the same."""

from __future__ import annotations

from ray_rl_debug.formats.dump import DumpThread, Said
from ray_rl_debug.formats.pasted.events import Head
from ray_rl_debug.formats.pasted.lines import Line
from ray_rl_debug.formats.pasted.partial import is_named_so
from ray_rl_debug.formats.pasted.processes import NEAR, Processes
from ray_rl_debug.formats.pasted.several_tools import has_raised


def unread(found: Processes, line: Line, unread: Said) -> None:
    """A tool could not read a process: the one it names, or the one that was named last."""
    dump = found.current
    label = found.label.held(line.number) if found.label.is_near(line.number) else None
    if unread.pid is not None:
        if dump is None or dump.pid != unread.pid or dump.threads:
            dump = found.new(Head(level="label", pid=unread.pid), line.number)
    elif label is not None and (label.pid is not None or label.ranks or label.label):
        if dump is None or dump.threads or (label.pid is not None and label.pid != dump.pid):
            dump = found.new(label, line.number, line)
    elif (dump is None or dump.threads or not dump.said or dump.said[-1][0] != line.number - 1) and (
        pid := found.loop.next(found.dumps, dump)
    ) is not None:
        dump = found.new(Head(level="label", pid=pid), line.number)
    elif dump is None or (dump.threads and not dump.said):
        # Of whom it speaks nobody says.
        return
    found.stack.close()
    dump.said.append((line.number, unread))


def unread_row(found: Processes, line: Line, head: Head, unread: Said) -> None:
    """A row of a table names a process that a tool could not read."""
    found.end_stack()
    found.new(head, line.number, line).said.append((line.number, unread))


def same_as_before(found: Processes, line: Line, head: Head) -> None:
    """Another process, of which the writer says that it is where the last one is."""
    before = found.current
    if before is None or not before.threads:
        return
    found.end_stack()
    dump = found.new(head, line.number, line)
    dump.source = before.source
    dump.threads = [DumpThread(frames=t.frames, name=t.name) for t in before.threads]
    dump.is_headless = True


def same_as(found: Processes, line: Line, head: Head, other: Head | None) -> None:
    """The process of a heading, of which it only says that it stands where another one does: the named one, else the last."""
    named = next((d for d in reversed(found.dumps[-64:]) if other is not None and d.threads and is_named_so(d, other)), None)
    if named is not None:
        found.current = named
    found.label.use()
    same_as_before(found, line, head)


def look_again(found: Processes, line: Line, apart_s: float | None) -> None:
    """The writer says that a later look at all that was shown showed the same."""
    found.end_stack()
    for before in [d for d in found.dumps if d.threads]:
        dump = found.new(None, line.number, line, like=before)
        dump.after_s = apart_s
        dump.is_headless = before.is_headless
        dump.threads = list(before.threads)


def fatal(found: Processes, line: Line, fatal: Said) -> None:
    """The program ends with a fatal error, and says where its threads were."""
    found.end_stack()
    pid = found.told_pid[1] if found.told_pid is not None and line.number - found.told_pid[0] <= 4 else None
    dump = found.current
    if dump is not None and has_raised(dump) and line.number - found.last <= NEAR and dump.pid in (None, pid or dump.pid):
        dump.source, dump.is_headless = "faulthandler", False  # torch shows where it raised, and Python where all threads were
    else:
        dump = found.new(Head(level="process", source="faulthandler", pid=pid), line.number, line)
    dump.said.append((line.number, fatal))
