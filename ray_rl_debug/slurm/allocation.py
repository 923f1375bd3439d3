"""Into a running job: which nodes it has, and one command on each of them in a step beside what runs there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.model.errors import MissingToolError, UsageError
from ray_rl_debug.slurm.node_lines import read_lines

Run = Callable[..., Finished]
ASK_S = 20.0
"""For Slurm's controller to answer."""
START_S = 20.0
"""For srun to start its tasks and to bring their output back."""
# A virtual environment on a shared file system is the same everywhere; elsewhere the tool is looked for.
_ON_NODE = """
if [[ -x $2 ]]; then set -- timeout -k 5 "$1" "$2" -m ray_rl_debug "${@:3}"
elif command -v rayrl-debug >/dev/null; then set -- timeout -k 5 "$1" rayrl-debug "${@:3}"
else echo "$SLURMD_NODENAME: neither $2 nor rayrl-debug is there" >&2; exit 127; fi
exec "$@"
"""


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """What a running job has."""

    job_id: str
    nodes: tuple[str, ...]
    user: str | None = None
    work_dir: str | None = None


def read_allocation(job_id: str, *, run: Run = run_bounded, which: Callable[[str], str | None] = shutil.which) -> Allocation:
    """Ask Slurm.

    Raises:
        MissingToolError: Slurm's commands are not here.
        UsageError: there is no such job, or it does not run.
    """
    if which("squeue") is None or which("srun") is None:
        raise MissingToolError(
            "Slurm's commands are not here", hint="run this where you run sbatch, or on each node: rayrl-debug doctor --here -o DIR"
        )
    asked = run(["squeue", "--noheader", f"--jobs={job_id}", "--format=%T|%u|%N|%Z"], ASK_S, env=clean(os.environ))
    state, user, nodes, work_dir = (asked.out.decode("utf-8", "replace").strip() + "|||").split("|", 3)
    if asked.code != 0 or not state:
        raise UsageError(f"Slurm knows no job {job_id}{_because(asked)}", hint="squeue --me lists yours")
    if state != "RUNNING":
        raise UsageError(f"job {job_id} is {state}, not RUNNING", hint="after it ended: rayrl-debug doctor --logs LOG_DIR")
    named = run(["scontrol", "show", "hostnames", nodes], ASK_S, env=clean(os.environ))
    names = tuple(named.out.decode("utf-8", "replace").split())
    if named.code != 0 or not names:
        raise UsageError(f"the nodes of job {job_id} are not known{_because(named)}")
    return Allocation(job_id=job_id, nodes=names, user=user or None, work_dir=work_dir.removesuffix("|||") or None)


def ask_nodes(
    allocation: Allocation, arguments: Sequence[str], *, timeout_s: float, run: Run = run_bounded
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Run ``rayrl-debug ARGUMENTS`` on every node: what each one said in the lines of `node_lines`, and why others said nothing.

    Raises:
        UsageError: the job is of another user.
    """
    count = len(allocation.nodes)
    # without --cpus-per-task the step may use what the job may use, and takes nothing from it
    step = f"--jobid={allocation.job_id} --overlap --mem=0 --cpu-bind=none --nodes={count} --ntasks={count} --ntasks-per-node=1".split()
    command = ["srun", *step, "--kill-on-bad-exit=0", "bash", "-c", _ON_NODE, "bash", f"{timeout_s:g}", sys.executable, *arguments]
    done = run(command, timeout_s + START_S, env=clean(os.environ))
    answers = read_lines(done.out.decode("utf-8", "replace"))
    reason = f"no answer in {timeout_s:g} s" if done.timed_out else f"srun ended with {done.code}"
    said = done.err.decode("utf-8", "replace").splitlines()
    if not answers and any("permission denied" in line.lower() for line in said):
        whose = allocation.user or "its owner"
        hint = f"as {whose}: rayrl-debug doctor --jobid {allocation.job_id}"
        raise UsageError(f"Slurm lets only {whose} into job {allocation.job_id}{_because(done)}", hint=hint)
    silent = {node: _of_node(node, said) or f"{reason}{_because(done)}" for node in allocation.nodes if node not in answers}
    return answers, silent


def clean(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without another job's: srun would take its size and binding for options."""
    return {k: v for k, v in env.items() if k == "SLURM_CONF" or not k.startswith(("SLURM_", "SRUN_", "SBATCH_", "SALLOC_"))}


def _of_node(node: str, said: Sequence[str]) -> str | None:
    return next((line for line in said if line.startswith(f"{node}:") or f": {node}:" in line), None)


def _because(done: Finished) -> str:
    said = done.err.decode("utf-8", "replace").strip().splitlines()
    return f": {said[-1][:200]}" if said else ""
