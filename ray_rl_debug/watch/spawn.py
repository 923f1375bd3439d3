"""Starts a watcher on this node, from within one of our Ray agents, which is then no longer needed."""

from __future__ import annotations

import contextlib
import fcntl
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
        folder, paths, held = own_code()
        with _removed_on_error(folder, held):
            order = msgspec.structs.replace(
                order,
                raylet_pid=int(os.environ.get("RAY_RAYLET_PID") or os.getppid()),
                folder=folder,
            )
            start(order, paths, held)
        if held is not None:
            os.close(held)
    except Exception as e:  # noqa: BLE001 told to the companion
        return as_text(f"{type(e).__name__}: {str(e)[:200]}").encode()
    return b""


def own_code() -> tuple[str | None, list[str], int | None]:
    """Where a process that outlives Ray's runtime environment finds our code.

    The folder of a copy to remove later, the paths, and a descriptor: while some process has it open, the copy is in use.
    """
    import ray_rl_debug

    packages = [Path(module.__file__ or "").resolve().parent for module in (ray_rl_debug, msgspec)]
    if not any("runtime_resources" in p.parts for p in packages):
        return None, list(dict.fromkeys(str(p.parent) for p in packages)), None
    _remove_left()
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    held = _hold(folder)
    with _removed_on_error(folder, held):
        for package in packages:
            shutil.copytree(package, Path(folder) / package.name, ignore=shutil.ignore_patterns("__pycache__", "html"))
    return folder, [folder], held


def _remove_left() -> None:
    """Remove copies whose watcher was killed: nobody holds them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        held = _hold(str(folder))
        if held is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)


def _hold(folder: str) -> int | None:
    """A descriptor that holds a folder of ours; None when somebody holds it, or it is not ours."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(held).st_uid == os.geteuid():
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return held
    except OSError:
        pass  # held, or a file system without locks: then it stays
    os.close(held)
    return None


@contextlib.contextmanager
def _removed_on_error(folder: str | None, held: int | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.close(held)
        raise


def start(order: WatcherOrder, paths: list[str], held: int | None = None) -> None:
    """Run the watcher as a process of its own session that nobody waits for; it keeps the descriptor `held` open.

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
        pass_fds=() if held is None else (held,),
        timeout=START_S,
        check=False,
        cwd="/",
    )
    if done.returncode != 0:
        raise OSError(f"the watcher ended with {done.returncode}: {done.stderr[-200:].decode(errors='replace')}")
