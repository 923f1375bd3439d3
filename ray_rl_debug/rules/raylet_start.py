"""RRD406 Ray does not start

Story
    ray.init or ray start does not come back: too many workers start on too few cores and none registers in time, the GCS is dead or its port is
    taken, the address belongs to another interface, a limit of processes is reached, a token is refused. Nothing is printed; the reason is in the
    raylet's or the GCS's own log, or in its state: stopped, or ended.

Evidence
    A driver in connect below init (or in the search for the GCS), connections that get no answer, the log lines and states of raylet and GCS,
    workers that wait to register and the cores that they share.

Remedy
    Give Ray num_cpus, and run rayrl-debug doctor.

Not this when
    Start-up is only slow and moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ray_rl_debug import signatures
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding, Who
from ray_rl_debug.model.snapshot import LogLine, Node, Process
from ray_rl_debug.rules.scene import Found, Scene, make_finding, stack_evidence

ID = "RRD406"
NAME = "Ray does not start"
CAUSE = Cause.RAYLET_START

_STARTING = ("setup_worker.py", "default_worker.py")
_STORM = "RRD608"
_WHY: tuple[tuple[tuple[str, ...], str], ...] = (
    (("RRD693",), "the limit of processes is reached"),
    ((_STORM,), "its workers do not register in time"),
    (("RRD610",), "a port of Ray is taken"),
    (("RRD613",), "the token is refused"),
    (("RRD606", "RRD607", "RRD609", "RRD620", "RRD626"), "the raylet is gone or did not come up"),
    (("RRD697", "RRD614"), "the temporary folder cannot be used"),
    (("RRD633",), "versions differ"),
    (("RRD611", "RRD612"), "the GCS does not answer"),
)
"""Ids of start-up errors and what they say, the most telling first."""
_CPUS = "give Ray the number of CPUs that the scheduler allows: ray start --num-cpus, ray.init(num_cpus=...)"
_DOCTOR = "rayrl-debug doctor --preflight names what is too small, taken or unreachable"


def detect(scene: Scene) -> Iterator[Found]:
    """Processes that cannot get into Ray, with what the logs say."""
    for one in scene.view.at(Kind.RAY_INIT):
        if not scene.goes_on(one) and not one.is_stopped:
            yield Found(finding=_finding(one), explains=frozenset([one.key]))


def _finding(one: Seen) -> Finding:
    lines = _start_up_lines([*one.process.log_lines, *one.node.log_lines])
    silent = _unanswered(one)
    is_at_gcs = one.place is not None and one.place.op != "connect"
    workers = [p for p in one.node.processes if p.kind == "ray-worker" and any(name in p.title for name in _STARTING)]
    why = next((text for ids, text in _WHY if any(line.signature in ids for line in lines)), None)
    halted = _halted(one.node, is_at_gcs)
    if halted is not None and (halted.state != "Z" or why is None):
        return _of_halted(one, halted, lines)
    if why is None and silent:
        why = f"no process answers at {silent[0]}"
    if why is None and _looks_for_a_raylet(one):
        why = "the GCS answers but knows no live raylet on this node"
    if why is None and is_at_gcs:
        why = "the GCS does not answer" if _has_gcs(one.node) else "no GCS answers, and none runs on this node"
    crowd = _crowd(one.node, len(workers), lines)
    raylet = next((p for p in one.node.processes if p.kind == "raylet"), None)
    where = [Who(label="raylet", node=one.node.name, pid=raylet.pid)] if raylet is not None and not is_at_gcs else []
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY if why is not None else Certainty.POSSIBLE,
        f"{one.where()} cannot join Ray: {why or 'the raylet does not admit it'}{f' ({crowd})' if crowd else ''}",
        who=[one.who(), *where],
        evidence=[
            stack_evidence(one),
            *([Evidence(kind="proc", where=one.node.name, text=crowd)] if crowd else []),
            *(Evidence(kind="socket", where=one.where(), text=f"waits for an answer of {address} (SYN_SENT)") for address in silent[:2]),
            *(Evidence(kind="log", where=f"{line.file}:{line.line_number}", text=line.text) for line in lines[:4]),
        ],
        remedy=[*_remedies(lines, silent, is_at_gcs, _looks_for_a_raylet(one)), _DOCTOR],
        phase="init",
    )


def _halted(node: Node, is_at_gcs: bool) -> Process | None:
    """The daemon that cannot answer: stopped, or ended and not yet reaped."""
    kinds = ("gcs", "raylet") if is_at_gcs else ("raylet", "gcs")
    daemons = (p for kind in kinds for p in node.processes if p.kind == kind)
    return next((p for p in daemons if p.state in ("T", "t", "Z")), None)


def _of_halted(one: Seen, daemon: Process, lines: Iterable[LogLine]) -> Finding:
    name = {"gcs": "GCS"}.get(daemon.kind, daemon.kind)
    has_ended = daemon.state == "Z"
    tracer = f" by tracer pid {daemon.tracer_pid}" if daemon.tracer_pid else ""
    told = f"the {name} (pid {daemon.pid}) {'has ended' if has_ended else f'is stopped (state {daemon.state}){tracer}'}"
    cure = f"detach the tracer: pid {daemon.tracer_pid}" if tracer else f"on {one.node.name}: kill -CONT {daemon.pid}; find who stopped it"
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.PROVEN,
        f"{one.where()} cannot join Ray: {told}",
        who=[Who(label=name, node=one.node.name, pid=daemon.pid)],
        evidence=[
            Evidence(kind="proc", where=f"{name} ({one.node.name} pid {daemon.pid})", text=f"/proc/{daemon.pid}/status: State {daemon.state}"),
            stack_evidence(one),
            *(Evidence(kind="log", where=f"{line.file}:{line.line_number}", text=line.text) for line in list(lines)[:4]),
        ],
        remedy=[f"read the last lines of the {name}'s log, and dmesg for the kernel's out-of-memory killer" if has_ended else cure, _DOCTOR],
        phase="init",
    )


def _start_up_lines(lines: Iterable[LogLine]) -> list[LogLine]:
    """Lines about starting, the most telling kinds first, at most two of a kind."""
    ordered = [i for ids, _ in _WHY for i in ids]
    kept: list[LogLine] = []
    for line in sorted((x for x in lines if x.signature in ordered), key=lambda x: ordered.index(x.signature)):
        if sum(k.signature == line.signature for k in kept) < 2:
            kept.append(line)
    return kept


def _unanswered(one: Seen) -> list[str]:
    return [s.remote for s in one.process.sockets or () if s.state == "SYN_SENT" and s.remote]


def _looks_for_a_raylet(one: Seen) -> bool:
    """Has it found the GCS, which it asks for the raylet of this node?"""
    frames = one.telling.frames if one.telling is not None else ()
    return any(f.function.endswith("get_node_to_connect_for_driver") for f in frames)


def _has_gcs(node: Node) -> bool:
    return any(p.kind == "gcs" and p.state != "Z" for p in node.processes)


def _crowd(node: Node, starting: int, lines: list[LogLine]) -> str | None:
    """How many workers wait to register, on how many cores; the raylet's own processes tell where their titles are still those of the start."""
    late = len({line.text for line in node.log_lines if line.signature == _STORM})
    if not starting and not late:
        return None
    cores = node.cpus_allowed
    count = f"{starting} workers are starting" if starting else "workers registered too late"
    return f"{count} on {cores} core{'s' if cores != 1 else ''}" if cores else count


def _remedies(lines: Iterable[LogLine], silent: list[str], is_at_gcs: bool, looks_for_a_raylet: bool) -> list[str]:
    found = (signatures.find(i) for i in dict.fromkeys(line.signature for line in lines))
    told = [" ".join(s.remedy.split()) for s in found if s is not None][:2]
    if silent:
        return [*told, f"check that this node can reach {silent[0]}, and that it is the head: ip route get {silent[0].rpartition(':')[0]}"]
    if looks_for_a_raylet:
        return told or ["read the last lines of raylet.out and raylet.err in the session's logs, and dmesg; then ray start on this node again"]
    if is_at_gcs:
        return told or ["read gcs_server.err in the session's logs, and check whether its port is taken: ss -ltnp"]
    return [*told, _CPUS]
