"""Everybody who is no rank: engines, agents, queues, pools and servers that take their time and never hang."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import random
import threading
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor


class Engine:
    """Generates token by token, many requests at a time; an answer may take a minute."""

    def __init__(self) -> None:
        self.tokens = 0

    async def generate(self, tokens: int, pause_s: float) -> int:
        for _ in range(tokens):
            await asyncio.sleep(pause_s)
            self.tokens += 1
        return self.tokens

    async def generated(self) -> int:
        return self.tokens


class BlockingEngine:
    """One request at a time, computed in Python."""

    def generate_sequences(self, seconds: float) -> int:
        state, until = 1, time.monotonic() + seconds
        while time.monotonic() < until:
            state = self.decode(state)
        return state

    def decode(self, state: int) -> int:
        for _ in range(10_000):
            state = state * 48271 % 2147483647
        return state


class AgentLoop:
    """Keeps thirty episodes going, each with calls of tools; finished ones go to a buffer that the trainer polls."""

    def __init__(self, engine: object) -> None:
        self.engine = engine
        self.buffer: list[int] = []
        self.finished = 0

    async def run_episodes(self, concurrency: int = 30) -> None:
        await asyncio.gather(*(self._episodes(i) for i in range(concurrency)))

    async def _episodes(self, seed: int) -> None:
        chance = random.Random(seed)
        while True:
            await self.engine.generate.remote(chance.randint(2, 20), 0.05)  # type: ignore[attr-defined]
            await asyncio.sleep(chance.uniform(0.1, 2.0))
            self.buffer.append(seed)
            self.finished += 1

    async def take(self, count: int) -> list[int]:
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken


class RewardPool:
    """Scores answers in processes of its own, some of them long."""

    def __init__(self) -> None:
        self.pool = ProcessPoolExecutor(2)

    def compute_score(self, answers: int) -> float:
        return sum(self.pool.map(score, range(answers)))


def score(number: int) -> float:
    until = time.monotonic() + (1.5 if number % 3 == 0 else 0.2)
    value = 1
    while time.monotonic() < until:
        value = value * 48271 % 2147483647
    return float(value % 2)


class ToolUser:
    """Calls a server that thinks some seconds over each answer."""

    def __init__(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowTool)
        threading.Thread(target=self.server.serve_forever, name="tool server", daemon=True).start()

    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/"

    def compute_reward(self, url: str, calls: int) -> int:
        done = 0
        for _ in range(calls):
            with urllib.request.urlopen(url, timeout=60) as answer:
                done += json.loads(answer.read())["score"]
        return done


class SlowTool(http.server.BaseHTTPRequestHandler):
    """Answers after three seconds."""

    def do_GET(self) -> None:
        time.sleep(3.0)
        body = json.dumps({"score": 1}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Consumer:
    """Takes from a queue whatever comes; between two jobs that is nothing."""

    def __init__(self, queue: object) -> None:
        self.queue = queue
        self.taken = 0

    def run(self) -> int:
        while True:
            self.queue.get()  # type: ignore[attr-defined]
            self.taken += 1


class Environment:
    """A simulator that steps some seconds at a time."""

    def step(self, seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()


class Monitor:
    """An actor with nothing to do but a heartbeat in a thread."""

    def __init__(self) -> None:
        self.beats = 0
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        while True:
            time.sleep(1.0)
            self.beats += 1

    def count(self) -> int:
        return self.beats
