"""The runners' table of a store of rollouts that a process of this node serves: asked once, at the node's own addresses."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ray_rl_debug.collect.agent_lightning import ask_runners
from ray_rl_debug.model.snapshot import Frame, Process, Runner

ASK_S = 1.0
"""For all addresses of a node together."""
MAX_ADDRESSES = 4
_FILES = "agentlightning/"
_RUNNERS_THREAD = "-heartbeat-"
"""In names of a runner's threads: it is a fork of the trainer, and holds the trainer's listener too."""


def read_runners(processes: Sequence[Process], frames: Sequence[Frame], stacks: Sequence[Sequence[int]]) -> tuple[Runner, ...]:
    """The rows of every store that is served here; none where no process of Agent-Lightning listens."""
    of_lightning = {i for i, f in enumerate(frames) if f.file.startswith(_FILES)}
    addresses: dict[tuple[str, int], None] = {}
    for process in processes:
        threads = [t for s in process.samples for t in s.threads]
        serves = any(not of_lightning.isdisjoint(stacks[t.stack]) for t in threads)
        if serves and not any(_RUNNERS_THREAD in (t.name or "") for t in threads):
            listening = [s.local for s in process.sockets or () if s.state == "LISTEN" and s.family != "unix"]
            addresses.update(dict.fromkeys(_address(local) for local in listening))
    return ask_runners(list(addresses)[:MAX_ADDRESSES], time.monotonic() + ASK_S) if addresses else ()


def _address(local: str) -> tuple[str, int]:
    host, _, port = local.rpartition(":")
    host = host.strip("[]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), int(port)
