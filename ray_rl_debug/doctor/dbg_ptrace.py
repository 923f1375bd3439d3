"""RRD801 processes may not be inspected

Story
    py-spy needs ptrace rights to read another process's stack. Without them a report of a hang has titles, states and tables, but no stacks.

Evidence
    py-spy on a process of our own that is no child; ptrace_scope and capabilities.

Remedy
    The one setting that opens the door here.

Not this when
    Only another user's processes are closed, as they should be.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, unknown, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD801"
NAME = "processes may not be inspected"
CHECK = "dbg.ptrace"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        looking = node.looking
        if looking is None:
            yield unknown(node.name, "no look was tried")
            continue
        consequence = "a report of a hang has no stacks from this node"
        if looking.error is not None:
            remedy = looking.remedy or "sudo sysctl kernel.yama.ptrace_scope=0"
            closed = f" ({looking.doors.setting})" if looking.doors.setting else ""
            yield warn(node.name, f"py-spy: {looking.error}{closed}", "py-spy can read a process", consequence, remedy)
        elif looking.pyspy is None:
            yield warn(node.name, "py-spy is not here", "py-spy can read a process", f"{consequence}, unless it is sent there", "pip install py-spy")
        elif looking.doors.memory is False:
            remedy = looking.remedy or "sudo sysctl kernel.yama.ptrace_scope=0"
            yield warn(
                node.name, f"memory of processes is closed ({looking.doors.setting})", "open", "asyncio tasks and object ids are missing", remedy
            )
        else:
            yield ok(node.name, f"py-spy {looking.pyspy} read a process", "py-spy can read a process")
