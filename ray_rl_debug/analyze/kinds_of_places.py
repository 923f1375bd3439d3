"""What a thread may be met in, as far as its stack and the kernel tell."""

from __future__ import annotations

import enum


class Kind(str, enum.Enum):
    """What a thread does, as far as its stack and the kernel tell."""

    COLLECTIVE = "collective"
    P2P = "p2p"
    RENDEZVOUS = "rendezvous"
    NEW_GROUP = "new_group"
    DESTROY = "destroy"
    RAY_GET = "ray.get"
    RAY_WAIT = "ray.wait"
    RAY_INIT = "ray.init"
    JOIN = "join"
    FUTURE = "future"
    EVENT = "event"
    QUEUE = "queue"
    LOCK = "lock"
    CHILD = "child"
    DATALOADER = "dataloader"
    MP_QUEUE = "mp-queue"
    CHANNEL = "channel"
    """A message of another process: zmq, or an engine's own rings in shared memory."""
    SOCKET = "socket"
    FILE = "file"
    FLOCK = "flock"
    SLEEP = "sleep"
    CUDA = "cuda"
    RAY_IDLE = "ray-idle"
    LOOP_IDLE = "loop-idle"
    IDLE = "idle"
    WATCH = "watch"
    """Watches for the death of another process, which is no wait for a result."""
    CODE = "code"
    """Own code: running, or waiting in a C call that could not be told."""


WAITS_FOR_RANKS = frozenset({Kind.COLLECTIVE, Kind.P2P, Kind.RENDEZVOUS, Kind.NEW_GROUP, Kind.DESTROY})
WAITS_FOR_RAY = frozenset({Kind.RAY_GET, Kind.RAY_WAIT})
IDLE_KINDS = frozenset({Kind.RAY_IDLE, Kind.LOOP_IDLE, Kind.IDLE, Kind.WATCH})
THREAD_WAITS = frozenset({Kind.JOIN, Kind.FUTURE, Kind.EVENT, Kind.QUEUE, Kind.LOCK})
ENDED_BY_LOOPS = frozenset({Kind.FUTURE, Kind.QUEUE, Kind.EVENT})
"""Waits of a thread that a coroutine of a loop in another thread may end."""
