"""What the chain of a coroutine's awaits tells by itself: found once, however many tasks stand at it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from ray_rl_debug.analyze.frameworks import HOUSEKEEPING, spot_of
from ray_rl_debug.analyze.library_frames import is_library_code
from ray_rl_debug.model.snapshot import AsyncTask, AwaitFrame

_SERVES = re.compile(
    r"serve|listen|accept|watch|monitor|heartbeat|consum|dispatch|shutdown|stopped|terminat|lifespan|background|run_forever|new_(task|request|work|item)"
    r"|next_(task|request|item|job)|(^|_)(loop|worker|main_loop|poller|reader|scheduler)$"
)
"""Names of coroutines that wait for the next piece of work by design."""
_ENDS_OF_SERVERS = ("serve_forever", "LifespanOn.receive")
_RAYS_TRACING = "ray/util/tracing/"
"""Wraps the methods of all actors."""


class AwaitChain(msgspec.Struct, frozen=True, gc=False):
    """What holds for all tasks with equal chains."""

    own: AwaitFrame | None
    """The innermost coroutine of own code; None where libraries only stand in the chain."""
    line: str | None
    """Where it waits: its innermost own coroutine, else the innermost one; None of an empty one."""
    keeps_house: bool
    """Is one of its coroutines known to do a library's own work?"""
    serves: bool
    """Does it wait for the next piece of work by design, as the names of its coroutines say, or is no own code in it?"""
    is_ray_call: bool
    """Is it a call of a Ray actor whose methods are coroutines?"""


@lru_cache(maxsize=1 << 12)
def told_by(chain: tuple[AwaitFrame, ...]) -> AwaitChain:
    """The outermost coroutine comes first."""
    own = next((f for f in reversed(chain) if is_own(f)), None)
    at = own or (chain[-1] if chain else None)
    keeps_house = any(f.file is not None and spot_of(HOUSEKEEPING, f.function, f.file) is not None for f in chain)
    by_name = own is None or serves_by_name(own.function) or any(f.function.endswith(_ENDS_OF_SERVERS) for f in chain)
    return AwaitChain(
        own=own,
        line=describe_frame(at) if at is not None else None,
        keeps_house=keeps_house,
        serves=keeps_house or by_name,
        is_ray_call=any(f.function.startswith("run_async_func") or (f.file or "").startswith(_RAYS_TRACING) for f in chain[:2]),
    )


def is_own(frame: AwaitFrame) -> bool:
    """``<string>`` is the text of ``python -c``: no library makes coroutines of strings."""
    return frame.file is not None and (frame.file == "<string>" or not is_library_code(frame.function, frame.file))


def is_read_in_part(task: AsyncTask) -> bool:
    """Was not read for what a coroutine waits, or in which code one stands at a connection, a lock, a child, or where a file is unknown?"""
    unread = any(f.file is None and not f.function.startswith("run_async_func") for f in task.chain)
    unread = unread or (bool(task.chain) and task.chain[0].function == "sleep")  # and not who sleeps
    if task.awaited is None or ((task.awaited.kind in _OF_PROGRAM or unread) and not any(map(is_own, task.chain))):
        return True
    return task.awaited.kind == "subprocess" and any(f.file is None for f in task.chain)


_OF_PROGRAM = frozenset({"socket", "subprocess", "lock", "semaphore"})
"""At these waits who runs code of the program, and hardly ever a library for itself."""


def is_cut(task: AsyncTask, others: Iterable[AsyncTask]) -> bool:
    """Is a coroutine of own code at a bare future, at a line that awaits a call, as the source does not tell who brings it, and tells of others?

    Then what was called was not read, and it may rest there by design.
    """
    at = task.chain[-1] if task.chain else None
    if at is None or at.brings is not None or task.awaited is None or task.awaited.kind != "future" or not is_own(at):
        return False
    return any(f.brings is not None and f.file == at.file for t in others for f in t.chain)


def awaits_core(task: AsyncTask) -> bool:
    """Does it wait for a step of gRPC's core, whose connection no frame tells?"""
    return bool(task.chain) and task.chain[-1] == _CORE and task.awaited is not None and task.awaited.kind == "socket" and task.awaited.fd is None


def answers_call(task: AsyncTask) -> bool:
    """Does it run what answers a call of gRPC?"""
    return any(f.file is None and f.function == "_handle_rpc" for f in task.chain)


_CORE = AwaitFrame(function="execute_batch")


def serves_by_name(function: str) -> bool:
    """Does a function wait for the next piece of work by design, as its name says?"""
    return _SERVES.search(function.rsplit(".", 1)[-1].lower()) is not None


def pass_work_on(tasks: Iterable[AsyncTask]) -> bool:
    """Do these wait for work by design and pass it on, as their names say? While one waits for an answer, it has a piece in hand."""
    own = [told_by(t.chain).own for t in tasks]
    return all(f is not None and _PASSES_ON.search(f.function.rsplit(".", 1)[-1].lower()) for f in own)


_PASSES_ON = re.compile(r"dispatch|(^|_)(loop|worker|scheduler)$")


def describe_frame(frame: AwaitFrame) -> str:
    """``Agent.call_tool (agent.py:88)``"""
    if frame.file is None:
        return frame.function
    return f"{frame.function} ({frame.file.rsplit('/', 1)[-1]}{f':{frame.line}' if frame.line else ''})"
