"""A job script that somebody has, beside the one that would be rendered: what is taken over, what differs, which faults go."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.slurm.lint import Fault, lint_script
from ray_rl_debug.slurm.script import Script, parse

_SAME: Mapping[str, str] = {
    "mem": "mem",
    "time": "time",
    "partition": "partition",
    "account": "account",
    "qos": "qos",
    "constraint": "constraint",
    "reservation": "reservation",
    "job-name": "job_name",
}
"""Options of sbatch that are parameters as they are."""
_ANSWERED = frozenset({"output", "error", "open-mode", "ntasks", "ntasks-per-node", "tasks-per-node", "signal", "requeue", "no-requeue", "gpu-bind"})
"""Options that the rendered script answers in its own way."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What an existing script asks of Slurm, as parameters of a job."""

    parameters: dict[str, object]
    left: tuple[tuple[int, str], ...]
    """Lines and options that no parameter can hold."""


def read_request(script: Script) -> Request:
    """The parameters that the ``#SBATCH`` lines stand for."""
    found: dict[str, object] = {}
    left: list[tuple[int, str]] = []
    tasks = script.directives.get("ntasks-per-node", script.directives.get("tasks-per-node", (0, "1")))[1]
    for name, (number, value) in script.directives.items():
        if name in _SAME and value:
            found[_SAME[name]] = value
        elif name == "nodes" and value.isdigit():
            found["nodes"] = int(value)
        elif name == "cpus-per-task" and value.isdigit() and tasks.isdigit():
            found["cpus_per_node"] = int(value) * int(tasks)
        elif name == "gpus-per-node" and re.fullmatch(r"([\w.-]+:)?\d+", value):
            found["gpus_per_node"] = value
        elif name == "gres" and (gpus := re.fullmatch(r"gpu:((?:[\w.-]+:)?\d+)", value)):
            found |= {"gpus_per_node": gpus[1], "gpu_flag": "gres"}
        elif name == "gpus-per-task" and value.isdigit() and tasks.isdigit():
            found["gpus_per_node"] = str(int(value) * int(tasks))
        elif name not in _ANSWERED and name != "exclusive":
            left.append((number, f"--{name}={value}" if value else f"--{name}"))
    found["exclusive"] = "exclusive" in script.directives
    return Request(parameters=found, left=tuple(left))


def compare(old_text: str, old_name: str, new_text: str, left: Sequence[tuple[int, str]]) -> str:
    """The difference of the requests as a unified diff, options that were not taken over, and the faults that go."""
    old, new = parse(old_text), parse(new_text)
    lines = list(difflib.unified_diff(_request_lines(old), _request_lines(new), old_name, "rendered", lineterm="", n=99))
    if not lines:
        lines = [f"the same request as {old_name}"]
    if left:
        lines += ["", "not copied; add to the new script what it needs:"]
        lines += [f"  {old_name}:{number}  #SBATCH {option}" for number, option in left]
    faults, remaining = lint_script(old_text, old_name), {f.id for f in lint_script(new_text, "rendered")}
    gone = [f for f in faults if f.id not in remaining]
    lines += ["", f"{len(gone)} faults of {old_name} that the rendered script does not have:" if gone else f"no known fault in {old_name}"]
    lines += _told(gone)
    return "\n".join(lines)


def _request_lines(script: Script) -> list[str]:
    return [f"#SBATCH --{name}={value}" if value else f"#SBATCH --{name}" for name, (_, value) in sorted(script.directives.items())]


def _told(faults: Sequence[Fault]) -> Iterator[str]:
    """One entry for each kind of fault, with all of its lines."""
    for one in dict.fromkeys(f.id for f in faults):
        same = [f for f in faults if f.id == one]
        where = ", ".join(str(f.line) for f in same)
        yield f"  {one} {same[0].name} (line{'s' * (len(same) > 1)} {where})"
        yield f"      {same[0].reason}"
