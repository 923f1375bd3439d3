"""The actor that runs on each node: collects there, hands its facts over in small pages."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

PAGE_BYTES = 90_000
"""Below Ray's limit for inline replies (100 KB): such messages pass when the object store is full and when the raylet is stopped."""


class RayRlDebugAgent:
    """One per node, without CPUs, pinned to it. Its class name is how the collector leaves it out."""

    def __init__(self) -> None:
        self._result = b""
        self._pyspy: dict[int, bytes] = {}
        self._installed: str | None = None
        self._stop = threading.Event()

    def ready(self) -> bool:
        """Is py-spy here?"""
        from ray_rl_debug.collect.pyspy import find_pyspy

        return find_pyspy(None) is not None

    def receive_pyspy(self, number: int, part: bytes, count: int) -> str | None:
        """Take the py-spy binary in parts; with the last one, unpack it where programs may run and tell the path."""
        self._pyspy[number] = part
        if len(self._pyspy) < count:
            return None
        parts, self._pyspy = self._pyspy, {}
        self._installed = _install_pyspy(b"".join(parts[i] for i in range(count)))
        return self._installed

    def collect(self, options: bytes) -> int:
        """Collect as `options` (JSON of CollectOptions) ask; the number of pages to fetch."""
        import msgspec

        from ray_rl_debug import codec
        from ray_rl_debug.collect.node import collect_node
        from ray_rl_debug.collect.options import CollectOptions

        self._stop.clear()
        asked = msgspec.json.decode(options, type=CollectOptions)
        asked = msgspec.structs.replace(asked, raylet_pid=int(os.environ.get("RAY_RAYLET_PID") or os.getppid()))
        try:
            self._result = codec.encode_compressed(collect_node(asked, stop=self._stop))
        finally:
            if self._installed is not None:
                shutil.rmtree(Path(self._installed).parent, ignore_errors=True)
                self._installed = None
        return (len(self._result) + PAGE_BYTES - 1) // PAGE_BYTES

    def finish_early(self) -> None:
        """End the window now; `collect` returns with what it has."""
        self._stop.set()

    def page(self, number: int) -> bytes:
        return self._result[number * PAGE_BYTES : (number + 1) * PAGE_BYTES]


def _install_pyspy(packed: bytes) -> str | None:
    import lzma
    import subprocess
    import tempfile

    for folder in (None, os.getcwd(), str(Path.home())):
        try:
            target = Path(tempfile.mkdtemp(prefix="rayrl-debug-", dir=folder)) / "py-spy"
            target.write_bytes(lzma.decompress(packed))
            target.chmod(0o700)
            if subprocess.run([str(target), "--version"], capture_output=True, timeout=10, check=False).returncode == 0:
                return str(target)
        except (OSError, lzma.LZMAError, subprocess.SubprocessError):
            continue  # noexec, full or another architecture: try the next folder
    return None
