"""What is compared: answers of two sides to the same prompts, and what the reference thinks of the engine's tokens."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from ray_rl_debug.model.report import Certainty

SCHEMA = "rayrl-debug/rollout-comparison/1"
LOWEST = -9000.0
"""Engines write -9999 for minus infinity, which JSON does not have."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one side produced for one prompt. *None* is what it did not tell."""

    key: str
    """Which prompt."""
    sample: int = 0
    """Which of the answers to this prompt, from 0."""
    prompt_ids: tuple[int, ...] | None = None
    prompt_text: str | None = None
    """The prompt as the model reads it: with the chat template, special tokens spelled out."""
    prompt_count: int | None = None
    """Tokens of the prompt, as counted by the side itself."""
    ids: tuple[int, ...] | None = None
    """Tokens of the answer, with the end token if there was one."""
    pieces: tuple[str, ...] | None = None
    """The text of each token, as this side spells it."""
    logprobs: tuple[float | None, ...] | None = None
    """Natural logarithm of the probability of each token."""
    count: int | None = None
    """Tokens of the answer, as counted by the side itself."""
    text: str | None = None
    finish: str | None = None
    """``stop`` or ``length``, as in OpenAI's interface."""
    stop: int | str | None = None
    """The token or text that ended it, where the side tells it (vLLM only for other ends than the usual one, SGLang always)."""
    reward: float | None = None
    seconds: float | None = None
    error: str | None = None
    """Why there is no answer."""


class Chance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a sampled token lies in the distribution that the reference has at its place, at the temperature that was asked for."""

    excess: float
    """Log-probability less its expectation (minus the entropy), in nats."""
    variance: float
    """Of the log-probability of a token drawn there."""
    rank: int
    """1: the most probable token."""
    plain_excess: float | None = None
    """The same at temperature 1; None: that is the temperature that was asked for."""
    plain_variance: float | None = None


class Score(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reference's view of each token of the engine's answer, given the engine's own prompt and the tokens before it."""

    key: str
    sample: int = 0
    logprobs: tuple[float | None, ...]
    scaled: tuple[float, ...] | None = None
    """The same after division by the sampling temperature."""
    rounded: tuple[float, ...] | None = None
    """The same computed in another precision: the size of pure rounding."""
    best_ids: tuple[int, ...] | None = None
    best_logprobs: tuple[float, ...] | None = None
    chances: tuple[Chance, ...] = ()
    """Of sampled tokens; empty for greedy ones."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the engine, and what the reference has for it."""

    engine: Answer
    reference: Answer | None = None
    score: Score | None = None
    prompt_ids: tuple[int, ...] | None = None
    """The prompt as the reference renders it."""
    prompt_text: str | None = None


class Probe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One plain text, without template and special tokens, cut into tokens by both sides."""

    text: str
    engine_ids: tuple[int, ...]
    reference_ids: tuple[int, ...]
    engine_pieces: tuple[str, ...] | None = None
    reference_pieces: tuple[str, ...] | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """All facts of one comparison."""

    pairs: tuple[Pair, ...]
    alone: tuple[Pair, ...] = ()
    """Answers of one token to one single token; see `rollouts.context`."""
    probes: tuple[Probe, ...] = ()
    pieces: Mapping[int, str] = msgspec.field(default_factory=dict)
    """Tokens as the reference spells them."""
    end_tokens: Mapping[int, str] | None = None
    """Tokens that end an answer, and where that is written; None: not known."""
    temperature: float | None = None
    """0 is greedy; None: not known."""
    max_tokens: int | None = None
    """Longest answer that was asked for; None: not known."""
    has_template: bool = False
    """Prompts went through a chat template."""
    precision: str | None = None
    """Of the reference, such as ``float32``."""
    rounding: str | None = None
    """Precision of `Score.rounded`."""
    before: tuple[Score, ...] | None = None
    """Log-probabilities of the engine's tokens before a weight update; see `rollouts.update`."""
    cache_dtype: str | None = None
    """How the engine says that it keeps keys and values, such as ``fp8_e4m3``; None: not told."""
    engine_name: str = "engine"
    reference_name: str = "reference"


class Cause(str, enum.Enum):
    """What makes two sides differ, or a batch unfit."""

    PROMPT = "prompt"
    CHAT_TEMPLATE = "chat-template"
    TOKENIZER = "tokenizer"
    END_TOKEN = "end-token"
    LENGTH = "length"
    TEMPERATURE = "temperature"
    CHOICE = "choice"
    BROKEN = "broken"
    PRECISION = "precision"
    ATTENTION = "attention"
    WEIGHTS = "weights"
    UPDATE = "update"
    BATCH = "batch"
    """What a batch of trajectories holds."""


class State(str, enum.Enum):
    AGREE = "agree"
    DIFFER = "differ"
    UNKNOWN = "unknown"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One rule's claim."""

    id: str
    name: str
    cause: Cause
    certainty: Certainty
    summary: str
    evidence: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()
    is_trouble: bool = True
    """False: worth knowing, nothing to mend."""


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that would have been needed, and why it is not there."""

    what: str
    reason: str
