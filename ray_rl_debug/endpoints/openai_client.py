"""An inference server with OpenAI's interface (vLLM, SGLang, any), asked with OpenAI's own client: time-outs, retries with growing pauses.

vLLM and SGLang tell more than OpenAI's interface when they are asked to: token ids, the tokens of the prompt, and what ended the answer (vLLM calls
it stop_reason, SGLang matched_stop; SGLang's chat has response_token_ids). vLLM also gives log-probabilities of given tokens. A server that refuses
those questions is asked without them.
"""

from __future__ import annotations

import math
import re
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ray_rl_debug.endpoints.bounded_http import bounded_client
from ray_rl_debug.endpoints.extras import need
from ray_rl_debug.endpoints.prompts import Prompt
from ray_rl_debug.model.errors import EndpointError, UsageError
from ray_rl_debug.rollouts.answers import Answer

REFUSED = (400, 422)
"""Answers of a server that does not know a field."""
_CACHE = re.compile(r'^vllm:cache_config_info(?=\{).*?[{,]cache_dtype="(\w{1,40})"', re.MULTILINE)


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are chosen; all of it is sent with each request."""

    max_tokens: int = 64
    temperature: float = 0.0
    seed: int | None = None

    def seed_of(self, key: str, sample: int) -> int | None:
        """Another one for each prompt and sample: with one for all, every prompt gets the same luck, and chance looks like a rule."""
        return None if self.seed is None else (self.seed + sample + zlib.crc32(key.encode())) % (1 << 31)


class Endpoint:
    """One server and one model of it."""

    def __init__(self, url: str, model: str | None = None, *, timeout_s: float = 120.0, retries: int = 4, api_key: str | None = None) -> None:
        """
        Args:
            url: Up to ``/v1``.
            model: None: the first that the server lists.
            timeout_s: For one attempt.
            retries: More attempts after a failure of the network, an overloaded or a broken server.
            api_key: None: the server wants none.

        Raises:
            EndpointError: the server does not list its models.
            UsageError: the address is none.
        """
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is no address of a server", hint="write it as http://127.0.0.1:8000/v1")
        openai = need("openai", "asking an endpoint")
        self.url = url.rstrip("/")
        self._error = openai.OpenAIError
        self._status_error = openai.APIStatusError
        http = bounded_client(timeout_s)
        self._client = openai.OpenAI(base_url=self.url, api_key=api_key or "none", timeout=timeout_s, max_retries=retries, http_client=http)
        self._tells_more = True
        self.model = model or self._first_model()

    @property
    def root(self) -> str:
        """Where vLLM and SGLang have the routes that OpenAI does not know."""
        return self.url.removesuffix("/v1")

    def answer(self, prompt: Prompt, sampling: Sampling, sample: int = 0) -> Answer:
        """One answer; a failure is an answer with `error`."""
        began = time.monotonic()
        try:
            return self._answer(prompt, sampling, sample, began)
        except (self._error, EndpointError, ValueError) as e:  # a ValueError: what should be JSON is none
            return Answer(key=prompt.key, sample=sample, error=_short(e), seconds=time.monotonic() - began)

    def cut(self, text: str) -> tuple[tuple[int, ...], tuple[str, ...] | None] | None:
        """Plain text as tokens, without special ones, and their texts; None if the server does not tell."""
        body = {"model": self.model, "prompt": text, "add_special_tokens": False, "return_token_strs": True}
        answer = self._ask_more(f"{self.root}/tokenize", body)
        ids = _ids(answer.get("tokens")) if answer else None
        pieces = answer.get("token_strs") if answer else None
        return None if ids is None else (ids, tuple(map(str, pieces)) if isinstance(pieces, list) else None)

    def spell(self, ids: Sequence[int]) -> str | None:
        """Tokens as text, special ones included; None if the server does not tell."""
        answer = self._ask_more(f"{self.root}/detokenize", {"model": self.model, "tokens": list(ids)})
        text = (answer or {}).get("prompt", (answer or {}).get("text"))
        return text if isinstance(text, str) else None

    def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> tuple[float | None, ...] | None:
        """Log-probabilities of given tokens after given ones; None if the server does not tell (only vLLM does)."""
        body = {"model": self.model, "prompt": [*prompt_ids, *ids], "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        answer = self._ask_more("/completions", body)
        try:
            rows = (answer or {})["choices"][0]["prompt_logprobs"][len(prompt_ids) :]
        except (KeyError, IndexError, TypeError):
            return None
        if len(rows) != len(ids):
            return None
        return tuple(_number(((row or {}).get(str(token)) or {}).get("logprob")) for row, token in zip(rows, ids, strict=True))

    def cache_dtype(self) -> str | None:
        """How the engine keeps keys and values, in its own words (vLLM: a label of its numbers, SGLang: its arguments); None: not told."""
        found = _CACHE.search(str(self._look("/metrics", str) or ""))
        if found is not None:
            return found[1]
        told = self._look("/server_info", object)
        dtype = told.get("kv_cache_dtype") if isinstance(told, dict) else None
        return dtype[:40] if isinstance(dtype, str) else None

    def _look(self, path: str, kind: type) -> object:
        try:
            return self._client.with_options(max_retries=0).get(f"{self.root}{path}", cast_to=kind)
        except (self._error, ValueError):
            return None  # not every server has this route

    def _first_model(self) -> str:
        try:
            models = self._client.get("/models", cast_to=object)
        except self._error as e:
            raise EndpointError(f"{self.url} does not list its models: {_short(e)}", hint=_hint(e)) from e
        except ValueError as e:  # the answer is no JSON, whatever it calls itself
            raise EndpointError(f"{self.url}/models does not answer as OpenAI's interface does") from e
        try:
            name = models["data"][0]["id"]
        except (KeyError, IndexError, TypeError) as e:
            raise EndpointError(f"{self.url}/models does not answer as OpenAI's interface does") from e
        return str(name)

    def _answer(self, prompt: Prompt, sampling: Sampling, sample: int, began: float) -> Answer:
        common: dict[str, Any] = {"model": self.model, "max_tokens": sampling.max_tokens, "temperature": sampling.temperature, "top_p": 1.0}
        if (seed := sampling.seed_of(prompt.key, sample)) is not None:
            common["seed"] = seed
        more = {"return_token_ids": True}
        if prompt.messages is not None:
            path, body = "/chat/completions", {**common, "messages": list(prompt.messages), "logprobs": True, "top_logprobs": 0}
        else:
            path, body = "/completions", {**common, "prompt": prompt.text if prompt.ids is None else list(prompt.ids), "logprobs": 0}
        answer = self._post(path, body, more)
        seconds = time.monotonic() - began
        try:
            choice = answer["choices"][0]
            read = _chat_choice(choice) if prompt.messages is not None else _plain_choice(choice)
        except (KeyError, IndexError, TypeError, AttributeError) as e:
            raise EndpointError(f"{self.url}{path} does not answer as OpenAI's interface does") from e
        usage = answer.get("usage") or {}
        prompt_ids = _ids(choice.get("prompt_token_ids")) or _ids(answer.get("prompt_token_ids")) or prompt.ids
        return Answer(
            key=prompt.key,
            sample=sample,
            prompt_ids=prompt_ids,
            prompt_count=usage.get("prompt_tokens"),
            ids=_ids(choice.get("token_ids")) or _ids(choice.get("response_token_ids")),
            count=usage.get("completion_tokens"),
            finish=choice.get("finish_reason"),
            stop=choice.get("stop_reason", choice.get("matched_stop")),
            seconds=seconds,
            **read,
        )

    def _post(self, path: str, body: Mapping[str, Any], more: Mapping[str, Any]) -> Any:
        if self._tells_more:
            try:
                return self._client.post(path, cast_to=object, body={**body, **more})
            except self._status_error as e:
                if e.status_code not in REFUSED:
                    raise
                plain = self._client.post(path, cast_to=object, body=dict(body))
                self._tells_more = False
                return plain
        return self._client.post(path, cast_to=object, body=dict(body))

    def _ask_more(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            answer = self._client.post(path, cast_to=object, body=dict(body))
        except (self._error, ValueError):
            return None  # not every server has this route; the caller tells what is missing
        return answer if isinstance(answer, dict) else None


def _chat_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    told = (choice.get("logprobs") or {}).get("content") or None
    return {
        "text": choice["message"].get("content") or "",
        "pieces": None if told is None else tuple(str(t["token"]) for t in told),
        "logprobs": None if told is None else tuple(_number(t["logprob"]) for t in told),
    }


def _plain_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    told = choice.get("logprobs") or {}
    return {
        "text": choice["text"],
        "pieces": None if told.get("tokens") is None else tuple(map(str, told["tokens"])),
        "logprobs": None if told.get("token_logprobs") is None else tuple(map(_number, told["token_logprobs"])),
    }


def _ids(value: object) -> tuple[int, ...] | None:
    return tuple(value) if isinstance(value, list) and all(type(i) is int for i in value) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if not math.isinf(value) else (-9999.0 if value < 0 else None)


def _hint(error: Exception) -> str | None:
    """What to do about a server that does not list its models; None: the usual."""
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return "the server wants a key: put it into the variable OPENAI_API_KEY"
    if status == 429:
        return "the server refuses more requests now: wait, or ask another one"
    if isinstance(status, int) and status >= 500:
        return "look at the log of the server"
    if "Timeout" in type(error).__name__:
        return "it may hang (rayrl-debug snapshot --here --pid PID tells), or need more time: --timeout SECONDS"
    return None


def _short(error: Exception) -> str:
    """The first line, without the body of a page."""
    said = str(error).strip().splitlines()
    cause = str(error.__cause__ or "").strip().splitlines()
    said = [f"{said[0].rstrip('.')}: {cause[0]}"] if said and cause and cause[0] not in said[0] else said
    return f"{type(error).__name__}: {said[0][:300]}" if said else type(error).__name__
