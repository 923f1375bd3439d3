"""Job parameters to one plain bash file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from ray_rl_debug.slurm.job import Job, check_job
from ray_rl_debug.slurm.templates import ABOUT, COMMANDS, EXIT_CODES, USE, read_part

_NAME = re.compile(r"(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*(?::?[-=?+][\w./-]*)?\})", re.ASCII)
_AS_IT_IS = re.compile(r"^[\w@%+=:,./-]+$")


def render(job: Job) -> str:
    """The script of `job`.

    Raises:
        UsageError: parameters that cannot be.
    """
    check_job(job)
    lines = ["#!/bin/bash", f"# {ABOUT[job.framework]}", f"#   {USE[job.framework]}"]
    if job.framework == "attach":
        settings = [
            *_rule("settings"),
            _setting("JOB", "", "the job; or give it as the first argument"),
            _setting("OUTPUT", "", "empty: hang-JOBID here; must be seen by all nodes"),
            _setting("TIMEOUT_S", "120", "for each node"),
        ]
        return "\n".join([*lines, *settings]) + "\n" + read_part("attach")
    if job.has_cluster:
        lines.append(EXIT_CODES)
    lines += [f"#SBATCH {_directive(option)}" for option in _directives(job)]
    lines += ["", "# Functions that run on the nodes travel there with declare -f.", "# shellcheck disable=SC2317,SC2329,SC2089,SC2090"]
    lines += _settings(job)
    return "\n".join(lines) + "\n" + "".join(read_part(name) for name in _parts(job))


def _directives(job: Job) -> Iterator[str]:
    yield f"--job-name={job.job_name or job.framework}"
    yield f"--nodes={job.nodes}"
    yield "--ntasks-per-node=1"
    cpus = job.cpus_per_node or (4 if job.framework == "areal-slurm" else None)
    if cpus:
        yield f"--cpus-per-task={cpus}"
    gpus = job.gpus_per_node if job.gpus_per_node is not None else (None if job.framework == "areal-slurm" else "8")
    if gpus is not None and gpus.rpartition(":")[2] != "0":
        yield f"--gpus-per-node={gpus}" if job.gpu_flag == "gpus-per-node" else f"--gres=gpu:{gpus}"
    exclusive = job.exclusive and job.framework != "areal-slurm"
    if job.framework == "areal-slurm" and job.mem == "0":
        yield "--mem=16G"
    elif exclusive or job.mem != "0":
        yield f"--mem={job.mem}"
    if exclusive:
        yield "--exclusive"
    yield f"--time={job.time}"
    for name in ("partition", "account", "qos", "constraint", "reservation"):
        value = getattr(job, name)
        if value:
            yield f"--{name}={value}"
    yield f"--signal=B:USR1@{job.signal_lead_s}"
    if job.requeue:
        yield "--requeue"
        yield "--open-mode=append"
    else:
        yield "--no-requeue"
    yield "--output=%x-%j.out"


def _settings(job: Job) -> Iterator[str]:
    yield from _rule("settings")
    command = job.command or COMMANDS[job.framework]
    follow = "arguments of sbatch replace it" if job.framework == "ray" else "arguments of sbatch follow"
    yield f"CMD=({' '.join(map(_quoted, command))}) # {follow}"
    gpus = job.gpus_per_node.rpartition(":")[2] if job.gpus_per_node is not None else ("0" if job.framework == "areal-slurm" else "")
    yield _setting("CPUS_PER_NODE", job.cpus_per_node, "empty: what Slurm gave")
    yield _setting("GPUS_PER_NODE", gpus, "empty: what Slurm gave; 0 for a job without GPUs")
    yield _setting("LOG_ROOT", job.output_dir, "seen by all nodes; each job gets a folder in it")
    yield _setting("SETUP", job.setup, "a file to source: modules, virtual environment")
    yield _setting("REGISTER_TIMEOUT_S", job.register_timeout_s, "for a worker to register with its raylet; Ray's own 60 s is short on a loaded node")
    if job.framework == "areal-slurm":
        yield from _of_watch(job)
        yield from _of_container(job)
        return
    yield _setting("COLLECT_LOGS", int(job.collect_logs), "1: keep Ray's session logs of every node below LOG_ROOT; 0: not")
    yield _setting("TEMP_DIR", job.temp_dir, "local disk; Ray's folder rrJOBID is made in it and removed at the end; empty: /tmp")
    if job.has_cluster:
        yield _setting("MIN_NODES", job.min_nodes, "empty: all of them; with fewer, the others are waited for until READY_TIMEOUT_S")
        yield _setting("READY_TIMEOUT_S", job.ready_timeout_s, "for all nodes to be alive")
        yield _setting("PORT_BASE", job.port_base or "auto", "a block of 100 ports; auto: from the job's number")
        yield _setting("HEAD_IFACE", job.iface, "network interface of the head; empty: by address")
        yield _setting("HEAD_CIDR", job.cidr, "network of the head, as 10.0.0.0/16; empty: first usable IPv4 address")
        yield _setting("OBJECT_STORE_MB", job.object_store_mb, "empty: Ray's choice")
    if job.requeue:
        yield _setting("REQUEUE_LIMIT", job.requeue, "how often the job may requeue itself before its time limit")
    yield from _of_watch(job)
    yield from _of_container(job)


def _of_watch(job: Job) -> Iterator[str]:
    if job.watch and job.framework != "areal-slurm":
        yield f"WATCH_ARGS=({' '.join(map(_quoted, job.watch_args))}) # more options of rayrl-debug watch"
    for pair in job.env:
        name, _, value = pair.partition("=")
        yield f"export {name}={_quoted(value)}"


def _of_container(job: Job) -> Iterator[str]:
    if job.container != "none":
        yield _setting("IMAGE", job.image, "")
        yield _setting("BIND", job.bind, "more folders, with commas")
        yield f"CONTAINER_ARGS=({' '.join(map(_quoted, job.container_args))})"
    if job.container == "apptainer":
        yield f"INTO_IMAGE=({' '.join(pair.partition('=')[0] for pair in job.env)}) # more variables that programs must have"


def _parts(job: Job) -> Iterator[str]:
    yield from ("start", "allocation", "environment")
    if job.debug_level != "off":
        yield "debug_light"
    if job.debug_level == "full":
        yield "debug_full"
    if job.framework != "areal-slurm" and job.auth != "auto" and job.knows_tokens:
        yield "token" if job.auth == "token" else "token_disabled"
    yield f"container_{job.container}"
    yield f"command_{job.framework.replace('-', '_')}"
    if job.framework != "areal-slurm":
        yield "step_common"
    if job.has_cluster:
        yield "step_cluster"
    yield from ("cleanup", "requeue" if job.requeue else "requeue_off")
    if job.framework == "areal-slurm":
        yield "areal_roles"
        if job.watch:
            yield "areal_roles_watch"
        yield from ("areal_controller", "single_wait")
        return
    if job.doctor != "off" or job.watch:
        yield "find_tool"
    if job.doctor != "off":
        yield "doctor"
    if job.doctor == "fail":
        yield "doctor_fail"
    if job.has_cluster:
        yield "cluster_start"
        if job.container == "apptainer":
            yield "container_apptainer_address"
        if job.watch:
            yield "watch"
        yield "cluster_run"
        return
    yield "single_run"
    if job.watch:
        yield "single_watch"
    yield "single_wait"


def _rule(title: str) -> tuple[str, str]:
    return "", f"# ---- {title} ".ljust(118, "-")


def _setting(name: str, value: object, comment: str) -> str:
    text = f"{name}={'' if value in (None, '') else _quoted(str(value))}"
    return f"{text.ljust(36)} # {comment}" if comment else text


def _quoted(text: str) -> str:
    """For bash: variables (``$USER``, ``${USER}``, ``${USER:-x}``) stay variables, everything else is taken as written."""
    if _AS_IT_IS.match(text):
        return text
    if "$" not in text:
        return shlex.quote(text)
    escaped = re.sub(r'(["\\`])', r"\\\1", text)
    return '"' + re.sub(rf"\$(?!{_NAME.pattern})", r"\\$", escaped) + '"'


def _directive(option: str) -> str:
    """One option for sbatch, which takes quotes as a shell does; a space would begin another option."""
    name, equals, value = option.partition("=")
    if not equals or re.fullmatch(r"[^\s\"'\\#]*", value):
        return option
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return f'{name}="{escaped}"'
