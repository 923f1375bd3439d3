"""Calls of the operating system that a stack alone tells only by the name of the function that makes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.analyze.by_hand import is_stacks_alone
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import Frame

_FILE = "open close read readinto readline readlines readall write writelines flush fsync truncate stat listdir rename unlink"
_SOCKET = "recv recv_into recvfrom send sendall connect accept urlopen request getresponse"
_CALLS = {**dict.fromkeys(_FILE.split(), Kind.FILE), **dict.fromkeys(_SOCKET.split(), Kind.SOCKET), "flock": Kind.FLOCK, "lockf": Kind.FLOCK}


def settle_named_calls(seen: Iterable[Seen]) -> Iterator[Seen]:
    """Those whose innermost frame is called like a call of the operating system, told as standing in it: what it calls in C or Rust leaves no frame.

    Not where the tool that took the stack says that the thread runs, or the kernel told the call.
    """
    for one in seen:
        thread = one.telling
        if thread is not None and one.kind is Kind.SLEEP and is_stacks_alone(one.process) and any(_tries_lock(f) for f in thread.frames[:_NEAR]):
            yield _settled(one, thread, Kind.FLOCK)
            continue
        if thread is None or one.kind is not Kind.CODE or not one.place or one.place.own != 0 or thread.kernel is not None or thread.sample.active:
            continue
        kind = Kind.FLOCK if _OF_FILELOCK.search(thread.frames[0].file) else _CALLS.get(short_name(thread.frames[0].function).strip("_"))
        if kind is Kind.FILE and "sock" in thread.frames[0].file.rsplit("/", 1)[-1]:
            kind = Kind.SOCKET  # "_flush (sock_client.py)" writes to a connection
        if kind is not None and is_stacks_alone(one.process):
            yield _settled(one, thread, kind)


def _settled(one: Seen, thread: SeenThread, kind: Kind) -> Seen:
    place = msgspec.structs.replace(thread.place, kind=kind)
    telling = msgspec.structs.replace(thread, place=place)
    return msgspec.structs.replace(one, telling=telling, places=(place,) * len(one.places))


_NEAR = 4
_OF_FILELOCK = re.compile(r"(?:^|/)filelock(?:/|\.py$)")
"""The package, and the module that it was before its version 3.8, which others have copied."""


def _tries_lock(frame: Frame) -> bool:
    """Does it try a lock on a file again and again, between pauses?"""
    return _OF_FILELOCK.search(frame.file) is not None and short_name(frame.function) == "acquire"
