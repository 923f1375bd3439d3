"""The two processes of a trial: the one with the user's code, and the stand-in for an engine. Neither outlives us."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, Any

from ray_rl_debug.model.trial import Plan
from ray_rl_debug.trial import looks, start

OUTPUT_LINES = 40
EXIT_S = 5.0
CHILD, SERVER = "ray_rl_debug.trial.child.main", "ray_rl_debug.trial.stand_in"


@contextlib.contextmanager
def stand_in_for(plan: Plan) -> Iterator[int]:
    """A stand-in engine; its port."""
    child = start.start(SERVER, [json.dumps(plan.stand_in)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        yield int(child.stdout.readline())
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child with all that it started."""
    below = looks.children_of(child.pid)
    for pid in (child.pid, *below):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


class Child:
    """The process with the user's code: news of it, its last output, orders to it."""

    def __init__(self, process: subprocess.Popen[bytes], news: int, echo: Callable[[str], None] | None) -> None:
        self.process, self.pid = process, process.pid
        self.news: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.output: deque[str] = deque(maxlen=OUTPUT_LINES)
        self._echo = echo
        assert process.stdout is not None
        threading.Thread(target=self._read_news, args=(os.fdopen(news, "rb"),), daemon=True, name="news").start()
        threading.Thread(target=self._read_output, args=(process.stdout,), daemon=True, name="output").start()

    @classmethod
    @contextlib.contextmanager
    def started(cls, plan: Plan, endpoints: tuple[str, ...], echo: Callable[[str], None] | None) -> Iterator[Child]:
        ours, theirs = os.pipe()
        env = {"OPENAI_BASE_URL": endpoints[0], **os.environ}
        if not plan.endpoints:  # nothing of a trial against the stand-in may reach a provider that costs money
            env |= {"OPENAI_BASE_URL": endpoints[0], "OPENAI_API_KEY": plan.api_key, "ANTHROPIC_BASE_URL": endpoints[0].removesuffix("/v1")}
        try:
            process = start.start(
                CHILD, [str(theirs)], python=plan.python, env=env, pass_fds=(theirs,), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        child = cls(process, ours, echo)
        try:
            yield child
        finally:
            _end(process)

    def order(self, what: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended: its news say so
            self.process.stdin.write(json.dumps(what).encode() + b"\n")
            self.process.stdin.flush()

    def exit_code(self) -> int | None:
        """Of a process that sends no more news: its pipe closes some moments before it is gone. None if it goes on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(EXIT_S)
        return None

    def _read_news(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                with contextlib.suppress(ValueError):  # cut off by its end
                    self.news.put(json.loads(line))
        self.news.put(None)

    def _read_output(self, pipe: IO[bytes]) -> None:
        for line in iter(lambda: pipe.readline(1 << 16), b""):
            text = line.decode("utf-8", "replace").rstrip()
            self.output.append(text[:2000])
            if self._echo is not None:
                self._echo(text)
