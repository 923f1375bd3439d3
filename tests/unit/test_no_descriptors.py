"""Processes that hold all descriptors that they may: named where somebody waits for them and nothing else explains it, with the counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, actor, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Finding, Report, State
from ray_rl_debug.model.snapshot import Descriptors, Node, RayState, Socket

SLEEP, RECV, EPOLL = 230, 45, 232
RETRIES = "serve@/job/reward.py:41 <module>@/job/reward.py:70"
LOOP = "EpollSelector.select@selectors.py:468 BaseEventLoop._run_once@asyncio/base_events.py:1898 <module>@/job/reward.py:70"
SCORES = "grade@/job/reward.py:12 serve@/job/reward.py:43 <module>@/job/reward.py:70"
LOCKED = "Lock.acquire@threading.py:100 serve@/job/reward.py:41 <module>@/job/reward.py:70"
FULL = Descriptors(held=1024, limit=1024, hard_limit=4096, free=0, sockets=1015, files=5, pipes=3, others=1, half_closed=1008, renewed=0)
OF_FILES = replace(FULL, sockets=3, files=1017, half_closed=0)
PORT = Socket(family="tcp", state="LISTEN", local="127.0.0.1:9000", inode=5, fd=3, rx_queue_bytes=4)
GONE = Socket(family="tcp", state="CLOSE_WAIT", local="127.0.0.1:9000", remote="127.0.0.1:41000", inode=6, fd=4, quiet_s=900.0)
THERE = replace(GONE, state="ESTABLISHED", remote="127.0.0.1:41001", inode=7, fd=5)
ASKS = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:42000", remote="127.0.0.1:9000", inode=8, fd=3, rx_queue_bytes=0, quiet_s=900.0)


def server(
    *texts: str,
    held: Descriptors | None = FULL,
    sockets: Sequence[Socket] = (PORT, GONE),
    syscall: int = SLEEP,
    cpu_s: float = 0.02,
    asked: bool = True,
) -> Node:
    """A reward service with these descriptors, and a trainer that waits for its answer."""
    stacks = Stacks()
    main = process(stacks, 10, "python launch.py", "main@/job/launch.py:71", kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=20)
    at = {"kind": "child", "ppid": 10}
    wchan = {SLEEP: "hrtimer_nanosleep", EPOLL: "ep_poll"}[syscall]
    serves = process(stacks, 20, "python reward.py", *texts, syscall=syscall, wchan=wchan, cpu_s=cpu_s, sockets=sockets, **at)  # type: ignore[arg-type]
    serves = replace(serves, descriptors=held, threads=tuple(replace(t, wakes_in_s=0.4, run_slices=10) for t in serves.threads))
    trains = process(
        stacks,
        30,
        "python train.py",
        "step@/job/train.py:49",
        syscall=RECV,
        arg0=3,
        wchan="wait_woken",
        sockets=[ASKS] if asked else (),
        **at,  # type: ignore[arg-type]
    )
    return stacks.node([main, serves, *([trains] if asked else [])])


def found(node: Node, *, looks: tuple[str, ...] | None = None) -> Report:
    frames = tuple(replace(f, looks=looks) if f.function == "serve" and looks else f for f in node.frames)
    return diagnose(snapshot(replace(node, frames=frames)))


def named(report: Report) -> Finding | None:
    return next((f for f in report.findings if f.id == "RRD510"), None)


@pytest.mark.parametrize(
    ("texts", "syscall", "cpu_s"),
    [
        ((RETRIES,), SLEEP, 0.02),
        ((LOOP,), EPOLL, 0.02),
        ((LOOP, "accept@socket.py:294 serve@/job/reward.py:40 <module>@/job/reward.py:70", LOOP), EPOLL, 0.9),
        (("format@traceback.py:9 _accept@asyncio/selector_events.py:170 <module>@/job/reward.py:70", LOOP, LOOP), EPOLL, 0.9),
    ],
    ids=["sleeps between tries", "in its loop", "tries at once", "writes of each try"],
)
def test_a_server_full_of_clients_that_have_gone_is_why_others_wait(texts: tuple[str, ...], syscall: int, cpu_s: float) -> None:
    report = found(server(*texts, syscall=syscall, cpu_s=cpu_s))
    finding = named(report)
    assert finding is not None
    assert report.findings[0] is finding
    assert (report.verdict.state, finding.certainty, [w.pid for w in finding.who]) == (State.HANG, Certainty.LIKELY, [20])
    assert "holds all 1,024 that it may, and can accept nobody" in finding.summary
    counts = "1,024 of 1,024 descriptors: 1,015 sockets (1,008 in CLOSE_WAIT: the other end has gone), 5 files, 3 pipes and 1 of the kernel's own"
    assert f"{counts}; none was closed during the window" in [e.text for e in finding.evidence]
    assert "connections that wait to be accepted: 4 at 127.0.0.1:9000" in [e.text for e in finding.evidence]
    assert "30" in str(finding.victims)


def test_one_that_looks_whether_it_may_open_a_file_is_named_without_a_queue() -> None:
    node = server(RETRIES, held=OF_FILES, sockets=[replace(PORT, rx_queue_bytes=0), replace(THERE, remote=ASKS.local)])
    finding = named(found(node, looks=("open",)))
    assert finding is not None
    assert "can open nothing more" in finding.summary
    assert "close files after use" in finding.remedy[0]


@pytest.mark.parametrize(
    ("hard", "told"),
    [
        (4096, "prlimit --pid 20 --nofile=4096:"),
        (None, "prlimit --pid 20 --nofile=65536:"),
        (1024, "its hard limit is 1,024 as well"),
    ],
    ids=["may be raised", "without a hard limit", "may not be raised"],
)
def test_the_remedy_asks_for_no_more_than_may_be_had(hard: int | None, told: str) -> None:
    finding = named(found(server(RETRIES, held=replace(FULL, hard_limit=hard))))
    assert finding is not None
    assert told in finding.remedy[1]
    assert len(finding.remedy) == (2 if hard == 1024 else 3)


def test_connections_at_another_port_of_an_actor_keep_nobody_out() -> None:
    """Ray's own, in a process that serves answers of its own beside its calls."""
    of_ray = replace(PORT, local="127.0.0.1:31000", inode=9, fd=6, rx_queue_bytes=0)
    sockets = (PORT, GONE, of_ray, replace(THERE, local="127.0.0.1:31000", inode=10, fd=7))
    finding = named(found(server(LOOP, syscall=EPOLL, sockets=sockets)))
    assert finding is not None
    assert finding.certainty is Certainty.LIKELY


