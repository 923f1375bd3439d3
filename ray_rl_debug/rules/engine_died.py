"""RRD205 engine died

Story
    An inference engine, its server or one of its processes was killed or crashed; a router, an agent loop or the trainer
    was never told and still awaits its answers.

Evidence
    The waiter's stack, and one of these. Ray's actor table says DEAD or RESTARTING of an actor that is an engine by its class or
    name. A process of the engine is a zombie. A server goes on though its engine core, and all that lives as long as that, has ended.
    Ray starts the engine's actor anew for each try of one call, and each try has ended with the process.

Remedy
    Find why it died; give requests a time limit, and let the router take dead engines out.

Not this when
    The engine was shut down on purpose, or other engines answer what waits. A server that does not serve yet has no
    engine core either: it starts. An actor that was started anew a moment ago.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ray_rl_debug.analyze.deaths import how_ended
from ray_rl_debug.analyze.engines import Engine
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.lost_ends import lacks_child
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_engines import in_flight, may_be_unseen
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Who
from ray_rl_debug.rules.dead_actors import find_dead
from ray_rl_debug.rules.known_error import lines_of
from ray_rl_debug.rules.scene import Found, Scene, listed, make_finding, proc_evidence, stack_evidence

ID = "RRD205"
NAME = "engine died"
CAUSE = Cause.ENGINE_DIED

_REMEDY = [
    "look for its first error: the engine's log, CUDA or KV-cache out of memory, dmesg (OOM killer)",
    "give requests a time limit and let the router take dead engines out",
]


def detect(scene: Scene) -> Iterator[Found]:
    """Engines that have lost a process; roots that are dead inference engines somebody awaits."""
    for engine in scene.view.engines:
        if engine.dead or (engine.lost and not may_be_unseen(scene.view, engine)):
            yield _lost_part(scene, engine)
    yield from find_dead(scene, ID, NAME, CAUSE, _REMEDY, engines=True)


def _lost_part(scene: Scene, engine: Engine) -> Found:
    dead = [scene.view.seen[k] for k in engine.dead]
    servers = [scene.view.seen[k] for k in engine.servers]
    nodes = [*engine.dead, node_of(NodeKind.GONE, engine.key)]
    waiters = [w for w in (scene.view.seen.get(e.source) for e in scene.graph.into(nodes)) if w is not None and w.identity.part is None]
    first = _first_dead(dead)
    printed = [e for s in servers for e in lines_of(s.process.log_lines, "vllm/worker-died", "vllm/engine-core-failed", "sglang/part-crashed")]
    who = [d.who() for d in first] or [_gone(scene, engine, servers)]
    it, its = ("them", "their") if len(who) > 1 else ("it", "its")
    after = f"; {waiters[0].where()} still waits for {it}" if waiters else f"; {its} server runs with {in_flight(engine)}" if engine.requests else ""
    after = after or (f"; {servers[0].where()} runs without {it}" if servers else "")
    evidence = [
        proc_evidence(d, f"a zombie: it has ended{how_ended(d.process.exit_code)}, and its parent has not collected its exit status")
        for d in dead[:4]
    ]
    for server in servers[:1] if engine.lost else ():
        evidence.append(Evidence(kind="proc", where=server.where(), text=_how_lost(scene, engine, server)))
    evidence += [stack_evidence(w) for w in waiters[:2]]
    evidence += printed
    sure = Certainty.PROVEN if dead and (engine.requests or waiters) else Certainty.LIKELY
    if engine.ending is not None and not _tells_of_worker(servers) and lacks_child(scene.view, scene.view.seen[engine.ending]):
        sure = Certainty.POSSIBLE  # a worker of the core that ends has ended as well, and which of them was first nobody has printed
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        sure,
        f"{_names(who)} {'is' if len(who) == 1 else 'are'} dead{after}",
        who=who,
        evidence=evidence,
        remedy=_REMEDY,
        phase=waiters[0].phase if waiters else "rollout",
    )
    return Found(finding=finding, explains=frozenset(nodes))


def _how_lost(scene: Scene, engine: Engine, server: Seen) -> str:
    if engine.ending is not None:
        core = scene.view.seen[engine.ending]
        return f"its {core.where()} ends: it {core.does()}"
    end = "the server is about to end" if server.kind is Kind.WATCH else "the thread and the task that end with it have ended"
    return f"its {engine.lost} is gone: no such child process is left, and {end}"


def _gone(scene: Scene, engine: Engine, servers: list[Seen]) -> Who:
    """Who left no process: the engine core, or the worker whose death it printed before it ended itself."""
    who = scene.who(node_of(NodeKind.GONE, engine.key))
    if "worker" not in (engine.lost or "") and _tells_of_worker(servers):
        return msgspec.structs.replace(who, label=f"{engine.name} worker of {scene.view.seen[engine.key].name}", pid=None)
    return who


def _tells_of_worker(servers: list[Seen]) -> bool:
    return any(lines_of(s.process.log_lines, "vllm/worker-died") for s in servers)


def _first_dead(dead: list[Seen]) -> list[Seen]:
    """Those that died by themselves: workers end when their core does."""
    keys = {d.process.pid for d in dead}
    outer = [d for d in dead if d.process.ppid not in keys]
    killed = [d for d in outer if (d.process.exit_code or 0) < 0]
    return killed or outer


def _names(who: list[Who]) -> str:
    return listed([w.label.removesuffix(f" (pid {w.pid})") + (f" (pid {w.pid})" if w.pid else "") for w in who], 8)
