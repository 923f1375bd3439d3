"""GPU facts through NVML.

A sick GPU can hold a call into the driver for ever, in a way no signal ends; so NVML is asked in a child process with a deadline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug.bounded.own_python import own_program
from ray_rl_debug.bounded.programs import run_bounded
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap, Gpu

TIMEOUT_S = 5.0
_PROGRAM = "from ray_rl_debug.collect.gpus import main; main()"
_THROTTLE_REASONS: tuple[tuple[int, str], ...] = (
    (0x2, "applications clocks setting"),
    (0x4, "software power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "hardware power brake"),
    (0x100, "display clock setting"),
)
"""Bits of NVML's clock event reasons; bit 0, GPU idle, is no throttling."""


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    gpus: tuple[Gpu, ...] | None = None
    gaps: tuple[Gap, ...] = ()


def collect_gpus(*, root: Path = Path("/"), timeout_s: float = TIMEOUT_S) -> tuple[tuple[Gpu, ...] | None, tuple[Gap, ...]]:
    """All GPUs and MIG instances of this node, and what could not be read. ``(None, ())`` where there is no NVIDIA device.

    `Gap.where` is empty: prefix the node's name.
    """
    if not (root / "dev/nvidiactl").exists() and not (root / "proc/driver/nvidia").exists():
        return None, ()
    try:
        done = run_bounded(own_program(_PROGRAM), timeout_s)
    except OSError as e:
        return None, (_gap("all GPUs", f"a child process could not be started: {e.strerror}"),)
    if done.timed_out:
        return None, (_gap("all GPUs", f"NVML gave no answer in {timeout_s:g} s: a GPU or its driver hangs", "nvidia-smi -q; dmesg | grep -i xid"),)
    try:
        answer = msgspec.json.decode(done.out, type=_Answer)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None, (_gap("all GPUs", f"the process that asks NVML ended with {done.code}"),)
    return answer.gpus, answer.gaps


def main() -> None:
    """The child: ask NVML, print JSON."""
    sys.stdout.buffer.write(msgspec.json.encode(ask_nvml()))


def ask_nvml() -> _Answer:
    """Ask NVML in this process; may not return when a GPU hangs."""
    try:
        import pynvml as nvml
    except ImportError:
        return _Answer(gaps=(_gap("all GPUs", "the Python binding of NVML is not installed", "pip install nvidia-ml-py"),))
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as e:
        return _Answer(gaps=(_gap("all GPUs", f"NVML: {e}", "nvidia-smi"),))
    found: list[Gpu] = []
    missing: list[Gap] = []
    for index in range(count):
        reader = _Reader(nvml, index)
        found += reader.read()
        if reader.trouble is not None:
            missing.append(_gap(f"GPU {index}", f"NVML: {reader.trouble}", "nvidia-smi -q; dmesg | grep -i xid"))
    return _Answer(gpus=tuple(found), gaps=tuple(missing))


class _Reader:
    """Reads one GPU; what NVML does not support or forbids is None, any other error is kept in `trouble`."""

    def __init__(self, nvml: Any, index: int) -> None:
        self._nvml = nvml
        self._index = index
        self.trouble: str | None = None
        codes = ("NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_NO_PERMISSION", "NVML_ERROR_FUNCTION_NOT_FOUND", "NVML_ERROR_NOT_FOUND")
        self._harmless = {getattr(nvml, code) for code in codes}

    def read(self) -> Iterator[Gpu]:
        nvml = self._nvml
        handle = self._ask("nvmlDeviceGetHandleByIndex", self._index)
        if handle is None:
            return
        gpu = self._gpu(handle)
        utilization = self._ask("nvmlDeviceGetUtilizationRates", handle)
        reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        yield msgspec.structs.replace(
            gpu,
            utilization_percent=_as(float, getattr(utilization, "gpu", None)),
            power_watts=_scaled(self._ask("nvmlDeviceGetPowerUsage", handle)),
            power_limit_watts=_scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit", handle)),
            sm_clock_mhz=_as(float, self._ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM)),
            temperature_c=_as(float, self._ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU)),
            throttle_reasons=tuple(name for bit, name in _THROTTLE_REASONS if (reasons or 0) & bit),
            ecc_uncorrected=self._ask("nvmlDeviceGetTotalEccErrors", handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC),
        )
        mode = self._ask("nvmlDeviceGetMigMode", handle)
        if mode is None or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
            return
        for slot in range(self._ask("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            instance = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, slot)
            if instance is not None:
                yield msgspec.structs.replace(self._gpu(instance), mig_parent=gpu.uuid)

    def _gpu(self, handle: Any) -> Gpu:
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses", handle) or ()
        return Gpu(
            index=self._index,
            uuid=_text(self._ask("nvmlDeviceGetUUID", handle)),
            name=_text(self._ask("nvmlDeviceGetName", handle)),
            memory_used_bytes=getattr(memory, "used", None),
            memory_total_bytes=getattr(memory, "total", None),
            pids=tuple(sorted({int(process.pid) for process in processes})),
        )

    def _ask(self, function: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, function)(*arguments)
        except AttributeError:
            return None  # a binding older than the function
        except self._nvml.NVMLError as e:
            if e.value not in self._harmless and self.trouble is None:
                self.trouble = str(e)
            return None


def _as(kind: Callable[[Any], float], value: Any) -> float | None:
    return None if value is None else kind(value)


def _scaled(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _text(value: Any) -> str:
    """Bindings before 11.5 give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


def _gap(what: str, reason: str, remedy: str | None = None) -> Gap:
    return Gap(id=gaps.GPU_UNREAD, where="", what=what, reason=reason, remedy=remedy)
