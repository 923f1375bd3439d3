"""Random activities and waits for Hypothesis, and the law of waiting written down once more, as slowly and plainly as possible."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import msgspec
from hypothesis import strategies as st

from ray_rl_debug.analyze.solve import Activity, Outlook, Wait
from ray_rl_debug.model.report import Certainty

NAMES = tuple("abcdefg")


def activity(name: str, outlook: Outlook = Outlook.STANDS, certainty: Certainty = Certainty.PROVEN) -> Activity:
    return Activity(id=name, outlook=outlook, reason="as given", certainty=certainty)


def wait(waiter: str, *any_of: str, certainty: Certainty = Certainty.PROVEN) -> Wait:
    return Wait(waiter=waiter, any_of=any_of, why="waits", evidence=f"{waiter} for {any_of}", certainty=certainty)


def stand(names: Iterable[str]) -> list[Activity]:
    return [activity(name) for name in names]


_certainties = st.sampled_from((Certainty.PROVEN, Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE))
_outlooks = st.sampled_from((*[Outlook.STANDS] * 6, *Outlook))
activities = st.lists(st.builds(activity, st.sampled_from(NAMES), _outlooks, _certainties), max_size=7, unique_by=lambda a: a.id)
waits = st.lists(
    st.builds(lambda waiter, any_of, certainty: wait(waiter, *any_of, certainty=certainty), st.sampled_from(NAMES),
              st.lists(st.sampled_from(NAMES), max_size=3, unique=True), _certainties),
    max_size=12,
)  # fmt: skip


def slow_hope(given_activities: Sequence[Activity], given_waits: Sequence[Wait]) -> dict[str, Outlook]:
    """The equations of the law, applied to everybody at once from STANDS upward until nothing changes."""
    outlook = {a.id: a.outlook for a in given_activities}
    names = {*outlook, *(name for w in given_waits for name in (w.waiter, *w.any_of))}
    hope = dict.fromkeys(names, Outlook.STANDS)
    while True:
        better = {}
        for name in names:
            own = outlook.get(name, Outlook.UNSEEN)
            ways = [max([hope[other] for other in w.any_of], default=Outlook.STANDS) for w in given_waits if w.waiter == name]
            better[name] = Outlook.UNSEEN if own is Outlook.UNSEEN else max(own, min(ways, default=Outlook.STANDS))
        if better == hope:
            return hope
        hope = better


def standing_sets(given_activities: Sequence[Activity], given_waits: Sequence[Wait]) -> list[set[str]]:
    """Deadlock by definition: all sets of standing activities in which each waits for nothing, or has a wait that only the set could end."""
    stands = [a.id for a in given_activities if a.outlook is Outlook.STANDS]
    waits_of = {name: [set(w.any_of) for w in given_waits if w.waiter == name] for name in stands}
    sets = (set(names) for size in range(len(stands) + 1) for names in itertools.combinations(stands, size))
    return [s for s in sets if all(not waits_of[name] or any(any_of <= s for any_of in waits_of[name]) for name in s)]


def disbelieve(given_activities: Sequence[Activity], given_waits: Sequence[Wait], doubted: set[Certainty]) -> tuple[list[Activity], list[Wait]]:
    """The same facts, where all that is only so certain is treated as not seen."""
    replace = msgspec.structs.replace
    return (
        [replace(a, outlook=Outlook.UNSEEN) if a.outlook is Outlook.STANDS and a.certainty in doubted else a for a in given_activities],
        [replace(w, any_of=(*w.any_of, "unseen")) if w.certainty in doubted else w for w in given_waits],
    )
