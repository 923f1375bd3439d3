"""Equal text in Ray's tables is one object, and nothing of them changes."""

from __future__ import annotations

from typing import Any

import msgspec

from ray_rl_debug.model.equal_text import hold_equal_text_once
from ray_rl_debug.model.snapshot import RayActor, RayWorker


def made(of: type[msgspec.Struct], **fields: object) -> Any:
    """A fact all of whose text is its own."""
    return msgspec.json.decode(msgspec.json.encode(of(**fields)), type=of)


def test_equal_text_is_one_object() -> None:
    actors = [
        made(RayActor, actor_id=f"a{n}", job_id="01000000", class_name="Trainer", state="ALIVE", node_id="n1", worker_id=f"w{n}") for n in range(2)
    ]
    workers = [made(RayWorker, worker_id=f"w{n}", pid=n, kind="WORKER", alive=True, node_id="n1") for n in range(2)]
    before = msgspec.json.encode((actors, workers))
    hold_equal_text_once(actors, workers, [])
    assert msgspec.json.encode((actors, workers)) == before
    assert actors[0].node_id is actors[1].node_id is workers[0].node_id is workers[1].node_id
    assert actors[1].worker_id is workers[1].worker_id
    assert actors[0].class_name is actors[1].class_name
    assert actors[0].name is None
