"""A process that only listens, or waits for its orders, while a thread of it pauses: the answer may come when that one wakes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.outlook_asked import handler_pauses
from ray_rl_debug.analyze.outlook_facts import facts_of
from ray_rl_debug.analyze.rank_counters import Joined
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.model.snapshot import Socket

ACCEPT, SLEEP, FUTEX = 43, 230, 202
LISTENS = "accept@socket.py:293 serve@app/maker.py:35"
PAUSES = "play@app/maker.py:24 Thread.run@threading.py:982"


def reason(why: Why, *, wakes_in_s: float | None = 4.0, syscall: int = SLEEP, listens: str = LISTENS) -> str | None:
    """Why the row applies to a child of which somebody waits in this way."""
    stacks = Stacks()
    port = Socket(family="tcp", state="LISTEN", local="127.0.0.1:8000", fd=3, inode=5)
    child = process(
        stacks, 200, "python maker.py", listens, kind="child", syscall=ACCEPT, arg0=3, wchan="inet_csk_accept", sockets=[port],
        extra_threads=[("plays", PAUSES)],
    )  # fmt: skip
    plays = replace(child.threads[1], syscall=syscall, wchan="hrtimer_nanosleep" if syscall == SLEEP else "futex_do_wait", wakes_in_s=wakes_in_s)
    view = build_view(snapshot(stacks.node([replace(child, threads=(child.threads[0], plays))])))
    asked = [Edge(source="node1/100", target="node1/200", why=why, evidence="")]
    return handler_pauses(facts_of(view, view.seen["node1/200"], (), Joined(), asked))


@pytest.mark.parametrize("why", [Why.SOCKET, Why.AWAITED_SOCKET, Why.CHILD_QUEUE])
def test_a_thread_that_pauses_may_have_what_is_waited_for(why: Why) -> None:
    said = reason(why)
    assert said is not None and "plays" in said


@pytest.mark.parametrize(
    "more",
    [{"why": Why.CHILD}, {"why": Why.SOCKET, "wakes_in_s": 600.0}, {"why": Why.SOCKET, "wakes_in_s": None}, {"why": Why.SOCKET, "syscall": FUTEX}],
    ids=["its end is waited for", "it sleeps for long", "how long was not read", "it waits for another thread"],
)
def test_it_is_no_reason_otherwise(more: dict[str, object]) -> None:
    assert reason(**more) is None  # type: ignore[arg-type]
