"""What the frameworks take back from an episode; each function gives the reward, where there is one, and what is wrong.

Read in the same sources as `contracts`.
"""

from __future__ import annotations

import math
from typing import Any

Answer = tuple["float | None", "str | None"]


def check_reward(value: Any) -> Answer:
    """AReaL's proxy takes a float, or a dict of floats by id of the completion; it raises for everything else, also for an int."""
    if isinstance(value, dict):
        rewards = list(value.values())
        bad = next((r for r in rewards if not _is_number(r)), None)
        if bad is not None:
            return None, f"a dict with a {type(bad).__name__}; wanted numbers by id of the completion"
        if any(not isinstance(k, str) for k in value):
            return None, f"a dict with keys of type {type(next(k for k in value if not isinstance(k, str))).__name__}; wanted ids of completions"
        if not rewards:
            return None, "an empty dict: no completion gets a reward"
        return _finite(float(rewards[-1]))
    if isinstance(value, float):
        return _finite(value)
    wanted = "return float(reward)" if _is_number(value) else "return a float, or a dict of floats by id of the completion"
    return None, f"{type(value).__name__}: AReaL raises `Invalid reward type`; {wanted}"


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str | bytes)


def _finite(value: float) -> Answer:
    return (value, None) if math.isfinite(value) else (None, f"the reward is {value}")


REQUIRED = ("input_ids", "attention_mask", "loss_mask", "logprobs", "rewards")
"""Of a trajectory of tensors; the trainer reads them all."""


def check_trajectory(value: Any) -> Answer:
    """None rejects the episode; else tensors of equal length with a batch dimension, or interactions by id."""
    if value is None:
        return None, None
    if not isinstance(value, dict):
        return None, f"{type(value).__name__}; wanted a dict of tensors, or None to reject the episode"
    if not any(hasattr(v, "shape") for v in value.values()):
        rewards = [getattr(v, "reward", None) for v in value.values()]
        last = next((r for r in reversed(rewards) if r is not None), None)
        return (None, "a dict without tensors and without interactions") if last is None else _finite(float(last))
    missing = [k for k in REQUIRED if k not in value]
    if missing:
        return None, f"a trajectory without {', '.join(missing)}"
    flat = [k for k in REQUIRED if k != "rewards" and len(value[k].shape) < 2]
    if flat:
        return None, f"{', '.join(flat)} have no batch dimension"
    lengths = {k: tuple(value[k].shape) for k in REQUIRED if k != "rewards"}
    if len(set(lengths.values())) > 1:
        return None, "tensors of different shapes: " + ", ".join(f"{k} {list(s)}" for k, s in lengths.items())
    if bool((value["logprobs"] != value["logprobs"]).any()):
        return None, "logprobs hold NaN"
    return _finite(float(value["rewards"].float().mean()))


def check_loop_output(value: Any) -> Answer:
    """verl pads and stacks what an agent loop gives: masks and log-probabilities must be as long as the response."""
    fields = ("prompt_ids", "response_ids", "response_mask")
    lists = value if isinstance(value, list) else [value]
    for one in lists:
        if any(not hasattr(one, f) for f in fields):
            return None, f"{type(one).__name__}; wanted an AgentLoopOutput"
        if len(one.response_mask) != len(one.response_ids):
            return None, f"response_mask has {len(one.response_mask)} values for {len(one.response_ids)} tokens"
        logprobs = getattr(one, "response_logprobs", None)
        if logprobs is not None and len(logprobs) != len(one.response_ids):
            return None, f"response_logprobs has {len(logprobs)} values for {len(one.response_ids)} tokens"
        if not one.response_ids:
            return None, "an empty response"
    reward = getattr(lists[-1], "reward_score", None) if lists else None
    return (None, None) if reward is None else _finite(float(reward))


def check_raw_result(value: Any) -> Answer:
    """None relies on the tracer; else a number, or spans."""
    if value is None or isinstance(value, list):
        return None, None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"{type(value).__name__}; wanted None, a float, or a list of spans"
    return _finite(float(value))
