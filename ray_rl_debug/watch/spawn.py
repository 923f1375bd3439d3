"""Starts a watcher on this node, from within one of our Ray agents, which is then no longer needed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.watch import tls
from ray_rl_debug.watch.watcher import WatcherOrder

START_S = 10.0
_PREFIX = "rayrl-debug-watcher-"
_DROPPED = ("RAY_", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES")
"""A watcher must not look like a process of the job, and needs no GPU; what it needs of Ray's settings are the certificates."""


def spawn(payload: bytes) -> bytes:
    """`WatcherOrder` in; nothing out when the watcher was started, else why not."""
    order = msgspec.msgpack.decode(payload, type=WatcherOrder)
    try:
        import ray

        if ray.get_runtime_context().get_node_id() != order.invitation.node_id:
            return b"this order is for another node"
        if order.uses_tls and tls.context(os.environ, is_server=False) is None:
            return b"the companion uses TLS, and Ray's certificates are not known on this node"
        folder, paths = own_code()
        with _removed_on_error(folder):
            order = msgspec.structs.replace(
                order,
                raylet_pid=int(os.environ.get("RAY_RAYLET_PID") or os.getppid()),
                folder=folder,
            )
            start(order, paths)
    except Exception as e:  # noqa: BLE001 told to the companion
        return as_text(f"{type(e).__name__}: {str(e)[:200]}").encode()
    return b""


def own_code() -> tuple[str | None, list[str]]:
    """Where a process that outlives Ray's runtime environment finds our code: the folder of a copy to remove later, and the paths."""
    import ray_rl_debug

    packages = [Path(module.__file__ or "").resolve().parent for module in (ray_rl_debug, msgspec)]
    if not any("runtime_resources" in p.parts for p in packages):
        return None, list(dict.fromkeys(str(p.parent) for p in packages))
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    with _removed_on_error(folder):
        for package in packages:
            shutil.copytree(package, Path(folder) / package.name, ignore=shutil.ignore_patterns("__pycache__", "html"))
    return folder, [folder]


@contextlib.contextmanager
def _removed_on_error(folder: str | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def start(order: WatcherOrder, paths: list[str]) -> None:
    """Run the watcher as a process of its own session that nobody waits for.

    Raises:
        OSError, subprocess.SubprocessError: it could not be started.
    """
    rest = [p for p in sys.path if p and p not in paths]
    program = f"import sys; sys.path[:] = {[*paths, *rest]!r}; from ray_rl_debug.watch.watcher import main; main()"
    kept = {k: v for k, v in os.environ.items() if k in tls.NAMES or not k.startswith(_DROPPED)}
    environment = {**kept, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    line = json.dumps(msgspec.to_builtins(order)) + "\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=line.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        timeout=START_S,
        check=False,
        cwd="/",
    )
    if done.returncode != 0:
        raise OSError(f"the watcher ended with {done.returncode}: {done.stderr[-200:].decode(errors='replace')}")
