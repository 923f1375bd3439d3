"""RRD823 CUDA's and ROCm's device variables are set together

Story
    Slurm sets CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES in every step. verl refuses to start a worker that has both, and values that differ
    hide devices.

Evidence
    The variables in this process and in the raylet's environment.

Remedy
    Unset the one of the other vendor before ray start.

Not this when
    Only one vendor's variable is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ray_rl_debug.doctor.answers import fail, ok, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Health, Result

ID = "RRD823"
NAME = "CUDA's and ROCm's device variables are set together"
CHECK = "gpu.env"
_OTHERS = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        places: list[tuple[str, Mapping[str, str]]] = [("", node.env)]
        places += [(f" (raylet {p.pid})", p.env) for p in own_raylets(node) if p.env]
        for place, env in places:
            cuda, others = env.get("CUDA_VISIBLE_DEVICES"), [v for v in _OTHERS if env.get(v)]
            if not cuda or not others:
                if not place:
                    yield ok(node.name, f"CUDA_VISIBLE_DEVICES={cuda}" if cuda else "no device variable clashes")
                continue
            text = f"CUDA_VISIBLE_DEVICES={cuda}, " + ", ".join(f"{v}={env[v]}" for v in others) + place
            differs = any(env[v] != cuda for v in others)
            say = fail if differs else warn
            yield say(node.name, text, "one of them", "verl refuses to start its workers", f"unset {' '.join(others)} before ray start")
