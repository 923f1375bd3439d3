"""The actor that runs on each node: collects there, hands its facts over in small pages."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

PAGE_BYTES = 90_000
"""Below Ray's limit for inline replies (100 KB): such messages pass when the object store is full and when the raylet is stopped."""
PROGRAM_BYTES = 64 << 20
"""py-spy has 8 MB."""
HOLD_S = 900.0
"""An agent that is kept, and that no keeper has called for this long, removes itself: its keeper was killed."""
KEPT_RESULTS = 3


class RayRlDebugAgent:
    """One per node, without CPUs, pinned to it. Its class name is how the collector leaves it out."""

    def __init__(self, is_kept: bool = False) -> None:
        self._results: dict[str, bytes] = {}
        self._stops: dict[str, threading.Event] = {}
        self._pyspy: dict[int, bytes] = {}
        self._installed: str | None = None
        self._keepers: dict[str, float] = {}
        if is_kept:
            threading.Thread(target=self._leave_when_forgotten, daemon=True, name="lease").start()

    def ready(self, keeper: str | None = None) -> bool:
        """Is py-spy here? A keeper's call also prolongs its claim."""
        from ray_rl_debug.collect.pyspy import find_pyspy

        self._hold(keeper)
        return (find_pyspy(self._installed) or find_pyspy(None)) is not None

    def now(self) -> float:
        """This node's wall clock."""
        return time.time()

    def receive_pyspy(self, number: int, part: bytes, count: int) -> str | None:
        """Take the py-spy binary in parts; with the last one, unpack it where programs may run and tell the path."""
        self._pyspy[number] = part
        if len(self._pyspy) < count:
            return None
        parts, self._pyspy = self._pyspy, {}
        binary = unpack_pyspy(b"".join(parts[i] for i in range(count)))
        self._installed = install_pyspy(binary) if binary is not None else None
        return self._installed

    def collect(self, ticket: str, options: bytes) -> int:
        """Collect as `options` (JSON of CollectOptions) ask; the number of pages to fetch with the same ticket."""
        import msgspec

        from ray_rl_debug.collect.node import collect_node
        from ray_rl_debug.collect.options import CollectOptions
        from ray_rl_debug.model.packed_node import pack_node

        asked = msgspec.json.decode(options, type=CollectOptions)
        raylet = int(os.environ.get("RAY_RAYLET_PID") or os.getppid())
        asked = msgspec.structs.replace(asked, raylet_pid=raylet, pyspy=asked.pyspy or self._installed)
        try:
            result = pack_node(collect_node(asked, stop=self._stops.setdefault(ticket, threading.Event())))
        finally:
            self._stops.pop(ticket, None)
            if self._installed is not None and not self._keepers:
                shutil.rmtree(Path(self._installed).parent, ignore_errors=True)
                self._installed = None
        self._results[ticket] = result
        for old in list(self._results)[:-KEPT_RESULTS]:
            del self._results[old]
        return (len(result) + PAGE_BYTES - 1) // PAGE_BYTES

    def finish_early(self, ticket: str) -> None:
        """End the window now; `collect` returns with what it has."""
        self._stops.setdefault(ticket, threading.Event()).set()

    def page(self, ticket: str, number: int) -> bytes:
        return self._results[ticket][number * PAGE_BYTES : (number + 1) * PAGE_BYTES]

    def ask(self, target: str, payload: bytes, keeper: str) -> bytes:
        """What one of our own functions (``ray_rl_debug.module:function``, bytes to bytes) answers on this node.

        Raises:
            ValueError: the function is not ours, or its answer is larger than a page.
        """
        import importlib

        self._hold(keeper)
        module, _, function = target.partition(":")
        if not module.startswith("ray_rl_debug."):
            raise ValueError(f"{target} is not a function of ours")
        answer: bytes = getattr(importlib.import_module(module), function)(payload)
        if len(answer) > PAGE_BYTES:
            raise ValueError(f"the answer has {len(answer)} bytes, more than {PAGE_BYTES}")
        return answer

    def release(self, keeper: str) -> int:
        """This keeper needs us no more; how many still do."""
        self._keepers.pop(keeper, None)
        if not self._keepers and self._installed is not None:
            shutil.rmtree(Path(self._installed).parent, ignore_errors=True)
            self._installed = None
        return len(self._keepers)

    def _hold(self, keeper: str | None) -> None:
        if keeper is not None:
            self._keepers[keeper] = time.monotonic() + HOLD_S

    def _leave_when_forgotten(self) -> None:
        latest = time.monotonic() + HOLD_S
        while time.monotonic() < latest:
            time.sleep(max(1.0, latest - time.monotonic()))
            latest = max([latest, *self._keepers.values()])
        if self._installed is not None:
            shutil.rmtree(Path(self._installed).parent, ignore_errors=True)
        import ray

        ray.kill(ray.get_runtime_context().current_actor)


def unpack_pyspy(packed: bytes) -> bytes | None:
    """The program; None when it is damaged or far too large."""
    import lzma

    unpacker = lzma.LZMADecompressor()
    try:
        binary = unpacker.decompress(packed, PROGRAM_BYTES + 1)
    except lzma.LZMAError:
        return None
    return binary if unpacker.eof and len(binary) <= PROGRAM_BYTES else None


def install_pyspy(binary: bytes) -> str | None:
    """Write the program where programs may run; its path, in a folder of its own."""
    import subprocess
    import tempfile

    for folder in (None, ".", os.path.expanduser("~")):
        try:
            own = Path(tempfile.mkdtemp(prefix="rayrl-debug-", dir=folder)).absolute()
        except OSError:
            continue
        target = own / "py-spy"
        try:
            target.write_bytes(binary)
            target.chmod(0o700)
            if subprocess.run([str(target), "--version"], capture_output=True, timeout=10, check=False).returncode == 0:
                return str(target)
        except (OSError, subprocess.SubprocessError):
            pass  # noexec, full or another architecture: try the next folder
        shutil.rmtree(own, ignore_errors=True)
    return None
