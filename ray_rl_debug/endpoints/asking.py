"""Many prompts to one endpoint: several at once, each answer kept when it comes, stopped at once by Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from ray_rl_debug.endpoints.prompts import Prompt
from ray_rl_debug.endpoints.recordings import Keeper
from ray_rl_debug.rollouts.answers import Answer

Show = Callable[..., None]
EVERY_S = 2.0
"""Between two lines of progress."""


class Ticker:
    """Shows a line of progress now and then, and the last one always."""

    def __init__(self, show: Show, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._total, self._clock = show, total, clock
        self._said = clock()

    def tick(self, done: int, line: str) -> None:
        if done >= self._total or self._clock() - self._said >= EVERY_S:
            self._said = self._clock()
            self._show(line)


def ask_all(
    ask: Callable[[Prompt, int], Answer],
    prompts: Sequence[Prompt],
    samples: int,
    keeper: Keeper,
    *,
    concurrency: int = 4,
    show: Show = lambda *_: None,
    name: str = "engine",
) -> None:
    """Ask what is not known yet; each answer goes to `keeper`.

    After Ctrl-C what came is kept, and requests under way are left to themselves.
    """
    open_ = [(p, n) for p in prompts for n in range(samples) if (p.key, n) not in keeper.known]
    total = len(prompts) * samples
    if len(open_) < total:
        show(f"{name}: {total - len(open_)} of {total} answers are known from an earlier run")
    pool = ThreadPoolExecutor(concurrency)
    try:
        waiting = {pool.submit(ask, p, n) for p, n in open_}
        failed, ticker = 0, Ticker(show, total)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                answer = future.result()
                failed += answer.error is not None
                keeper.add(answer)
            known = total - len(waiting)
            ticker.tick(known, f"{name}: {known} of {total} answers" + (f", {failed} failed" if failed else ""))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
