"""Programs that are starting Ray, or wait to get into it, on a node where no raylet runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.collect.logs import FILE_S
from ray_rl_debug.collect.procfs import PROC, Stat, read_environment, read_stat, read_text
from ray_rl_debug.model.snapshot import Frame, Process

_COMMS = ("python", "pt_main", "ray")
_DEFAULT = "/tmp/ray"


def find_starters(stats: Mapping[int, Stat], is_daemon: Iterable[int], proc: Path = PROC) -> list[int]:
    """Processes with Ray's library loaded that are none of its daemons: ``ray start``, or a driver in ``ray.init``."""
    daemons = set(is_daemon)
    found = []
    for pid, facts in stats.items():
        if pid not in daemons and facts.comm.startswith(_COMMS) and facts.state not in ("Z", "X"):
            maps = read_text(proc / str(pid) / "maps", 8 << 20)
            if maps is not None and "/_raylet" in maps:
                found.append(pid)
    return sorted(found)


def newest_session(starters: Sequence[int], arguments: Mapping[int, Sequence[str]], proc: Path = PROC) -> str | None:
    """The session that one of these programs made, among the folders that they would use; None when it is older than all of them."""
    born_s = min((s for s in (_start_time_s(pid, proc) for pid in starters) if s is not None), default=None)
    folders = []
    for pid in starters:
        given = next((a.partition("=")[2] for a in arguments.get(pid, ()) if a.startswith(("--temp-dir=", "--temp_dir="))), None)
        base = dict(read_environment(pid, proc) or ()).get("RAY_TMPDIR")
        folders += [f for f in (given, os.path.join(base, "ray") if base else None, _DEFAULT) if f]
    sessions = []
    for folder in dict.fromkeys(folders):
        latest = Path(folder, "session_latest")
        try:
            target, made_s = within(FILE_S, partial(_resolve, latest))
        except (OSError, RuntimeError):
            continue  # RuntimeError: links in a ring
        if born_s is None or made_s >= born_s - 2.0:
            sessions.append((made_s, str(target)))
    return max(sessions, default=(0.0, None))[1]


def _resolve(link: Path) -> tuple[Path, float]:
    return link.resolve(strict=True), link.lstat().st_mtime


def is_getting_in(process: Process, frames: Sequence[Frame], stacks: Sequence[Sequence[int]]) -> bool:
    """Does a thread of it stand in ``ray.init``, or where Ray is started?"""
    seen = (frames[i] for sample in process.samples for thread in sample.threads for i in stacks[thread.stack])
    return any(
        frame.file.endswith(("ray/_private/node.py", "ray/_private/services.py"))
        or (frame.file.endswith("ray/_private/worker.py") and frame.function.rpartition(".")[2] in ("init", "connect"))
        for frame in seen
    )


def _start_time_s(pid: int, proc: Path) -> float | None:
    facts = read_stat(proc / str(pid))
    boot = next((line for line in (read_text(proc / "stat") or "").splitlines() if line.startswith("btime ")), None)
    if facts is None or boot is None:
        return None
    return int(boot.split()[1]) + facts.start_ticks / os.sysconf("SC_CLK_TCK")
