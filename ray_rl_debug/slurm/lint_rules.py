"""What makes Ray fail under Slurm, one row each: why it fails and how it is repaired. Ids are RRD850 to RRD879."""

from __future__ import annotations

import msgspec

from ray_rl_debug.slurm import lint_faults as faults


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One fault."""

    id: str
    name: str
    severity: str
    """``error``: the job fails or hangs; ``warning``: on some sites or days."""
    reason: str
    repair: str
    find: faults.Finder


RULES: tuple[Rule, ...] = (
    Rule(
        id="RRD850",
        name="node list in one quoted element",
        severity="error",
        reason="the array gets one element that holds all names, so every srun --nodelist names no node: with two nodes the job cannot start",
        repair='mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
        find=faults.quoted_array,
    ),
    Rule(
        id="RRD851",
        name="srun without --cpus-per-task",
        severity="error",
        reason="since Slurm 22.05 a step does not inherit the job's --cpus-per-task: Ray may get one core, yet counts on all of them",
        repair="srun --cpus-per-task=$SLURM_CPUS_PER_TASK ..., or export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK",
        find=faults.without_cpus,
    ),
    Rule(
        id="RRD852",
        name="ray start without --num-cpus",
        severity="error",
        reason="Ray counts all cores of the machine, not those that Slurm allows; it starts as many workers at once, and ray.init() hangs",
        repair="ray start ... --num-cpus=$(nproc)",
        find=faults.where(r"\bray\s+start\b", unless=r"--num-cpus[= ]"),
    ),
    Rule(
        id="RRD853",
        name="ray start without --num-gpus",
        severity="warning",
        reason="Ray counts the GPUs that it can see on the machine, which need not be those of the job",
        repair="ray start ... --num-gpus=$SLURM_GPUS_ON_NODE",
        find=faults.where(r"\bray\s+start\b", unless=r"--num-gpus[= ]"),
    ),
    Rule(
        id="RRD854",
        name="SLURM_CPUS_PER_TASK without a request",
        severity="error",
        reason="the variable is empty unless --cpus-per-task was given: the command gets no number",
        repair="#SBATCH --cpus-per-task=N",
        find=faults.unset_cpus,
    ),
    Rule(
        id="RRD855",
        name="sleep instead of readiness",
        severity="error",
        reason="a busy node needs longer than any fixed time; the program then starts a Ray of its own or finds nodes missing",
        repair="count alive nodes until all are there, with a deadline: rayrl-debug slurm render shows how",
        find=faults.sleep_for_ready,
    ),
    Rule(
        id="RRD856",
        name="fixed port 6379",
        severity="warning",
        reason="two jobs on one node, or another user's Ray, take the same port; ray start then only says that it cannot connect",
        repair="PORT=$((20000 + SLURM_JOB_ID % 120 * 100)) and ray start --port=$PORT",
        find=faults.fixed_port,
    ),
    Rule(
        id="RRD857",
        name="no trap",
        severity="warning",
        reason="after scancel or the time limit Ray's logs and temporary files are lost or left behind",
        repair="trap 'scancel --signal=TERM $SLURM_JOB_ID; wait' TERM INT EXIT, with the log copy inside the step",
        find=faults.no_trap,
    ),
    Rule(
        id="RRD858",
        name="background step never checked",
        severity="error",
        reason="when ray start fails on one node nobody notices, and the program waits for it",
        repair="keep each pid ($!) and look with kill -0, or wait -n",
        find=faults.no_liveness,
    ),
    Rule(
        id="RRD859",
        name="tee hides the exit code",
        severity="error",
        reason="a pipe returns the exit code of tee: a failed training ends as COMPLETED",
        repair="set -o pipefail",
        find=faults.tee,
    ),
    Rule(
        id="RRD860",
        name="GPU variable without its request",
        severity="error",
        reason="SLURM_GPUS_PER_NODE is only set for --gpus-per-node, SLURM_GPUS_PER_TASK for --gpus-per-task; ray start gets an empty number",
        repair="${SLURM_GPUS_PER_NODE:-$SLURM_GPUS_ON_NODE}, or ask with the option that sets it",
        find=faults.unset_gpus,
    ),
    Rule(
        id="RRD861",
        name="GPU number with a type",
        severity="error",
        reason="with --gpus-per-node=h100:8 the variable holds the type too, and ray start refuses it",
        repair="${SLURM_GPUS_PER_NODE##*:}",
        find=faults.typed_gpus,
    ),
    Rule(
        id="RRD862",
        name="--overlap without --mem=0",
        severity="error",
        reason="--overlap shares CPUs and GPUs, not memory: where Slurm manages memory, the first step holds all of it and the second cannot start",
        repair="srun --overlap --mem=0 ...",
        find=faults.overlap_memory,
    ),
    Rule(
        id="RRD863",
        name="second step without --overlap",
        severity="error",
        reason="a step in the background holds the CPUs of its node: the next one waits until it ends, which is never",
        repair="srun --overlap --mem=0 ...",
        find=faults.second_step,
    ),
    Rule(
        id="RRD864",
        name="ray stop on a shared node",
        severity="warning",
        reason="ray stop (and ray symmetric-run, which calls it) ends every Ray of this user on the node, also that of another job",
        repair="end the steps: scancel --signal=TERM $SLURM_JOB_ID, or use --exclusive",
        find=faults.ray_stop,
    ),
    Rule(
        id="RRD865",
        name="no RAY_ADDRESS for the program",
        severity="error",
        reason="a program that calls ray.init() without an address may start a second Ray, on one node and without GPUs",
        repair="export RAY_ADDRESS=$HEAD_IP:$PORT before the program",
        find=faults.no_address,
    ),
    Rule(
        id="RRD866",
        name="ray_init.num_cpus beside ray start",
        severity="error",
        reason="ray.init refuses num_cpus when it joins a running cluster (ValueError); verl's key is ray_kwargs.ray_init.num_cpus, on one node",
        repair="remove it, and give ray start --num-cpus=$(nproc)",
        find=faults.num_cpus_twice,
    ),
    Rule(
        id="RRD867",
        name="CPU binding left to the site",
        severity="warning",
        reason="many sites bind a step's task to one core; nproc is then 1 while SLURM_CPUS_PER_TASK says 64",
        repair="srun --cpu-bind=none ...",
        find=faults.without_bind,
    ),
    Rule(
        id="RRD868",
        name="no token for the other nodes",
        severity="warning",
        reason="since Ray 2.59 the head asks for a token if its user has one; a node with another home has none and cannot join (InvalidAuthToken)",
        repair="export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=FILE (seen by all nodes, mode 600) before ray start",
        find=faults.no_token,
    ),
    Rule(
        id="RRD869",
        name="default temporary folder",
        severity="warning",
        reason="/tmp/ray may belong to another user, and two jobs on one node share it",
        repair="ray start --head --temp-dir=/tmp/rr$SLURM_JOB_ID",
        find=faults.temp_dir,
    ),
    Rule(
        id="RRD870",
        name="temporary folder too long",
        severity="error",
        reason="Ray's socket paths may have 107 bytes, of which 63 are its own: the folder may have 44",
        repair="--temp-dir=/tmp/rr$SLURM_JOB_ID",
        find=faults.long_temp_dir,
    ),
    Rule(
        id="RRD871",
        name="address by hostname --ip-address",
        severity="warning",
        reason="it prints 127.0.x.1 where /etc/hosts maps the host name to loopback, and several addresses on hosts that have several",
        repair="hostname -I, take the first IPv4 address that is not loopback, link-local or Docker's",
        find=faults.where(r"hostname\s+(?:--ip-address|-i)\b"),
    ),
    Rule(
        id="RRD872",
        name="address length taken for IPv6",
        severity="warning",
        reason="colons tell an IPv6 address, not its length: it may have 16 characters or fewer",
        repair="[[ $ip == *:* ]]",
        find=faults.where(r"\$\{#\w+(?:\[\d+\])?\}\"?\s*-gt\s*1[56]"),
    ),
    Rule(
        id="RRD873",
        name="ray symmetric-run",
        severity="warning",
        reason="it waits only 30 s, hides the head's output, does not name the node whose ray start fails, and ends with ray stop",
        repair="rayrl-debug slurm render ray",
        find=faults.where(r"\bray\s+symmetric-run\b"),
    ),
    Rule(
        id="RRD874",
        name="container without home or with its own PIDs",
        severity="warning",
        reason="with --no-home Ray's token is missing; with --pid py-spy cannot read the processes from outside",
        repair="bind the token's file and set RAY_AUTH_TOKEN_PATH; leave --pid out",
        find=faults.where(r"\b(?:apptainer|singularity)\s+(?:exec|run)\b.*\s(?:--no-home|--pid|-p)\b"),
    ),
    Rule(
        id="RRD875",
        name="output thrown away",
        severity="warning",
        reason="a job that dies early leaves nothing to read",
        repair="#SBATCH --output=%x-%j.out",
        find=faults.output_to_null,
    ),
    Rule(
        id="RRD876",
        name="wait without a deadline",
        severity="warning",
        reason="when a node never comes the job waits until its time limit, and pays for all nodes",
        repair="end the loop after some minutes and name the missing nodes",
        find=faults.unbounded,
    ),
)
