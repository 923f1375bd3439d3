"""Where the memory of an async actor may not be read: its coroutines, asked of itself by a call of Ray.

The call runs our code in the actor, on a thread beside its loop. `capture.quiet_actors` says who may be asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ray_rl_debug.cluster.driver_messages import AskActors, Called, Told

DEADLINE_S = 3.0


def ask_actors(ray: Any, order: AskActors, send: Callable[[Told], None]) -> None:
    """In our Ray driver: call each actor once; each is answered for, with its tasks or without."""
    from ray_rl_debug.in_job import task_helper

    ray.cloudpickle.register_pickle_by_value(task_helper)  # the actor's node need not have this package
    refs: dict[Any, Called] = {}
    for called in order.actors:
        try:
            refs[ray.get_actor(called.name, namespace=called.namespace).__ray_call__.remote(task_helper.tell)] = called
        except Exception:  # noqa: BLE001 it is gone, or not to be reached
            send(Told(called.actor_id, b""))
    until = time.monotonic() + order.deadline_s
    while refs and (left := until - time.monotonic()) > 0:
        done, _ = ray.wait(list(refs), num_returns=1, timeout=left)
        for ref in done:
            called = refs.pop(ref)
            try:
                send(Told(called.actor_id, ray.get(ref, timeout=1.0)))
            except Exception:  # noqa: BLE001 as above
                send(Told(called.actor_id, b""))
    for called in refs.values():
        send(Told(called.actor_id, b""))
