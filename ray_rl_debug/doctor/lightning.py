"""Agent-Lightning's three layers, as its store tells: the queue, the runners, the traces and rewards that come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.doctor import answers
from ray_rl_debug.model.health import Health, Result
from ray_rl_debug.model.lightning import Rollout, Store
from ray_rl_debug.model.snapshot import Runner

LATE_BEAT_S = 60.0
"""Runners beat every ten seconds."""
LEAST_S = 30.0
LONGER = 3.0
"""Times the slowest rollout that ended."""
MAX_NAMED = 5


def reachable(health: Health) -> Iterator[Result]:
    """The store answers nothing: trainer, proxy and runners all speak through it, so everything waits.

    Evidence: GET /v1/agl/health and /v1/agl/statistics.

    Remedy: find the process that serves it: with the client-server strategy it is the trainer's own process; ``rayrl-debug snapshot`` there.

    Not this when: the address is another one: AGL_SERVER_HOST and AGL_SERVER_PORT say which, 4747 is the default port.
    """
    store = health.store
    if store is None:
        return
    if store.reason is not None:
        then = "runners cannot fetch rollouts, spans are lost, and run_until_all_finished() waits for ever"
        cure = (
            "give the store's own address: AGL_SERVER_HOST and AGL_SERVER_PORT say it, port 4747 is the default"
            if store.is_other
            else "rayrl-debug snapshot --here, on the trainer's node; the address: AGL_SERVER_HOST and AGL_SERVER_PORT"
        )
        yield answers.fail(f"{store.url}: {store.reason}", "an answer of the store", then, cure)
        return
    numbers = ", ".join(f"{n} {s}" for s, n in sorted(store.counts.items()))
    text = f"{store.total_rollouts} rollouts ({numbers or 'none'}), {store.total_spans} spans, {len(store.runners)} runners"
    if store.is_healthy is False:
        yield answers.warn(
            f"the store answers, but does not call itself healthy; {text}", "status ok", "it may refuse work", "read the trainer's log"
        )
    else:
        yield answers.ok(text)


def queue(health: Health) -> Iterator[Result]:
    """Rollouts are queued and nobody takes them: no runner is there, or all are gone.

    Evidence: rollouts in state queuing or requeuing; runners with a fresh heartbeat.

    Remedy: start runners (Trainer(n_runners=...)), with the store's address of the trainer.

    Not this when: runners are still starting: they import the agent's packages first.
    """
    store = _store(health)
    if store is None:
        return
    queued = [r for r in store.rollouts if r.status in ("queuing", "requeuing")]
    alive = [r for r in store.runners if not _is_silent(store, r)]
    idle = [r for r in alive if r.status == "idle"]
    if queued and not alive:
        then = "no rollout ever ends: the trainer waits in run_until_all_finished()"
        cure = "Trainer(n_runners=8), with AGL_SERVER_HOST and AGL_SERVER_PORT of the store"
        yield answers.fail(f"{len(queued)} rollouts are queued, and no runner lives", "runners that take them", then, cure)
    else:
        yield answers.ok(f"{len(queued)} queued; {len(alive)} runners live, {len(idle)} of them idle")


def runners(health: Health) -> Iterator[Result]:
    """A runner holds a rollout far longer than others took, and no span came of it: its agent hangs. The heartbeat goes on: it has
    a thread of its own.

    Evidence: since when the runner is busy; when the last span of its attempt came in; how long the slowest rollout that ended took.

    Remedy: look into the runner: ``rayrl-debug snapshot --here`` on its node; give tool calls a time-out.

    Not this when: this rollout is longer than the others by nature; its spans still come in.
    """
    store = _store(health)
    if store is None or store.now_s is None:
        return
    took = [r.end_time_s - r.attempt_start_s for r in store.rollouts if r.status == "succeeded" and r.end_time_s and r.attempt_start_s]
    limit_s = max(LEAST_S, LONGER * max(took, default=0.0))
    known = {r.rollout_id: r for r in store.rollouts}
    found = False
    for runner in store.runners:
        rollout = known.get(runner.rollout_id or "")
        since = max((t for t in (runner.busy_time_s, rollout.span_time_s if rollout else None) if t is not None), default=None)
        if runner.rollout_id is None or since is None or _is_silent(store, runner) or store.now_s - since < limit_s:
            continue
        found = True
        yield _stuck(store, runner, rollout, store.now_s - since, max(took, default=None))
    for rollout in _left_alone(store, limit_s):
        found = True
        yield _held_by_nobody(store, rollout)
    if not found:
        slowest = f", the slowest rollout that ended took {max(took):.0f} s" if took else ""
        yield answers.ok(f"no runner holds a rollout for more than {limit_s:.0f} s without a new span{slowest}")


def _left_alone(store: Store, limit_s: float) -> list[Rollout]:
    """Rollouts that were taken long ago, have not ended, and that no runner says it holds."""
    held = {r.rollout_id for r in store.runners}
    begun = [r for r in store.rollouts if r.status in ("preparing", "running") and r.rollout_id not in held]
    return [r for r in begun if (since := r.span_time_s or r.attempt_start_s) is not None and (store.now_s or 0.0) - since >= limit_s][:MAX_NAMED]


def _held_by_nobody(store: Store, rollout: Rollout) -> Result:
    age_s = (store.now_s or 0.0) - (rollout.span_time_s or rollout.attempt_start_s or 0.0)
    taken = f", though {rollout.worker_id} took it" if rollout.worker_id else ""
    text = f"rollout {rollout.rollout_id} (attempt {rollout.attempt_id}) has not ended for {age_s:.0f} s, and no runner says that it holds it{taken}"
    then = "the trainer waits for it in run_until_all_finished(): its runner is gone, or is one of an older run that takes rollouts of this store"
    return answers.fail(
        text, "a runner that holds it, or an end", then, "end the runners of older runs (ps -ef), and start this run with a port of its own"
    )


def _stuck(store: Store, runner: Runner, rollout: Rollout | None, age_s: float, slowest_s: float | None) -> Result:
    spans = "no span of it has come in" if rollout is None or rollout.span_time_s is None else f"its last span came in {age_s:.0f} s ago"
    beat = f", its heartbeat is {max(0.0, (store.now_s or 0.0) - runner.heartbeat_time_s):.0f} s old" if runner.heartbeat_time_s else ""
    others = f"; the slowest that ended took {slowest_s:.0f} s" if slowest_s is not None else "; none has ended yet"
    host = f" on {runner.host}" if runner.host else ""
    if runner.status == "idle":
        held = f"rollout {runner.rollout_id} (attempt {runner.attempt_id})"
        text = f"{runner.worker_id}{host} is idle, but its {held} has not ended for {age_s:.0f} s: {spans}"
        dropped = "the runner gave it up, and nobody works on it: the trainer waits for it in run_until_all_finished()"
        return answers.fail(text, "an end of the rollout", dropped, "look for `Skipping` in the runner's log: without resources it skips rollouts")
    measured = (
        f"{runner.worker_id}{host} holds rollout {runner.rollout_id} (attempt {runner.attempt_id}) for at least {age_s:.0f} s: {spans}{beat}{others}"
    )
    limit = rollout.timeout_s if rollout is not None else None
    then = "the trainer waits for it in run_until_all_finished()"
    then += f"; after {limit:.0f} s the store gives it up, and its reward becomes 0.0 without a word" if limit else ", for ever: it has no time limit"
    return answers.fail(measured, "spans that come in, or an end", then, f"on {runner.host or 'its node'}: rayrl-debug snapshot --here")


def beats(health: Health) -> Iterator[Result]:
    """A runner's heartbeat has stopped: its process died or is stopped. What it held stays open until its time limit.

    Evidence: the last heartbeat, against the newest time in the store's tables.

    Remedy: look for it: ``dmesg`` for the OOM killer, ``rayrl-debug snapshot --here`` for a stopped process; start it again.

    Not this when: the runner ended as planned, and its row is left over: then it holds no rollout.
    """
    store = _store(health)
    if store is None or not store.runners:
        return
    silent = [r for r in store.runners if _is_silent(store, r)]
    for runner in silent[:MAX_NAMED]:
        age_s = (store.now_s or 0.0) - (runner.heartbeat_time_s or 0.0)
        held = f", and holds rollout {runner.rollout_id}" if runner.rollout_id else ""
        text = f"{runner.worker_id}{f' on {runner.host}' if runner.host else ''} has not beaten for {age_s:.0f} s{held}"
        if runner.rollout_id:
            yield answers.fail(
                text, "a beat every 10 s", "its rollout stays open until its time limit", f"on {runner.host or 'its node'}: dmesg | tail"
            )
        else:
            yield answers.warn(text, "a beat every 10 s", "fewer runners share the queue", f"on {runner.host or 'its node'}: dmesg | tail")
    if not silent:
        yield answers.ok(f"all {len(store.runners)} runners beat")


def spans(health: Health) -> Iterator[Result]:
    """Rollouts succeeded, but the store has no trace of their calls, or not all of it: what has no span is not trained on.

    Evidence: spans of each rollout; numbers of spans that were given out and never came back; whether any span is a call of a model or tool.

    Remedy: instrument before the agent imports its client; call the model through the proxy that the resource names; let the tracer flush.

    Not this when: the agent calls no model, or returns spans itself.
    """
    store = _store(health)
    if store is None:
        return
    ended = [r for r in store.rollouts if r.status == "succeeded" and r.spans is not None]
    none = [r for r in ended if r.spans == 0]
    lost = [r for r in ended if r.missing_spans]
    bare = [r for r in ended if r.spans and r.has_calls is False]
    if none:
        then = "the trainer makes no triplet of them: they count as empty rollouts"
        cure = "start the tracer before the agent's client is imported, and call the model through the resource's endpoint"
        yield answers.fail(f"{len(none)} of {len(ended)} rollouts that succeeded have no span: {_named(none)}", "at least one span each", then, cure)
    if lost:
        count = sum(r.missing_spans or 0 for r in lost)
        then = "parts of their conversations are missing from training"
        cure = "let the tracer flush before the rollout returns; look for `Failed to export spans` in the runner's log"
        yield answers.fail(f"{count} spans of {len(lost)} rollouts were begun and never arrived: {_named(lost)}", "all of them", then, cure)
    if bare:
        then = "without a call there are no tokens to train on"
        cure = "instrument before the client is imported, and call the model through the resource's endpoint"
        yield answers.warn(
            f"{len(bare)} of {len(ended)} rollouts that succeeded have rewards or annotations only: {_named(bare)}", "calls of a model", then, cure
        )
    if not (none or lost or bare):
        new = f", {store.new_spans} new ones in {store.between_s:.0f} s" if store.new_spans is not None and store.between_s else ""
        yield answers.ok(f"all of {len(ended)} rollouts that were looked at have their spans{new}")


def rewards(health: Health) -> Iterator[Result]:
    """Rollouts ended without a reward. The trainer sets 0.0 for them and goes on: the model learns that they were bad.

    Evidence: attempts that ended by time-out, unresponsive or failed; rollouts that succeeded without a reward span.

    Remedy: return a float from the rollout, or call emit_reward; raise llm_timeout_seconds where rollouts are cut off.

    Not this when: the rollout returns its reward in another form that the adapter reads.
    """
    store = _store(health)
    if store is None:
        return
    cut = [r for r in store.rollouts if r.attempt_status in ("timeout", "unresponsive")]
    failed = [r for r in store.rollouts if r.status == "failed" and r not in cut]
    bare = [r for r in store.rollouts if r.status == "succeeded" and r.has_reward is False]
    then = "the trainer takes 0.0 as their reward and only prints a warning"
    if cut:
        yield answers.fail(
            f"{len(cut)} rollouts ended by time-out: {_named(cut)}", "an end with a reward", then, "find what is slow, or raise llm_timeout_seconds"
        )
    if failed:
        yield answers.fail(
            f"{len(failed)} rollouts failed: {_named(failed)}", "an end with a reward", then, "look for the exception in the runner's log"
        )
    if bare:
        text = f"{len(bare)} rollouts succeeded without a reward: {_named(bare)}"
        yield answers.fail(text, "a reward each", then, "return a float from rollout(), or call agl.emit_reward(...)")
    if not (cut or failed or bare):
        known = sum(r.has_reward is True for r in store.rollouts)
        yield answers.ok(f"no rollout ended without a reward; {known} rewards were seen")


def proxy(health: Health) -> Iterator[Result]:
    """The endpoint that the store gives to agents does not answer: each call of a model fails or hangs.

    Evidence: GET of its /models from this machine, with three seconds; any status is an answer.

    Remedy: look at the proxy's process: it is started by the trainer; check host and port of the resource.

    Not this when: the runners are on a machine that reaches it and this one does not.
    """
    store = _store(health)
    if store is None:
        return
    for one in store.proxies:
        if one.reason is not None:
            then = "calls of the model from the agents fail, or wait for their time-out"
            yield answers.warn(f"{one.url}: {one.reason}", "an answer", then, f"curl -m 3 {one.url}/models, from a runner's node")
        else:
            yield answers.ok(f"{one.url} answers, status {one.status}")


def _store(health: Health) -> Store | None:
    return health.store if health.store is not None and health.store.reason is None else None


def _is_silent(store: Store, runner: Runner) -> bool:
    return store.now_s is not None and runner.heartbeat_time_s is not None and store.now_s - runner.heartbeat_time_s > LATE_BEAT_S


def _named(rollouts: Sequence[Rollout]) -> str:
    more = f" and {len(rollouts) - MAX_NAMED} more" if len(rollouts) > MAX_NAMED else ""
    return ", ".join(r.rollout_id for r in rollouts[:MAX_NAMED]) + more
