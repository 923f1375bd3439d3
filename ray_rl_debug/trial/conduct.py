"""Conducts a trial: starts the child and the stand-in, gives the stages, looks while they run, ends what does not end by itself."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import msgspec

from ray_rl_debug.capture.here import take_here
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.trial import Blocked, Episode, Error, Facts, Finding, Held, LoopTime, Plan, Stage
from ray_rl_debug.trial import looks
from ray_rl_debug.trial.children import Child, stand_in_for
from ray_rl_debug.trial.judge.loop import IMPORTING
from ray_rl_debug.trial.stages import stages_of
from ray_rl_debug.trial.stand_in import COUNTERS, MODEL

LOOK_EVERY_S = 0.25
MAX_LOOKS = 12
"""Of one stage: long ones are looked at less often."""
LOAD_S = 120.0
"""For importing the user's code: torch and friends from a slow file system take minutes."""
CANCEL_S = 3.0
LAST_LOOKS = 3


def conduct(
    plan: Plan,
    *,
    progress: Callable[..., None] = lambda *_: None,
    echo: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> Facts:
    """Run the whole trial within `plan.deadline_s`. Setting `stop` ends it early with what there is.

    Raises:
        OSError: the interpreter of the plan cannot be started.
    """
    with contextlib.ExitStack() as things:
        server = None if plan.endpoints else things.enter_context(stand_in_for(plan))
        endpoints = plan.endpoints or (f"http://127.0.0.1:{server}/v1",)
        child = things.enter_context(Child.started(plan, endpoints, echo))
        trial = _Trial(plan, endpoints, child, server, progress, stop or threading.Event())
        trial.run()
        return trial.facts()


class _Trial:
    """One trial under way."""

    def __init__(
        self, plan: Plan, endpoints: tuple[str, ...], child: Child, server: int | None, progress: Callable[..., None], stop: threading.Event
    ) -> None:
        self._plan, self._endpoints, self._child, self._server = plan, endpoints, child, server
        self._progress, self._stop = progress, stop
        self._until = time.monotonic() + plan.deadline_s
        self._known: dict[str, Any] = {}
        self._stages: list[Stage] = []
        self._episodes: dict[int, Episode] = {}
        self._blocked: dict[float, Blocked] = {}
        self._loops: list[LoopTime] = []
        self._looks: list[looks.Look] = []
        self._held: Held | None = None
        self._cpu_before: float | None = None
        self._gaps: dict[str, None] = {}
        self._over = False
        self._done: set[int] = set()
        self._last: dict[str, int] = {}

    def run(self) -> None:
        self._child.order(self._for_child())
        if not self._await(lambda: "contract" in self._known, LOAD_S):
            if not self._over and not self._stop.is_set():
                self._known["unusable"] = f"importing {self._plan.target} took more than {min(LOAD_S, self._plan.deadline_s):g} s"
            return
        for stage, groups, group_size in stages_of(self._plan):
            if not self._run(stage, groups, group_size):
                break

    def _for_child(self) -> dict[str, Any]:
        plan = self._plan
        rows = [dict(r) for r in plan.rows]
        given = {"init": plan.init, "extra": plan.extra, "tokenizer": plan.tokenizer, "max_tokens": plan.max_tokens}
        return {
            **given,
            "target": plan.target,
            "rows": rows,
            "base_urls": list(self._endpoints),
            "api_key": plan.api_key,
            "model": plan.model or MODEL,
        }

    def _run(self, stage: Stage, groups: int, group_size: int) -> bool:
        """One stage; may another one follow?"""
        began, self._cpu_before = time.monotonic(), looks.cpu_s(self._child.pid)
        stage = msgspec.structs.replace(stage, began_s=began)
        self._stages.append(stage)
        self._looks, every_s = [], LOOK_EVERY_S
        first = sum(s.episodes for s in self._stages[:-1])
        order = {"number": stage.number, "groups": groups, "group_size": group_size, "concurrency": stage.concurrency, "first": first}
        self._child.order(order)
        next_look = began + every_s / 2
        while stage.number not in self._done:
            if not self._hear(max(0.0, min(next_look - time.monotonic(), every_s))) or self._stop.is_set():
                self._finish(stage)
                return False
            now = time.monotonic()
            if now >= next_look:
                self._looks.append(looks.look(self._child.pid))
                every_s *= 1.5 if len(self._looks) % MAX_LOOKS == 0 else 1
                next_look = time.monotonic() + every_s
            is_late = self._oldest(stage) > self._plan.timeout_s + (LOAD_S if self._is_importing() else 0.0)
            if is_late or now > self._until:
                self._known["is_cut"] = now > self._until
                self._look_at_stuck(stage)
                return False
        self._held = looks.held(self._child.pid)
        self._finish(stage)
        self._progress(f"{stage.name} at concurrency {stage.concurrency}: {stage.episodes} episodes")
        return not self._stop.is_set()

    def _finish(self, stage: Stage) -> None:
        """Put what was seen into the stage."""
        self._gaps.update(dict.fromkeys(f"coroutines, at some of the looks: {one.reason}" for one in self._looks if one.reason))
        mine = [e for e in self._episodes.values() if e.stage == stage.number]
        is_over = stage.number in self._done
        ends = [e.began_s + e.took_s for e in mine if e.took_s is not None]
        seen = [one for one in self._looks if one.seen]
        self._stages[-1] = msgspec.structs.replace(
            stage,
            took_s=max(ends) - stage.began_s if is_over and ends else None,
            cpu_s=looks.difference(looks.cpu_s(self._child.pid), self._cpu_before),
            looks=len(self._looks),
            running=sum(len(one.seen) for one in seen) / len(seen) if seen else None,
            places=looks.sum_up(seen),
            engine_peak=self._counters().get("peak") if self._server is not None else None,
            held=self._held if is_over else None,
        )

    def _oldest(self, stage: Stage) -> float:
        """Age of the oldest unfinished episode."""
        open_ = [e.began_s for e in self._episodes.values() if e.stage == stage.number and e.took_s is None]
        return time.monotonic() - min(open_) if open_ else 0.0

    def _is_importing(self) -> bool:
        """Does the first episode import its packages now? On a slow file system that takes minutes, once."""
        return any(not b.is_over and any(IMPORTING in f for f in b.stack) for b in self._blocked.values())

    def _look_at_stuck(self, stage: Stage) -> None:
        """Episodes did not end in time: where they stand, what a snapshot of the process says, and whether they can be cancelled."""
        self._progress(f"{stage.name} at concurrency {stage.concurrency}: an episode does not end; looking at it")
        for _ in range(LAST_LOOKS):  # one that comes at a bad moment reads nothing
            last = looks.look(self._child.pid)
            self._looks.append(last)
            if last.seen:
                break
        self._finish(stage)
        self._known |= {"stuck_stage": stage.number, "stuck": looks.sum_up([last])}
        options = CollectOptions(pids=(self._child.pid,), samples=2, interval_s=0.5, timeout_s=10.0, logs=False, engine_endpoints=False)
        report = diagnose(take_here(options, progress=lambda *_: None, stop=threading.Event()))
        self._known["findings"] = tuple(
            Finding(id=f.id, name=f.name, cause=f.cause.value, summary=f.summary, stack=tuple(e.text for e in f.evidence if e.kind == "stack")[:3])
            for f in report.findings
        )
        self._child.order({"cancel": True})
        self._known["gone_on_cancel"] = self._await(lambda: self._oldest(stage) == 0.0, CANCEL_S, until_cut=False)

    def _await(self, is_so: Callable[[], bool], seconds: float, *, until_cut: bool = True) -> bool:
        until = min(time.monotonic() + seconds, self._until) if until_cut else time.monotonic() + seconds
        while not is_so():
            left = until - time.monotonic()
            if left <= 0 or self._stop.is_set() or not self._hear(min(left, LOOK_EVERY_S)):
                return is_so()
        return True

    def _hear(self, patience_s: float) -> bool:
        """Take all news that are there, waiting so long for the first; False when no more will come."""
        if self._over:
            return False
        try:
            one = self._child.news.get(timeout=max(patience_s, 0.001))
            while True:
                self._take(one)
                one = self._child.news.get_nowait()
        except queue.Empty:
            return not self._over

    def _take(self, one: dict[str, Any] | None) -> None:
        kind = one["kind"] if one is not None else "over"
        if one is None:
            self._over = True
        elif kind == "begin":
            self._episodes[one["number"]] = Episode(number=one["number"], stage=one["stage"], group=one["group"], began_s=one["at_s"])
        elif kind == "end":
            began = self._episodes[one["number"]]
            error = msgspec.convert(one["error"], Error) if one.get("error") else None
            self._episodes[began.number] = msgspec.structs.replace(
                began,
                took_s=one["at_s"] - began.began_s,
                reward=one.get("reward"),
                wrong=one.get("wrong"),
                error=error,
                was_cancelled=bool(one.get("cancelled")),
            )
        elif kind == "blocked":
            stage = self._stages[-1].number if self._stages else 0
            self._blocked[one["since_s"]] = msgspec.convert({**one, "stage": stage}, Blocked)
        elif kind == "loop":
            self._loops.append(msgspec.convert(one, LoopTime))
        elif kind == "contract":
            self._known |= {"contract": one["name"], "note": one["note"]}
        elif kind == "stage":
            self._done.add(one["number"])
        elif kind == "unusable":
            self._known |= {"unusable": one["reason"], "cure": one.get("cure")}
            self._child.output.extend(line.rstrip() for line in one["frames"])

    def _counters(self) -> dict[str, int]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._server}{COUNTERS}", timeout=2.0) as answer:
                self._last = {k: int(v) for k, v in json.load(answer).items()}
        except (OSError, ValueError):
            self._gaps["the stand-in did not tell its counters"] = None
        return self._last

    def facts(self) -> Facts:
        """All that was measured until now."""
        known = {k: v for k, v in self._known.items() if v is not None}
        if self._over and "unusable" not in known:
            code = self._child.exit_code()
            known["ended"] = "the process ended by itself" + (f", exit code {code}" if code is not None else "")
        return Facts(
            target=self._plan.target,
            python=self._plan.python or "",
            is_interrupted=self._stop.is_set(),
            is_stand_in=self._server is not None,
            endpoints=self._endpoints if self._server is None else (),
            timeout_s=self._plan.timeout_s,
            stages=tuple(self._stages),
            episodes=tuple(self._episodes.values()),
            blocked=tuple(sorted(self._blocked.values(), key=lambda b: -b.for_s)),
            loops=tuple(self._loops),
            counters=self._last if self._server is not None else {},
            output=tuple(self._child.output),
            gate=self._plan.gate,
            gaps=tuple(self._gaps),
            **known,
        )
