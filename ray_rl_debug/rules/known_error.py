"""RRD699 known error in a log

Story
    A process printed an error that is known to end or stop it: the kernel's OOM killer, a raylet that admits no worker, a sick GPU. The finding
    carries the id of the error's signature.

Evidence
    The line, its file, and the process that wrote it; the line may name another one. A program that was looked at by its number and ended
    meanwhile is told by its last lines.

Remedy
    That of the signature.

Not this when
    Another rule explains the trouble (the line then supports it), the run moves, or the line only follows from the end of another process.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ray_rl_debug import signatures
from ray_rl_debug.analyze.deaths import how_ended
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.logs.named import named_in
from ray_rl_debug.model.log_story import LogStory
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding, Who
from ray_rl_debug.model.snapshot import LogLine, Node
from ray_rl_debug.rules.absent_ranks import ALL_JOINED, absent_in, names_ranks
from ray_rl_debug.rules.scene import Found, Scene, make_finding, stack_evidence
from ray_rl_debug.signatures import Signature
from ray_rl_debug.story.of_the_run import is_of_the_run

ID = "RRD699"
NAME = "known error in a log"
CAUSE = Cause.RANK_DIED
"""Of most known errors: the process that prints them goes."""
LAST_RESORT = True
"""Asked for only where no other rule is sure."""

_OF_PID = re.compile(r"(?:worker|driver)-[0-9a-f-]+[-_](\d+)\.(?:out|err|log)$")
MAX_ERRORS = 5
MAX_LINES = 3

_OF_LAYER = {
    "ray": Cause.RAYLET_START,
    "nccl": Cause.COLLECTIVE_STALLED,
    "vllm": Cause.ENGINE_DIED,
    "sglang": Cause.ENGINE_DIED,
    "data": Cause.DATALOADER_STUCK,
    "agent-lightning": Cause.PRODUCER_DIED,
}
_OF_SLUG = {
    "areal/rollout-thread-failed": Cause.PRODUCER_DIED,
    "areal/server-launch-timeout": Cause.ENGINE_DIED,
    "data/hub-unreachable": Cause.BLOCKED_IO,
    "nccl/connect-failed": Cause.INIT_DEADLOCK,
    "nccl/duplicate-gpu": Cause.INIT_DEADLOCK,
    "nccl/no-interface": Cause.INIT_DEADLOCK,
    "nccl/shared-memory-failed": Cause.INIT_DEADLOCK,
    "os/kernel-hung-task": Cause.BLOCKED_IO,
    "os/kernel-lockup": Cause.STRAGGLER,
    "os/permission-denied": Cause.RAYLET_START,
    "os/too-many-processes": Cause.RAYLET_START,
    "ray/infeasible-request": Cause.RAY_PENDING,
    "ray/memory-monitor-kill": Cause.RANK_DIED,
    "ray/node-marked-dead": Cause.RANK_DIED,
    "ray/object-store-full": Cause.OBJECT_STORE,
    "ray/out-of-disk": Cause.OBJECT_STORE,
    "ray/runtime-env-failed": Cause.RAY_PENDING,
    "ray/worker-connection-lost": Cause.RANK_DIED,
    "ray/worker-crashed": Cause.RANK_DIED,
    "ray/worker-exit-system-error": Cause.RANK_DIED,
    "sglang/watchdog-timeout": Cause.COLLECTIVE_STALLED,
    "torch/collectives-differ": Cause.COLLECTIVE_MISMATCH,
    "torch/gloo-mesh-failed": Cause.INIT_DEADLOCK,
    "torch/gloo-timeout": Cause.STRAGGLER,
    "torch/horovod-stalled": Cause.STRAGGLER,
    "torch/monitored-barrier": Cause.STRAGGLER,
    "torch/nccl-desync-report": Cause.STRAGGLER,
    "torch/nccl-watchdog-stuck": Cause.COLLECTIVE_STALLED,
    "torch/nccl-watchdog-timeout": Cause.STRAGGLER,
    "torch/store-clients-missing": Cause.INIT_DEADLOCK,
    "torch/store-connect-timeout": Cause.INIT_DEADLOCK,
    "torch/store-port-taken": Cause.INIT_DEADLOCK,
    "torch/store-wait-timeout": Cause.INIT_DEADLOCK,
    "verl/too-few-gpus": Cause.RAY_PENDING,
}


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """A critical line with its writer."""

    line: LogLine
    signature: Signature
    node: Node
    writer: Seen | None


def detect(scene: Scene) -> Iterator[Found]:
    """Critical lines: of processes that others wait for and that stand still, of the node where nobody moves; of logs alone, all."""
    written = sorted(_critical(scene), key=_order)
    if not scene.view.seen:
        yield from _of_logs(written) if scene.story is None else _of_story(scene.story)
        return
    by_writer: dict[str, list[_Written]] = defaultdict(list)
    for one in written:
        if one.writer is not None:
            by_writer[one.writer.key].append(one)
    for root, seen in scene.process_roots():
        if seen.key in by_writer and root.waiters:
            yield Found(finding=_of_process(seen, by_writer[seen.key]), explains=frozenset([seen.key]))
    for held in by_writer.values():
        writer = held[0].writer
        if writer is not None and _is_over(scene, writer):
            yield Found(finding=_of_ended(writer, held), explains=frozenset([writer.key]))
    loose = [one for one in written if one.writer is None and pid_of_log(one.line.file) is None]
    if loose and (scene.graph.roots or scene.view.by_hand) and not any(s.is_at_work for s in scene.view):
        yield next(_of_logs(loose, Certainty.POSSIBLE, scene.story))


def pid_of_log(file: str) -> int | None:
    """The process a log of Ray belongs to, by the file's name: ``worker-…-812.err``, ``python-core-worker-…_812.log``."""
    found = _OF_PID.search(file)
    return int(found[1]) if found else None


