"""Failures of objects, nodes and jobs of a cluster that may be of no part of the run.

An object of Kubernetes that is called like no part of a run may be anybody's; so may one that is of another namespace, in a list that names parts of
the run as well. Slurm's controller writes of all nodes of its cluster, and its lists of jobs hold those that ended before the one in question began.
"""

from __future__ import annotations

import re

from ray_rl_debug.logs.aside import OF_A_HELPER
from ray_rl_debug.logs.described import described, is_field, rows_before, rows_behind
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import NOT_THE_JOB

OF_CLUSTERS = ("kubernetes", "slurm")
"""Layers whose programs tell of everybody's objects."""
_OBJECT = re.compile(
    r"(?:^|\s)(?:pod|job|deployment|statefulset|replicaset|daemonset)s?(?:\.apps|\.batch)?/(?P<named>[\w.-]{1,80})"
    r"|^\s*(?:(?P<space>[a-z][\w-]{0,60})\s+)?(?P<row>[a-z][\w.-]{1,80})\s+\d{1,3}/\d{1,3}\s+[A-Z]"
)
"""``pod/trainer-0`` of an event, or a row of ``kubectl get pods``, with the namespace in front where all are shown."""
_TAKEN_OUT = re.compile(r"^\S+ +NotReady,SchedulingDisabled ")
"""A row of ``kubectl get nodes``: somebody took the node out of service."""
OF_A_RUN = re.compile(
    r"(?i)\brl\b|ray|torch|train|learn|rollout|reward|actor|critic|policy|judge|ppo|vllm|sglang|engine|infer|sampl|serv(?:e|ing)\b|work|job|model"
    r"|head|launch|grpo|dapo|gspo|[ds]po\b|sft|rlhf|verl|areal|slime|llm"
)
"""In the name of an object or a unit, which people choose: it is a part of a run."""
_NODE = re.compile(r"\b[Nn]odes? (?P<node>[\w.-]+(?:\[[\d,-]+\])?) (?:not responding|set to|state to)\b|\bSetting node (?P<set>\S+) state")
"""How the controller begins to tell of a node, and of no job."""
_JOB = re.compile(r"\b(?:JobId=|[Jj]ob(?:step)? ?#?|StepId=)\d")
_DAEMONS = ("slurmctld", "slurmd", "slurmdbd")
"""Of Slurm, which speak of all jobs: one that names none may have been in need of anybody."""
_ROW = re.compile(r"^(?:sacct: )?(?P<job>\d{1,10})(?:_\d+)?(?:\.\w+\+?)?[\s|].*\b(?P<state>[A-Z]{4,13}(?:_[A-Z]+)*)\b")
"""Of Slurm's list of jobs: ``812.batch  batch  FAILED  1:0``."""
_SHOWN = re.compile(r"JobId=(?P<job>\d{1,10})\b")
"""As ``scontrol show job`` begins what it tells of one."""

_OF_A_GUEST = re.compile(
    r"\b(?:candidate|submission|solution|sandbox|student|a\.out)[\w.-]{0,40}\[\d+\]:? (?:segfault at|general protection|trap )"
    r"|\bKilled /\S{0,200}/app\.slice/(?!\S{0,100}(?:vte|[Tt]erminal|tmux))"
)
"""Of the kernel, which names the program that it ended; of systemd-oomd, of a desktop's programs, of which only terminals run jobs."""
_KILLED = re.compile(r"\bKilled process \d+ \((?P<program>[^)\n]{1,64})\)")


def ended_beside(text: str) -> str | None:
    """Why it is no process of the job that the kernel or systemd ended, as its name tells."""
    if (killed := _KILLED.search(text)) is not None and NOT_THE_JOB.fullmatch(killed["program"]):
        return "a service of the machine was ended, no process of the job"
    return "a program beside the run ended" if _OF_A_GUEST.search(text) is not None else None


def is_of_others(window: Window, one: Spotted) -> bool:
    """Is the failure that of something beside the run, with no sign that it is a part of it?"""
    layer = one.signature.layer if one.signature is not None else None
    if is_field(one) and OF_A_HELPER.search(described(window, one)):
        return True
    if layer == "kubernetes":
        return _is_other_object(window, one)
    if layer == "slurm" and one.head.writer.program in _DAEMONS and not _JOB.search(one.head.text):
        return True
    return layer == "slurm" and (_is_any_node(window, one) or _is_older_job(window, one))


def _is_other_object(window: Window, one: Spotted) -> bool:
    if OF_A_HELPER.search(one.head.text) or _TAKEN_OUT.match(one.head.text):
        return True
    own = _named(one.head.text)
    if own is None:
        return False
    beside = (_named(line) for line in _around(window, one))
    of_the_run = [found for found in beside if found is not None and OF_A_RUN.search(found[1])]
    if OF_A_RUN.search(own[1]) is None:
        return True
    return bool(of_the_run) and all(space not in (None, own[0]) for space, _ in of_the_run)


def _is_any_node(window: Window, one: Spotted) -> bool:
    """Does the controller speak of a node, beside no word of a job that failed with it, nor of another program on it?"""
    found = _NODE.search(one.head.text)
    if found is None or _JOB.search(one.head.text):
        return False
    node = (found["node"] or found["set"]).partition("[")[0]
    return not any(_JOB.search(line) or "slurmctld" not in line for line in _around(window, one) if node in line and _NODE.search(line) is None)


def _is_older_job(window: Window, one: Spotted) -> bool:
    """Is it a row of a list in which a later job stands, too, or a field below the number of such a job?"""
    own = _ROW.match(one.head.text)
    if own is None and one.head.text.startswith("JobState="):
        own = next((found for row in reversed(rows_before(window, one)) if (found := _SHOWN.match(row)) is not None), None)
    rows = (_ROW.match(line.strip()) or _SHOWN.match(line) for line in _around(window, one)) if own is not None else ()
    return own is not None and any(int(row["job"]) > int(own["job"]) for row in rows if row is not None)


def _around(window: Window, one: Spotted) -> tuple[str, ...]:
    return (*rows_before(window, one), *rows_behind(window, one))


def _named(line: str) -> tuple[str | None, str] | None:
    """Namespace and name of the object that a line speaks of."""
    found = _OBJECT.search(line)
    return (found["space"], found["named"] or found["row"]) if found is not None else None
