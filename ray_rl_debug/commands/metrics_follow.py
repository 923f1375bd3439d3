"""``rayrl-debug metrics --follow``: a line for each new step, and each finding when it appears."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec

from ray_rl_debug.bounded.stop_event import StopEvent
from ray_rl_debug.metric_sources.engine import EngineNumbers, EngineReader
from ray_rl_debug.metric_sources.follow import Follower, News, line_of
from ray_rl_debug.metrics.model import MetricsReport, Run
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.render.writer import neutralise

CALM = 9.0
"""Times the cost of reading and judging that is waited at least: a tenth of one core at most."""
KEPT_NUMBERS = 100_000


class Following:
    """What was read last, for the report at the end."""

    def __init__(self, read: Callable[[], Run], judge: Callable[[Run], MetricsReport], names: dict[str, str], engine: EngineReader | None) -> None:
        self._read, self._judge, self._names, self._engine = read, judge, names, engine
        self._news = News()
        self._step: int | None = None
        self.run: Run | None = None
        self.report: MetricsReport | None = None
        self.numbers: list[EngineNumbers] = []

    def look(self, say: Callable[[str], None], *, changed: bool) -> None:
        """Read and judge what has changed, and say what is new."""
        if changed:
            try:
                self.run = self._read()
            except UnreadableFileError as e:
                say(f"not read: {e}")  # it may be written at this moment
        steps = self.run.steps() if self.run is not None else ()
        step = steps[-1] if steps else None
        if self.run is not None and (step != self._step or self.report is None):
            self._step = step
            self.report = self._judge(self.run)
            say(line_of(self.run, self._names))
            new, over = self._news.take(self.report)
            for finding in new:
                sure = finding.certainty.value if finding.certainty is not None else ""
                say(f"  {finding.id} {finding.name} ({sure}): {finding.summary}")
            for rule, metric in over:
                say(f"  {rule} {metric} is good again")

    @contextlib.contextmanager
    def asking(self, say: Callable[[str], None], interval_s: float) -> Iterator[None]:
        """Meanwhile the engine is asked at its own pace: a long judgement must leave no hole in its numbers."""
        if self._engine is None:
            yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._ask, args=(self._engine, say, interval_s, over), daemon=True, name="engine")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _ask(self, engine: EngineReader, say: Callable[[str], None], interval_s: float, over: threading.Event) -> None:
        is_last = False
        while True:
            numbers = engine.read(self._step)
            self.numbers = [*self.numbers[-KEPT_NUMBERS:], numbers]
            say(f"  {numbers.text()}")
            if is_last:
                return
            is_last = over.wait(interval_s)  # and once more for the last step

    def keep_numbers(self, folder: Path) -> None:
        """The engine's numbers as JSON lines, for people's own tables."""
        from ray_rl_debug.model.whole_files import write_whole

        if self.numbers:
            write_whole(folder / "engine.jsonl", b"".join(msgspec.json.encode(n) + b"\n" for n in self.numbers))


def follow(following: Following, follower: Follower, stop: StopEvent, interval_s: float, *, quiet: bool) -> None:
    """Until the run says that it has ended, or we are stopped."""

    def say(text: str) -> None:
        if not quiet:
            click.echo(f"{time.strftime('%H:%M:%S')} {neutralise(text)}")

    began = time.monotonic()
    following.look(say, changed=follower.has_changed())  # before the engine is asked: its numbers are those of a step
    with following.asking(say, interval_s):
        while following.run is None or not following.run.is_ended:
            if stop.wait(max(interval_s, CALM * (time.monotonic() - began))):
                return
            began = time.monotonic()
            following.look(say, changed=follower.has_changed())
