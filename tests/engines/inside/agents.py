"""An agent of verl that asks a tool after each answer: a server at ``TOOL_PORT`` that says one line."""

import asyncio
import os

from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop


class ToolUser(SingleTurnAgentLoop):
    async def run(self, sampling_params, **kwargs):
        output = await super().run(sampling_params, **kwargs)
        await self.ask_tool(len(output.response_ids))
        return output

    async def ask_tool(self, question):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["TOOL_PORT"]))
        writer.write(f"{question}\n".encode())
        answer = await reader.readline()
        writer.close()
        return answer
