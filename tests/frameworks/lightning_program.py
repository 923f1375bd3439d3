"""Agent-Lightning's own trainer, store and two runners: four rollouts, with ``hang`` one of them asks a tool that never answers.

``python lightning_program.py PORT hang|ok``: PORT is the store's. Prints the pids of the trainer and of the tool's server, and how many have ended.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network for prices as it is imported

import agentlightning as agl

ROLLOUTS = 4
SERVES_S = 600
SILENT = """
import socket
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
print(server.getsockname()[1], flush=True)
kept = []
while True:
    kept.append(server.accept())
"""


class Solver(agl.LitAgent[Any]):
    """Asks the tool for the third question only."""

    def __init__(self, tool: int | None) -> None:
        super().__init__()
        self.tool = tool

    def rollout(self, task: dict[str, int], resources: Any, rollout: Any) -> float:
        if task["number"] == 2 and self.tool is not None:
            self.ask_tool(self.tool)
        agl.emit_reward(0.5)
        return 0.5

    def ask_tool(self, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"2 + 2")
            connection.recv(64)


class OneStep(agl.Algorithm):
    """Hands out the rollouts of one step and waits for all of them."""

    async def run(self, train_dataset: Any = None, val_dataset: Any = None) -> None:
        store = self.get_store()
        await store.add_resources({"prompt": agl.PromptTemplate(template="{number}", engine="f-string")})
        asked = [(await store.enqueue_rollout(input={"number": i}, mode="train")).rollout_id for i in range(ROLLOUTS)]
        ended = 0
        while ended < ROLLOUTS:
            ended = len(await store.wait_for_rollouts(rollout_ids=asked, timeout=0))
            print(f"{ended} of {ROLLOUTS} have ended", flush=True)
            await asyncio.sleep(0.5)
        print("finished", flush=True)
        await asyncio.sleep(SERVES_S)  # the store is asked meanwhile


def main() -> None:
    port, case = int(sys.argv[1]), sys.argv[2]
    tool = None
    if case == "hang":
        server = subprocess.Popen([sys.executable, "-c", SILENT], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        tool = int(server.stdout.readline())
        print("tool", server.pid, flush=True)
    trainer = agl.Trainer(algorithm=OneStep(), n_runners=2, tracer=agl.OtelTracer(), strategy={"type": "cs", "server_port": port})
    print("trainer", os.getpid(), flush=True)
    trainer.fit(Solver(tool))


if __name__ == "__main__":
    main()