def critical_lines(lines: Iterable[LogLine]) -> tuple[Evidence, ...]:
    """Critical lines as evidence for a finding about their writer, the first of each kind."""
    first: dict[str, LogLine] = {}
    for line in lines:
        signature = signatures.find(line.signature)
        if signature is not None and signature.effect == "critical":
            first.setdefault(line.signature, line)
    return tuple(_evidence(line) for line in list(first.values())[:2])


def lines_of(lines: Iterable[LogLine], *slugs: str) -> tuple[Evidence, ...]:
    """The last line of each of these signatures (``vllm/worker-exception``) as evidence."""
    last: dict[str, LogLine] = {}
    for line in lines:
        signature = signatures.find(line.signature)
        if signature is not None and _slug(signature) in slugs:
            last[line.signature] = line
    return tuple(_evidence(line) for line in last.values())


def _critical(scene: Scene) -> Iterator[_Written]:
    for node in scene.view.snapshot.nodes:
        of_processes = [(line, scene.view.by_node_pid.get((node.name, p.pid))) for p in node.processes for line in p.log_lines]
        for line, key in [*of_processes, *((line, None) for line in node.log_lines)]:
            signature = signatures.find(line.signature)
            if signature is not None and signature.effect == "critical":
                yield _Written(line=line, signature=signature, node=node, writer=scene.view.seen.get(key) if key else None)


def _order(one: _Written) -> tuple[bool, float, str, int]:
    return one.signature.late, one.line.time_s or float("inf"), one.line.file, one.line.line_number


def _slug(signature: Signature) -> str:
    return f"{signature.layer}/{signature.slug}"


