"""RRD203 staleness gate closed

Story
    The rollout executor starts no new rollout: the trainer's version was never raised, or rejected rollouts never
    gave their capacity back. Trainer and executor wait for each other.

Evidence
    The trainer waits for results in the executor, and no episode runs in it.

Remedy
    Raise the version after each update; give capacity back on reject; raise the limits.

Not this when
    Episodes are running (then one of them hangs), or the executor waits for another process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.frameworks import GATES, spot_of
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_frames import is_library
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.progress import WANTED_FRACTION, is_awake
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty
from ray_rl_debug.model.snapshot import Frame
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD203"
NAME = "staleness gate closed"
CAUSE = Cause.STALENESS_GATE


_GATE_WORDS = re.compile(r"staleness|capacity|off_?policy|(^|_|\.)admi(t|ssion)")
"""What such a control is called elsewhere; read in the qualified name: ``StalenessControl.wait_for_capacity``."""
_EPISODES = ("episode", "arun", "_run_workflow", "_execute_workflow", "run_agent", "agent_loop")


def detect(scene: Scene) -> Iterator[Found]:
    """Processes that wait for rollouts while their executor admits none."""
    for one in scene.view if any(stack.once(_has_gate) for stack in scene.view.stacks) else ():
        gates = [t for t in one.threads if t.stack.once(_has_gate)]
        waits = [t for t in gates if (t.place.kind in _WAITS and t.place.path) or (scene.view.by_hand and _is_told_at_gate(t))]
        if not waits or not _is_behind_gate(one) or _is_at_work(one) or any(e.why is not Why.POLL for e in scene.graph.out(one.key)):
            continue
        tasks = one.process.async_tasks
        episodes = [t for t in tasks or () if any(any(w in f.function.lower() for w in _EPISODES) for f in t.chain)]
        if episodes or any(_episode_thread(t.frames) for t in one.threads):
            continue
        known = tasks is not None or not any(_is_loop(t.frames) for t in one.threads)
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY if known and not scene.view.by_hand else Certainty.POSSIBLE,
            f"{one.where()} waits for rollouts, but none is running: the staleness or capacity control starts no new one",
            who=[one.who()],
            evidence=[
                stack_evidence(one),
                proc_evidence(
                    one, "no episode among its coroutines" if known else "its coroutines could not be read; a hung episode would look the same"
                ),
            ],
            remedy=[
                "check that the version is raised after each weight update (set_version), and that rejected rollouts give their capacity back",
                "raise max_concurrent_rollouts or max_head_offpolicyness: the gate is (offpolicyness + version + 1) x batch - accepted - running",
                "if an update of the weights or a validation paused the rollouts (pause), let it resume them on every path",
            ],
            phase=one.phase or "rollout",
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


_WAITS = frozenset({Kind.SLEEP, Kind.EVENT, Kind.QUEUE, Kind.LOCK})


def _is_told_at_gate(thread: SeenThread) -> bool:
    """Of words: is it said to stand in such a function itself? What it waits at there was not told."""
    return thread.kernel is None and thread.place.kind is Kind.CODE and len(thread.frames) == 1


def _is_behind_gate(one: Seen) -> bool:
    """Does the thread that tells what it does wait for rollouts, or for the thread that does? The executor's own threads rest at the gate when
    there is nothing to start, too.
    """
    return any(t is not None and t.stack.once(_has_gate) for t in (one.telling, one.followed))


def _is_at_work(one: Seen) -> bool:
    """Does the waiting thread run, or wake far more often than behind a gate that stays closed? Others of the executor poll by nature."""
    kernel = one.telling.kernel if one.telling is not None else None
    if kernel is None:
        return False
    wanted = (kernel.cpu_s or 0.0) + (kernel.queued_s or 0.0)
    return is_awake(one.process, kernel) or wanted > WANTED_FRACTION * (one.process.window_s or 0.0) > 0.0


def _has_gate(frames: tuple[Frame, ...]) -> bool:
    return any(_is_gate(f.function, f.file) for f in frames)


def _is_gate(function: str, file: str) -> bool:
    named = _GATE_WORDS.search(function.lower()) is not None and not is_library(Frame(function=function, file=file))
    return named or spot_of(GATES, function, file) is not None


def _is_loop(frames: tuple[Frame, ...]) -> bool:
    return any("asyncio" in f.file or f.function == "run_async_task" for f in frames)


def _episode_thread(frames: tuple[Frame, ...]) -> bool:
    return any(any(w in f.function.lower() for w in _EPISODES) for f in frames)