def test_rays_own_connections_keep_nobody_out() -> None:
    """Not even where its clients wait as well: they are there as long as the actor is."""
    sockets = (PORT, GONE, replace(PORT, local="[::]:31000", inode=9, fd=6), replace(THERE, local="127.0.0.1:31000", inode=10, fd=7))
    node = server(LOOP, syscall=EPOLL, sockets=sockets)
    finding = named(diagnose(snapshot(node, RayState(address="127.0.0.1:6379", actors=(actor(1, "RewardService", 20, address="127.0.0.1:31000"),)))))
    assert finding is not None
    assert finding.certainty is Certainty.LIKELY


def test_a_rank_that_can_open_no_shard_is_named_where_others_wait_in_a_collective() -> None:
    stacks = Stacks()
    update = f"{ALL_REDUCE} Trainer.update@app/trainer.py:30 {EXECUTOR} {MAIN}"
    waiting = [process(stacks, 100 + i, "ray::Trainer.update", update, rank=i, size=3) for i in range(2)]
    opens = process(
        stacks, 102, "ray::Trainer.update", f"serve@app/data.py:9 {EXECUTOR} {MAIN}", rank=2, size=3, syscall=SLEEP, wchan="hrtimer_nanosleep"
    )
    finding = named(found(stacks.node([*waiting, replace(opens, descriptors=OF_FILES)]), looks=("open",)))
    assert finding is not None
    assert [w.pid for w in finding.who] == [102]


@pytest.mark.parametrize(
    "held",
    [
        replace(FULL, held=1023, free=1),
        replace(FULL, held=1024, limit=65536, free=64512),
        replace(FULL, renewed=1),
        replace(FULL, limit=None, free=None),
        None,
    ],
    ids=["one is free", "many, and far below", "closes and opens", "no limit", "not read"],
)
@pytest.mark.parametrize("sockets", [(PORT, GONE), (replace(PORT, rx_queue_bytes=0), GONE)], ids=["clients in its queue", "nobody in its queue"])
def test_who_has_room_or_makes_room_is_not_named(held: Descriptors | None, sockets: tuple[Socket, ...]) -> None:
    assert named(found(server(RETRIES, held=held, sockets=sockets))) is None


def test_nobody_is_named_for_whom_nobody_waits() -> None:
    report = found(server(RETRIES, asked=False))
    assert named(report) is None


@pytest.mark.parametrize("text", [LOCKED, SCORES], ids=["waits for a lock", "computes"])
def test_who_stands_in_something_of_its_own_is_explained_by_that(text: str) -> None:
    node = server(text, sockets=[replace(PORT, rx_queue_bytes=0), THERE], cpu_s=1.9 if text == SCORES else 0.02)
    assert named(found(node)) is None


ACCEPTS = "accept@socket.py:294 serve@/job/reward.py:40 <module>@/job/reward.py:70"


@pytest.mark.parametrize(
    ("held", "sockets"),
    [
        (FULL, (PORT, GONE, THERE)),  # this one may leave, or its request end
        (replace(FULL, half_closed=12), (PORT, GONE)),  # the others may do so
    ],
    ids=["a client is there", "few have gone"],
)
def test_a_loop_that_runs_is_no_more_than_possible_while_room_may_come(held: Descriptors, sockets: tuple[Socket, ...]) -> None:
    finding = named(found(server(LOOP, ACCEPTS, LOOP, syscall=EPOLL, cpu_s=0.9, held=held, sockets=sockets)))
    assert finding is None or finding.certainty is Certainty.POSSIBLE


def test_one_that_had_room_at_the_first_look_is_only_possible() -> None:
    finding = named(found(server(LOOP, syscall=EPOLL, held=replace(FULL, renewed=None))))
    assert finding is not None
    assert finding.certainty is Certainty.POSSIBLE


def test_a_server_that_stands_with_clients_connected_is_as_sure_as_before() -> None:
    """Why it accepts nobody is no doubt of its hang."""
    report = found(server(LOOP, syscall=EPOLL, sockets=(PORT, GONE, THERE)))
    without = found(server(LOOP, syscall=EPOLL, sockets=(PORT, GONE, THERE), held=None))
    assert [f.id for f in report.findings] == ["RRD510"]
    assert report.findings[0].certainty is without.findings[0].certainty
