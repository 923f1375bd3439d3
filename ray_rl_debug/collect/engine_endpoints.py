"""What the inference engines of this node say at their own endpoints: ``/metrics`` twice, and whether they are paused.

Asked are addresses of this machine only, on which the engine's own process listens. Never ``/health`` of SGLang: it makes a request, takes 20 s in a
hang and changes the server's state. vLLM's ``/is_paused`` is a call into its engine core, which would stay there for ever when that hangs: it is
asked only where no token came out, where no process below the server is stopped or dead, and where no earlier question still waits.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.collect.discover import FoundProcess
from ray_rl_debug.collect.engine_metrics import read_metrics
from ray_rl_debug.collect.plain_http import Answer, Get, get_all
from ray_rl_debug.collect.procfs import PROC, read_stat
from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.model.snapshot import AsyncTask, EngineState, Process, Socket

FIRST_LOOK_S = 1.0
LAST_LOOK_S = 1.0
"""For all servers of a node together: the first look runs beside the samples."""
MAX_SERVERS = 16
MAX_PORTS = 6
"""Tried of one server, where its arguments do not tell."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """How the server of one kind of engine is recognised."""

    kind: str
    title: re.Pattern[str]
    """Of the server itself,"""
    program: re.Pattern[str]
    """or of its first arguments,"""
    child: re.Pattern[str]
    """or of a child: title or comm, which is cut to 15 letters. The word before the colons can be changed."""


ENGINES = (
    Engine(
        kind="vllm",
        title=re.compile(r"\w+::APIServer|ray::vLLMHttpServer"),
        program=re.compile(r"(?:^|/)vllm serve\b|\bvllm\.entrypoints\.(?:openai\.api_server|cli\.main)\b|\bvllm_server\b"),
        child=re.compile(r"\w+::(?:EngineCor|DPCoordin|APIServer)"),
    ),
    Engine(
        kind="sglang",
        title=re.compile(r"ray::SGLangHttpServer"),
        program=re.compile(r"\bsglang\.launch_server\b|(?:^|/)sglang serve\b|\bsglang/launch_server\.py\b|\bsglang_server\b"),
        child=re.compile(r"sglang::(?:schedul|detoken|data_par)"),
    ),
)


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A process that listens for an engine."""

    pid: int
    kind: str
    addresses: tuple[tuple[str, int], ...]
    """One when its arguments tell the port, else all on which it listens: a Ray worker listens for other workers too."""
    port: int | None = None
    """As its arguments tell."""
    reason: str | None = None
    """Why it is not asked."""


def find_servers(found: Sequence[FoundProcess], proc: Path = PROC) -> tuple[Server, ...]:
    """The servers of engines among these processes, in order of pid."""
    children: dict[int, list[FoundProcess]] = {}
    for one in found:
        children.setdefault(one.stat.ppid, []).append(one)
    kinds = {one.pid: kind for one in found if one.kind != "agent" and (kind := _kind(one, children.get(one.pid, ())))}
    reader = SocketReader(proc)
    servers: list[Server] = []
    taken: set[int | None] = set()
    # several servers may hold one socket: who calls itself a server is asked, not the parent that only started them
    for one in sorted((f for f in found if f.pid in kinds), key=lambda f: (not _titled(f), f.pid)):
        listening = [s for s in reader.read(one.pid) or () if s.state == "LISTEN" and s.family != "unix" and s.inode not in taken]
        if listening:
            taken.update(s.inode for s in listening)
            servers.append(_server(one, kinds[one.pid], listening, proc))
    return tuple(sorted(servers, key=lambda s: s.pid))


def _kind(one: FoundProcess, children: Iterable[FoundProcess]) -> str | None:
    words = " ".join(one.arguments[:6])
    for engine in ENGINES:
        if (
            engine.title.match(words)
            or engine.program.search(words)
            or any(engine.child.match(" ".join(c.arguments[:1]) or c.stat.comm) for c in children)
        ):
            return engine.kind
    return None


