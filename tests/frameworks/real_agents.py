"""Agents on real clients and on the frameworks' own classes, for ``rollout try``."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

from openai import AsyncOpenAI

KEPT: list[Any] = []
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {"name": "calculate", "parameters": {"type": "object", "properties": {"term": {"type": "string"}}, "required": ["term"]}},
    }
]


class ToolAgent:
    """The loop of an agent with a tool; the client shares the connections that the framework gives."""

    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        client = AsyncOpenAI(base_url=extra_kwargs["base_url"], api_key=extra_kwargs["api_key"], http_client=extra_kwargs["http_client"])
        messages: list[Any] = list(data["messages"])
        for _ in range(4):
            answer = await client.chat.completions.create(model="any", messages=messages, tools=TOOLS, max_tokens=64)
            message = answer.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                return 1.0
            for call in message.tool_calls:
                messages.append({"role": "tool", "tool_call_id": call.id, "content": str(await self.calculate(call.function.arguments))})
        return 0.0

    async def calculate(self, term: str) -> float:
        await asyncio.sleep(0.01)
        return 2.0


class BlockingTool(ToolAgent):
    async def calculate(self, term: str) -> float:
        return run_sandbox(term)


def run_sandbox(code: str) -> float:
    time.sleep(1.2)
    return 2.0


class LeakingClient(ToolAgent):
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        client = AsyncOpenAI(base_url=extra_kwargs["base_url"], api_key=extra_kwargs["api_key"])
        KEPT.append(client)
        await client.chat.completions.create(model="any", messages=data["messages"])
        return 1.0


class SilentTool(ToolAgent):
    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0), backlog=64)

    async def calculate(self, term: str) -> float:
        reader, writer = await asyncio.open_connection(*self.server.getsockname())
        writer.write(term.encode())
        return float(await reader.readline())


class SmallSemaphore(ToolAgent):
    def __init__(self) -> None:
        self.limit = asyncio.Semaphore(2)

    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> float:
        async with self.limit:
            return await super().run(data, **extra_kwargs)


class StreamingAgent:
    async def run(self, data: dict[str, Any], **extra_kwargs: Any) -> dict[str, float]:
        client = AsyncOpenAI(base_url=extra_kwargs["base_url"], api_key=extra_kwargs["api_key"], http_client=extra_kwargs["http_client"])
        text, name = "", ""
        async for piece in await client.chat.completions.create(model="any", messages=data["messages"], stream=True):
            name = piece.id
            text += piece.choices[0].delta.content or ""
        return {name: float(text == "The answer is 42.")}


def areal_workflow() -> Any:
    """AReaL's own RLVR workflow, with a reward that is computed in its pool of processes."""
    from areal.api.cli_args import GenerationHyperparameters
    from areal.workflow.rlvr import RLVRWorkflow

    from ray_rl_debug.trial.child.stand_ins import ByteTokenizer

    return RLVRWorkflow(
        reward_fn=length_reward,
        gconfig=GenerationHyperparameters(max_new_tokens=16),
        tokenizer=ByteTokenizer(),
        get_input_ids_fn=lambda messages, tokenizer, _: tokenizer.apply_chat_template(messages, add_generation_prompt=True),
        data_extract_prompt_fn=lambda data: data["messages"],
    )


def length_reward(prompt: str, completion: str, prompt_ids: Any, completion_ids: Any, **data: Any) -> float:
    return float(len(completion_ids))
