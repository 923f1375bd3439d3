"""SGLang's servers: at rest (spinning or asleep), at work, and each trouble that they can have."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from engines.processes import kill, stopped, until
from engines.servers import Sglang, metric
from engines.truth import HEALTHY, Case, Trouble, Truth

TP2 = ("--tp-size", "2")
PROGRAMS: dict[str, Callable[[], Sglang]] = {
    "sglang-tp1": Sglang,
    "sglang-tp2": lambda: Sglang(*TP2, SGLANG_CPU_OMP_THREADS_BIND="0|1"),
    "sglang-tp1-sleeping": lambda: Sglang("--sleep-on-idle"),
    "sglang-tp2-sleeping": lambda: Sglang(*TP2, "--sleep-on-idle", SGLANG_CPU_OMP_THREADS_BIND="0|1"),
    "sglang-small-pool": lambda: Sglang("--max-total-tokens", "6000", "--max-running-requests", "4"),
}
SCHEDULER = r"sglang::scheduler(_TP0)?"
SECOND = r"sglang::scheduler_TP1"
DETOKENIZER = r"sglang::detokenizer"


@contextlib.contextmanager
def idle(server: Sglang) -> Iterator[tuple[int, ...]]:
    yield ()


@contextlib.contextmanager
def busy(server: Sglang) -> Iterator[tuple[int, ...]]:
    with server.load(2) as load:
        load.await_tokens()
        yield ()


@contextlib.contextmanager
def full(server: Sglang) -> Iterator[tuple[int, ...]]:
    """One request takes the pool, the others wait for it and get their turn."""
    with server.load(3, tokens=5000):
        until(lambda: metric(server, "sglang:num_queue_reqs") > 0, 60, "requests wait for the pool", every=0.5)
        yield ()


def stop(pattern: str, *, requests: int = 2) -> Trouble:
    @contextlib.contextmanager
    def trouble(server: Sglang) -> Iterator[tuple[int, ...]]:
        pid = server.find(pattern)
        with server.load(requests) as load:
            load.await_tokens()
            with stopped(pid):
                load.await_silence()
                yield (pid,)

    return trouble


def dead(pattern: str) -> Trouble:
    @contextlib.contextmanager
    def trouble(server: Sglang) -> Iterator[tuple[int, ...]]:
        pid = server.find(pattern)
        with server.load() as load:
            load.await_tokens()
            kill(pid)
            yield (pid,)

    return trouble


def stuck_forward(rank: int, pattern: str) -> Trouble:
    @contextlib.contextmanager
    def trouble(server: Sglang) -> Iterator[tuple[int, ...]]:
        with server.load() as load:
            load.await_tokens()
            with server.held("forward", rank):
                load.await_silence()
                yield (server.find(pattern),)

    return trouble


def paused(mode: str) -> Trouble:
    """Two requests at work when the pause comes (abort ends them), and one that comes after it."""

    @contextlib.contextmanager
    def trouble(server: Sglang) -> Iterator[tuple[int, ...]]:
        with server.load() as load:
            load.await_tokens()
            server.ask("POST", "/pause_generation", {"mode": mode})
            with server.load(1) as late:
                load.await_silence()
                late.await_silence()
                yield (server.pid, server.find(SCHEDULER))

    return trouble


PAUSED = Truth(("hang",), ("engine-paused",))
STOPPED = Truth(("hang",), ("process-stopped",))
DIED = Truth(("hang",), ("engine-died", "rank-died"), "scheduler|detokenizer")
STUCK = Truth(("hang",), ("straggler", "lock-deadlock"))
EVERY = [name for name in PROGRAMS if name != "sglang-small-pool"]
BOTH = ("sglang-tp1", "sglang-tp2")

CASES = (
    *(Case(f"{p}-idle", p, idle, HEALTHY, wait_s=0) for p in EVERY),
    *(Case(f"{p}-busy", p, busy, HEALTHY, wait_s=0) for p in EVERY),
    Case("sglang-pool-full", "sglang-small-pool", full, HEALTHY),
    *(Case(f"{p}-scheduler-stopped", p, stop(SCHEDULER), STOPPED) for p in BOTH),
    Case("sglang-tp2-second-stopped", "sglang-tp2", stop(SECOND), STOPPED),
    Case("sglang-tp2-idle-second-stopped", "sglang-tp2", stop(SECOND, requests=0), STOPPED),
    Case("sglang-tp1-detokenizer-stopped", "sglang-tp1", stop(DETOKENIZER), STOPPED),
    *(Case(f"{p}-scheduler-stuck", p, stuck_forward(0, SCHEDULER), STUCK) for p in BOTH),
    Case("sglang-tp2-second-stuck", "sglang-tp2", stuck_forward(1, SECOND), STUCK),
    *(Case(f"{p}-paused-{mode.replace('_', '-')}", p, paused(mode), PAUSED) for p in BOTH for mode in ("in_place", "retract", "abort")),
    *(Case(f"{p}-scheduler-killed", p, dead(SCHEDULER), DIED, is_fatal=True, wait_s=0) for p in BOTH),
    Case("sglang-tp2-second-killed", "sglang-tp2", dead(SECOND), DIED, is_fatal=True, wait_s=0),
    Case("sglang-tp1-detokenizer-killed", "sglang-tp1", dead(DETOKENIZER), DIED, is_fatal=True),
)
