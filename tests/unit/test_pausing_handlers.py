"""A process that only listens, or waits for its orders, while a thread of it pauses: the answer may come when that one wakes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.outlook_asked import handler_pauses, turns
from ray_rl_debug.analyze.outlook_facts import facts_of
from ray_rl_debug.analyze.rank_counters import Joined
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import State
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
    [{"why": Why.CHILD}, {"why": Why.SOCKET, "wakes_in_s": 1000.0}, {"why": Why.SOCKET, "wakes_in_s": None}, {"why": Why.SOCKET, "syscall": FUTEX}],
    ids=["its end is waited for", "it sleeps for long", "how long was not read", "it waits for another thread"],
)
def test_it_is_no_reason_otherwise(more: dict[str, object]) -> None:
    assert reason(**more) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("wakes_in_s", "state"), [(4.0, State.SLOW), (900.0, State.HANG)], ids=["soon", "late"])
def test_a_rank_that_serves_answers_in_a_thread_of_its_own(wakes_in_s: float, state: State) -> None:
    """Its main thread waits in a collective for the rank that asks: that is no ring as long as the handler goes on."""
    stacks = Stacks()
    asks = "SocketIO.readinto@socket.py:706 urlopen@urllib/request.py:216 rank@app/train.py:46"
    handles = "Scores.do_GET@app/train.py:30 BaseHTTPRequestHandler.handle_one_request@http/server.py:424 Thread.run@threading.py:982"
    near, far = "127.0.0.1:38018", "127.0.0.1:32951"
    client = process(
        stacks, 200, "python train.py", asks, kind="named", rank=0, size=2, syscall=45, arg0=28, wchan="wait_woken",
        sockets=[Socket(family="tcp", state="ESTABLISHED", local=near, remote=far, fd=28)],
    )  # fmt: skip
    server = process(
        stacks, 201, "python train.py", f"{ALL_REDUCE} rank@app/train.py:48", kind="named", rank=1, size=2, wchan="futex_do_wait", syscall=FUTEX,
        sockets=[Socket(family="tcp", state="LISTEN", local=far, fd=16), Socket(family="tcp", state="ESTABLISHED", local=far, remote=near, fd=17)],
        extra_threads=[("Thread-3", handles)],
    )  # fmt: skip
    handler = replace(server.threads[1], syscall=SLEEP, wchan="hrtimer_nanosleep", wakes_in_s=wakes_in_s)
    report = diagnose(snapshot(stacks.node([client, replace(server, threads=(server.threads[0], handler))])))
    assert report.verdict.state is state, report.verdict.summary


GATHERS = "EpollSelector.select@selectors.py:468 serve@app/server.py:31"
OF_ASYNCIO = "EpollSelector.select@selectors.py:468 BaseEventLoop._run_once@asyncio/base_events.py:1890 main@app/server.py:31"


@pytest.mark.parametrize(
    ("stack", "wakes_in_s", "applies"),
    [(GATHERS, 5.0, True), (GATHERS, None, False), (GATHERS, 4000.0, False), (OF_ASYNCIO, 5.0, False)],
    ids=["a loop with a limit", "without a limit", "with a long one", "the loop of asyncio"],
)
def test_a_loop_that_gathers_requests_may_answer_at_its_next_turn(stack: str, wakes_in_s: float | None, applies: bool) -> None:
    stacks = Stacks()
    server = process(stacks, 200, "python server.py", stack, kind="child", syscall=232, arg0=4, wchan="ep_poll")
    server = replace(server, threads=(replace(server.threads[0], wakes_in_s=wakes_in_s),))
    view = build_view(snapshot(stacks.node([server])))
    asked = [Edge(source="node1/100", target="node1/200", why=Why.SOCKET, evidence="")]
    said = turns(facts_of(view, view.seen["node1/200"], (), Joined(), asked))
    assert (said is not None) is applies
    assert said is None or said == "its loop makes its next turn in 5 s at most"


def test_a_thread_under_a_lock_that_pauses_ends_the_wait_of_one_that_is_joined() -> None:
    """Four threads take turns under a lock; one of them sleeps there, and main joins another."""
    stacks = Stacks()
    lock = "take@app/turns.py:8 Thread.run@threading.py:982"
    threads = [("take-0", lock), ("take-1", "slow@app/turns.py:4 take@app/turns.py:9 Thread.run@threading.py:982"), ("take-2", lock)]
    main = "Thread._wait_for_tstate_lock@threading.py:1139 Thread.join@threading.py:1119 main@app/turns.py:20"
    one = process(stacks, 200, "python turns.py", main, kind="named", wchan="futex_do_wait", syscall=FUTEX, extra_threads=threads)
    sleeper = replace(one.threads[2], wchan="hrtimer_nanosleep", syscall=SLEEP, wakes_in_s=8.0)
    one = replace(one, threads=(*one.threads[:2], sleeper, *one.threads[3:]))
    report = diagnose(snapshot(stacks.node([one])))
    assert report.verdict.state is State.SLOW
