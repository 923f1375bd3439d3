"""Limits of processes, files and memory that are too low for Ray."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor import pods
from ray_rl_debug.doctor.answers import fail, gib, ok, unknown, warn
from ray_rl_debug.doctor.plans import intended_cpus
from ray_rl_debug.model.health import NodeHealth, Result

# 40 threads per worker and 200 for Ray's daemons; with 64 in all the raylet aborted, with 40 the GCS did.
THREADS, THREADS_PER_CPU = 200, 40
FILES_FAIL_BELOW, FILES_WARN_BELOW = 4096, 65535
STORE_SHARE = 0.3


def processes(node: NodeHealth) -> Iterator[Result]:
    """ulimit -u counts all threads of a user on the node. Ray's daemons and each worker have dozens; at the limit the raylet or the GCS aborts
    with "Resource temporarily unavailable".

    Evidence: RLIMIT_NPROC less the threads this user has now, and pids.max of the control group.
    Remedy: Raise the soft limit to the hard one; have the site not propagate the login node's limits.
    Not this when: The limit does not bind: root is exempt from it.
    """
    intended, rooms = intended_cpus(node), list(_rooms(node))
    needed = THREADS + THREADS_PER_CPU * (intended[0] if intended else node.cpus.allowed or 1)
    if not rooms and node.limits.processes is None:
        yield unknown("limits were not read")
        return
    room, text, remedy = min(rooms, default=(None, "no limit of processes", ""), key=lambda r: r[0] or 0)
    if room is None or room >= 2 * needed:
        yield ok(text, f"room for {needed}")
    elif room < needed:
        yield fail(text, f"room for {needed}", "the raylet or the GCS aborts: Resource temporarily unavailable", remedy)
    else:
        yield warn(text, f"room for {2 * needed}", "with more workers or threads Ray's daemons abort", remedy)


def _rooms(node: NodeHealth) -> Iterator[tuple[int, str, str]]:
    limits = node.limits
    if limits.processes is not None and limits.processes.soft is not None:
        soft, hard = limits.processes.soft, limits.processes.hard
        room = soft - (limits.user_threads or 0)
        remedy = "ask the site for PropagateResourceLimitsExcept=NPROC in slurm.conf"
        if hard is None or hard > soft:
            remedy = 'ulimit -Su "$(ulimit -Hu)"'
        yield room, f"room for {room} more (ulimit -u {soft}, {limits.user_threads} threads run)", remedy
    if limits.group_max is not None:
        room = limits.group_max - (limits.group_now or 0)
        yield room, f"room for {room} more (pids.max {limits.group_max}, {limits.group_now} run)", "raise the container's --pids-limit, or TasksMax"


def files(node: NodeHealth) -> Iterator[Result]:
    """The raylet and the GCS keep several sockets per worker. When descriptors run out, a raylet aborts or refuses workers.

    Evidence: RLIMIT_NOFILE.
    Remedy: Raise the soft limit to the hard one before ray start.
    Not this when: The limit was raised in the job's script only: it must be raised in the step.
    """
    limit = node.limits.files
    if limit is None:
        yield unknown("limits were not read")
        return
    soft = limit.soft
    can_raise = limit.hard is None or (soft is not None and limit.hard > soft)
    remedy = 'ulimit -Sn "$(ulimit -Hn)"' if can_raise else "ask the site for LimitNOFILE=1048576 in slurmd.service"
    text = f"ulimit -n {'unlimited' if soft is None else soft}"
    if soft is None or soft >= FILES_WARN_BELOW:
        yield ok(text, f"{FILES_WARN_BELOW}")
    elif soft < FILES_FAIL_BELOW:
        yield fail(text, f"{FILES_FAIL_BELOW}", "Ray's daemons run out of descriptors and abort", remedy)
    else:
        yield warn(text, f"{FILES_WARN_BELOW}", "with hundreds of workers Ray's daemons run out of descriptors", remedy)


def locked_memory(node: NodeHealth) -> Iterator[Result]:
    """RDMA pins memory. With a small limit NCCL fails with "unhandled system error", or falls back to slow sockets.

    Evidence: RLIMIT_MEMLOCK, and active InfiniBand ports.
    Remedy: Allow jobs unlimited locked memory.
    Not this when: There is no InfiniBand.
    """
    limit = node.limits.locked_memory
    if limit is None or node.network is None or not node.network.infiniband:
        return
    if limit.soft is None:
        yield ok("unlimited", "unlimited")
    else:
        remedy = "ulimit -l unlimited" if limit.hard is None else "ask the site for LimitMEMLOCK=infinity in slurmd.service"
        yield warn(f"ulimit -l: {gib(limit.soft)}", "unlimited", "NCCL over InfiniBand fails or is slow", remedy)


def shared_memory(node: NodeHealth) -> Iterator[Result]:
    """Ray keeps objects in /dev/shm, 30 % of the memory by default. Where it is smaller (64 MB in a container) Ray uses a slow disk folder instead,
    and NCCL's and DataLoader's shared memory have no room.

    Evidence: Size of /dev/shm and memory of this node.
    Remedy: Make /dev/shm larger, or the object store smaller.
    Not this when: The object store's size is given and fits.
    """
    has = node.memory
    may = min((n for n in (has.total_bytes, has.limit_bytes) if n is not None), default=None)
    room = has.shm_free_bytes if node.plan.is_preflight else has.shm_total_bytes
    if may is None or room is None:
        yield unknown("/dev/shm was not read")
        return
    if pods.is_beside_ray(node):
        yield unknown("this container is not the one that Ray runs in")
        return
    wanted = int(STORE_SHARE * may)
    text, threshold = f"{gib(room)} {'free' if node.plan.is_preflight else 'in all'}", f"{gib(wanted)} (30 % of memory)"
    if room >= wanted:
        yield ok(text, threshold)
    else:
        consequence = "Ray puts its object store into a disk folder, which is slow; NCCL's shared memory may fail"
        remedy = f"--shm-size={wanted >> 30 or 1}g, or ray start --object-store-memory={int(0.9 * room)}"
        yield warn(text, threshold, consequence, remedy if node.pod is None else pods.shared_memory_remedy(wanted))


def memory(node: NodeHealth) -> Iterator[Result]:
    """A job that may use a part of the node's memory is killed by the kernel when it uses more. Ray's memory monitor looks at the limit of its own
    control group only where it finds it.

    Evidence: Memory limit of the control group, memory of the machine, and what Ray takes for it.
    Remedy: Ask for all memory of the node, or tell Ray how much it has.
    Not this when: The job has the whole node.
    """
    total, limit, counted = node.memory.total_bytes, node.memory.limit_bytes, node.memory.ray_bytes
    if total is None:
        yield unknown("memory was not read")
    elif limit is None or limit >= 0.95 * total or (node.slurm is None and limit >= 0.5 * total):
        yield ok(f"{gib(total)}, {'no limit' if limit is None else 'limit ' + gib(limit)}")
    elif counted is not None and counted <= limit:
        yield ok(f"limit {gib(limit)} of {gib(total)}, and Ray counts {gib(counted)}")
    else:
        remedy = f"sbatch --mem=0 (all of it), or ray start --memory={int(0.6 * limit)} --object-store-memory={int(0.3 * limit)}"
        if node.pod is not None:
            remedy = pods.memory_remedy(limit)
        text = f"limit {gib(limit)} of {gib(total)}, Ray counts {gib(counted or total)}"
        yield warn(text, gib(total), "the kernel kills the job while Ray still sees free memory", remedy)
