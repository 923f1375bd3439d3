"""Pods of Kubernetes: what their manifest lacks, as the lines to add."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, unknown, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import NodeHealth, Result
from ray_rl_debug.model.pod import Pod

PREPARED = """\
or, without any right, prepare the job (runtimeEnvYAML of a RayJob):
worker_process_setup_hook: ray_rl_debug.prepare.open_doors"""
RIGHTS = """\
securityContext:
  runAsUser: 0
  capabilities:
    add: [SYS_PTRACE]"""
CONTAINER = "in the manifest of the pod's container:"


def processes(node: NodeHealth) -> Iterator[Result]:
    """Containers of a pod do not see each other's processes. A companion in a container of its own then sees nobody of the job.

    Evidence: Processes of Ray in /proc, and whether process 1 is the pod's pause program.
    Remedy: Share the processes of the pod, or run the tool inside the container of Ray.
    Not this when: Ray was not started in this pod.
    """
    pod = node.pod
    if pod is None or node.plan.is_preflight:
        return
    if node.ray is None:
        yield unknown("processes were not read")
        return
    shared = {True: "shared with the pod's other containers", False: "of this container only", None: "of this container"}[pod.shares_processes]
    if node.ray or pod.shares_processes:
        yield ok(f"{len(node.ray)} processes of Ray are seen; processes are {shared}")
        return
    remedy = "in the pod's spec, beside containers:\nshareProcessNamespace: true"
    consequence = "a snapshot from this container has no process of the job"
    yield warn(f"no process of Ray is seen; processes are {shared}", "Ray's processes", consequence, remedy)


def is_beside_ray(node: NodeHealth) -> bool:
    """Is this a container of a pod beside the one that Ray runs in? Then /dev/shm and limits here are not Ray's."""
    raylets = own_raylets(node)
    return node.pod is not None and bool(raylets) and all(p.is_of_our_group is False for p in raylets)


def rights_text(pod: Pod) -> str:
    """``user 1000, SYS_PTRACE only for root, ptrace_scope=1``."""
    if pod.has_ptrace is None:
        capability = "capabilities unknown"
    elif pod.has_ptrace:
        capability = "SYS_PTRACE"
    else:
        capability = "SYS_PTRACE only for root" if pod.may_have_ptrace else "no SYS_PTRACE"
    words = [f"user {pod.user_id}" if pod.user_id is not None else "", capability]
    words += ["no new privileges"] if pod.no_new_privileges else []
    words += ["a seccomp filter"] if pod.has_seccomp else []
    words += [f"ptrace_scope={pod.ptrace_scope}"] if pod.ptrace_scope is not None else []
    return ", ".join(w for w in words if w)


def rights_remedy(pod: Pod) -> str:
    """The lines that let this container look into processes; for one that has tried and may not."""
    if pod.ptrace_scope == 3:
        return f"no pod may trace on a node with ptrace_scope=3; choose another node, {PREPARED}"
    if pod.has_ptrace and pod.has_seccomp:
        return f"{CONTAINER}\nsecurityContext:\n  seccompProfile:\n    type: RuntimeDefault"
    if pod.user_id == 0:
        return f"{CONTAINER}\n" + RIGHTS.replace("  runAsUser: 0\n", "") + f"\n{PREPARED}"
    sudo = "run it with sudo, or\n" if pod.may_have_ptrace and not pod.no_new_privileges else ""
    return f"{sudo}{CONTAINER}\n{RIGHTS}\n{PREPARED}"


def shared_memory_remedy(wanted_bytes: int) -> str:
    """Lines for a larger /dev/shm."""
    size = f"{-(-wanted_bytes >> 30) or 1}Gi" if wanted_bytes >= 1 << 30 else f"{-(-wanted_bytes >> 20) or 1}Mi"
    return f"""\
in the pod's spec (what lies there counts against the container's memory limit):
volumes:
- name: shm
  emptyDir: {{medium: Memory, sizeLimit: {size}}}
{CONTAINER}
volumeMounts:
- {{name: shm, mountPath: /dev/shm}}"""


def cpus_remedy(cores: float) -> str:
    """Lines that tell Ray how many CPUs the container may use."""
    return f'in the group of the RayCluster, or raise the container\'s limits.cpu:\nrayStartParams:\n  num-cpus: "{max(1, int(cores))}"'


def memory_remedy(limit_bytes: int) -> str:
    """Lines that tell Ray how much memory the container may use."""
    parts = f'  memory: "{int(0.6 * limit_bytes)}"\n  object-store-memory: "{int(0.3 * limit_bytes)}"'
    return f"in the group of the RayCluster, or raise the container's limits.memory:\nrayStartParams:\n{parts}"
