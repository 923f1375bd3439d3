"""RRD507 first failure in the logs

Story
    A process of the run raised an error or ended, in words that no known error line has. Nothing that failed in these logs came before it, and the
    process did not go on. What failed later is a consequence, or only came later.

Evidence
    The line or traceback, its file, the process that wrote it or that it names, and its time on the common clock of all files.

Remedy
    Read the traceback and the lines before it in that file. Then look at what this process did in the last step that it finished.

Not this when
    The program went on afterwards (later steps, a retry that worked), the line is a note or a warning, it only repeats what another process wrote,
    or another rule explains the trouble.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.model.log_story import StoryEntry
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.rules.scene import Found, Scene, make_finding
from ray_rl_debug.story.candidates import names_exception, waited_in_vain
from ray_rl_debug.story.of_the_run import is_of_the_run

ID = "RRD507"
NAME = "first failure in the logs"
CAUSE = Cause.RANK_DIED
LAST_RESORT = True
"""Asked for only where no other rule is sure."""

MAX_LINES = 8
_SENTENCES = re.compile(r"(?=(?:\S{1,80} ){14})[^\[({].{0,2000}[a-z)`\"][,.;] [A-Za-z`]")
"""A line of a post, not of a program: a report of what happened, with all that its writer takes it for."""
_TIMER = re.compile(r"Timeout \(\d+:\d\d:\d\d")


def detect(scene: Scene) -> Iterator[Found]:
    """The first failure of the story, where the catalogue does not know it and it is no echo of another."""
    story = scene.story
    first = story.first if story is not None else None
    if first is None or first.signature is not None or first.is_echo:
        return
    if _TIMER.match(first.text) and any(s.threads for s in scene.view):
        return  # of the clock of faulthandler the stacks were read: a look at a process, and no end of it
    lines = "; ".join(first.lines[:MAX_LINES])
    evidence = [Evidence(kind="log", where=first.text_at, text=first.text)]
    if lines and lines != first.text:
        evidence.append(Evidence(kind="log", where=first.block_at, text=lines))
    label = first.who[0].label
    at = f", at {first.frame}" if first.frame else ""
    did = "waited for somebody in vain" if waited_in_vain(first.text) else "failed first"
    summary = f"{label} {did}: {first.text}{at}"
    remedy = [f"read {first.file} from line {first.line} on", "then what this process did in the last step that it finished"]
    finding = make_finding(ID, NAME, CAUSE, _certainty(first, scene), summary, who=first.who[:8], evidence=evidence, remedy=remedy)
    yield Found(finding=finding, explains=frozenset(["log:first"]))


def _certainty(first: StoryEntry, scene: Scene) -> Certainty:
    """A bare line of level error may be anything, and so may sentences; who waited in vain is a victim; beside stacks logs are a hint."""
    if waited_in_vain(first.text):
        return Certainty.POSSIBLE  # whoever did not answer is the cause, and that one is not told
    if first.kind == "death" and first.time_s is None and _SENTENCES.match(first.text):
        return Certainty.POSSIBLE
    told = first.kind in ("traceback", "death") or names_exception(first.text)
    return Certainty.LIKELY if told and not scene.view.seen and is_of_the_run(first, scene.story) else Certainty.POSSIBLE
