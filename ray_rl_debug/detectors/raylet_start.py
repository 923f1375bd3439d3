"""RRD406 Ray does not start

Story
    ray.init or a worker cannot register: too many workers start on too few cores, the GCS is dead, a port is taken, the
    address is of another interface, a token is refused.

Evidence
    A driver in connect below init, and the raylet's own log lines.

Remedy
    State num_cpus, and let the doctor look.

Not this when
    Start-up is only slow and moves.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug import signatures
from ray_rl_debug.analyze.places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.detectors.scene import Found, Scene, make_finding, stack_evidence
from ray_rl_debug.report import Cause, Certainty, Evidence
from ray_rl_debug.snapshot import LogLine

ID = "RRD406"
NAME = "Ray does not start"
CAUSE = Cause.RAYLET_START


_TELLING = ("regist", "raylet", "gcs", "token", "port-taken", "version", "node-start", "too-many", "permission", "socket-path")
"""Parts of the names of known errors that keep a process out."""


def detect(scene: Scene) -> Iterator[Found]:
    """Processes that cannot get into Ray, with what the logs say."""
    lines = [line for node in scene.view.snapshot.nodes for line in node.log_lines if _is_telling(line)]
    for one in scene.view:
        if one.kind is not Kind.RAY_INIT or one.motion is Motion.MOVING or one.is_stopped:
            continue
        logs = [*(line for line in one.process.log_lines if _is_telling(line)), *lines][:4]
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY if logs else Certainty.POSSIBLE,
            f"{one.where()} is stuck in ray.init: the raylet does not let it in",
            who=[one.who()],
            evidence=[stack_evidence(one), *(Evidence(kind="log", where=line.file, text=line.text) for line in logs)],
            remedy=[
                "give Ray the number of CPUs that the scheduler allows: ray start --num-cpus, ray.init(num_cpus=...)",
                "rayrl-debug doctor --preflight names what is too small",
            ],
            phase="init",
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


def _is_telling(line: LogLine) -> bool:
    signature = signatures.find(line.signature)
    return signature is not None and signature.layer in ("ray", "os") and any(part in signature.slug for part in _TELLING)