def _of_logs(written: list[_Written], certainty: Certainty = Certainty.LIKELY, story: LogStory | None = None) -> Iterator[Found]:
    """One finding for each known error; `certainty` is that of the likeliest beginning."""
    by_signature: dict[str, list[_Written]] = defaultdict(list)
    for one in written:
        by_signature[one.signature.id].append(one)
    if written and written[0].signature.late:
        certainty = Certainty.POSSIBLE
    for held in list(by_signature.values())[:MAX_ERRORS]:
        first = held[0]
        told = [e for e in (story.first, *story.then, *story.survived, *story.noted) if e is not None] if story is not None else []
        writers = next((e.who for e in told if e.text_at == f"{first.line.file}:{first.line.line_number}"), ())
        who = list(writers[:MAX_ERRORS]) or [Who(label=first.line.file.rsplit("/", 1)[-1], node=first.node.name)]
        lines = [_evidence(w.line) for w in held[:MAX_LINES]]
        finding = _finding(first.signature, certainty, f"{who[0].label}: {first.signature.title}", who, lines)
        yield Found(finding=_of_waiters(finding, first.signature), explains=frozenset([f"log:{first.signature.id}"]))
        certainty = Certainty.POSSIBLE


def _of_story(story: LogStory) -> Iterator[Found]:
    """One finding for each known error that the run did not survive; the first failure is the likeliest beginning."""
    told = [e for e in (story.first, *story.then) if e is not None]
    for entry in told:
        signature = signatures.find(entry.signature) if entry.signature is not None else None
        if signature is None or signature.effect != "critical":
            continue
        more = [Evidence(kind="log", where=entry.block_at, text=text) for text in _telling(entry.lines)]
        evidence = [Evidence(kind="log", where=entry.text_at, text=entry.text), *more]
        is_sure = entry is story.first and not signature.late and is_of_the_run(entry, story)
        certainty = Certainty.LIKELY if is_sure else Certainty.POSSIBLE
        who = entry.who[:MAX_ERRORS]
        finding = _finding(signature, certainty, f"{who[0].label}: {signature.title}", list(who), evidence[:MAX_LINES])
        yield Found(finding=_of_waiters(finding, signature), explains=frozenset([f"log:{signature.id}"]))
    if story.first is None:
        yield from _of_ranks(story)


def _of_ranks(story: LogStory) -> Iterator[Found]:
    """What a library says of the ranks' calls: whether the run went on or not, this is where it stood when it was written."""
    for entry in story.noted:
        signature = signatures.find(entry.signature) if entry.signature is not None else None
        if signature is None or _slug(signature) not in _OF_RANKS:
            continue
        evidence = [Evidence(kind="log", where=entry.text_at, text=entry.text)]
        evidence += [Evidence(kind="log", where=entry.block_at, text=text) for text in _telling(entry.lines)]
        who = list(entry.who[:MAX_ERRORS])
        finding = _finding(signature, Certainty.POSSIBLE, f"{who[0].label}: {signature.title}", who, evidence[:MAX_LINES])
        yield Found(finding=_of_waiters(finding, signature), explains=frozenset([f"log:{signature.id}"]))
        return


_OF_RANKS = frozenset({"torch/collectives-differ", "torch/horovod-stalled", "torch/nccl-desync-report"})


def _telling(lines: Sequence[str]) -> Sequence[str]:
    """The lines below an error that name ranks, else the last two."""
    return [line for line in lines if names_ranks(line)][:2] or lines[-2:]


