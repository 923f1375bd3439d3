"""Rights and variables that decide what can be learned of a hang."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ray_rl_debug.doctor.answers import ok, unknown, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.doctor.pods import rights_remedy, rights_text
from ray_rl_debug.model.health import NodeHealth, Result

WANTED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"), "TORCH_FR_BUFFER_SIZE=2000"),
    (("TORCH_NCCL_DUMP_ON_TIMEOUT",), "TORCH_NCCL_DUMP_ON_TIMEOUT=1"),
    (("NCCL_DEBUG",), "NCCL_DEBUG=WARN"),
    (("PYTHONFAULTHANDLER",), "PYTHONFAULTHANDLER=1"),
)
"""Names of which one must be set, and the setting that we propose."""
LONGEST_S = 4 * 3600


def ptrace(node: NodeHealth) -> Iterator[Result]:
    """py-spy needs ptrace rights to read another process's stack. Without them a report of a hang has titles, states and tables, but no stacks.

    Evidence: py-spy on a process of our own that is not a child; ptrace_scope, capabilities, and in a pod also user, seccomp and no_new_privs.
    Remedy: Make the one setting that gives the rights; the check names it.
    Not this when: Only another user's processes cannot be read, as it should be.
    """
    looking, wanted, consequence = node.looking, "py-spy can read a process", "a report of a hang has no stacks from this node"
    if looking is None:
        yield unknown("reading a process was not tried")
        return
    remedy = rights_remedy(node.pod) if node.pod is not None else looking.remedy or "sudo sysctl kernel.yama.ptrace_scope=0"
    pod = f"; pod: {rights_text(node.pod)}" if node.pod is not None else ""
    if looking.error is not None:
        closed = f" ({looking.doors.setting})" if looking.doors.setting else ""
        yield warn(f"py-spy: {looking.error}{closed}{pod}", wanted, consequence, remedy)
    elif looking.pyspy is None:
        yield warn("py-spy is not installed here", wanted, f"{consequence}, unless the snapshot can send py-spy there", "pip install py-spy")
    elif looking.doors.memory is False:
        yield warn(
            f"the memory of processes cannot be read ({looking.doors.setting}{pod})", "readable", "asyncio tasks and object ids are missing", remedy
        )
    else:
        yield ok(f"py-spy {looking.pyspy} read a process{pod}", wanted)


def evidence(node: NodeHealth) -> Iterator[Result]:
    """Workers inherit the raylet's environment, not the driver's. Variables that make torch and NCCL keep a record must be set before ray start;
    exported later, they reach no worker.

    Evidence: The raylet's environment as it was started; before start, our own.
    Remedy: Export the variables before ray start, as the rendered job scripts do.
    Not this when: The framework passes them in its runtime environment.
    """
    places: list[tuple[str, Mapping[str, str] | None]] = [(f"raylet {p.pid}", p.env) for p in own_raylets(node)]
    for place, env in places or [("this environment", node.env)]:
        if env is None:
            yield unknown(f"the environment of {place} is not readable")
            continue
        missing = [setting for names, setting in WANTED if not any(env.get(n) not in (None, "", "0") for n in names)]
        if missing:
            consequence = "after a time-out of a collective there is no record of which rank was late"
            yield warn(f"{place} lacks {', '.join(missing)}", "set", consequence, f"export {' '.join(missing)} before ray start")
        else:
            yield ok(f"{place}: " + " ".join(f"{n}={env[n]}" for names, _ in WANTED for n in names if n in env))


def training(node: NodeHealth) -> Iterator[Result]:
    """CUDA_LAUNCH_BLOCKING=1 and TORCH_DISTRIBUTED_DEBUG=DETAIL help to find an error, make everything slow, and change the timing that a hang
    depends on. Without NCCL's monitor a stuck watchdog never ends the job; with NCCL_TIMEOUT of days a hang costs days.

    Evidence: The variables of the raylet, or of this process before start.
    Remedy: To search a hang: NCCL_DEBUG=INFO, TORCH_DISTRIBUTED_DEBUG=DETAIL, a short time-out, and CUDA_LAUNCH_BLOCKING=1 only for a single error on
    few GPUs. For a real run: without them.
    Not this when: They were set on purpose, for one search.
    """
    raylet = next((p for p in own_raylets(node) if p.env), None)
    place, env = ("this environment", node.env) if raylet is None or raylet.env is None else (f"raylet {raylet.pid}", raylet.env)
    found = list(_costly(env))
    yield from (warn(f"{setting} ({place})", "not in a real run", consequence, remedy) for setting, consequence, remedy in found)
    if not found:
        levels = " ".join(f"{k}={env[k]}" for k in ("NCCL_DEBUG", "TORCH_DISTRIBUTED_DEBUG", "NCCL_TIMEOUT") if k in env)
        yield ok(f"{place}: {levels or 'nothing set'}; to search a hang: NCCL_DEBUG=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL")


def _costly(env: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    if env.get("CUDA_LAUNCH_BLOCKING", "0") not in ("0", ""):
        consequence = "the CPU waits for every kernel: far slower, and NCCL calls of one thread may deadlock"
        yield "CUDA_LAUNCH_BLOCKING=1", consequence, "unset CUDA_LAUNCH_BLOCKING"
    if env.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        yield "TORCH_DISTRIBUTED_DEBUG=DETAIL", "torch checks each collective with two more, which is slow", "export TORCH_DISTRIBUTED_DEBUG=OFF"
    if env.get("NCCL_DEBUG", "").upper() in ("TRACE", "INFO") and "NCCL_DEBUG_FILE" not in env:
        yield f"NCCL_DEBUG={env['NCCL_DEBUG']}", "the lines of all ranks flood the driver's log", "export NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log"
    for name in ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"):
        if env.get(name) == "0":
            yield f"{name}=0", "a rank that lost its peers waits forever instead of failing", f"unset {name}"
    if env.get("TORCH_NCCL_ENABLE_MONITORING") == "0":
        yield "TORCH_NCCL_ENABLE_MONITORING=0", "nothing ends a process whose watchdog is stuck", "unset TORCH_NCCL_ENABLE_MONITORING"
    for name in ("NCCL_TIMEOUT", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"):
        value = env.get(name, "")
        if value.isdigit() and int(value) > LONGEST_S:
            yield f"{name}={value}", f"a hang is noticed after {int(value) / 3600:.0f} h", f"export {name}=1800"
