"""The parameters of a job script."""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.privacy.masking import mask

_ENV = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
_TIME = re.compile(r"^(\d+-)?\d+(:\d+){0,2}$")
_CIDR = re.compile(r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$")
_GPUS = re.compile(r"^([\w.-]+:)?\d+$")
_VERSION = re.compile(r"^\d+\.\d+(\.\w+)*$")
_HOOK_OPTION = re.compile(r"^--(slack|webhook)(=|$)")
_HOOK_VARIABLE = re.compile(r"^RAYRL_DEBUG_(SLACK|WEBHOOK)=")
MAX_TEMP_DIR_BYTES = 33
"""Ray's socket paths allow 44 bytes, of which ``/rr`` and a job's number of 8 digits take 11."""
MAX_TEMP_DIR_BYTES_SINGLE = MAX_TEMP_DIR_BYTES - len("/ray")
OLDEST_RAY, FIRST_WITH_TOKENS = (2, 41), (2, 52)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a rendered script asks of Slurm and of Ray. None: the script asks Slurm when it runs."""

    framework: str
    nodes: int = 2
    cpus_per_node: int | None = None
    gpus_per_node: str | None = None
    """``8`` or ``h100:8``."""
    gpu_flag: str = "gpus-per-node"
    mem: str = "0"
    """Per node, as sbatch takes it; ``0`` is all of it."""
    exclusive: bool = True
    time: str = "24:00:00"
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    job_name: str | None = None
    output_dir: str = "$SLURM_SUBMIT_DIR/logs"
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    setup: str | None = None
    container: str = "none"
    image: str | None = None
    bind: str | None = None
    container_args: tuple[str, ...] = ()
    iface: str | None = None
    cidr: str | None = None
    port_base: int | None = None
    temp_dir: str | None = None
    ready_timeout_s: int = 300
    min_nodes: int | None = None
    register_timeout_s: int = 300
    watch: bool = True
    watch_args: tuple[str, ...] = ()
    doctor: str = "warn"
    debug_level: str = "light"
    requeue: int = 0
    """How often the job may requeue itself before its time limit."""
    signal_lead_s: int = 120
    object_store_mb: int | None = None
    auth: str = "token"
    collect_logs: bool = True
    ray_version: str | None = None
    """As ``2.49``; None: a recent one."""

    @property
    def has_cluster(self) -> bool:
        """Does the script start a Ray cluster itself?"""
        return self.framework in ("ray", "verl", "areal-ray")

    @property
    def knows_tokens(self) -> bool:
        """Has this version of Ray token authentication?"""
        return self.ray_version is None or _version(self.ray_version) >= FIRST_WITH_TOKENS


def check_job(job: Job) -> None:
    """Raises:
    UsageError: parameters that cannot be, or not together.
    """
    single = job.framework in ("verl-single", "areal-slurm")
    room = MAX_TEMP_DIR_BYTES_SINGLE if job.framework == "verl-single" else MAX_TEMP_DIR_BYTES
    for wrong, message in (
        (job.nodes < 1, "--nodes must be at least 1"),
        (single and job.nodes != 1, f"{job.framework} runs on one node"),
        (job.min_nodes is not None and not 1 <= job.min_nodes <= job.nodes, f"--min-nodes must be between 1 and {job.nodes}"),
        (job.gpus_per_node is not None and not _GPUS.match(job.gpus_per_node), f"--gpus-per-node {job.gpus_per_node!r}: write 8 or h100:8"),
        (job.container != "none" and not job.image, f"--container {job.container} needs --image"),
        (job.container == "none" and job.image is not None, "--image needs --container apptainer or pyxis"),
        (job.cidr is not None and not _CIDR.match(job.cidr), f"--cidr {job.cidr!r}: write 10.0.0.0/16"),
        (not _TIME.match(job.time), f"--time {job.time!r}: write HH:MM:SS or D-HH:MM:SS"),
        (job.temp_dir is not None and not job.temp_dir.startswith("/"), "--temp-dir must be an absolute path"),
        (job.temp_dir is not None and len(job.temp_dir.encode()) > room, f"--temp-dir: Ray's socket paths leave room for {room} bytes"),
        (job.ray_version is not None and not _VERSION.match(job.ray_version), f"--ray-version {job.ray_version!r}: write 2.49 or 2.49.1"),
        (job.port_base is not None and not 1024 <= job.port_base <= 32000, "--port-base must be between 1024 and 32000"),
        (any("\n" in text for text in _texts(job)), "a parameter may not hold a line break"),
    ):
        if wrong:
            raise UsageError(message)
    if job.ray_version is not None and _version(job.ray_version) < OLDEST_RAY:
        raise UsageError(f"--ray-version {job.ray_version}: the templates need Ray {'.'.join(map(str, OLDEST_RAY))} or newer")
    for pair in job.env:
        if not _ENV.match(pair):
            raise UsageError(f"--env {mask(repr(pair))}: write NAME=VALUE")
    if any(_HOOK_OPTION.match(word) for word in job.watch_args) or any(_HOOK_VARIABLE.match(pair) for pair in job.env):
        hint = "write it into a file that only you can read, and give --watch-args '--slack-file FILE' or '--webhook-file FILE'"
        raise UsageError("the job script would hold the address of a webhook, and others can read job scripts", hint=hint)


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _texts(job: Job) -> tuple[str, ...]:
    plain = msgspec.structs.astuple(job)
    return tuple(x for value in plain for x in (value if isinstance(value, tuple) else (value,)) if isinstance(x, str))
