"""A small inference server with OpenAI's interface and vLLM's additions, which runs real models in Transformers: ``server.py PORT=DTYPE=FOLDER ...``.

Its log-probabilities are those of the model. POST /load takes other weights while it runs. Troubles of a server can be asked for: POST /trouble.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import torch
from aiohttp import web
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig


class Engine:
    def __init__(self, folder: str, dtype: str = "float32") -> None:
        self.dtype = getattr(torch, dtype)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=self.dtype).eval()
        ends = GenerationConfig.from_pretrained(folder).eos_token_id
        self.ends = {*(ends if isinstance(ends, list) else [ends]), self.tokenizer.eos_token_id}
        self.lock = asyncio.Lock()
        self.trouble: dict[str, Any] = {}

    def load(self, folder: str) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=self.dtype).eval()

    @torch.inference_mode()
    def generate(self, ids: list[int], body: dict[str, Any]) -> tuple[list[int], list[float]]:
        """Tokens one by one, each with its log-probability before temperature."""
        temperature, generator = float(body.get("temperature", 1)), torch.Generator()
        if body.get("seed") is not None:
            generator.manual_seed(int(body["seed"]))
        row, out, logprobs, cache = torch.tensor([ids]), [], [], None
        for _ in range(min(int(body.get("max_tokens") or 16), self.trouble.get("max_tokens", 10**9))):
            step = self.model(row, past_key_values=cache, use_cache=True)
            logits, cache = step.logits[0, -1].float(), step.past_key_values
            if self.trouble.get("cache_dtype"):
                self.round_cache(cache, len(ids) + len(out))
            chosen = self.changed(logits, [*ids, *out])
            at = self.trouble.get("temperature", temperature)
            drawn = chosen.argmax() if at == 0 else torch.multinomial((chosen / at).softmax(-1), 1, generator=generator)
            token = int(drawn)
            scale = temperature if self.trouble.get("processed_logprobs") and temperature else 1.0
            out.append(token)
            logprobs.append(float((logits / scale).log_softmax(-1)[token]))
            if token in self.ends:
                break
            row = torch.tensor([[token]])
        return out, logprobs

    def changed(self, logits: torch.Tensor, seen: list[int]) -> torch.Tensor:
        """The logits that are sampled from: a penalty and a cut that no request asked for."""
        chosen, penalty, top_k = logits.clone(), self.trouble.get("repetition_penalty"), self.trouble.get("top_k")
        if penalty:
            rows = torch.tensor(sorted(set(seen)))
            chosen[rows] = torch.where(chosen[rows] > 0, chosen[rows] / penalty, chosen[rows] * penalty)
        if top_k:
            chosen[chosen < chosen.topk(top_k).values[-1]] = -torch.inf
        return chosen

    def round_cache(self, cache: Any, length: int) -> None:
        """Keys and values of all tokens until now as a cache of lower precision keeps them; those of a prompt are rounded after it was read."""
        dtype = getattr(torch, self.trouble["cache_dtype"])
        for layer in cache.layers:
            for held in (layer.keys, layer.values):
                held.copy_(held.to(dtype).to(held.dtype))
        assert cache.get_seq_length() == length

    @torch.inference_mode()
    def score(self, ids: list[int]) -> list[dict[str, Any] | None]:
        rows = self.model(torch.tensor([ids])).logits[0, :-1].float().log_softmax(-1)
        return [None, *({str(t): {"logprob": float(row[t])}} for row, t in zip(rows, ids[1:], strict=True))]


def application(engine: Engine) -> web.Application:
    tokenizer = engine.tokenizer

    def ids_of(text: str, special: bool) -> list[int]:
        return list(tokenizer(text, add_special_tokens=special)["input_ids"])

    async def complete(request: web.Request, ids: list[int], body: dict[str, Any], is_chat: bool) -> web.Response:
        await asyncio.sleep(engine.trouble.get("delay_s", 0))
        if engine.trouble.get("fail_next", 0) > 0:
            engine.trouble["fail_next"] -= 1
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        if engine.trouble.get("is_plain") and "return_token_ids" in body:
            return web.json_response({"error": {"message": "unknown field"}}, status=400)
        ids = ids[-engine.trouble.get("prompt_tokens", len(ids)) :]
        async with engine.lock:
            out, logprobs = await asyncio.to_thread(engine.generate, ids, body)
        pieces = tokenizer.convert_ids_to_tokens(out)
        pieces = ["" if p is None else tokenizer.convert_tokens_to_string([p]) for p in pieces]  # a model may have more tokens than its tokenizer
        finish = "stop" if out[-1] in engine.ends else "length"
        shown = tokenizer.decode(out, skip_special_tokens=True)
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "stop_reason": None}
        if is_chat:
            choice["message"] = {"role": "assistant", "content": shown}
            choice["logprobs"] = {"content": [{"token": p, "logprob": lp, "top_logprobs": []} for p, lp in zip(pieces, logprobs, strict=True)]}
        else:
            choice["text"] = shown
            choice["logprobs"] = {"tokens": pieces, "token_logprobs": logprobs}
        if body.get("prompt_logprobs") is not None:
            choice["prompt_logprobs"] = engine.score(ids)
        if body.get("return_token_ids"):
            choice["token_ids"], choice["prompt_token_ids"] = out, ids
        usage = {"prompt_tokens": len(ids), "completion_tokens": len(out), "total_tokens": len(ids) + len(out)}
        return web.json_response({"id": "1", "object": "x", "model": "tiny", "choices": [choice], "usage": usage})

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        text = tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, tokenize=False)
        return await complete(request, ids_of(text, False), body, True)

    async def plain(request: web.Request) -> web.Response:
        body = await request.json()
        prompt = body["prompt"]
        return await complete(request, prompt if isinstance(prompt, list) else ids_of(prompt, True), body, False)

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "tiny", "object": "model"}]})

    async def metrics(_: web.Request) -> web.Response:
        labels = f'block_size="16",mamba_cache_dtype="auto",skipped="{{}}",cache_dtype="{engine.trouble.get("cache_dtype", "auto")}",engine="0"'
        return web.Response(text=f"# HELP vllm:cache_config_info x\nvllm:cache_config_info{{{labels}}} 1.0\n")

    async def tokenize(request: web.Request) -> web.Response:
        if engine.trouble.get("is_plain"):
            return web.json_response({}, status=404)
        body = await request.json()
        ids = ids_of(body["prompt"], body.get("add_special_tokens", True))
        return web.json_response({"tokens": ids, "count": len(ids), "token_strs": [tokenizer.decode([i]) for i in ids]})

    async def detokenize(request: web.Request) -> web.Response:
        return web.json_response({"prompt": tokenizer.decode((await request.json())["tokens"])})

    async def load(request: web.Request) -> web.Response:
        engine.load((await request.json())["folder"])
        return web.json_response({})

    async def trouble(request: web.Request) -> web.Response:
        engine.trouble = await request.json()
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_get("/metrics", metrics)
    for path, handler in (
        ("/v1/chat/completions", chat),
        ("/v1/completions", plain),
        ("/tokenize", tokenize),
        ("/detokenize", detokenize),
        ("/load", load),
        ("/trouble", trouble),
    ):
        app.router.add_post(path, handler)
    return app


async def serve(wanted: list[str]) -> None:
    for one in wanted:
        port, dtype, folder = one.split("=", 2)
        runner = web.AppRunner(application(Engine(folder, dtype)))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", int(port)).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    torch.set_num_threads(1)
    asyncio.run(serve(sys.argv[1:]))
