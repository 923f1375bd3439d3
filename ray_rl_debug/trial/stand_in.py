"""A server on the loopback that answers as an inference engine would: OpenAI's and Anthropic's chat, completions, SGLang's ``/generate``.

Slow, failing and silent as asked, and always in the same order, so that a trial can be repeated. Runs as a process of its own, standard library
only; it ends when its standard input does. The first line on standard output is its port.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

MAX_HEAD, MAX_BODY = 1 << 16, 64 << 20
COUNTERS = "/trial/counters"
"""What it saw since it was asked last."""
ASKED_FOR = "a failure that was asked for"
MODEL = "stand-in"


class Behaviour:
    """How it answers; from JSON."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.latency_s = float(given.get("latency_s", 0.05))
        self.spread = float(given.get("spread", 0.2))
        """Latencies are uniform within this part of the mean."""
        self.failures = float(given.get("failures", 0.0))
        self.stalls = float(given.get("stalls", 0.0))
        self.slots = int(given.get("slots") or 0)
        """Requests that it works on at once, the others queue; 0 for all."""
        self.answer = str(given.get("answer", "The answer is 42."))
        self.random = random.Random(int(given.get("seed", 0)))


class _Server:
    def __init__(self, behaviour: Behaviour) -> None:
        self._how = behaviour
        self._slots = asyncio.Semaphore(behaviour.slots) if behaviour.slots else None
        self._open = self._peak = self._asked = self._failed = self._stalled = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, with as many requests as the client likes."""
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) is not None:
                lines = head.decode("latin-1").split("\r\n")
                method, path = lines[0].split(" ")[:2]
                headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
                body = await reader.readexactly(min(int(headers.get("content-length") or 0), MAX_BODY))
                await self._answer(method, path.split("?")[0], body, writer)
                if headers.get("connection", "").lower() == "close":
                    break
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass  # the client went away, or speaks something else
        finally:
            writer.close()

    async def _answer(self, method: str, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path == COUNTERS:
            seen = {"peak": self._peak, "asked": self._asked, "failed": self._failed, "stalled": self._stalled, "open": self._open}
            self._peak = self._open
            return await _send(writer, 200, seen)
        if method == "GET":
            known = {"/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model"}]}, "/health": {}, "/version": {"version": "0"}}
            return await _send(writer, 200 if path in known else 404, known.get(path, {"error": f"no {path}"}))
        try:
            asked = json.loads(body or b"{}")
        except ValueError:
            return await _send(writer, 400, {"error": {"message": "the body is no JSON"}})
        make = _ANSWERS.get(path)
        if make is None or not isinstance(asked, dict):
            return await _send(writer, 404, {"error": {"message": f"no {path}"}})
        self._asked += 1
        self._open += 1
        self._peak = max(self._peak, self._open)
        try:
            await self._work(make, asked, writer)
        finally:
            self._open -= 1
        return None

    async def _work(self, make: Any, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        how, draw = self._how, self._how.random.random()
        pause_s = how.latency_s * (1 + how.spread * (2 * how.random.random() - 1))
        if draw < how.stalls:
            self._stalled += 1
            await asyncio.Event().wait()
        if self._slots is None:
            await asyncio.sleep(pause_s)
        else:
            async with self._slots:
                await asyncio.sleep(pause_s)
        if draw < how.stalls + how.failures:
            self._failed += 1
            return await _send(writer, 500, {"error": {"message": ASKED_FOR, "type": "server_error"}})
        whole = make(asked, how)
        if asked.get("stream") and "choices" in whole:
            return await _stream(writer, whole)
        return await _send(writer, 200, whole)


async def _send(writer: asyncio.StreamWriter, status: int, what: Any) -> None:
    data = json.dumps(what).encode()
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    await writer.drain()


async def _stream(writer: asyncio.StreamWriter, whole: dict[str, Any]) -> None:
    message = whole["choices"][0].get("message") or {}
    text = message.get("content") or ""
    base = {k: whole[k] for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    calls = [{**call, "index": i} for i, call in enumerate(message.get("tool_calls") or ())]
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}, {}]
    ends = [None, whole["choices"][0]["finish_reason"]]
    events = [{**base, "choices": [{"index": 0, "delta": p, "finish_reason": e}]} for p, e in zip(pieces, ends, strict=True)]
    data = b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events) + b"data: [DONE]\n\n"
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    await writer.drain()


def _chat(asked: dict[str, Any], how: Behaviour) -> dict[str, Any]:
    messages, tools = asked.get("messages") or [], asked.get("tools") or []
    last = messages[-1].get("role") if messages and isinstance(messages[-1], dict) else None
    # Each question is answered by a call of the first tool, and each result of a tool by the answer: both ways through the agent are taken.
    if tools and last != "tool":
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [_call(tools[0])]}
    else:
        message = {"role": "assistant", "content": how.answer}
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {**_head("chat.completion", asked), "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}], **_usage()}


def _call(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool.get("function") or tool
    schema = function.get("parameters") or {}
    fields = schema.get("properties") or {}
    samples = {"string": "1 + 1", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    arguments = {k: samples.get(v.get("type", "string"), "1") for k, v in fields.items() if k in schema.get("required", fields)}
    return {"id": f"call_{_id()}", "type": "function", "function": {"name": function.get("name", "tool"), "arguments": json.dumps(arguments)}}


def _completion(asked: dict[str, Any], how: Behaviour) -> dict[str, Any]:
    return {**_head("text_completion", asked), "choices": [{"index": 0, "text": how.answer, "finish_reason": "stop", "logprobs": None}], **_usage()}


def _anthropic(asked: dict[str, Any], how: Behaviour) -> dict[str, Any]:
    content = [{"type": "text", "text": how.answer}]
    usage = {"input_tokens": 8, "output_tokens": 8}
    head = {"id": f"msg_{_id()}", "type": "message", "role": "assistant", "model": asked.get("model", MODEL)}
    return {**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}


def _generate(asked: dict[str, Any], how: Behaviour) -> dict[str, Any]:
    length = min(len(how.answer.encode()), int((asked.get("sampling_params") or {}).get("max_new_tokens") or 64))
    tokens = list(how.answer.encode())[: max(1, length)]
    meta = {"output_token_logprobs": [[-0.5, t, None] for t in tokens], "finish_reason": {"type": "stop"}, "completion_tokens": len(tokens)}
    return {"text": how.answer, "output_ids": tokens, "meta_info": meta}


def _head(kind: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": f"{kind}-{_id()}", "object": kind, "created": int(time.time()), "model": str(asked.get("model") or MODEL)}


def _usage() -> dict[str, Any]:
    return {"usage": {"prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16}}


def _id() -> str:
    return f"{random.getrandbits(48):012x}"


_ANSWERS = {
    "/v1/chat/completions": _chat,
    "/v1/completions": _completion,
    "/v1/messages": _anthropic,
    "/generate": _generate,
}


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


async def _main(behaviour: Behaviour) -> None:
    server = await asyncio.start_server(_Server(behaviour).serve, "127.0.0.1", 0, backlog=4096, limit=MAX_HEAD)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 the hand-shake
    threading.Thread(target=_end_with_input, daemon=True).start()
    await server.serve_forever()


def main() -> None:
    """Serve as the JSON in argument 1 says."""
    asyncio.run(_main(Behaviour(json.loads(sys.argv[1]))))
