"""What has ended and of which Ray's tables have no row: a worker that died and was nobody's, a call that is counted and not told."""

from __future__ import annotations

from collections import Counter

from ray_rl_debug.analyze.view import View

_BY_SURPRISE = "unexpectedly"


def lacks_dead_actor(view: View) -> bool:
    """Has a worker of the job died by surprise that was no actor's, as far as the tables tell? Whose it was, and what it should bring, is not known.

    An actor that was started anew had other workers before.
    """
    return view.once(_lacks_dead_actor)


def _lacks_dead_actor(view: View) -> bool:
    ray = view.ray
    if ray is None or any(a.restarts for a in ray.actors):
        return False
    known = {a.worker_id for a in ray.actors}
    return any(not w.alive and w.job_id is not None and w.worker_id not in known and _BY_SURPRISE in (w.exit or "") for w in ray.workers)


def lacks_ended_call(view: View, keys: frozenset[str]) -> bool:
    """Have actors of these nodes' classes begun more calls than run, finished and failed, as Ray tells? Then how one ended is not known."""
    names = {one.identity.class_name for key in keys if (one := view.seen.get(key)) is not None}
    return bool({_short(n) for n in names if n} & view.once(_with_untold_ends))


def _with_untold_ends(view: View) -> frozenset[str]:
    """Classes of actors, in short, with more calls than the tables tell of."""
    ray = view.ray
    if ray is None:
        return frozenset()
    classes = {a.actor_id: _short(a.class_name) for a in ray.actors}
    begun, told = Counter[str](), Counter[str]()
    for worker in ray.core_workers:
        if worker.actor_id in classes and worker.executed_tasks is not None:
            begun[classes[worker.actor_id]] += worker.executed_tasks - len(worker.running_task_ids)
    for calls in ray.history:
        told[_class_of(calls.name)] += calls.count
    for task in ray.failed:
        told[_class_of(task.name)] += 1
    return frozenset(name for name in begun if begun[name] > told[name])


def _class_of(call: str) -> str:
    """``Loader`` of ``loader_1:train.Loader.load``."""
    return _short(call.rpartition(".")[0])


def _short(class_name: str) -> str:
    return class_name.rpartition(":")[2].rpartition(".")[2]
