"""What the run is doing, from method and frame names.

The frameworks' own names (`frameworks/`) win over words in names, which tell plain programs written in their manner. The outermost telling
frame of a stack wins, because a phase contains its sub-steps (``update_actor`` may well call ``barrier`` under ``_shutdown``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ray_rl_debug.analyze.frameworks import PHASE_OF_FUNCTION

_WORDS: tuple[tuple[str, str], ...] = (
    (r"(^|_)(weights?_(sync|update|transfer)|sync_weights?|refit|update_named_param)", "weight_sync"),
    (r"(^|_)(update|broadcast|push|pull|load|transfer|receive|recv|send|fetch)_(model_|new_)?weights?($|_)", "weight_sync"),
    (r"(^|_)(checkpoint|ckpt|save_model|save_state|write_shard|dump_state)", "checkpoint"),
    (r"(^|_)(validat|evaluat|eval($|_)|test_epoch)", "validation"),
    (r"(^|_)(reward|rewards|score|scores|scorer|judge|verify|verifier|grade)($|_)", "reward"),
    (r"log_?probs?|(^|_)logps?($|_)", "logprob"),
    (r"(^|_)(advantages?|gae)($|_)", "advantage"),
    (r"(^|_)(critic_values|values|value_fn)($|_)", "values"),
    (r"(^|_)(rollouts?|generate|generation|episode|agent_loop|sample_sequences|serve_rollouts|decode)($|_)", "rollout"),
    (r"(^|_)(update|train_step|train_batch|optimizer_step|optim_step|ppo|learn|backward|policy_step|grad_step)($|_)", "update"),
    (r"(^|_)(cleanup|shutdown|teardown|destroy|close|tear_down)($|_)|(^|_)finalize$", "cleanup"),
    (r"(^|_)(init|init_model|initialize|setup|set_up|load_model|build_model|create_resource_pool|init_workers|build_groups|rendezvous)($|_)", "init"),
    (r"(^|_)(dataloader|load_data|fetch_batch|next_batch|prefetch)($|_)", "data"),
)
_COMPILED = tuple((re.compile(p), phase) for p, phase in _WORDS)

_ROLE_PREFIX = re.compile(r"^(actor_rollout_ref|actor_rollout|actor|critic|ref|rm|rollout|reward)_(?=_?[a-z])")

CLEANUP_WORDS = re.compile(r"(^|_)(destroy|shutdown|teardown|tear_down|cleanup|close|stop_engine)($|_)|(^|_)finalize$|^__(exit|del)__$")
"""Function names under which a rank is on its way out. What is finalized may be a part of each step (``finalize_model_grads``)."""


def phase_of_name(name: str) -> str | None:
    """The phase one function or method name tells; None when it tells none.

    ``actor_rollout_ref_update_actor`` → ``update`` (verl's role prefix is taken off first).
    """
    name = name.rsplit(".", 1)[-1]
    for candidate in (name, _ROLE_PREFIX.sub("", name, count=1)):
        if candidate in PHASE_OF_FUNCTION:
            return PHASE_OF_FUNCTION[candidate]
    bare = _ROLE_PREFIX.sub("", name, count=1).lower()
    for pattern, phase in _COMPILED:
        if pattern.search(bare):
            return phase
    return None


def phase_of_stack(functions: Iterable[str]) -> str | None:
    """The phase of a stack given as function names, innermost first: the outermost name that tells one."""
    found = None
    for name in functions:
        phase = phase_of_name(name)
        if phase is not None:
            found = phase
    return found


def is_leaving(functions: Iterable[str]) -> bool:
    """Is a stack on its way out: destroying groups, shutting down, closing?"""
    return any(map(_cleans_up, functions))


@lru_cache(maxsize=4096)
def _cleans_up(function: str) -> bool:
    return CLEANUP_WORDS.search(function.rsplit(".", 1)[-1].lower()) is not None
