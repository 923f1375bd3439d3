"""What a collector is asked to do on its node; travels to the agents as JSON."""

from __future__ import annotations

import msgspec


class CollectOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one node's collection."""

    samples: int = 3
    interval_s: float = 1.0
    """Seconds between two samples."""
    native: bool = False
    """Read the frames of C and C++ in each sample."""
    native_at_device: bool = False
    """Read them once behind the window, of processes that use an accelerator and ran at one place all the time. Reading stops a process of torch on
    CUDA for about a second."""
    pystack: bool = False
    pids: tuple[int, ...] = ()
    """Named processes: they and their descendants only; Ray is not needed."""
    raylet_pid: int | None = None
    """Only the processes of this raylet (several raylets may share a host)."""
    driver_pids: tuple[int, ...] | None = None
    """Drivers on this node, from Ray's job table; None looks for them."""
    skip_pids: tuple[int, ...] = ()
    """Processes left out: our own, and workers of other jobs with all that they started."""
    gcs_address: str | None = None
    """Only raylets of the cluster with this GCS."""
    node_id: str | None = None
    node_name: str | None = None
    node_ip: str | None = None
    job_id: str | None = None
    timeout_s: float = 30.0
    """Beyond the sampling window."""
    async_tasks: bool = True
    logs: bool = True
    engine_endpoints: bool = True
    """Ask inference engines at their own endpoints."""
    pyspy: str | None = None
    """Path of the py-spy binary; None looks for it."""

    @property
    def window_s(self) -> float:
        return max(0, self.samples - 1) * self.interval_s
