"""The law of waiting: what may still become of each activity.

An activity is whatever can act or wait, and whatever is waited through: a thread, a coroutine, a Ray call, a collective, a lock, a queue.
A wait names activities *any one* of which would end it; several waits of one activity are needed *all*. This is the AND-OR model of
deadlock (Knapp, ACM Computing Surveys 1987; used for MPI by Hilbrich et al., ICS 2009).

The hope of an activity is the least solution, from STANDS upward, of

    the way out of a wait    the greatest hope among its `any_of`; none is STANDS
    the way out of it all    the least way out among its waits; STANDS if it waits for nothing
    hope                     the greater of its outlook and the way out of it all, but UNSEEN if its outlook is UNSEEN

So who can go on lifts whoever waits for it, and what is never lifted hangs. A ring lifts nobody: a deadlock needs no rule of its own.

Two outlooks need a reason. A wait with a time limit has the outlook WAKES and its waits, and goes on by the better of the two ways. (A loop
that only looks again has the outlook STANDS: its waking is no progress.) An UNSEEN activity keeps this hope, whatever is known of its
waits. It may wait for more than we saw, so a wait that can end does not prove that it goes on. It may have left a wait that we saw, or
somebody we did not see may end it, so a wait that cannot end does not prove that it stands. Hence a missing fact makes nobody healthy and
accuses nobody. Where the facts are good enough for more, say STANDS and name what is missing: a name that no activity has, as one more wait
if there may be others, or in `any_of` if somebody else may help.

Doubt belongs to the same scale. That an activity stands is *proven* if it stands even when all that is less than proven is disbelieved.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from ray_rl_debug.model.report import Certainty


class Outlook(enum.IntEnum):
    """What an activity's own facts say, before anybody else is asked; and the scale of hope."""

    STANDS = 0
    """It does not go on by itself."""
    UNSEEN = 1
    """The facts that would tell are missing."""
    WAKES = 2
    """A timed pause that ends by itself, and is no mere look at something else."""
    MOVES = 3
    """It was seen to make progress."""


class Activity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What can act or wait, or is waited through."""

    id: str
    outlook: Outlook
    reason: str
    """Why it has this outlook, for people."""
    owner: str | None = None
    """The process it belongs to; None for what belongs to none."""
    certainty: Certainty = Certainty.PROVEN
    """How sure it is that it does not go on by itself; *possible* if time alone says so. Means nothing for other outlooks."""


class Wait(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """`waiter` cannot go on before one of `any_of` does something for it."""

    waiter: str
    any_of: tuple[str, ...]
    """Empty: nobody could end this wait. A name that no activity has is an activity that was not seen."""
    why: str
    evidence: str
    certainty: Certainty = Certainty.PROVEN


DOUBT = {Certainty.PROVEN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2}
"""The order of certainty: less doubt is surer."""


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """What may become of each activity, those included that waits name and nobody saw."""

    activities: Mapping[str, Activity]
    hope: Mapping[str, Outlook]
    certainty: Mapping[str, Certainty]
    """For each activity with the hope STANDS, and no other: how sure it is that it never goes on."""
    keeping: Mapping[str, tuple[Wait, ...]]
    """For each activity the waits that keep it where it is: those with the least way out, unless it goes on by itself or in spite of them."""


def solve(activities: Iterable[Activity], waits: Iterable[Wait]) -> Solution:
    """Solve the law for all activities.

    Pure; the result does not depend on the order of the input; time grows with activities plus names in waits.
    Of two accounts of one activity the more hopeful counts: contradicting facts accuse nobody.
    """
    ordered = sorted(waits)
    known: dict[str, Activity] = {}
    for activity in activities:
        other = known.get(activity.id)
        if other is None or _hopeful(other) < _hopeful(activity):
            known[activity.id] = activity
    for name in {name for wait in ordered for name in (wait.waiter, *wait.any_of) if name not in known}:
        known[name] = Activity(id=name, outlook=Outlook.UNSEEN, reason="it was not seen")
    known = {name: known[name] for name in sorted(known)}

    height, ways_out = _lift(known, ordered)
    hope = {name: _HOPES[height.get(name, 0)] for name in known}
    pairs = list(zip(ordered, map(_HOPES.__getitem__, ways_out), strict=True))
    least: dict[str, Outlook] = {}
    for wait, way_out in pairs:
        if way_out < least.get(wait.waiter, Outlook.MOVES):
            least[wait.waiter] = way_out
    held: defaultdict[str, list[Wait]] = defaultdict(list)
    for wait, way_out in pairs:
        name = wait.waiter
        if way_out is least.get(name, Outlook.MOVES) and way_out <= hope[name] and known[name].outlook is not Outlook.MOVES:
            held[name].append(wait)
    keeping: dict[str, tuple[Wait, ...]] = {name: tuple(held[name]) if name in held else () for name in known}
    return Solution(
        activities=known,
        hope=hope,
        certainty={name: _CERTAINTIES[height.get(name, 0)] for name in known if hope[name] is Outlook.STANDS},
        keeping=keeping,
    )


def _hopeful(activity: Activity) -> tuple[Outlook, int, str, str]:
    return activity.outlook, DOUBT[activity.certainty], activity.reason, activity.owner or ""


_CERTAINTIES = tuple(DOUBT)
_HOPES = (*(Outlook.STANDS for _ in DOUBT), Outlook.UNSEEN, Outlook.WAKES, Outlook.MOVES)
"""One scale of heights: STANDS three times, proven, likely and possible, then the better hopes."""
_LEVELS = {hope: _HOPES.index(hope) for hope in Outlook}
"""The lowest height of each."""


def _lift(known: Mapping[str, Activity], waits: list[Wait]) -> tuple[dict[str | int, int], list[int]]:
    """The height of each activity and of the way out of each wait; 0, or no entry, for those that nothing lifts.

    Height by height from the top, whoever reaches it lifts those it could help, each wait once: the first to help is the best.
    The doubt about a wait is one more way out of it. It stands in `helps` under its height, where an activity stands under its name.
    """
    helps: defaultdict[str | int, list[int]] = defaultdict(list)
    unmet: defaultdict[str, int] = defaultdict(int)
    for number, wait in enumerate(waits):
        unmet[wait.waiter] += 1
        helps[DOUBT[wait.certainty]].append(number)
        for name in wait.any_of:
            helps[name].append(number)
    start: defaultdict[int, list[str | int]] = defaultdict(list, {doubt: [doubt] for doubt in DOUBT.values()})
    for name, activity in known.items():
        start[_LEVELS[activity.outlook] or DOUBT[activity.certainty]].append(name)

    height: dict[str | int, int] = {}
    ways_out = [0] * len(waits)
    for level in range(len(_HOPES) - 1, 0, -1):
        risen = start[level]
        while risen:
            helper = risen.pop()
            if helper in height:
                continue
            height[helper] = level
            for number in helps[helper]:
                if ways_out[number] == 0:
                    ways_out[number] = level
                    waiter = waits[number].waiter
                    unmet[waiter] -= 1
                    if unmet[waiter] == 0 and known[waiter].outlook is not Outlook.UNSEEN:
                        risen.append(waiter)
    return height, ways_out
