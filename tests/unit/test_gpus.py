"""NVML through the real binding, against a library of our own built by the test."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ray_rl_debug.collect.gpus import collect_gpus
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gpu

SOURCE = Path(__file__).parent.parent / "data" / "fake_nvml.c"
COMPILER = shutil.which("gcc") or shutil.which("cc")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", folder / "libnvidia-ml.so.1", SOURCE], check=True)
    return folder


@pytest.fixture
def machine(tmp_path, monkeypatch, library):
    """A root folder with an NVIDIA device, and our library first on the loader's path."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.delenv("FAKE_NVML", raising=False)
    return tmp_path


def test_no_device_is_no_gap(tmp_path):
    assert collect_gpus(root=tmp_path) == (None, ())


def test_gpus_and_mig_instances(machine):
    found, missing = collect_gpus(root=machine, timeout_s=30)
    assert found == (
        Gpu(
            index=0,
            uuid="GPU-0",
            name="Fake H200",
            utilization_percent=100.0,
            memory_used_bytes=600,
            memory_total_bytes=1000,
            power_watts=123.456,
            power_limit_watts=700.0,
            sm_clock_mhz=1980.0,
            temperature_c=64.0,
            throttle_reasons=("software power cap", "hardware thermal slowdown"),
            ecc_uncorrected=2,
            pids=(4710, 4711),
        ),
        Gpu(
            index=1,
            uuid="GPU-1",
            name="Fake H200",
            memory_used_bytes=600,
            memory_total_bytes=1001,
            power_limit_watts=700.0,
            sm_clock_mhz=1980.0,
            temperature_c=64.0,
        ),
        Gpu(index=1, uuid="MIG-3", name="Fake H200", memory_used_bytes=600, memory_total_bytes=1003, mig_parent="GPU-1"),
    )
    (gap,) = missing
    assert (gap.id, gap.what) == (gaps.GPU_UNREAD, "GPU 2")
    assert "GPU is lost" in gap.reason


@pytest.mark.parametrize(("how", "reason"), [("refuse", "Driver Not Loaded"), ("crash", "ended with -6")])
def test_a_driver_that_does_not_answer_is_a_gap(machine, monkeypatch, how, reason):
    monkeypatch.setenv("FAKE_NVML", how)
    found, (gap,) = collect_gpus(root=machine, timeout_s=30)
    assert found is None
    assert gap.id == gaps.GPU_UNREAD
    assert reason in gap.reason


def test_a_driver_that_hangs_is_a_gap_in_time(machine, monkeypatch):
    monkeypatch.setenv("FAKE_NVML", "hang")
    started = time.monotonic()
    found, (gap,) = collect_gpus(root=machine, timeout_s=1.0)
    assert time.monotonic() - started < 5
    assert found is None
    assert "no answer in 1 s" in gap.reason


def test_a_missing_library_is_a_gap(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a driver of its own")
    found, (gap,) = collect_gpus(root=machine, timeout_s=30)
    assert (found, gap.id) == (None, gaps.GPU_UNREAD)
