"""May this cluster start, be joined, be inspected: a table of checks, run over the facts of all nodes.

A check is one row here and one or two functions: one that looks at each node, one that compares all of them. The docstring of the first one is what
``rayrl-debug explain`` prints. A check that raises becomes a result too, and the others still run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.doctor import clusters, cpus, folders, gpus, lightning, limits, logs, network, nodes, pods, settings, slurm
from ray_rl_debug.doctor.answers import explain_check
from ray_rl_debug.model.health import Examination, Health, NodeHealth, Result, Status


class Check(NamedTuple):
    """One check of the doctor."""

    id: str
    key: str
    """``cpu.allowed``: what the first column shows."""
    name: str
    of_node: Callable[[NodeHealth], Iterable[Result]] | None = None
    of_all: Callable[[Health], Iterable[Result]] | None = None

    def explanation(self) -> str:
        """Its story, evidence, remedy, and when it is something else; under the same heads as a rule's."""
        return explain_check(self.id, self.name, self.of_node or self.of_all)


LOG_SCAN = Check("RRD833", "log.scan", "known errors in the logs", logs.scan)
CHECKS: tuple[Check, ...] = (
    Check("RRD834", "node.seen", "a node did not answer", of_all=nodes.seen),
    LOG_SCAN,
    Check("RRD802", "cpu.allowed", "more CPUs for Ray than allowed", cpus.allowed),
    Check("RRD803", "cpu.step", "the step has fewer CPUs than the job", cpus.step),
    Check("RRD804", "cpu.quota", "a CPU quota below Ray's CPUs", cpus.quota),
    Check("RRD805", "start.cost", "workers would not register in time", cpus.start_cost),
    Check("RRD806", "lim.nproc", "too few processes allowed", limits.processes),
    Check("RRD807", "lim.nofile", "too few open files allowed", limits.files),
    Check("RRD808", "lim.memlock", "locked memory is limited beside InfiniBand", limits.locked_memory),
    Check("RRD809", "shm.size", "/dev/shm is smaller than the object store", limits.shared_memory),
    Check("RRD810", "mem.limit", "Ray counts more memory than allowed", limits.memory),
    Check("RRD811", "tmp.path", "Ray's temporary folder has too long a name", folders.temp_path),
    Check("RRD812", "tmp.write", "Ray cannot use its temporary folder", folders.temp_writable),
    Check("RRD813", "tmp.stale", "old sessions of Ray", folders.stale_sessions),
    Check("RRD835", "ray.all", "a node of the job without Ray", of_all=clusters.everywhere),
    Check("RRD814", "ray.other", "another Ray runs on this node", clusters.others),
    Check("RRD815", "port.block", "a port of Ray is taken", clusters.ports),
    Check("RRD816", "net.head", "nodes cannot reach each other", network.contacts),
    Check("RRD817", "net.name", "the host name leads to a wrong address", of_all=network.names),
    Check("RRD818", "net.proxy", "a proxy is set for the cluster's own addresses", of_all=network.proxies),
    Check("RRD819", "net.nccl", "NCCL or Gloo is given an interface that does not exist", network.interfaces, network.infiniband),
    Check("RRD820", "ver.same", "versions differ between nodes", of_all=nodes.versions),
    Check("RRD821", "auth.same", "nodes would use different tokens", nodes.token, nodes.tokens),
    Check("RRD822", "gpu.count", "Ray's number of GPUs is wrong", gpus.count, gpus.counts),
    Check("RRD823", "gpu.env", "CUDA's and ROCm's device variables are set together", gpus.variables),
    Check("RRD824", "gpu.busy", "a GPU is in use before the job starts", gpus.busy),
    Check("RRD825", "gpu.driver", "the GPU driver does not answer", gpus.driver, gpus.drivers),
    Check("RRD826", "clock.skew", "clocks differ", nodes.clock),
    Check("RRD801", "dbg.ptrace", "processes may not be inspected", settings.ptrace),
    Check("RRD836", "pod.proc", "the pod's processes are not seen", pods.processes),
    Check("RRD827", "dbg.env", "workers would leave no evidence of a hang", settings.evidence),
    Check("RRD828", "train.env", "settings that slow a run down or hide a hang", settings.training),
    Check("RRD829", "fs.logdir", "the log folder is not shared, or not writable", folders.log_folder, folders.log_folders),
    Check("RRD830", "slurm.kill", "Slurm leaves little time", of_all=slurm.time_left),
    Check("RRD831", "slurm.mem", "steps must share memory", of_all=slurm.memory),
    Check("RRD832", "slurm.ver", "steps do not inherit --cpus-per-task", of_all=slurm.inheritance),
)
LOG_CHECKS: tuple[Check, ...] = (LOG_SCAN,)
"""Those that need nothing but logs."""
STORE_CHECKS: tuple[Check, ...] = (
    Check("RRD840", "agl.store", "Agent-Lightning's store does not answer", of_all=lightning.reachable),
    Check("RRD841", "agl.runner", "a runner of Agent-Lightning holds a rollout for ever", of_all=lightning.runners),
    Check("RRD842", "agl.beat", "a runner of Agent-Lightning is gone", of_all=lightning.beats),
    Check("RRD843", "agl.queue", "queued rollouts that nobody takes", of_all=lightning.queue),
    Check("RRD844", "agl.spans", "rollouts without their traces", of_all=lightning.spans),
    Check("RRD845", "agl.reward", "rollouts without a reward", of_all=lightning.rewards),
    Check("RRD846", "agl.proxy", "the endpoint that agents are given does not answer", of_all=lightning.proxy),
)
"""Those about a store of Agent-Lightning."""
_ORDER = {Status.FAIL: 0, Status.WARN: 1, Status.UNKNOWN: 2, Status.OK: 3}


def examine(health: Health, checks: Sequence[Check] = CHECKS) -> Examination:
    """Run all checks; the worst results come first."""
    results = [msgspec.structs.replace(r, id=c.id, check=c.key, name=c.name) for c in checks for r in _run(c, health)]
    measured = [r.status for r in results if r.status is not Status.UNKNOWN]
    return Examination(
        tool_version=__version__,
        taken_time_s=max((n.taken_time_s for n in health.nodes), default=None),
        state=min(measured, default=Status.UNKNOWN, key=_ORDER.__getitem__),
        nodes=tuple(n.name for n in health.nodes),
        results=tuple(sorted(results, key=lambda r: _ORDER[r.status])),
        gaps=(*(g for n in health.nodes for g in n.gaps), *(health.store.gaps if health.store is not None else ())),
    )


def _run(check: Check, health: Health) -> Iterator[Result]:
    try:
        if check.of_node is not None:
            for node in health.nodes:
                yield from (msgspec.structs.replace(r, node=node.name) for r in check.of_node(node))
        if check.of_all is not None:
            yield from check.of_all(health)
    except Exception as e:  # noqa: BLE001 a check that fails says so, and costs no other
        yield Result(status=Status.UNKNOWN, measured=f"this check failed: {type(e).__name__}: {str(e)[:160]}")
