"""Utilisation, power and memory of the GPUs of this node, from a child process that keeps NVML open.

A sick GPU can hold a call into the driver for ever: the child is then left alone, and the GPUs are not known.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.own_python import own_program
from ray_rl_debug.watch.signals import GpuSign

ANSWER_S = 0.5
MAX_SILENT = 6
"""Readings without an answer before the child is given up."""
_PROGRAM = "from ray_rl_debug.watch.gpu_watch import main; main()"


class GpuWatch:
    """Starts its child at the first reading, where there is an NVIDIA driver at all."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._is_there = (root / "dev/nvidiactl").exists() or (root / "proc/driver/nvidia").exists()
        self._child: subprocess.Popen[bytes] | None = None
        self._silent = 0
        self._rest = b""

    def read(self) -> tuple[GpuSign, ...] | None:
        """All GPUs; None without any, or when NVML gives no answer in half a second."""
        if not self._is_there:
            return None
        try:
            return self._ask()
        except (OSError, ValueError, msgspec.DecodeError):
            self.close()
            self._is_there = False
            return None

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    pipe.close()
            try:
                self._child.wait(0.2)
            except subprocess.TimeoutExpired:
                pass  # in the driver: it ends when the kernel lets it
            self._child = None

    def _ask(self) -> tuple[GpuSign, ...] | None:
        if self._child is None:
            self._child = subprocess.Popen(own_program(_PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            return None  # it needs a moment to start
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        if self._silent == 0:
            self._child.stdin.write(b"\n")
            self._child.stdin.flush()
        if not select.select([self._child.stdout], [], [], ANSWER_S)[0]:
            self._silent += 1
            if self._silent >= MAX_SILENT:
                raise ValueError("NVML does not answer")
            return None
        self._silent = 0
        line = os.read(self._child.stdout.fileno(), 1 << 16)
        if not line:
            raise ValueError("the process that asks NVML has ended")
        return msgspec.json.decode(line, type=tuple[GpuSign, ...])


def main() -> None:
    """The child: a line in, the GPUs as one line of JSON out."""
    import pynvml as nvml

    nvml.nvmlInit()
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    for _ in sys.stdin.buffer:
        signs = []
        for index, handle in enumerate(handles):
            utilization = power = memory = None
            try:
                power = nvml.nvmlDeviceGetPowerUsage(handle) / 1000
                memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
                utilization = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
            except nvml.NVMLError:
                pass  # MIG has no utilisation
            signs.append(GpuSign(index, utilization, power, memory))
        sys.stdout.buffer.write(msgspec.json.encode(signs) + b"\n")
        sys.stdout.buffer.flush()
