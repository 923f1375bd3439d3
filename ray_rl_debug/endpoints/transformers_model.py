"""The reference: a model in Transformers on this machine, with its own tokenizer, chat template and end tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ray_rl_debug.endpoints.extras import need
from ray_rl_debug.endpoints.openai_client import Sampling
from ray_rl_debug.endpoints.prompts import Prompt
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.rollouts.answers import Answer, Chance, Score

CHUNK = 256
"""Places whose logits are turned to float32 at once: a vocabulary of 150,000 takes 150 MB."""
OTHER = {"float32": "bfloat16", "bfloat16": "float32", "float16": "float32"}
"""The precision that shows what rounding alone changes."""


class Reference:
    """A causal language model, loaded on first use; the tokenizer at once."""

    def __init__(self, folder: str, *, precision: str | None = None, device: str = "cpu") -> None:
        """
        Args:
            folder: A folder, or a name on the hub.
            precision: ``float32``, ``bfloat16``, ``float16``; None: as the checkpoint says.

        Raises:
            MissingExtraError: no Transformers or torch.
            UnreadableFileError: no model or tokenizer there.
        """
        self._transformers = need("transformers", "the reference model")
        self._torch = need("torch", "the reference model")
        self._transformers.logging.set_verbosity_error()
        if hasattr(self._transformers.logging, "disable_progress_bar"):
            self._transformers.logging.disable_progress_bar()
        self.name, self._device = folder, device
        # Code that lies beside a model is never run, and weights that are pickles are never read.
        self._safe: dict[str, Any] = {"trust_remote_code": False}
        self._config = self._load(self._transformers.AutoConfig)
        self.tokenizer = self._load(self._transformers.AutoTokenizer)
        self.precision = precision or _said(getattr(self._config, "dtype", None) or getattr(self._config, "torch_dtype", None)) or "float32"
        self._model: Any = None
        self._computes_in = self.precision

    @property
    def rounding(self) -> str:
        return OTHER[self.precision]

    def vocabulary(self) -> int | None:
        """Tokens that the model has, as its configuration says."""
        size = getattr(self._config.get_text_config(), "vocab_size", None)
        return size if isinstance(size, int) else None

    def end_tokens(self) -> dict[int, str]:
        """Tokens that end an answer, and where that is written."""
        found: dict[int, str] = {}
        if self.tokenizer.eos_token_id is not None:
            found[self.tokenizer.eos_token_id] = "the tokenizer's eos_token"
        given = getattr(self._generation_config(), "eos_token_id", None)
        for token in given if isinstance(given, list) else [given]:
            if token is not None:
                found[token] = f"{found[token]} and generation_config.json" if token in found else "generation_config.json"
        return found

    def render(self, prompt: Prompt) -> tuple[int, ...]:
        """The prompt as tokens: messages through the chat template, plain text as the tokenizer does it."""
        if prompt.ids is not None:
            return prompt.ids
        if prompt.messages is None:
            return tuple(self.tokenizer(prompt.text)["input_ids"])
        if not getattr(self.tokenizer, "chat_template", None):
            raise UnreadableFileError(f"{self.name} has no chat template, and prompt {prompt.key} consists of messages", hint="give plain texts")
        text = self.tokenizer.apply_chat_template(list(prompt.messages), add_generation_prompt=True, tokenize=False)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def cut(self, text: str) -> tuple[int, ...]:
        """Plain text as tokens, without special ones."""
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def spell(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def pieces(self, ids: Sequence[int]) -> dict[int, str]:
        """The text of each token that the tokenizer knows; of a piece of a character, the name in the vocabulary."""
        size = len(self.tokenizer)
        texts = {i: self.spell([i]) for i in dict.fromkeys(ids) if i < size}
        return {i: str(self.tokenizer.convert_ids_to_tokens(i)) if "\ufffd" in text else text for i, text in texts.items()}

    def answer(self, prompt: Prompt, sampling: Sampling, sample: int = 0) -> Answer:
        """The reference's own answer."""
        torch, began = self._torch, time.monotonic()
        prompt_ids = self.render(prompt)
        if (seed := sampling.seed_of(prompt.key, sample)) is not None:
            torch.manual_seed(seed)
        ends = list(self.end_tokens())
        chosen: dict[str, Any] = {"do_sample": sampling.temperature > 0, "max_new_tokens": sampling.max_tokens}
        if sampling.temperature > 0:
            chosen |= {"temperature": sampling.temperature, "top_p": 1.0, "top_k": 0}
        # A configuration of our own: penalties of the model's generation_config.json must not change the choice.
        config = self._transformers.GenerationConfig(eos_token_id=ends or None, pad_token_id=ends[0] if ends else 0, **chosen)
        row = torch.tensor([prompt_ids], device=self._device)
        with torch.inference_mode():
            whole = self._ready().generate(row, attention_mask=torch.ones_like(row), generation_config=config)
        ids = tuple(whole[0, len(prompt_ids) :].tolist())
        score = self.score(Answer(key=prompt.key, sample=sample, prompt_ids=prompt_ids, ids=ids), sampling.temperature)
        known = self.pieces(ids)
        return Answer(
            key=prompt.key,
            sample=sample,
            prompt_ids=prompt_ids,
            prompt_text=self.spell(prompt_ids),
            prompt_count=len(prompt_ids),
            ids=ids,
            pieces=tuple(known.get(i, "") for i in ids),
            logprobs=score.logprobs if score else None,
            count=len(ids),
            text=str(self.tokenizer.decode(list(ids), skip_special_tokens=True)),
            finish="stop" if ids and ids[-1] in ends else "length",
            seconds=time.monotonic() - began,
        )

    def score(self, answer: Answer, temperature: float = 0.0) -> Score | None:
        """How probable the tokens of an answer are here; None where the answer tells no tokens, or tokens that this model does not have."""
        prompt_ids, ids = answer.prompt_ids, answer.ids
        if not prompt_ids or not ids:
            return None
        model = self._ready()
        size = model.get_input_embeddings().num_embeddings
        if max(*prompt_ids, *ids) >= size:
            return None
        torch = self._torch
        rows = torch.tensor([[*prompt_ids, *ids]], device=self._device)
        plain: list[float] = []
        scaled: list[float] = []
        best: list[int] = []
        best_logprobs: list[float] = []
        chances: list[Chance] = []
        with torch.inference_mode():
            logits = model(rows).logits[0, len(prompt_ids) - 1 : -1]
            wanted = torch.tensor(ids, device=self._device).unsqueeze(1)
            for at in range(0, len(ids), CHUNK):
                part, tokens = logits[at : at + CHUNK].float(), wanted[at : at + CHUNK]
                logprobs = part.log_softmax(-1)
                plain += logprobs.gather(1, tokens).squeeze(1).tolist()
                highest = logprobs.max(-1)
                best += highest.indices.tolist()
                best_logprobs += highest.values.tolist()
                if temperature not in (0.0, 1.0):
                    after = (part / temperature).log_softmax(-1)
                    scaled += after.gather(1, tokens).squeeze(1).tolist()
                    chances += _chances(after, tokens, logprobs)
                elif temperature:
                    chances += _chances(logprobs, tokens, None)
        return Score(
            key=answer.key,
            sample=answer.sample,
            logprobs=tuple(plain),
            scaled=tuple(scaled) or None,
            best_ids=tuple(best),
            best_logprobs=tuple(best_logprobs),
            chances=tuple(chances),
        )

    def round(self) -> None:
        """From now on compute in the other precision; there is no way back."""
        self._model = None  # loaded anew: weights that were rounded do not become exact again
        self._computes_in = self.rounding

    def _ready(self) -> Any:
        if self._model is None:
            dtype = getattr(self._torch, self._computes_in)
            self._model = self._load(self._transformers.AutoModelForCausalLM, use_safetensors=True, dtype=dtype).to(self._device).eval()
        return self._model

    def _generation_config(self) -> Any:
        try:
            return self._transformers.GenerationConfig.from_pretrained(self.name)
        except (OSError, ValueError):
            return self._config  # no generation_config.json: the model's own

    def _load(self, kind: Any, **more: Any) -> Any:
        try:
            return kind.from_pretrained(self.name, **self._safe, **more)
        except (OSError, ValueError, KeyError, RuntimeError) as e:
            first = (str(e).strip().splitlines() or [type(e).__name__])[0][:300]
            hint = "give a folder with config.json, tokenizer.json and model.safetensors"
            raise UnreadableFileError(f"{self.name}: {first}", hint=hint) from e