def _of_waiters(finding: Finding, signature: Signature) -> Finding:
    """Who prints that its wait took too long is the victim of one who has not come, and whom the line does not name."""
    if finding.cause is not Cause.STRAGGLER or not signature.late:
        return finding
    victims = finding.who
    named = absent_in(e.text for e in finding.evidence)
    if named:
        ranks = named[:MAX_ERRORS]
        told = ", ".join(map(str, ranks))
        who = tuple(Who(label=f"rank {r}", rank=r) for r in ranks)
        does = "rank " + told if len(named) == 1 else f"ranks {told}" + (f" and {len(named) - len(ranks)} more" if len(named) > len(ranks) else "")
        return msgspec.structs.replace(
            finding,
            who=who,
            victims=tuple(v for v in victims if v.rank not in named),
            summary=f"{does} did not come, says the log: {signature.title}",
        )
    joined = next((found for e in finding.evidence if (found := ALL_JOINED.search(e.text)) is not None), None)
    if joined is not None:
        return msgspec.structs.replace(
            finding,
            cause=Cause.COLLECTIVE_STALLED,
            who=(Who(label="network or device between the ranks"),),
            victims=victims,
            summary=f"torch says of the ranks that all have joined collective #{joined['n']}, and it does not end: network or device stalls",
        )
    absent = Who(label="a rank that did not come", node=victims[0].node if len({w.node for w in victims}) == 1 else None)
    many = f" and {len(victims) - 1} more" if len(victims) > 1 else ""
    summary = f"{victims[0].label}{many} waited in vain: {signature.title}; the line does not name the rank that did not come"
    return msgspec.structs.replace(finding, who=(absent,), victims=victims, summary=summary)


def _of_process(seen: Seen, held: list[_Written]) -> Finding:
    first = held[0]
    summary = f"{seen.where()} printed a known error: {first.signature.title}"
    evidence = [*(_evidence(w.line) for w in held[:MAX_LINES]), stack_evidence(seen)]
    return _finding(first.signature, Certainty.LIKELY, summary, [seen.who()], evidence, seen.phase)


def _is_over(scene: Scene, writer: Seen) -> bool:
    """Has the program that was asked for ended, and does nobody go on without it? Of others, such as Ray's workers, an end may be their turn."""
    if writer.process.kind != "named" or not writer.has_ended or writer.kept_by is not None:
        return False
    return not any(s.is_at_work for s in scene.view) and not any(root.nodes == (writer.key,) for root in scene.graph.roots)


def _of_ended(seen: Seen, held: list[_Written]) -> Finding:
    """The line may name another process, whose end it tells. Behind the words of a victim it is what followed."""
    first = held[0]
    above = (x for x in seen.process.log_lines if x.file == first.line.file and x.line_number < first.line.line_number)
    victims = [x for x in above if _is_victims(x)][:1]
    named = named_in(first.line.text)
    label = " ".join(part for part in (named.program, f"rank {named.rank}" if named.rank else None) if part) if named is not None else ""
    pid = named.pid if named is not None else None
    if label and pid is None and named is not None and named.rank is None:
        label = f"{label} of {seen.name}"  # a part, called by its role
    who = Who(label=label or f"pid {pid}", node=seen.node.name, pid=pid) if label or pid is not None else seen.who()
    summary = f"{seen.where()} has ended{how_ended(seen.process.exit_code)}; its log says of {who.label}: {first.signature.title}"
    if victims:
        summary += "; before that another process lost its connection or its peer"
    evidence = [*(_evidence(line) for line in (*victims, *(w.line for w in held[:MAX_LINES]))), stack_evidence(seen)]
    return _finding(first.signature, Certainty.POSSIBLE if victims else Certainty.LIKELY, summary, [who], evidence, seen.phase)


def _is_victims(line: LogLine) -> bool:
    signature = signatures.find(line.signature)
    return signature is not None and signature.effect == "cascade"


def _finding(signature: Signature, certainty: Certainty, summary: str, who: list[Who], evidence: list[Evidence], phase: str | None = None) -> Finding:
    slug = _slug(signature)
    cause = _OF_SLUG.get(slug) or _OF_LAYER.get(signature.layer) or CAUSE
    remedy = [signature.remedy.strip(), f"why it happens: {signature.cause.strip()}"]
    return make_finding(signature.id, signature.title, cause, certainty, summary, who=who, evidence=evidence, remedy=remedy, phase=phase)


def _evidence(line: LogLine) -> Evidence:
    return Evidence(kind="log", where=f"{line.file}:{line.line_number}", text=line.text)
