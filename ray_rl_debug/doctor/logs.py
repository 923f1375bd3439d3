"""Known errors in logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ray_rl_debug import signatures
from ray_rl_debug.doctor.answers import fail, ok, warn
from ray_rl_debug.model.health import NodeHealth, Result
from ray_rl_debug.model.snapshot import LogLine

_GENERIC = frozenset({"RRD600"})
"""An exit status alone: said only when nothing else explains it."""


def scan(node: NodeHealth) -> Iterator[Result]:
    """The logs of a start that failed hold the cause, often not in the file one reads first: the driver hangs in silence while raylet.err says why.

    Evidence: Lines that match known errors of Ray, Slurm and the frameworks.
    Remedy: Do what the error's own remedy says.
    Not this when: The line is only the consequence of an earlier one; those are marked so.
    """
    if node.log_lines is None:
        return
    by_signature: dict[str, list[LogLine]] = defaultdict(list)
    for line in node.log_lines:
        by_signature[line.signature].append(line)
    told = {s.id for s in map(signatures.find, by_signature) if s is not None and s.effect != "info"}
    told = told - _GENERIC or told
    if not told:
        yield ok("no known error that ended anything")
    yield from (_told(id_, by_signature[id_]) for id_ in sorted(told, key=lambda i: _rank(i, by_signature[i])))


def _told(signature_id: str, lines: list[LogLine]) -> Result:
    signature = signatures.find(signature_id)
    assert signature is not None
    first = lines[0]
    more = f" (and {len(lines) - 1} more like it)" if len(lines) > 1 else ""
    text = f"{signature_id} {signature.title}: {first.file}:{first.line_number}: {first.text.strip()}{more}"
    say = fail if signature.effect == "critical" else warn
    return say(text, "none", " ".join(signature.cause.split()), " ".join(signature.remedy.split()))


def _rank(signature_id: str, lines: list[LogLine]) -> tuple[bool, float, str]:
    signature = signatures.find(signature_id)
    times = [line.time_s for line in lines if line.time_s is not None]
    return signature is not None and signature.effect != "critical", min(times, default=float("inf")), signature_id