def _chances(logprobs: Any, tokens: Any, plain: Any) -> list[Chance]:
    """Of the tokens of some places, one a row; `plain` are log-probabilities at temperature 1, where another one was asked for."""
    ranks = ((logprobs > logprobs.gather(1, tokens)).sum(-1) + 1).tolist()
    excess, variance = _moments(logprobs, tokens)
    at_one = [(None, None)] * len(ranks) if plain is None else list(zip(*_moments(plain, tokens), strict=True))
    rows = zip(excess, variance, ranks, at_one, strict=True)
    return [Chance(excess=e, variance=v, rank=r, plain_excess=one[0], plain_variance=one[1]) for e, v, r, one in rows]


def _moments(logprobs: Any, tokens: Any) -> tuple[list[float], list[float]]:
    """Log-probability of the tokens less its expectation, and the variance of a drawn one."""
    shares = logprobs.exp()
    finite = logprobs.clamp(min=-1e4)  # a token that cannot come counts 0 times minus infinity
    expected = (shares * finite).sum(-1)
    variance = (shares * finite.square()).sum(-1) - expected.square()
    return (finite.gather(1, tokens).squeeze(1) - expected).tolist(), variance.clamp(min=0).tolist()


def _said(dtype: object) -> str | None:
    name = str(dtype).removeprefix("torch.") if dtype is not None else None
    return name if name in OTHER else None
