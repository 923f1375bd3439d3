"""What AReaL's and verl's own workflows ask of an engine, answered over HTTP by an SGLang-like ``/generate`` or by token ids made up here."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
import time
import types
import urllib.request
from collections.abc import Sequence
from typing import Any

VERSION = 0
"""Of the weights: a trial updates none."""


class Engine:
    """As AReaL's ``InferenceEngine`` in an episode: a version, and tokens."""

    def __init__(self, base_urls: Sequence[str], max_tokens: int) -> None:
        self._urls = [u.rstrip("/").removesuffix("/v1") for u in base_urls]
        self._max_tokens = max_tokens
        self._next = 0

    def get_version(self) -> int:
        return VERSION

    async def agenerate(self, req: Any) -> Any:
        started = time.monotonic()
        wanted = getattr(getattr(req, "gconfig", None), "max_new_tokens", None) or self._max_tokens
        tokens, logprobs = await self.generate(list(req.input_ids), int(min(wanted, self._max_tokens)))
        response = importlib.import_module("areal.api.io_struct").ModelResponse
        return response(
            input_tokens=list(req.input_ids),
            output_tokens=tokens,
            output_logprobs=logprobs,
            output_versions=[VERSION] * len(tokens),
            stop_reason="stop",
            latency=time.monotonic() - started,
            tokenizer=getattr(req, "tokenizer", None),
        )

    async def generate(self, input_ids: list[int], max_tokens: int) -> tuple[list[int], list[float]]:
        """Token ids and their log-probabilities from the server's ``/generate``."""
        self._next += 1
        url = self._urls[self._next % len(self._urls)] + "/generate"
        body = {"input_ids": input_ids, "sampling_params": {"max_new_tokens": max_tokens}, "return_logprob": True}
        answer = await in_thread(_post, url, body)
        pairs = answer["meta_info"]["output_token_logprobs"]
        return [int(p[1]) for p in pairs], [float(p[0]) for p in pairs]


class ServerManager:
    """As verl's client of its LLM servers."""

    def __init__(self, engine: Engine, max_tokens: int) -> None:
        self._engine, self._max_tokens = engine, max_tokens

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any) -> Any:
        wanted = sampling_params.get("max_new_tokens") or sampling_params.get("max_tokens") or self._max_tokens
        tokens, logprobs = await self._engine.generate(list(prompt_ids), int(min(wanted, self._max_tokens)))
        output = importlib.import_module("verl.workers.rollout.replica").TokenOutput
        return output(token_ids=tokens, log_probs=logprobs, stop_reason="completed")


class ByteTokenizer:
    """One token per byte: for agent loops that only need some tokenizer."""

    eos_token_id, pad_token_id, bos_token_id = 257, 256, None
    eos_token, pad_token, bos_token = "<eos>", "<pad>", None
    chat_template = "bytes"
    name_or_path = "bytes"

    def encode(self, text: str, **_: Any) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        return bytes(i for i in ids if i < 256).decode(errors="replace")

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": self.encode(text)}

    def apply_chat_template(self, messages: Any, *, tokenize: bool = True, add_generation_prompt: bool = False, **_: Any) -> Any:
        text = "".join(f"{m['role']}\n{m.get('content')}\n" for m in messages) + ("assistant\n" if add_generation_prompt else "")
        return self.encode(text) if tokenize else text


def namespace(**fields: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(**fields)


def _post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


async def in_thread(call: Any, *given: Any) -> Any:
    """In a thread of its own, so that no pool of ours limits the episodes."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(setter: Any, value: Any) -> None:
        if not done.done():
            setter(value)

    def work() -> None:
        try:
            result = call(*given)
        except Exception as e:  # noqa: BLE001 it is raised where it is awaited
            loop.call_soon_threadsafe(settle, done.set_exception, e)
        else:
            loop.call_soon_threadsafe(settle, done.set_result, result)

    threading.Thread(target=work, daemon=True, name="trial-engine").start()
    return await done
