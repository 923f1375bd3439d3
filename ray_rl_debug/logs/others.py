"""Failures of Kubernetes objects that may be of no part of the run.

In a list that names parts of the run as well, an object that is called like no part of a run, or is of another namespace, may be anybody's.
"""

from __future__ import annotations

import re

from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.window import LOOK_BACK_BYTES, Window

LAYER = "kubernetes"
LINES_AROUND = 20
_OBJECT = re.compile(
    r"(?:^|\s)(?:pod|job|deployment|statefulset|replicaset|daemonset)s?(?:\.apps|\.batch)?/(?P<named>[\w.-]{1,80})"
    r"|^\s*(?:(?P<space>[a-z][\w-]{0,60})\s+)?(?P<row>[a-z][\w.-]{1,80})\s+\d{1,3}/\d{1,3}\s+[A-Z]"
)
"""``pod/trainer-0`` of an event, or a row of ``kubectl get pods``, with the namespace in front where all are shown."""
OF_A_RUN = re.compile(
    r"(?i)\brl\b|ray|torch|train|learn|rollout|reward|actor|critic|policy|judge|ppo|vllm|sglang|engine|infer|sampl|serv(?:e|ing)\b|work|job|model"
    r"|head|launch"
)
"""In the name of an object or a unit, which people choose: it is a part of a run."""


def is_of_others(window: Window, one: Spotted) -> bool:
    """Is the failure that of an object beside those of the run, with no sign that it is one of them?"""
    if one.signature is None or one.signature.layer != LAYER:
        return False
    own = _named(one.head.text)
    if own is None:
        return False
    before = window.text[max(0, one.start - LOOK_BACK_BYTES) : one.start].split(b"\n")[-LINES_AROUND:]
    after = window.text[one.end : one.end + LOOK_BACK_BYTES].split(b"\n")[:LINES_AROUND]
    beside = (_named(raw.decode("utf-8", "replace")) for raw in (*before, *after))
    of_the_run = [found for found in beside if found is not None and OF_A_RUN.search(found[1])]
    if not of_the_run:
        return False
    return OF_A_RUN.search(own[1]) is None or all(space not in (None, own[0]) for space, _ in of_the_run)


def _named(line: str) -> tuple[str | None, str] | None:
    """Namespace and name of the object that a line speaks of."""
    found = _OBJECT.search(line)
    return (found["space"], found["named"] or found["row"]) if found is not None else None
