"""vLLM's servers: at rest, at work, and each trouble that they can have."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from engines import processes
from engines.client import Load, Unread, call
from engines.processes import find, kill, stopped, until
from engines.servers import Vllm, metric
from engines.truth import HEALTHY, Case, Truth

TP2 = ("--tensor-parallel-size", "2")
CORE = r"VLLM::EngineCore"
SMALL_CACHE = "--block-size 32 --num-gpu-blocks-override 48 --max-num-seqs 16 --max-model-len 1024 --no-enable-prefix-caching".split()
PROGRAMS: dict[str, Callable[[], Vllm]] = {
    "vllm-tp1": Vllm,
    "vllm-tp2": lambda: Vllm(*TP2),
    "vllm-dp2": lambda: Vllm("--data-parallel-size", "2"),
    "vllm-keep-alive": lambda: Vllm(VLLM_KEEP_ALIVE_ON_ENGINE_DEATH="1"),
    "vllm-small-cache": lambda: Vllm(*SMALL_CACHE),
    "vllm-tp1-spinning": lambda: Vllm(NO_YIELD=""),
    "vllm-tp2-spinning": lambda: Vllm(*TP2, NO_YIELD=""),
}


@contextlib.contextmanager
def idle(server: Vllm) -> Iterator[tuple[int, ...]]:
    yield ()


@contextlib.contextmanager
def busy(server: Vllm) -> Iterator[tuple[int, ...]]:
    with server.load(2) as load:
        load.await_tokens()
        yield ()


@contextlib.contextmanager
def full(server: Vllm) -> Iterator[tuple[int, ...]]:
    with server.load(24, tokens=900) as load:
        until(lambda: metric(server, "vllm:num_requests_waiting") > 0, 60, "requests wait for blocks")
        yield ()
        del load


def stop(pattern: str) -> Callable[[Vllm], contextlib.AbstractContextManager[tuple[int, ...]]]:
    @contextlib.contextmanager
    def trouble(server: Vllm) -> Iterator[tuple[int, ...]]:
        pid = server.find(pattern)
        with server.load() as load:
            load.await_tokens()
            with stopped(pid):
                load.await_silence()
                yield (pid,)

    return trouble


def dead(pattern: str, requests: int) -> Callable[[Vllm], contextlib.AbstractContextManager[tuple[int, ...]]]:
    """Killed at work or at rest."""

    @contextlib.contextmanager
    def trouble(server: Vllm) -> Iterator[tuple[int, ...]]:
        pid = server.find(pattern)
        with server.load(requests) as load:
            load.await_tokens()
            kill(pid)
            yield (pid,)

    return trouble


@contextlib.contextmanager
def outlived(server: Vllm) -> Iterator[tuple[int, ...]]:
    """The server is told to stay when its engine dies."""
    pid = find(server.pid, CORE)
    with server.load() as load:
        load.await_tokens()
        kill(pid)
        until(lambda: not processes.state(pid), 20, "the engine core is reaped")
        yield (pid,)


def stuck_forward(rank: int, pattern: str) -> Callable[[Vllm], contextlib.AbstractContextManager[tuple[int, ...]]]:
    @contextlib.contextmanager
    def trouble(server: Vllm) -> Iterator[tuple[int, ...]]:
        with server.load() as load:
            load.await_tokens()
            with server.held("forward", rank):
                load.await_silence()
                yield (server.find(pattern),)

    return trouble


def stuck_call(rank: int, pattern: str) -> Callable[[Vllm], contextlib.AbstractContextManager[tuple[int, ...]]]:
    """A collective_rpc does not come back from one worker, and a request waits behind it."""

    @contextlib.contextmanager
    def trouble(server: Vllm) -> Iterator[tuple[int, ...]]:
        asked = threading.Thread(target=_ask_quietly, args=(server.port, "/collective_rpc", {"method": "reload_adapter"}), daemon=True)
        with server.held("rpc", rank, arrive=asked.start), server.load(1) as load:
            load.await_silence()
            yield (server.find(pattern),)
        asked.join(30)

    return trouble


def _ask_quietly(port: int, path: str, body: object = None) -> None:
    with contextlib.suppress(Exception):
        call(port, "POST", path, body, 300)


def _await_arrival(load: Load) -> None:
    """Requests that get no answer are seen by nobody but the server: they have arrived when nothing more comes of them."""
    load.await_silence()


@contextlib.contextmanager
def paused_keep(server: Vllm) -> Iterator[tuple[int, ...]]:
    with server.load() as load:
        load.await_tokens()
        server.ask("POST", "/pause?mode=keep")
        load.await_silence()
        yield (server.pid, server.find(CORE))


@contextlib.contextmanager
def paused_abort(server: Vllm) -> Iterator[tuple[int, ...]]:
    server.ask("POST", "/pause?mode=abort")
    with server.load(3) as load:
        _await_arrival(load)
        yield (server.pid, server.find(CORE))


@contextlib.contextmanager
def paused_wait(server: Vllm) -> Iterator[tuple[int, ...]]:
    """The pause waits for a long request, which goes on: nobody hangs."""
    with server.load(1) as load:
        load.await_tokens()
        asked = threading.Thread(target=_ask_quietly, args=(server.port, "/pause?mode=wait"), daemon=True)
        asked.start()
        load.await_tokens()
        yield ()
    asked.join(30)


@contextlib.contextmanager
def asleep(server: Vllm) -> Iterator[tuple[int, ...]]:
    server.ask("POST", "/sleep?level=1")
    with server.load() as load:
        _await_arrival(load)
        yield (server.pid, server.find(CORE))


@contextlib.contextmanager
def unread(server: Vllm) -> Iterator[tuple[int, ...]]:
    """Two clients never read; the engine has long generated what they asked for."""
    before = metric(server, "vllm:generation_tokens_total")
    clients = [Unread(server.port, server.path, {**server.body, "max_tokens": 8000, "logprobs": 15}) for _ in range(2)]
    try:
        until(lambda: metric(server, "vllm:generation_tokens_total") >= before + 16000, 120, "all tokens generated", every=0.5)
        until(lambda: metric(server, "vllm:num_requests_running") == 0, 30, "no request in the engine", every=0.5)
        yield (server.pid,)
    finally:
        for one in clients:
            one.close()


PAUSED = Truth(("hang",), ("engine-paused",))
STOPPED = Truth(("hang",), ("process-stopped",))
DIED = Truth(("hang",), ("engine-died",), "enginecore|engine core")
WORKER_DIED = Truth(("hang",), ("engine-died", "rank-died"), "worker")
STUCK = Truth(("hang",), ("straggler", "lock-deadlock"))
UNREAD = Truth(("hang",), ("asyncio-stuck", "blocked-io"), r"127\.0\.0\.1|client")
ANY_WORKER = r"VLLM::Worker(_TP0)?"
SECOND = r"VLLM::Worker_TP1"

CASES = (
    *(Case(f"{p}-idle", p, idle, HEALTHY, wait_s=0) for p in PROGRAMS if p not in ("vllm-keep-alive", "vllm-small-cache")),
    *(Case(f"{p}-busy", p, busy, HEALTHY, wait_s=0) for p in PROGRAMS if p not in ("vllm-keep-alive", "vllm-small-cache")),
    Case("vllm-cache-full", "vllm-small-cache", full, HEALTHY),
    *(Case(f"{p}-core-stopped", p, stop(CORE), STOPPED) for p in ("vllm-tp1", "vllm-tp2")),
    *(Case(f"{p}-worker-stopped", p, stop(ANY_WORKER), STOPPED) for p in ("vllm-tp1", "vllm-tp2")),
    Case("vllm-tp2-second-stopped", "vllm-tp2", stop(SECOND), STOPPED),
    *(Case(f"{p}-worker-stuck", p, stuck_forward(0, ANY_WORKER), STUCK) for p in ("vllm-tp1", "vllm-tp2")),
    Case("vllm-tp2-second-stuck", "vllm-tp2", stuck_forward(1, SECOND), STUCK),
    *(Case(f"{p}-call-stuck", p, stuck_call(0, ANY_WORKER), STUCK) for p in ("vllm-tp1", "vllm-tp2")),
    Case("vllm-tp2-second-call-stuck", "vllm-tp2", stuck_call(1, SECOND), STUCK),
    *(Case(f"{p}-paused-keep", p, paused_keep, PAUSED) for p in ("vllm-tp1", "vllm-tp2")),
    *(Case(f"{p}-paused-abort", p, paused_abort, PAUSED) for p in ("vllm-tp1", "vllm-tp2")),
    Case("vllm-tp1-paused-wait", "vllm-tp1", paused_wait, HEALTHY),
    *(Case(f"{p}-asleep", p, asleep, PAUSED) for p in ("vllm-tp1", "vllm-tp2")),
    Case("vllm-tp1-unread", "vllm-tp1", unread, UNREAD),
    Case("vllm-tp1-core-killed-busy", "vllm-tp1", dead(CORE, 2), DIED, is_fatal=True, wait_s=0),
    Case("vllm-tp1-core-killed-idle", "vllm-tp1", dead(CORE, 0), DIED, is_fatal=True, wait_s=0),
    Case("vllm-tp1-worker-killed", "vllm-tp1", dead(ANY_WORKER, 2), WORKER_DIED, is_fatal=True, wait_s=0),
    Case("vllm-tp2-second-killed", "vllm-tp2", dead(SECOND, 2), WORKER_DIED, is_fatal=True, wait_s=0),
    Case("vllm-core-killed-kept-alive", "vllm-keep-alive", outlived, DIED, is_fatal=True),
)
