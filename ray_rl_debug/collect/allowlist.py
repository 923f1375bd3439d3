"""What may leave a process: allowed variables and arguments. Everything else stays there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NAMES = frozenset(
    "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE RAY_LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT WG_PREFIX WG_BACKEND GROUP_RANK ROLE_RANK"
    " ROLE_WORLD_SIZE CUDA_VISIBLE_DEVICES RAY_JOB_ID RAY_RAYLET_PID RAY_worker_niceness OMP_NUM_THREADS SLURM_JOB_ID SLURM_PROCID SLURM_LOCALID"
    " SLURM_NODEID SLURM_NTASKS SLURM_CPUS_PER_TASK SLURM_JOB_NUM_NODES PYTHONUNBUFFERED TORCHELASTIC_USE_AGENT_STORE TORCHELASTIC_RUN_ID".split()
)
_PREFIXES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TORCH_FR_", "TORCH_DISTRIBUTED_", "VLLM_", "SGLANG_", "VERL_", "AREAL_", "AGL_")
_SECRET = re.compile(r"token|key|secret|passw|credential|auth|cookie|session", re.IGNORECASE)
_PLAIN = re.compile(r"^[\w./:,@+=\[\]-]{0,200}$")
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{33,}")

_OPTIONS = frozenset(
    "--role --worker-index --rank --port --experiment-name --trial-name --tp-size --dp-size --nnodes --node-rank"
    " --nproc-per-node --nproc_per_node".split()
)


def allowed_environment(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The variables that may be recorded: by name, and only with a plain value that cannot be a credential."""
    kept = {}
    for name, value in pairs:
        known = name in _NAMES or (name.startswith(_PREFIXES) and not _SECRET.search(name))
        if known and _PLAIN.match(value) and not (_BLOB.search(value) and "/" not in value):
            kept[name] = value
    return kept


def allowed_arguments(arguments: Sequence[str]) -> str:
    """A command line as the report may show it: program, module or script, known options; ``…`` for the rest.

    Titles that a program wrote over its arguments (``ray::Actor.method``, ``VLLM::EngineCore``) are one word and are kept whole.
    """
    words = [a for a in arguments if a]
    if not words:
        return ""
    if words[0].startswith(("ray::", "VLLM::", "sglang::")):
        return " ".join(words)[:200]
    kept = [words[0]]
    wants_value = False
    for i, word in enumerate(words[1:], 1):
        if wants_value:
            kept.append(word if _PLAIN.match(word) and not _BLOB.search(word) else "…")
            wants_value = False
        elif word == "-m" or word in _OPTIONS:
            kept.append(word)
            wants_value = True
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            shown = f"={value}" if equals and name in _OPTIONS else ("=…" if equals else "")
            kept.append(name + shown)
        elif word.endswith(".py") or (i == 1 and "/" in word):
            kept.append(word)
        elif kept[-1] != "…":
            kept.append("…")
    return " ".join(kept)[:400]
