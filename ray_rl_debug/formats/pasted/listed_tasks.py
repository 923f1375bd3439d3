"""Tasks of asyncio in a list by hand: ``Task-18..33 (16 tasks): `generate` (rollout.py:88) -> `acquire` (asyncio/locks.py:412)``.

asyncio numbers its tasks; so do launchers their processes. Where the place is in asyncio, they are tasks, and all of one process.
"""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.formats.dump import Dump, Task

LABEL = "task "
_ASYNCIO = "asyncio/"


def gathered(dumps: Sequence[Dump]) -> list[Dump]:
    """The processes, with all tasks of asyncio as one process that holds them."""
    listed = [d for d in dumps if _is_listed(d)]
    if not listed:
        return list(dumps)
    tasks = []
    for number, one in enumerate(listed, 1):
        name = (one.label or "").replace(LABEL, "Task-")
        tasks.append(Task(name=name, chain=list(reversed(one.threads[0].frames)), number=number))
    whole = Dump(threads=[], source="text", line=listed[0].line, tasks=tasks)
    rest = [d for d in dumps if d not in listed]
    return [*rest, whole]


def _is_listed(dump: Dump) -> bool:
    named = dump.label is not None and dump.label.startswith(LABEL) and len(dump.threads) == 1
    return named and any(_ASYNCIO in file for _, file, _ in dump.threads[0].frames[:1])
