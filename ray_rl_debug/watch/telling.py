"""Which people and programs hear of a hang, of its end, and of a run that learns nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.model.report import State
from ray_rl_debug.watch.closer_look import Keeping, Look, hook_environment
from ray_rl_debug.watch.notify import Notifier, learning_message, message, slack_learning, slack_message
from ray_rl_debug.watch.options import WatchOptions
from ray_rl_debug.watch.trackers import Trackers

LEAVE_S = 20.0
"""For messages that are under way when the watch ends."""
NAMED_S = 2.0
"""A message names the folder of a look whose files are written by then."""
FILES_S = 60.0
"""For a command of --on-hang, which reads the files. Writing them has shorter deadlines of its own."""


class Telling:
    """The commands and addresses that the user gave."""

    def __init__(self, options: WatchOptions, heard: Callable[[str], None]) -> None:
        self._options = options
        self._notifier = Notifier(heard=heard)
        self._trackers = Trackers(options.trackers, options.output, heard)

    def hang(self, job: str, keeping: Keeping, age_s: float) -> None:
        """Start to tell people. A command of theirs reads the files, so it waits for them; a message only names their folder."""
        if self._options.on_hang:
            self._notifier.run(self._options.on_hang, lambda: hook_environment(keeping.wait(FILES_S), job_id=job, age_s=age_s))
        state = keeping.look.report.verdict.state
        self._post(job, keeping.look, "hang" if state is not State.FINISHED else "finished", age_s, keeping)

    def recovered(self, job: str, last: Look) -> None:
        """What was told of a hang is over."""
        self._post(job, last, "recovered", 0.0)

    def learning(self, job: str, finding: Judgement) -> None:
        """A run that is alive and does not learn as it should."""
        for url in self._options.webhooks:
            self._notifier.post(url, lambda: learning_message(job, finding))
        for url in self._options.slack:
            self._notifier.post(url, lambda: slack_learning(job, finding))
        self._trackers.send(lambda: learning_message(job, finding))

    def finish(self) -> None:
        """Wait a while for what is under way."""
        began = time.monotonic()
        self._notifier.finish(LEAVE_S)
        self._trackers.finish(max(0.0, LEAVE_S - (time.monotonic() - began)))

    def _post(self, job: str, look: Look, kind: str, age_s: float, keeping: Keeping | None = None) -> None:
        def body(form: Callable[..., dict[str, Any]]) -> dict[str, Any]:
            folder = keeping.wait(NAMED_S).folder if keeping is not None else None
            return form(look.report, kind=kind, job_id=job, age_s=age_s, folder=str(folder) if folder else None)

        for url in self._options.webhooks:
            self._notifier.post(url, lambda: body(message))
        for url in self._options.slack:
            self._notifier.post(url, lambda: body(slack_message))
        self._trackers.send(lambda: body(message))
