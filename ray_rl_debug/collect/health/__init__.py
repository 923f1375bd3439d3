"""All that the doctor measures on one node."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.collect.gpus import collect_gpus
from ray_rl_debug.collect.guard import Guard
from ray_rl_debug.collect.health import cpu, folders, limits, looking, meeting, network, pod, ray_processes, slurm_facts, software
from ray_rl_debug.collect.health.job_process import JobProcess, find_job_process
from ray_rl_debug.collect.logs import collect_log_lines
from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model import gaps
from ray_rl_debug.model.health import Contact, Cpus, Folder, Gpus, Limits, Memory, Network, NodeHealth, Plan, RayProcess
from ray_rl_debug.model.snapshot import Gap, LogLine
from ray_rl_debug.privacy.redact import made_safe

DEADLINE_S = 100.0
"""Beyond the slowest collector: two imports of Ray from a slow file system."""

T = TypeVar("T")


def answer(payload: bytes) -> bytes:
    """The same through one of our agents: a `Plan` in, a `NodeHealth` out, both JSON."""
    plan = msgspec.json.decode(payload, type=Plan)
    return msgspec.json.encode(collect_health(plan))


def now(payload: bytes) -> bytes:
    """This node's wall clock."""
    return repr(time.time()).encode()


def collect_health(plan: Plan, *, env: Mapping[str, str] | None = None, name: str | None = None, proc: Path = PROC) -> NodeHealth:
    """Facts of this machine; every collector is bounded, and one that fails is a gap."""
    own = dict(os.environ) if env is None else dict(env)
    guard = Guard()
    meant = guard.call("processes of the job", lambda: find_job_process(plan.slurm_job, own, proc) if plan.slurm_job else None, None)
    variables, pid = (meant.env, meant.pid) if meant is not None else (own, None)
    network_ = guard.call("network", lambda: network.read_network(variables), None)
    host = name or own.get("SLURMD_NODENAME") or (network_.host if network_ else os.uname().nodename)
    ray = guard.call("processes of Ray", lambda: ray_processes.read_ray_processes(proc), None)
    if plan.slurm_job and plan.address is None:
        plan = msgspec.structs.replace(plan, address=next((p.address for p in ray or () if p.slurm_job == plan.slurm_job and p.address), None))
    side = ThreadPoolExecutor(5, thread_name_prefix="health")
    pending: dict[str, Future[object]] = {
        "gpus": side.submit(guard.call, "GPUs", lambda: _gpus(variables, proc), None),
        "slurm": side.submit(guard.call, "Slurm", lambda: slurm_facts.read_slurm(own), None),
        "looking": side.submit(guard.call, "reading a process", lambda: looking.read_looking(proc), None),
        "contacts": side.submit(guard.call, "other nodes", lambda: _contacts(plan, own, host, network_), None),
    }
    if plan.is_preflight:
        pending["start"] = side.submit(guard.call, "the start of Ray", lambda: software.read_start(variables), None)
    raylet = next((p for p in ray or () if plan.slurm_job and p.slurm_job == plan.slurm_job and p.kind == "raylet"), None)
    no_groups: dict[str, str] = {}
    no_sessions: tuple[str, ...] = ()
    groups = guard.call("control groups", lambda: cpu.read_groups(proc, pid), no_groups)
    temp = Path(plan.temp_dir or _temp_of(ray, plan) or variables.get("RAY_TMPDIR") or "/tmp/ray")
    used = guard.call("Ray's sessions", lambda: ray_processes.sessions_in_use(proc), no_sessions)
    facts = NodeHealth(
        tool_version=__version__,
        name=host,
        taken_time_s=time.time(),
        plan=plan,
        cpus=guard.call("CPUs", lambda: cpu.read_cpus(variables, proc, pid=pid), Cpus()),
        limits=guard.call("limits", lambda: limits.read_limits(groups, proc, pid=pid), Limits()),
        memory=guard.call("memory", lambda: limits.read_memory(proc, pid=pid), Memory()),
        temp=guard.call("the temporary folder", lambda: folders.read_temp(temp, used, proc), None),
        logs=guard.call("the log folder", partial(_logs, plan, proc), None),
        ray=ray,
        pod=guard.call("the pod", lambda: pod.read_pod(proc), None),
        ports=guard.call("ports", lambda: network.try_ports(plan.port_base), None) if plan.is_preflight else None,
        network=network_,
        auth=guard.call("authentication", lambda: software.read_auth(variables), None),
        versions=guard.call("versions", lambda: software.read_versions(raylet.pid if raylet else None, proc), {}),
        env=ray_processes.kept_environment(variables.items()),
        log_lines=guard.call("Ray's logs", lambda: _session_lines(plan, ray), None) if plan.slurm_job else None,
    )
    found = {key: _result(future, key, guard) for key, future in pending.items()}
    side.shutdown(wait=False, cancel_futures=True)
    return made_safe(msgspec.structs.replace(facts, **found, gaps=(*guard.gaps(host), *_stranger(plan, host, meant))))


