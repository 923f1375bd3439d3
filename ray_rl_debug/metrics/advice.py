"""Advice that several rules give."""

from __future__ import annotations

SYNCHRONOUS = (
    "to see whether asynchrony is the reason, train synchronously once (AReaL: rollout.max_head_offpolicyness=0 actor.recompute_logprob=false "
    "actor.use_decoupled_loss=false; verl: trainer.v1.trainer_mode=sync)"
)
LONGER = "allow longer answers (AReaL: gconfig.max_new_tokens; verl: data.max_response_length)"
FILTERED = "filter samples that are too long as they come (AReaL: should_accept_fn of prepare_batch; verl: algorithm.filter_groups)"
