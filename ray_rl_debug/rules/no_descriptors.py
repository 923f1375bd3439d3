"""RRD510 no descriptors left

Story
    A server, reward service, actor or rank holds as many descriptors as its limit allows. It can accept no connection, open no
    file and start no program; it tries again for ever, and whoever asks it waits.

Evidence
    The soft limit (RLIMIT_NOFILE) with no number below it free, and none closed during the window; what they are, and how many
    are connections whose other end has gone (CLOSE_WAIT). Clients in its queue, or the source of a loop that tries to open.

Remedy
    Close what leaks: answers, connections, files. Raise ulimit -n before the run.

Not this when
    One descriptor is free, some were closed and others opened, or nobody waits for the process. It waits for something else: a
    lock, a child, another process. Only *possible* if it had room when the capture began, if nothing shows that it wants to open
    something, or while it runs and connected clients may still leave.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.descriptors_left import kept_out, tries_to_open, without_any_left
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.model.snapshot import Descriptors
from ray_rl_debug.rules.scene import Found, Scene, judge, listed, make_finding, proc_evidence, stack_evidence

ID = "RRD510"
NAME = "no descriptors left"
CAUSE = Cause.BLOCKED_IO

_TRIES = frozenset({Kind.SLEEP, Kind.LOOP_IDLE, Kind.CODE, None})
"""Where one is met that tries again; None: no stack. In all other places it waits for somebody or something."""
_MAY_TRY = frozenset({Kind.SLEEP, Kind.LOOP_IDLE})
"""The same where nothing shows that it tries to open something."""
_FOR_ITS_END = frozenset({Why.CHILD, Why.AWAITED_CHILD})
"""Who started a service may wait for its end for ever, and asks it nothing."""


def detect(scene: Scene) -> Iterator[Found]:
    """Processes at the end of a wait that can open nothing more."""
    for _, one in scene.process_roots():
        held, verdict = without_any_left(one), judge(scene, one)
        if held is None or verdict.certainty is None or one.is_stopped or one.has_ended or one.kind not in _TRIES:
            continue
        if all(edge.why in _FOR_ITS_END for edge in scene.graph.into([one.key])):
            continue
        if not (kept_out(one) or tries_to_open(one)) and (one.kind not in _MAY_TRY or verdict.certainty is not Certainty.POSSIBLE):
            continue  # that it stands is surer than why
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            verdict.certainty if held.renewed == 0 else Certainty.POSSIBLE,  # it may have been filled a moment ago
            f"{one.where()} has no descriptor left: it holds all {held.limit:,} that it may, and can {_cannot(one)}",
            who=[one.who()],
            evidence=[proc_evidence(one, _counts(held)), *_queues(one), stack_evidence(one), proc_evidence(one, verdict.reason)],
            remedy=_remedy(one, held),
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


def _cannot(one: Seen) -> str:
    return "accept nobody" if kept_out(one) else "open nothing more"


def _counts(held: Descriptors) -> str:
    """``1,024 of 1,024 descriptors: 1,010 sockets (1,004 in CLOSE_WAIT: the other end has gone), 9 files and 5 pipes; none was closed``."""
    gone = f" ({held.half_closed:,} in CLOSE_WAIT: the other end has gone)" if held.half_closed else ""
    counts = ((held.sockets, f"sockets{gone}"), (held.files, "files"), (held.pipes, "pipes"), (held.others, "of the kernel's own"))
    told = [f"{count:,} {kind}" for count, kind in sorted(counts, key=lambda pair: -pair[0]) if count]
    limit = held.limit or 0
    more = f" (and {held.held - limit:,} above the limit)" if held.held > limit else ""
    since = "; none was closed during the window" if held.renewed == 0 else ""
    return f"{limit:,} of {limit:,} descriptors{more}: {listed(told, 4)}{since}"


def _queues(one: Seen) -> list[Evidence]:
    waiting = [f"{s.rx_queue_bytes} at {s.local or 'a Unix socket'}" for s in kept_out(one)]
    return [Evidence(kind="socket", where=one.where(), text=f"connections that wait to be accepted: {listed(waiting)}")] if waiting else []


def _remedy(one: Seen, held: Descriptors) -> list[str]:
    pid, node = one.process.pid, one.identity.node
    if 2 * (held.half_closed or 0) > held.held:
        leak = "close each connection when its client has gone (in a finally block)"
    elif held.files > held.sockets:
        leak = "close files after use (with open(...))"
    else:
        leak = "close connections and answers after use, and keep fewer of them"
    soft, hard = held.limit or 0, held.hard_limit
    more = min(max(_ENOUGH, 4 * soft), hard or _ENOUGH)
    raised = [
        f"so that it goes on meanwhile: prlimit --pid {pid} --nofile={more}:",
        f"before ray start, or the launcher, of the next run: ulimit -n {more}",
    ]
    if hard is not None and hard <= soft:
        raised = [f"its hard limit is {hard:,} as well: have that raised (LimitNOFILE of a service or of slurmd, --ulimit of a container)"]
    return [f"{leak}; on {node}: ls -l /proc/{pid}/fd shows what they are", *raised]


_ENOUGH = 65_536
"""Descriptors that a server of a large run does with."""