def _titled(one: FoundProcess) -> bool:
    return any(engine.title.match(" ".join(one.arguments[:1])) for engine in ENGINES)


def _server(one: FoundProcess, kind: str, listening: Sequence[Socket], proc: Path) -> Server:
    try:
        is_ours = os.readlink(proc / "self/ns/net") == os.readlink(proc / str(one.pid) / "ns/net")
    except OSError:
        is_ours = False
    if not is_ours:  # its address means somebody else here
        return Server(pid=one.pid, kind=kind, addresses=(), reason="it lives in another network namespace")
    addresses = dict.fromkeys(_address(s.local) for s in listening)
    wanted = _port(one.arguments)
    told = tuple(a for a in addresses if a[1] == wanted)[:1]
    return Server(pid=one.pid, kind=kind, addresses=told or tuple(addresses)[:MAX_PORTS], port=wanted if told else None)


def _address(local: str) -> tuple[str, int]:
    """Where to reach who listens there: the loopback where it listens on all."""
    host, _, port = local.rpartition(":")
    host = host.strip("[]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), int(port)


def _port(arguments: Sequence[str]) -> int | None:
    for i, word in enumerate(arguments):
        name, _, value = word.partition("=")
        if name == "--port":
            value = value or (arguments[i + 1] if i + 1 < len(arguments) else "")
            return int(value) if value.isdigit() and len(value) < 6 else None
    return None


class EngineLooks:
    """The two looks at the engines of one node."""

    def __init__(self, found: Sequence[FoundProcess], proc: Path = PROC) -> None:
        self._proc = proc
        self._parents = {f.pid: f.stat.ppid for f in found}
        self._servers: tuple[Server, ...] = ()
        self._found = found
        self._before: dict[int, tuple[float, dict[str, float]]] = {}
        self._addresses: dict[int, tuple[str, int]] = {}

    def begin(self) -> None:
        """Find the servers and ask each once."""
        self._servers = find_servers(self._found, self._proc)
        began = time.monotonic()
        for pid, answer in self._metrics(began + FIRST_LOOK_S).items():
            if isinstance(answer, dict):
                self._before[pid] = (began, answer)

    def finish(self, processes: Iterable[Process] = ()) -> dict[int, EngineState]:
        """Ask again: what each server says, by pid. `processes` tell whether an earlier question still waits in a server."""
        until = time.monotonic() + LAST_LOOK_S
        now = time.monotonic()
        answers = self._metrics(until)
        states = {}
        for number, server in enumerate(self._servers):
            answer = answers.get(server.pid, server.reason or ("it does not listen" if number < MAX_SERVERS else f"only {MAX_SERVERS} are asked"))
            states[server.pid] = self._state(server, answer, now)
        waiting = {p.pid for p in processes if p.pid in states and any(_is_question(t) for t in p.async_tasks or ())}
        for pid in waiting:
            states[pid] = msgspec.structs.replace(states[pid], reason=states[pid].reason or "/is_paused: an earlier request has no answer yet")
        quiet = [s for s in self._servers if s.pid not in waiting and self._may_be_called(s, states[s.pid])]
        more = self._switches(quiet, until)
        return {pid: msgspec.structs.replace(state, **more.get(pid, {})) for pid, state in states.items()}

    def _metrics(self, until: float) -> dict[int, dict[str, float] | str]:
        """Numbers of each server, or why there are none."""
        asked = [(s.pid, a) for s in self._servers[:MAX_SERVERS] for a in ((self._addresses[s.pid],) if s.pid in self._addresses else s.addresses)]
        found: dict[int, dict[str, float] | str] = {}
        for (pid, address), answer in zip(asked, get_all([Get(*a, "/metrics") for _, a in asked], until), strict=True):
            numbers = read_metrics(answer.body) if isinstance(answer, Answer) and answer.status == 200 else {}
            if numbers:
                found[pid], self._addresses[pid] = numbers, address
            elif not isinstance(found.get(pid), dict):
                found[pid] = _why("/metrics", answer)
                if isinstance(answer, Answer):  # a server of the engine that keeps no numbers
                    self._addresses.setdefault(pid, address)
        return found

    def _state(self, server: Server, answer: dict[str, float] | str, now: float) -> EngineState:
        port = self._addresses[server.pid][1] if server.pid in self._addresses else server.port
        at, before = self._before.get(server.pid, (None, {}))
        earlier = _whole(before.get("generated_tokens"))
        if isinstance(answer, str):
            return EngineState(kind=server.kind, port=port, reason=answer, generated_tokens_before=earlier)
        return EngineState(
            kind=server.kind,
            port=port,
            answered=True,
            sleep_level=_whole(answer.get("sleep_level")),
            running=_whole(answer.get("running")),
            waiting=_whole(answer.get("waiting")),
            kv_usage=round(min(1.0, answer["kv_usage"]), 4) if "kv_usage" in answer else None,
            generated_tokens_before=earlier,
            generated_tokens=_whole(answer.get("generated_tokens")),
            between_s=round(now - at, 3) if at is not None else None,
        )

    def _may_be_called(self, server: Server, state: EngineState) -> bool:
        if server.pid not in self._addresses or (state.kind == "vllm" and not state.answered):
            return False
        if state.kind == "sglang":
            return True  # /ready looks at flags of the server alone
        if state.generated_tokens is not None and (state.generated_tokens_before or 0) < state.generated_tokens:
            return False
        return not any(self._is_below(pid, server.pid) and self._cannot_answer(pid) for pid in self._parents)

    def _is_below(self, pid: int, server: int) -> bool:
        for _ in range(8):
            pid = self._parents.get(pid, 0)
            if pid == server:
                return True
        return False

    def _cannot_answer(self, pid: int) -> bool:
        stat = read_stat(self._proc / str(pid))
        return stat is None or stat.state in "TtZXD"

    def _switches(self, servers: Sequence[Server], until: float) -> dict[int, dict[str, object]]:
        """Paused, asleep, ready: fields of the state, by pid. Who leaves the first question open is asked no second one."""
        found: dict[int, dict[str, object]] = {}
        ready = [(s.pid, "/ready" if s.kind == "sglang" else "/is_paused") for s in servers]
        self._ask(ready, until, found)
        self._ask(
            [(pid, "/is_sleeping") for pid, path in ready if path == "/is_paused" and found.get(pid, {}).get("is_paused") is not None], until, found
        )
        return found

    def _ask(self, asked: Sequence[tuple[int, str]], until: float, found: dict[int, dict[str, object]]) -> None:
        for (pid, path), answer in zip(asked, get_all([Get(*self._addresses[pid], path) for pid, path in asked], until), strict=True):
            fields = found.setdefault(pid, {})
            if path == "/ready" and isinstance(answer, Answer) and answer.status in (200, 503):
                fields["is_ready"] = answer.status == 200
                fields["is_paused"] = False if answer.status == 200 else None
            elif path != "/ready" and isinstance(answer, Answer) and answer.status == 200:
                fields[path[1:]] = _switch(answer.body, path[1:])
            elif not (isinstance(answer, Answer) and answer.status == 404):  # 404: not in development mode
                fields["reason"] = _why(path, answer)


def _is_question(task: AsyncTask) -> bool:
    """Does a coroutine of vLLM's own answer to us? In a core that hangs it never ends."""
    return any(f.function.rpartition(".")[2] in ("is_paused", "is_sleeping") for f in task.chain)


def _switch(body: bytes, name: str) -> bool | None:
    try:
        told = msgspec.json.decode(body, type=Mapping[str, msgspec.Raw]).get(name)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return None
    return {b"true": True, b"false": False}.get(bytes(told)) if told is not None else None


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None else None


def _why(path: str, answer: Answer | str) -> str:
    if isinstance(answer, str):
        return f"{path}: {answer}"
    return f"{path}: status {answer.status}" if answer.status != 200 else f"{path}: no numbers of the engine"
