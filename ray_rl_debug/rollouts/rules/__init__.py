"""Why two sides differ: one rule per file, the commonest cause first."""

from __future__ import annotations

from types import ModuleType

from ray_rl_debug.rollouts.rules import (
    attention,
    broken,
    chat_template,
    choice,
    cut_answer,
    cut_prompt,
    end_token,
    output_rows,
    precision,
    temperature,
    tokenizer,
    update,
    weights,
)

RULES: tuple[ModuleType, ...] = (
    cut_prompt,
    chat_template,
    tokenizer,
    end_token,
    cut_answer,
    broken,
    update,
    output_rows,
    choice,
    attention,
    weights,
    precision,
    temperature,
)
"""In the order in which causes are told."""

__all__ = ["RULES"]