def _stranger(plan: Plan, host: str, meant: JobProcess | None) -> tuple[Gap, ...]:
    if plan.slurm_job is None or meant is not None:
        return ()
    reason = "none that runs here can be read; limits, CPUs and variables are those of our own step"
    return (Gap(id=gaps.PROCESS_GONE, where=host, what="the processes of the job", reason=reason),)


def _result(future: Future[object], what: str, guard: Guard) -> object:
    try:
        return future.result(DEADLINE_S)
    except FutureTimeoutError:

        def late() -> object:
            raise TimeoutError(f"no answer in {DEADLINE_S:g} s")

        return guard.call(what, late, None)


def _temp_of(ray: tuple[RayProcess, ...] | None, plan: Plan) -> str | None:
    """The folder of the cluster that runs."""
    if plan.is_preflight:
        return None
    return next((p.temp_dir for p in ray or () if p.temp_dir and plan.address in (None, p.address) and plan.slurm_job in (None, p.slurm_job)), None)


def _session_lines(plan: Plan, ray: tuple[RayProcess, ...] | None) -> tuple[LogLine, ...] | None:
    """Known errors of the raylet, the GCS and ended workers of the job's session here; None where Ray does not run."""
    folder = _temp_of(ray, plan)
    if folder is None or plan.address is None:
        return None
    lines, _ = collect_log_lines((), Path(folder, "session_latest").resolve())
    return lines.get(None, ())


def _logs(plan: Plan, proc: Path) -> Folder | None:
    return folders.read_logs(Path(plan.log_dir), proc) if plan.log_dir else None


def _contacts(plan: Plan, env: Mapping[str, str], name: str, found: Network | None) -> tuple[Contact, ...] | None:
    gcs = (network.connect("GCS", plan.address),) if plan.address is not None else None
    if plan.meeting_dir is None or (gcs is not None and plan.slurm_job is None):
        return gcs
    addresses = [a for i in (found.interfaces if found else ()) if i.is_up for a in i.addresses if not a.startswith(("127.", "169.254.", "172.17."))]
    met = meeting.meet(Path(plan.meeting_dir), env, name, addresses)
    if plan.slurm_job is None:
        return met
    # nobody said that all nodes of a running job see this folder: those who do not meet there say nothing
    return (*(gcs or ()), *(c for c in met or () if c.address)) or None


def _gpus(env: Mapping[str, str], proc: Path) -> Gpus:
    devices, missing = collect_gpus()
    version = re.search(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)", read_text(proc / "driver/nvidia/version", 4096) or "")
    given = [x for x in (env.get("SLURM_JOB_GPUS") or env.get("SLURM_STEP_GPUS") or "").split(",") if x]
    return Gpus(
        devices=devices,
        has_driver=(proc / "driver/nvidia").exists() or Path("/dev/nvidiactl").exists(),
        driver=version[1] if version else None,
        error=missing[0].reason if missing else None,
        slurm=len(given) or None,
    )


def silent(node: str, reason: str) -> Gap:
    """A node of which nothing is known."""
    return Gap(id=gaps.NODE_SILENT, where=node, what="everything of this node", reason=reason, remedy=f"on {node}: rayrl-debug doctor --here -o DIR")
