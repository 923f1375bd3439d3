"""Where the doctor's facts come from: this node, all nodes of a cluster, saved files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ray_rl_debug.collect.agent_lightning import ask_store
from ray_rl_debug.collect.health import collect_health
from ray_rl_debug.model import codec
from ray_rl_debug.model.errors import AuthenticationRefusedError, ClusterUnreachableError, UnreadableFileError
from ray_rl_debug.model.health import FACTS_SCHEMA, Contact, Health, NodeHealth, Plan
from ray_rl_debug.model.whole_files import write_whole

if TYPE_CHECKING:
    from ray_rl_debug.capture.warm_agents import Agents

SUFFIX = ".health.json"
TARGET, CLOCK = "ray_rl_debug.collect.health:answer", "ray_rl_debug.collect.health:now"


def check_here(plan: Plan, *, collect: Callable[[Plan], NodeHealth] = collect_health) -> Health:
    """This node only."""
    return Health(nodes=(collect(plan),))


def check_cluster(address: str, plan: Plan, *, timeout_s: float, progress: Callable[..., None]) -> Health:
    """All nodes of a running cluster, each looked at by an agent there; a cluster that does not answer leaves this node."""
    from ray_rl_debug.capture.cluster import ClusterOptions
    from ray_rl_debug.capture.warm_agents import Agents

    asked = msgspec.structs.replace(plan, address=address, is_preflight=False)
    try:
        with Agents(ClusterOptions(address=address, timeout_s=timeout_s), progress=progress) as agents:
            silent = agents.start(deadline_s=max(5.0, timeout_s / 2))
            progress(f"looking at {len(agents.nodes)} nodes")
            answers = agents.ask(TARGET, msgspec.json.encode(asked), deadline_s=max(5.0, timeout_s / 2))
            clocks = _compare_clocks(agents)
            agents.stop()
    except (ClusterUnreachableError, AuthenticationRefusedError) as e:
        return Health(nodes=(collect_health(asked),), silent=((f"cluster {address}", str(e)),))
    nodes = []
    for answer in answers:
        if answer.data is None:
            silent[answer.node] = answer.reason or "no answer"
        else:
            node = msgspec.json.decode(answer.data, type=NodeHealth)
            nodes.append(msgspec.structs.replace(node, name=answer.node, contacts=(*(node.contacts or ()), *clocks.get(answer.node, ()))))
    if not nodes:
        nodes.append(collect_health(asked))
    return Health(nodes=tuple(sorted(nodes, key=lambda n: n.name)), silent=tuple(sorted(silent.items())))


def _compare_clocks(agents: Agents) -> dict[str, tuple[Contact, ...]]:
    """Each node's clock against ours, by the second of two calls: the first one may still be loading code."""
    found: dict[str, tuple[Contact, ...]] = {}
    for _ in range(2):
        sent = time.time()
        answers = agents.ask(CLOCK, deadline_s=5.0)
        back = time.time()
        for answer in answers:
            if answer.data is not None:
                ahead = round(float(answer.data) - (sent + back) / 2, 4)
                found[answer.node] = (Contact(peer="this machine", address="", clock_ahead_s=ahead, bound_s=round((back - sent) / 2, 4)),)
    return found


def check_job(job_id: str, plan: Plan, *, timeout_s: float, progress: Callable[..., None]) -> Health:
    """All nodes of a running Slurm job, each looked at by a step of its own; Ray is not needed.

    Raises:
        UsageError: there is no such job, or it does not run.
        MissingToolError: Slurm's commands are not here.
    """
    from ray_rl_debug.slurm.allocation import ask_nodes, read_allocation

    allocation = read_allocation(job_id)
    asked = msgspec.structs.replace(plan, slurm_job=job_id, is_preflight=False, meeting_dir=plan.meeting_dir or allocation.work_dir)
    progress(f"looking at {len(allocation.nodes)} nodes of job {job_id}")
    answers, silent = ask_nodes(allocation, ["doctor", "--facts", msgspec.json.encode(asked).decode()], timeout_s=timeout_s)
    nodes = []
    for name in allocation.nodes:
        try:
            if name in answers:
                nodes.append(msgspec.json.decode(answers[name], type=NodeHealth))
        except (msgspec.DecodeError, msgspec.ValidationError) as e:
            silent[name] = f"its answer cannot be read; perhaps another version of this tool runs there: {e}"
    return Health(nodes=tuple(sorted(nodes, key=lambda n: n.name)), silent=tuple(sorted(silent.items())))


def check_store(url: str, *, timeout_s: float) -> Health:
    """Agent-Lightning's store alone. Raises `UsageError` for what is no URL."""
    return Health(nodes=(), store=ask_store(url, deadline_s=timeout_s))


def read_files(paths: Sequence[Path], expected: Sequence[str] = ()) -> Health:
    """What ``doctor --here -o DIR`` wrote on several nodes; nodes in `expected` that wrote nothing are silent.

    Raises:
        UnreadableFileError: no such file in them, or one that is not ours.
    """
    files = [f for p in paths for f in (sorted(p.glob(f"*{SUFFIX}")) if p.is_dir() else [p])]
    if not files and not expected:
        raise UnreadableFileError(
            f"no file of the doctor in {', '.join(map(str, paths))}", hint="write one on each node: rayrl-debug doctor --here -o DIR"
        )
    latest: dict[str, NodeHealth] = {}
    for node in map(_read, files):
        if node.name not in latest or node.taken_time_s > latest[node.name].taken_time_s:
            latest[node.name] = node
    silent = tuple((name, "the doctor wrote no file there: it was stopped, or it is not installed") for name in expected if name not in latest)
    return Health(nodes=tuple(latest[name] for name in sorted(latest)), silent=silent)


def save(folder: Path, nodes: Iterable[NodeHealth]) -> None:
    """Write one file per node. Raises `OutputError`."""
    for node in nodes:
        write_whole(folder / f"{node.name.replace('/', '_')}{SUFFIX}", codec.encode(node) + b"\n")


def _read(path: Path) -> NodeHealth:
    try:
        node = msgspec.json.decode(path.read_bytes(), type=NodeHealth)
    except OSError as e:
        raise UnreadableFileError(f"cannot read {path}: {e.strerror}") from e
    except (msgspec.DecodeError, msgspec.ValidationError) as e:
        raise UnreadableFileError(f"{path} is not a file of the doctor: {e}", hint="give the files that doctor --here -o DIR wrote") from e
    if node.schema != FACTS_SCHEMA:
        raise UnreadableFileError(f"{path}: schema {node.schema!r} is not {FACTS_SCHEMA!r}")
    return node
