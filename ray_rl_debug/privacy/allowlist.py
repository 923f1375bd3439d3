"""What may leave a process: allowed variables and arguments. Everything else stays there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.privacy.masking import has_secret, is_random, mask

_NAMES = frozenset(
    "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE RAY_LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT WG_PREFIX WG_BACKEND GROUP_RANK ROLE_RANK"
    " ROLE_WORLD_SIZE CUDA_VISIBLE_DEVICES RAY_JOB_ID RAY_RAYLET_PID RAY_worker_niceness OMP_NUM_THREADS SLURM_JOB_ID SLURM_PROCID SLURM_LOCALID"
    " SLURM_NODEID SLURM_NTASKS SLURM_CPUS_PER_TASK SLURM_JOB_NUM_NODES PYTHONUNBUFFERED TORCHELASTIC_USE_AGENT_STORE TORCHELASTIC_RUN_ID".split()
)
_PREFIXES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TORCH_FR_", "TORCH_DISTRIBUTED_", "VLLM_", "SGLANG_", "VERL_", "AREAL_", "AGL_")
_SECRET = re.compile(r"token|key|secret|passw|credential|auth|cookie|session", re.IGNORECASE)
_PLAIN = re.compile(r"^[\w./:,@+=\[\]-]{0,200}$")
_ACCOUNT = re.compile(r"[^:/@]:[^:/@]{3,}@")
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{33,}")

_OPTION_NAME = re.compile(r"^--[a-z][a-z_.-]{0,40}$")
"""A long name in plain letters. A short option may have its value glued to it (``-pSECRET``), so only one letter of it is shown."""

_ASSIGNED = re.compile(r"^([A-Za-z_]\w{0,60})=")

_OPTIONS = frozenset(
    "--role --worker-index --rank --port --experiment-name --trial-name --tp-size --dp-size --nnodes --node-rank"
    " --nproc-per-node --nproc_per_node".split()
)


def allowed_environment(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The variables that may be recorded: by name, and only with a plain value that cannot be a credential."""
    kept = {}
    for name, value in pairs:
        known = name in _NAMES or (name.startswith(_PREFIXES) and not _SECRET.search(name))
        if known and _is_plain(value):
            kept[name] = value
    return kept


def _is_plain(value: str) -> bool:
    """No login, no query, no long random word; a path may hold long words."""
    if not _PLAIN.match(value) or has_secret(value) or _ACCOUNT.search(value):
        return False
    blob = _BLOB.search(value)
    return blob is None or ("/" in blob[0] and (blob[0].startswith("/") or not is_random(blob[0])))


def allowed_arguments(arguments: Sequence[str]) -> str:
    """A command line as the report may show it: program, module or script, known options; ``…`` for the rest.

    Titles that a program wrote over its arguments (``ray::Actor.method``, ``VLLM::EngineCore``) are one word and are kept whole.
    """
    words = [as_text(a) for a in arguments if a]
    if not words:
        return ""
    if words[0].startswith(("ray::", "VLLM::", "sglang::")):
        return mask(" ".join(words))[:200]
    kept = []
    while words and (assigned := _ASSIGNED.match(words[0])):  # NAME=value before a program, as in a job's entry point
        kept.append(f"{assigned[1]}=…")
        del words[0]
    if not words:
        return " ".join(kept)[:400]
    program, _, more = words[0].partition(" ")  # a program that writes one long title may have put its arguments into it
    kept += [program, "…"] if more else [program]
    wants_value = False
    for i, word in enumerate(words[1:], 1):
        if wants_value:
            kept.append(_shown_value(word))
            wants_value = False
        elif word == "-m" or word in _OPTIONS:
            kept.append(word)
            wants_value = True
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            kept.append(_shown_option(name, value if equals else None))
        elif (word.endswith(".py") or (i == 1 and "/" in word)) and "://" not in word and not _ASSIGNED.match(word):
            kept.append(word)
        elif kept[-1] != "…":
            kept.append("…")
    return mask(" ".join(kept))[:400]


def allowed_entry_point(command: str) -> str | None:
    """A job's entry point as `allowed_arguments` shows it; a shell's quotes and substitutions are words like others."""
    return allowed_arguments(command.split()) or None


def _shown_option(name: str, value: str | None) -> str:
    if not name.startswith("--") or not _OPTION_NAME.match(name):
        return name[:2] + ("…" if len(name) > 2 or value is not None else "")
    if value is None:
        return name
    return f"{name}={_shown_value(value) if name in _OPTIONS else '…'}"


def _shown_value(value: str) -> str:
    return value if _PLAIN.match(value) and not _BLOB.search(value) and not has_secret(value) and not _ACCOUNT.search(value) else "…"
